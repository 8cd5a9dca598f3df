"""Writes a backup with argon2-cffi 25.1.0 and PyCryptodome 3.24.1, from the format's documentation alone.

    python3 -m venv env && env/bin/pip install argon2-cffi==25.1.0 pycryptodome==3.24.1
    env/bin/python backup.py > backup.json
"""

import json
from importlib.metadata import version
from struct import pack

from argon2.low_level import Type, hash_secret_raw
from Crypto.Cipher import ChaCha20_Poly1305

PASSWORD = "pässword of a test"
MEMORY, PASSES, LANES = 1024, 2, 2
SALT, NONCE = bytes(range(16)), bytes(range(100, 124))
ORDER = "orders/" + "0a" * 32 + "/"
WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
ENTRIES = {
    "index": b"41",
    ORDER: b"",
    ORDER + "journal": b'{"n":1}\n',
    ORDER + "request": bytes(range(256)),
    "rescue": WORDS.encode(),
}

archive = pack(">I", 1)
for path, content in sorted(ENTRIES.items()):
    archive += pack(">H", len(path)) + path.encode() + pack(">I", len(content)) + content
key = hash_secret_raw(PASSWORD.encode(), SALT, PASSES, MEMORY, LANES, 32, Type.ID, 0x13)
header = b"CSBACKUP" + pack(">HIII", 1, MEMORY, PASSES, LANES) + SALT + NONCE
cipher = ChaCha20_Poly1305.new(key=key, nonce=NONCE)
cipher.update(header)
sealed, tag = cipher.encrypt_and_digest(archive)
made_by = f"argon2-cffi {version('argon2-cffi')}, PyCryptodome {version('pycryptodome')}"
entries = {path: content.hex() for path, content in ENTRIES.items()}
print(json.dumps({"made_by": made_by, "password": PASSWORD, "entries": entries, "backup": (header + sealed + tag).hex()}, indent=1))
