"""Splits the fixtures of a family into seeds: whole lines, responses and records."""

import json
import pathlib
import sys

cases, corpus, family = sys.argv[1:4]
for line in pathlib.Path(cases).read_text().splitlines()[:20]:
    case = json.loads(line)
    name = case["id"]
    pathlib.Path(corpus, "batch", name).write_text(line)
    pathlib.Path(corpus, family, name).write_text(json.dumps(case["response"]))
    if case.get("order"):
        pathlib.Path(corpus, "record", name).write_text(json.dumps(case["order"]))
