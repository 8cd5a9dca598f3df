"""Whole cases: the same verdicts and the same bytes as the native program, one at a time and many at once."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import countersign_swap
from cases import FIXTURES, REGISTRY, VECTORS, accepted, cut, families, native, parse, program, rejected, write

needs_program = pytest.mark.skipif(program() is None, reason="no native program: cargo build -p countersign-cli, or set COUNTERSIGN")


@pytest.mark.parametrize("family", families())
def test_accepted_cases_have_the_artefacts_of_outside_tools(family: str, registry: countersign_swap.Registry) -> None:
    cases = accepted(f"{family}.jsonl")
    outputs = list(countersign_swap.verify_many([case.line for case in cases], registry))
    assert len(outputs) == len(cases)
    for case, output in zip(cases, outputs):
        result = json.loads(output)
        assert result["ok"], output
        assert (result["id"], result["order_id"].lower()) == (case.id, case.expect["order_id"].lower())
        assert result["artefacts"] == case.expect["artefacts"], case.id


@pytest.mark.parametrize("family", families())
def test_each_change_meets_its_own_refusal_or_warning(family: str) -> None:
    for case in rejected(family):
        output = json.loads(countersign_swap.verify_line(case.line, countersign_swap.Registry(case.registry), countersign_swap.Policy(case.policy)))
        if case.warning is None:
            assert (output["error"]["code"], output["error"]["at"]) == (case.code, case.at), case.id
        else:
            assert case.warning in [warning["code"] for warning in output["warnings"]], case.id


@needs_program
@pytest.mark.parametrize("family", families())
def test_fixtures_give_the_bytes_of_the_native_program(family: str, tmp_path: Path) -> None:
    plain = [case.line for case in accepted(f"{family}.jsonl")]
    plain += [case.line for case in rejected(family) if (case.registry, case.policy) == (REGISTRY, "{}") and "\n" not in case.line]
    assert len(plain) > 100
    assert list(countersign_swap.verify_many(plain, countersign_swap.Registry(REGISTRY))) == native(plain, REGISTRY, tmp_path)


@needs_program
def test_changed_pins_and_limits_give_the_bytes_of_the_native_program(tmp_path: Path) -> None:
    cases = [case for family in families() for case in rejected(family) if (case.registry, case.policy) != (REGISTRY, "{}")]
    # One run of the program for each pair of registry and policy: a sample is enough.
    groups = itertools.groupby(cases, lambda case: (case.registry, case.policy))
    for (registry, policy), group in itertools.islice(groups, 0, None, 8):
        lines = [case.line for case in group]
        outputs = countersign_swap.verify_many(lines, countersign_swap.Registry(registry), countersign_swap.Policy(policy))
        assert list(outputs) == native(lines, registry, tmp_path, policy)


@needs_program
def test_another_generation_gives_the_bytes_of_the_native_program(tmp_path: Path) -> None:
    registry = parse(REGISTRY)
    for asset in registry['"assets"']:
        if asset['"chain"'].startswith('"solana'):
            asset['"htlc"']['"generation"'] = '"audited_2025_11"'
    lines = [cut(line) for line in (FIXTURES / "accept" / "solana.audited_2025_11.jsonl").read_text().splitlines()]
    outputs = list(countersign_swap.verify_many(lines, countersign_swap.Registry(write(registry))))
    assert all(json.loads(output)["ok"] for output in outputs)
    assert outputs == native(lines, write(registry), tmp_path)


@needs_program
@pytest.mark.skipif(not VECTORS.is_dir(), reason="the shared vectors are not beside this project")
def test_shared_vectors_give_the_bytes_of_the_native_program(tmp_path: Path) -> None:
    registry = (VECTORS / "registry.json").read_text()
    for path in sorted(VECTORS.glob("*.jsonl")):
        lines = [cut(line) for line in path.read_text().splitlines()]
        outputs = list(countersign_swap.verify_many(lines, countersign_swap.Registry(registry)))
        assert outputs == native(lines, registry, tmp_path)
        assert {json.loads(output)["ok"] for output in outputs} == {"hostile" not in path.name}


def test_many_lines_give_what_each_line_gives(registry: countersign_swap.Registry) -> None:
    lines: list[str | bytes] = [case.line for family in families() for case in accepted(f"{family}.jsonl")]
    lines += ["", "no JSON", b"\xff\xfe", "{}", '{"id": "x"}', lines[0].encode() if isinstance(lines[0], str) else b""]
    one_by_one = [countersign_swap.verify_line(line, registry) for line in lines]
    for threads in (1, 2, 3, 64, None):
        assert list(countersign_swap.verify_many(lines, registry, threads=threads)) == one_by_one
    assert list(countersign_swap.verify_many(iter(lines), registry, None, 2)) == one_by_one
    assert list(countersign_swap.verify_many([], registry)) == []


def test_a_policy_holds_for_every_line(registry: countersign_swap.Registry) -> None:
    line = next(case.line for case in accepted("evm.jsonl") if case.id == "evm-token-approval-unlimited")
    policy = countersign_swap.Policy('{"refused_warnings": ["unlimited_approval"]}')
    assert json.loads(countersign_swap.verify_line(line, registry))["ok"]
    for output in [countersign_swap.verify_line(line, registry, policy), *countersign_swap.verify_many([line] * 3, registry, policy)]:
        assert json.loads(output)["error"]["code"] == "warning_refused"
