"""Splits the fixtures of a family into seeds: whole lines, responses, records and keys; the registry is a seed too."""

import json
import pathlib
import sys

cases, corpus, family = sys.argv[1:4]
registry = pathlib.Path(cases).parent.parent / "registry.json"
pathlib.Path(corpus, "registry", "fixtures").write_text(registry.read_text())
for line in pathlib.Path(cases).read_text().splitlines()[:20]:
    case = json.loads(line)
    name = case["id"]
    pathlib.Path(corpus, "batch", name).write_text(line)
    pathlib.Path(corpus, "json", name).write_text(line)
    pathlib.Path(corpus, family, name).write_text(json.dumps(case["response"]))
    if case.get("order"):
        pathlib.Path(corpus, "record", name).write_text(json.dumps(case["order"]))
    if key := (case.get("wallet") or {}).get("secret_key"):
        pathlib.Path(corpus, "signatures", name).write_text(key)
