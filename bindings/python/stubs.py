"""Writes the docstrings of the compiled module into its stubs, where editors look for them. A test checks that they are the same.

    python stubs.py
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import countersign_swap._native

STUB = Path(__file__).parent / "python" / "countersign_swap" / "_native.pyi"


def documented(stub: str) -> str:
    """The stub with the docstrings of the module instead of its own."""
    lines = stub.splitlines()
    # From the end, so that the places before stay as they are.
    for node, item in reversed(list(items(ast.parse(stub), countersign_swap._native))):
        put(lines, node, inspect.getdoc(item) or "")
    return "\n".join(lines) + "\n"


def items(parent: ast.Module | ast.ClassDef, owner: Any) -> Any:
    """The classes, functions and properties of a stub, and what they are in the module."""
    for node in parent.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            item = getattr(owner, node.name)
            yield node, item
            if isinstance(node, ast.ClassDef):
                yield from items(node, item)


def put(lines: list[str], node: ast.ClassDef | ast.FunctionDef, text: str) -> None:
    body = node.body[0]
    assert isinstance(body, ast.Expr) or isinstance(node, ast.ClassDef), node.name
    indent = " " * (node.col_offset + 4)
    doc = [f"{indent}{line}".rstrip() for line in f'"""{text}'.splitlines()]
    doc = [*doc, f'{indent}"""'] if len(doc) > 1 else [f'{doc[0]}"""']
    if isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant) and isinstance(body.value.value, str):
        assert body.end_lineno is not None
        lines[body.lineno - 1 : body.end_lineno] = doc
    elif isinstance(node, ast.ClassDef):
        first = min([body.lineno, *(each.lineno for each in getattr(body, "decorator_list", []))])
        lines[first - 1 : first - 1] = doc
    else:
        assert lines[body.lineno - 1].endswith(": ..."), node.name
        lines[body.lineno - 1 : body.lineno] = [lines[body.lineno - 1].removesuffix(" ..."), *doc]


if __name__ == "__main__":
    STUB.write_text(documented(STUB.read_text()))
