"""Writes seeds for every target: lines, responses, records, keys and the registry of the fixtures, and honest readings of each chain."""

import json
import pathlib
import sys

fixtures, corpus = map(pathlib.Path, sys.argv[1:3])


def seed(target, name, content):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


seed("registry", "fixtures", (fixtures / "registry.json").read_text())
for family in ["evm", "tron", "starknet", "solana", "sui", "bitcoin"]:
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
    # The first bytes choose the order, what happened on its chain, and what is known: see src/reader.rs. Without further bytes, every
    # answer is honest.
    for order in range(8):
        for story in range(8):
            for known in range(2):
                seed(f"reader_{family}", f"{order}-{story}-{known}", bytes([order, story, known]))

# The number of calls and the status, then a body: see fuzz_targets/json_rpc.rs.
replies = {
    "one": (1, '{"jsonrpc":"2.0","id":0,"result":{"number":"0x1"}}'),
    "batch": (2, '[{"id":1,"result":[1,"2",null]},{"id":0,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}]'),
    "refused": (2, '{"id":null,"error":{"code":-32600,"message":"no batches","data":{"revert_error":{"error":{"error":"Calls:\\nlate"}}}}}'),
}
for name, (calls, body) in replies.items():
    seed("json_rpc", name, bytes([calls, 0]) + body.encode())
