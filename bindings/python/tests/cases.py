"""The project's fixtures, and JSON text that is changed without being read.

A JSON reader would lose duplicate keys, escapes and the spelling of numbers, which is what some cases are about.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
VECTORS = ROOT.parent / "shared" / "vectors"
REGISTRY = (FIXTURES / "registry.json").read_text()
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Case(NamedTuple):
    """An accepted case: its text, its documents as they are spelt, and what outside tools expect."""

    id: str
    line: str
    documents: dict[str, str]
    expect: dict[str, Any]

    @property
    def key(self) -> str:
        """The secret key of the wallet context, which must have one."""
        key: str = json.loads(self.documents["wallet"])["secret_key"]
        return key


def cut(line: str) -> str:
    """The input part of a fixture's line."""
    head, separator, _ = line.partition(',"note":')
    assert separator, line
    return head + "}"


def case_of(line: str) -> Case:
    documents = {json.loads(key): write(value) for key, value in parse(cut(line)).items()}
    return Case(json.loads(documents["id"]), cut(line), documents, json.loads(line)["expect"])


@functools.cache
def accepted(file: str) -> list[Case]:
    return [case_of(line) for line in (FIXTURES / "accept" / file).read_text().splitlines()]


def families() -> list[str]:
    return sorted(path.stem for path in (FIXTURES / "reject").glob("*.json"))


@functools.cache
def all_accepted() -> dict[str, Case]:
    """The accepted cases of the plain registry."""
    return {case.id: case for family in families() for case in accepted(f"{family}.jsonl")}


def parse(text: str) -> Any:
    """Objects and arrays become dicts and lists; keys and scalars stay as they are spelt, quotes included."""
    tokens = TOKEN.findall(text)
    at = 0

    def value() -> Any:
        nonlocal at
        token = tokens[at]
        at += 1
        if token not in "{[":
            return token
        members: dict[str, Any] = {}
        items: list[Any] = []
        while tokens[at] not in "}]":
            at += tokens[at] == ","
            if token == "{":
                key = tokens[at]
                at += 2
                assert key not in members, key
                members[key] = value()
            else:
                items.append(value())
        at += 1
        return members if token == "{" else items

    return value()


def write(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ",".join(f"{key}:{write(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(write, tree)) + "]"
    text: str = tree
    return text


def place(tree: Any, pointer: str) -> tuple[Any, Any]:
    """What holds the value at a JSON pointer, and the value's key or index in it."""
    parent: Any = None
    key: Any = None
    for step in pointer.split("/")[1:]:
        parent, tree = tree, None
        if isinstance(parent, list):
            key = len(parent) if step == "-" else int(step)
            tree = parent[key] if key < len(parent) else None
        else:
            name = step.replace("~1", "/").replace("~0", "~")
            key = next((key for key in parent if json.loads(key) == name), json.dumps(name))
            tree = parent.get(key)
    return parent, key


def edit(tree: Any, change: dict[str, Any]) -> None:
    """Removes and sets values at JSON pointers. A pointer to a new member adds it, and `-` appends to an array."""
    for pointer in change.get('"remove"', []):
        parent, key = place(tree, json.loads(pointer))
        del parent[key]
    for pointer, value in change.get('"set"', {}).items():
        parent, key = place(tree, json.loads(pointer))
        if isinstance(parent, list) and key == len(parent):
            parent.append(value)
        else:
            parent[key] = value


class Rejected(NamedTuple):
    id: str
    line: str
    registry: str
    policy: str
    code: str | None
    at: str | None
    warning: str | None


@functools.cache
def rejected(family: str) -> list[Rejected]:
    """The reject cases of a family with their change made."""
    return [rejected_case(case) for case in parse((FIXTURES / "reject" / f"{family}.json").read_text())['"cases"']]


def rejected_case(case: dict[str, Any]) -> Rejected:
    line = parse(all_accepted()[json.loads(case['"base"'])].line)
    edit(line, case)
    text = write(line)
    for find, replacement in case.get('"raw"', []):
        assert json.loads(find) in text, case
        text = text.replace(json.loads(find), json.loads(replacement))
    registry = REGISTRY
    if '"registry"' in case:
        tree = parse(REGISTRY)
        edit(tree, case['"registry"'])
        registry = write(tree)
    read = {name: json.loads(case.get(f'"{name}"', "null")) for name in ("id", "code", "at", "warning")}
    return Rejected(line=text, registry=registry, policy=write(case.get('"policy"', {})), **read)


@functools.cache
def program() -> str | None:
    """The native program: `COUNTERSIGN`, or what a build of this project left in its target folder."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [Path(os.environ.get("COUNTERSIGN", "")), target / "release" / "countersign", target / "debug" / "countersign"]
    return next((str(path) for path in places if path.is_file()), None)


def native(lines: list[str], registry: str, folder: Path, policy: str = "{}") -> list[str]:
    """What `countersign batch` prints for these lines."""
    (folder / "registry.json").write_text(registry)
    (folder / "policy.json").write_text(policy)
    command = [str(program()), "batch", "--registry", "registry.json", "--policy", "policy.json", "--threads", "2"]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, cwd=folder, encoding="utf-8")
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()
