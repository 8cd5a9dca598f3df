"""Unpacks the stored inputs of a target into a folder, or stores those of a minimised folder.

    corpus.py unpack TARGET FOLDER
    corpus.py keep TARGET FOLDER

Each target has one file, `corpus/TARGET.jsonl.xz`, with a line of base64 per input. The shortest inputs come first, up to 400 kB in total.
The name of an input is its hash, so unpacking twice changes nothing.
"""

import base64
import hashlib
import json
import lzma
import pathlib
import sys

MOST = 400_000

what, target, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
kept = pathlib.Path(__file__).parent / "corpus" / f"{target}.jsonl.xz"
if what == "unpack":
    folder.mkdir(parents=True, exist_ok=True)
    for line in lzma.open(kept, "rt").read().splitlines() if kept.exists() else []:
        content = base64.b64decode(json.loads(line))
        (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)
elif what == "keep":
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda content: (len(content), content))
    size, lines = 0, []
    for content in inputs:
        size += len(content)
        if size > MOST:
            break
        lines.append(json.dumps(base64.b64encode(content).decode()))
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    print(f"{target}: {len(lines)} of {len(inputs)} inputs, {kept.stat().st_size} bytes")
else:
    sys.exit(__doc__)
