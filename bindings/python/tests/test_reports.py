"""Public reports about wallets, by the table that the program is tested with: what signers and wallets give, and the answer that is right.

The inputs are not a part of this project; without them the test is skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import countersign_swap
from cases import parse, write

ROOT = Path(__file__).resolve().parents[3]
INPUTS = ROOT.parent / "shared" / "reports"


def part(tree: Any, name: str) -> str | None:
    """A member of a case, as it is spelt there."""
    value = tree.get(f'"{name}"')
    return None if value is None else write(value)


def answer(report: dict[str, Any]) -> dict[str, Any] | None:
    """What the package says of a line of the table; nothing for what only the program reads."""
    tree = parse((INPUTS / report["case"]).read_text())
    registry = countersign_swap.Registry((INPUTS / report["registry"]).read_bytes())
    request, response = part(tree, "request"), part(tree, "response")
    assert request and response
    order = countersign_swap.Order.verify(request, response, registry, record=part(tree, "order"))
    if report["command"] == "explain":
        return {"warnings": order.warnings()}
    if report["command"] == "match":
        return match(order, (INPUTS / report["input"]).read_bytes())
    unsigned = order.prepare(part(tree, "wallet") or "{}")
    if report["command"] == "attach":
        attach(unsigned, (INPUTS / report["input"]).read_bytes())
    return {"warnings": unsigned.warnings()}


def attach(unsigned: countersign_swap.UnsignedOrder, content: bytes) -> None:
    if not content.startswith(b"{"):
        unsigned.attach_transaction(content)
        return
    for name, signature in json.loads(content).items():
        unsigned.attach(name, signature if isinstance(signature, str) else json.dumps(signature))


def match(order: countersign_swap.Order, content: bytes) -> dict[str, Any] | None:
    # PSBTs are attached; only the program reads one that a wallet made.
    if content.startswith((b"psbt", b"cHNidP")):
        return None
    try:
        sent = content.decode("ascii").strip()
    except UnicodeDecodeError:
        sent = content.hex()
    members = json.loads(sent) if sent.startswith("{") else {}
    if "receipts" in members or "logs" in members or ("status" in members and "nonce" not in members):
        return {"paid": order.find_payment(sent)}
    matched = order.match_with_warnings(sent)
    # The role alone is given only where nothing has to be read.
    if all(notice.severity == "info" for notice in matched.warnings):
        assert order.matches(sent) == matched.role
    else:
        with pytest.raises(countersign_swap.Refusal, match="match it with warnings"):
            order.matches(sent)
    return {"role": matched.role, "changed": matched.warnings}


def codes(found: dict[str, Any], member: str) -> list[str]:
    return [notice.code for notice in found.get(member, [])]


@pytest.mark.skipif(not INPUTS.exists(), reason="the inputs are not there")
def test_every_report_gives_the_answer_that_the_program_gives() -> None:
    count = 0
    for line in (ROOT / "fixtures" / "reports.jsonl").read_text().splitlines():
        report = json.loads(line)
        try:
            found = answer(report)
        except countersign_swap.Refusal as refusal:
            assert refusal.code == report.get("code"), f"{line}\n{refusal}"
            said = json.dumps([str(refusal), refusal.expected, refusal.actual], ensure_ascii=False)
            assert report.get("says", "") in said, f"{line}\n{said}"
            count += 1
            continue
        if found is None:
            continue
        count += 1
        assert report.get("code") is None, line
        assert found.get("role") == report.get("role"), line
        assert codes(found, "changed") == report.get("changed", []), line
        assert set(report.get("warnings", [])) <= set(codes(found, "warnings")), line
    assert count > 75
