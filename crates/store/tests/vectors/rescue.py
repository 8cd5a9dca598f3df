"""Derives the vectors of the rescue phrase with bip_utils 2.12.3 and Python's hashlib, none of which the crate uses.

    python3 -m venv env && env/bin/pip install bip_utils==2.12.3
    env/bin/python rescue.py > rescue.json
"""

import hashlib
import itertools
import json
from importlib.metadata import version

from bip_utils import Bip32Slip10Secp256k1, Bip39SeedGenerator

PASSPHRASE = "countersign rescue v1"
PURPOSE = int.from_bytes(b"csig", "big")
TAG = hashlib.sha256(b"countersign/secret/v1").digest()
# Test phrases that everybody knows, from BIP-39's own vectors: never to be used.
PHRASES = [
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
]
INDICES = [0, 1, 2, 19, 2**31 - 1]
BRANCHES = [0, 1, 3, 65535]
BRANCHED = 3


def child(master, branch, role, index):
    above = f"m/{PURPOSE}'" if branch == 0 else f"m/{PURPOSE}'/{BRANCHED}'/{branch}'"
    return master.DerivePath(f"{above}/{role}'/{index}'")


def pair(key):
    return {"public_key": key.PublicKey().RawCompressed().ToHex()[2:], "secret_key": key.PrivateKey().Raw().ToHex()}


vectors = []
for phrase in PHRASES:
    master = Bip32Slip10Secp256k1.FromSeed(Bip39SeedGenerator(phrase).Generate(PASSPHRASE))
    for branch, index in itertools.product(BRANCHES, INDICES):
        secret = hashlib.sha256(TAG + TAG + child(master, branch, 0, index).PrivateKey().Raw().ToBytes()).digest()
        vectors.append({
            "phrase": phrase,
            "branch": branch,
            "index": index,
            "secret": secret.hex(),
            "secret_hash": hashlib.sha256(secret).hexdigest(),
            "refund_key": pair(child(master, branch, 1, index)),
            "redeem_key": pair(child(master, branch, 2, index)),
        })
print(json.dumps({"made_by": f"bip_utils {version('bip_utils')}", "vectors": vectors}, indent=1))
