#!/usr/bin/env python3
"""Writes the lines of the fixtures, accepted and refused, as `countersign batch` reads them.

    lines.py FIXTURES [VECTORS] OUT

OUT gets one folder for each pair of a registry and a policy that a case asks for: `lines.jsonl`, `registry.json` and, unless
the policy is the default one, `policy.json`.
"""
import json
import sys
from pathlib import Path

NOTE = ',"note":'


def input_text(line: str) -> str:
    """The input is cut from a case's line, never written again: spellings and duplicate keys stay."""
    return line.rstrip("\n").split(NOTE)[0] + "}"


def keys(pointer: str) -> list[str]:
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def changed(value, change: dict):
    value = json.loads(json.dumps(value))
    for pointer in change.get("remove", []):
        *path, last = keys(pointer)
        parent = value
        for key in path:
            parent = parent[int(key) if isinstance(parent, list) else key]
        del parent[int(last) if isinstance(parent, list) else last]
    for pointer, new in change.get("set", {}).items():
        *path, last = keys(pointer)
        parent = value
        for key in path:
            parent = parent[int(key) if isinstance(parent, list) else key]
        if isinstance(parent, dict):
            parent[last] = new
        elif last == "-":
            parent.append(new)
        else:
            parent[int(last)] = new
    return value


def main() -> None:
    fixtures, *vectors, out = map(Path, sys.argv[1:])
    registry = json.loads((fixtures / "registry.json").read_text())
    groups: dict[tuple[str, str | None], list[str]] = {}

    def add(line: str, registry, policy=None) -> None:
        groups.setdefault((json.dumps(registry), policy and json.dumps(policy)), []).append(line)

    bases = {}
    for path in sorted((fixtures / "accept").glob("*.jsonl")):
        family, _, generation = path.name.removesuffix(".jsonl").partition(".")
        pinned = json.loads(json.dumps(registry))
        if generation:
            for asset in pinned["assets"]:
                if asset["htlc"]["schema"].startswith(f"{family}:"):
                    asset["htlc"]["generation"] = generation
        for line in path.read_text().splitlines():
            add(input_text(line), pinned)
            case = json.loads(line)
            bases[case["id"]] = {key: case[key] for key in ("id", "request", "response", "order", "wallet") if key in case}, pinned
    for path in sorted((fixtures / "reject").glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            base, pinned = bases[case["base"]]
            line = json.dumps(changed(base, case) | {"id": case["id"]}, ensure_ascii=False, separators=(",", ":"))
            for old, new in case.get("raw", []):
                line = line.replace(old, new)
            add(line, changed(pinned, case.get("registry", {})), case.get("policy"))
    for folder in vectors:
        pinned = json.loads((folder / "registry.json").read_text())
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_text().splitlines():
                add(input_text(line), pinned)

    for number, ((pinned, policy), lines) in enumerate(groups.items()):
        folder = out / f"{number:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "registry.json").write_text(pinned)
        (folder / "lines.jsonl").write_text("".join(f"{line}\n" for line in lines))
        if policy:
            (folder / "policy.json").write_text(policy)
    print(f"{sum(map(len, groups.values()))} lines, {len(groups)} pairs of registry and policy")


main()
