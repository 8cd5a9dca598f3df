"""Writes seeds for every target: the fixtures' lines, responses, records, keys and registry, and honest readings of each chain."""

import base64
import json
import pathlib
import sys

fixtures, corpus = map(pathlib.Path, sys.argv[1:3])


def seed(target, name, content):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


# In the order of `Family::ALL`.
families = [family for family in json.loads((fixtures / "corpus/manifest.json").read_text())["cases"] if family != "total"]

seed("registry", "fixtures", (fixtures / "registry.json").read_text())
for family in families:
    for line in (fixtures / f"accept/{family}.jsonl").read_text().splitlines()[:20]:
        case = json.loads(line)
        name = case["id"]
        seed("batch", name, line)
        seed("json", name, line)
        seed(family, name, json.dumps(case["response"]))
        if case.get("order"):
            seed("record", name, json.dumps(case["order"]))
        if key := (case.get("wallet") or {}).get("secret_key"):
            seed("signatures", name, key)
    # The first bytes choose the order, what happened on its chain, and what is already known: see src/reader.rs.
    # Every answer after the end of the input is honest.
    for order in range(8):
        for story in range(8):
            for known in range(2):
                seed(f"reader_{family}", f"{order}-{story}-{known}", bytes([order, story, known]))

# The family and the order, followed by a transaction that a wallet has signed: see fuzz_targets/received.rs.
for place, family in enumerate(families):
    for order, line in enumerate((fixtures / f"accept/{family}.jsonl").read_text().splitlines()[:16]):
        artefacts = json.loads(line)["expect"]["artefacts"]
        for name, artefact in artefacts.items():
            text = (artefact or {}).get("signed") or (artefact or {}).get("transaction_data") or (artefact or {}).get("raw_data")
            if isinstance(text, str):
                is_hex = all(digit in "0123456789abcdefABCDEF" for digit in text.removeprefix("0x"))
                signed = bytes.fromhex(text.removeprefix("0x")) if is_hex else base64.b64decode(text)
                seed("received", f"{family}-{order}-{name}", bytes([place, order]) + signed)
                if family == "solana":
                    # A node's report on the effects of the transaction.
                    effect = {"transaction": [base64.b64encode(signed).decode(), "base64"], "meta": {"err": None}}
                    seed("received", f"{family}-{order}-{name}-effect", bytes([place, order]) + json.dumps(effect).encode())
word = "01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65"
for place, prefix in [(0, "0x"), (1, "")]:
    log = {"address": prefix + "00" * 20, "topics": [prefix + word] * 4, "data": prefix}
    receipt = {"transactionHash": prefix + word, "status": "0x1", "logs": [log]}
    info = {"id": word, "receipt": {"result": "SUCCESS"}, "log": [log]}
    seed("received", f"{families[place]}-effect", bytes([place, 0]) + json.dumps(info if place else receipt).encode())

# The kind, followed by a document: see fuzz_targets/documents.rs.
entries = [
    '{"at":"2025-11-01T00:00:00Z","event":"sending","what":"funding"}',
    '{"at":"2025-11-01T00:00:00Z","event":"secret_leaving","path":"own"}',
    '{"at":"2025-11-01T00:00:00Z","event":"ended","outcome":"complete"}',
]
for number, entry in enumerate(entries):
    seed("documents", f"entry-{number}", b"\1" + entry.encode())
seed("documents", "phrase", b"\2legal winner thank year wave sausage worth useful legal winner thank yellow")
seed("documents", "policy", b"\4{}")
seed("documents", "response", b'\3{"status":"Ok","result":[]}')

# The order and the question: see src/nodes.rs. After the end of the input, every answer is the first recorded one for
# such a request.
for order in range(0, 72, 3):
    for question in [*range(8), 192, 224, 225]:
        seed("nodes", f"{order}-{question}", bytes([order, question]))
        seed("nodes", f"{order}-{question}-any", bytes([order, question]) + bytes([200, 10, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]) * 12)

# The owner's options and the order, followed by steps: see crates/client/tests/enumerate/interleave.rs. These steps
# pay, wait and redeem.
steps = bytes([7, 0]) + bytes([130, 0, 0, 0, 0]) * 2 + bytes([3, 0]) + bytes([130, 0, 0, 0, 0]) + bytes([2, 0, 8, 1]) + bytes([130, 0, 0, 0, 0]) * 2
seed("driver", "complete", steps + bytes([3, 0, 8, 0, 8, 1]) + bytes([130, 0, 0, 0, 0]))
seed("driver", "refund", bytes([7, 0]) + bytes([130, 0, 0, 0, 0]) * 2 + bytes([3, 0, 1, 255, 1, 255]) + bytes([130, 0, 0, 0, 0]) * 2)
seed("driver", "faults", bytes(range(256)) * 2)

# The number of calls and the status, followed by a body: see fuzz_targets/json_rpc.rs.
replies = {
    "one": (1, '{"jsonrpc":"2.0","id":0,"result":{"number":"0x1"}}'),
    "batch": (2, '[{"id":1,"result":[1,"2",null]},{"id":0,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}]'),
    "refused": (2, '{"id":null,"error":{"code":-32600,"message":"no batches","data":{"revert_error":{"error":{"error":"Calls:\\nlate"}}}}}'),
}
for name, (calls, body) in replies.items():
    seed("json_rpc", name, bytes([calls, 0]) + body.encode())
