"""No copy of a key stays in the memory of a process, apart from the caller's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holder
from cases import REGISTRY, Case, accepted, families

HOLDER = Path(__file__).with_name("holder.py")

pytestmark = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="memory is read from /proc")


def copies(process: int, pattern: bytes) -> int:
    """How often a pattern occurs in the memory that the process can write."""
    found = 0
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
        for mapping in maps:
            place, access = mapping.split()[:2]
            if access.startswith("rw"):
                start, end = (int(address, 16) for address in place.split("-"))
                memory.seek(start)
                found += memory.read(end - start).count(pattern)
    return found


def search(plan: dict[str, Any], key: bytes, patterns: list[bytes], folder: Path) -> tuple[list[int], list[int], str]:
    """Counts the patterns before and after the step of the plan, in a process of its own."""
    masked = bytes(byte ^ holder.MASK for byte in key).hex()
    (folder / "plan.json").write_text(json.dumps({**plan, "key": masked, "registry": REGISTRY}))
    command = [sys.executable, str(HOLDER), str(folder / "plan.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "before\n"
        try:
            before = [copies(process.pid, pattern) for pattern in patterns]
        except PermissionError:
            process.kill()
            pytest.skip("the memory of another process cannot be read here")
        process.stdin.write("\n")
        process.stdin.flush()
        step = process.stdout.readline()
        after = [copies(process.pid, pattern) for pattern in patterns]
        process.communicate("\n")
        assert process.returncode == 0
    return before, after, step


def raw_key(case: Case) -> bytes:
    """The bytes of a key that is written in hex or base58."""
    if case.id.startswith("solana"):
        solders = pytest.importorskip("solders.keypair")
        return bytes(solders.Keypair.from_base58_string(case.key))
    return bytes.fromhex(case.key.removeprefix("0x").rjust(64, "0"))


def case_with_key(family: str) -> Case:
    """A case whose key has one plain form, and that needs no other document with a key."""
    for case in accepted(f"{family}.jsonl"):
        if '"secret_key"' in case.documents["wallet"] and len(case.key) in (64, 66, 87, 88):
            return case
    raise AssertionError(family)


def plan_of(case: Case) -> dict[str, Any]:
    wallet = {name: value for name, value in json.loads(case.documents["wallet"]).items() if name != "secret_key"}
    documents = {name: case.documents.get(name) for name in ("request", "response", "order")}
    return {**documents, "wallet": json.dumps(wallet), "head": None, "tail": None}


FORMS = ("bytearray", "memoryview", "bytes", "str")
# Raw keys are not text.
KEY_FORMS = [(is_raw, form) for is_raw in (True, False) for form in FORMS if not (is_raw and form == "str")]


@pytest.mark.parametrize(("step", "form"), [("verify_many", "str"), *((step, form) for step in ("verify_line", "prepare") for form in FORMS)])
@pytest.mark.parametrize("family", families())
def test_a_key_in_a_document_stays_there(family: str, step: str, form: str, tmp_path: Path) -> None:
    case = case_with_key(family)
    document = case.documents["wallet"] if step == "prepare" else case.line
    head, tail = document.split(case.key)
    raw = raw_key(case)
    patterns = [case.key.removeprefix("0x").encode(), raw, raw[::-1], raw[:32]]
    plan = {**plan_of(case), "step": step, "form": form, "head": head, "tail": tail}
    before, after, output = search(plan, case.key.encode(), patterns, tmp_path)
    assert '"ok":true' in output or step == "prepare"
    assert before == [1, 0, 0, 0]
    assert after == before


@pytest.mark.parametrize("family", families())
def test_a_key_in_a_wallet_context_is_not_read(family: str, tmp_path: Path) -> None:
    case = case_with_key(family)
    patterns = [case.key.removeprefix("0x").encode(), raw_key(case)]
    plan = {**plan_of(case), "step": "prepare_dict", "form": "str"}
    assert search(plan, case.key.encode(), patterns, tmp_path)[:2] == ([1, 0], [1, 0])


@pytest.mark.parametrize(("is_raw", "form"), KEY_FORMS)
@pytest.mark.parametrize("family", families())
def test_a_key_that_signs_stays_with_the_caller(family: str, is_raw: bool, form: str, tmp_path: Path) -> None:
    case = case_with_key(family)
    raw, text = raw_key(case), case.key.removeprefix("0x").encode()
    patterns = [text, raw, raw[::-1], raw[:32]]
    before, after, output = search({**plan_of(case), "step": "sign", "form": form}, raw if is_raw else case.key.encode(), patterns, tmp_path)
    assert "Transaction(role=" in output
    assert before == ([0, 1, 0, 1] if is_raw else [1, 0, 0, 0])
    assert after == before


@pytest.mark.parametrize(("is_raw", "form"), [(True, "bytearray"), (False, "str")])
@pytest.mark.parametrize("family", families())
def test_a_key_that_is_parsed_once_is_gone_with_its_object(family: str, is_raw: bool, form: str, tmp_path: Path) -> None:
    case = case_with_key(family)
    raw, text = raw_key(case), case.key.removeprefix("0x").encode()
    plan = {**plan_of(case), "step": "key", "family": family, "form": form}
    before, after, output = search(plan, raw if is_raw else case.key.encode(), [text, raw, raw[::-1], raw[:32]], tmp_path)
    assert f"<countersign_swap.Key({family}" in output and "True" in output
    assert before == ([0, 1, 0, 1] if is_raw else [1, 0, 0, 0])
    assert after == before


@pytest.mark.parametrize(("is_raw", "form"), KEY_FORMS)
def test_a_secret_stays_with_the_caller(is_raw: bool, form: str, tmp_path: Path) -> None:
    case = next(case for case in accepted("evm.jsonl") if case.id == "evm-record-evm-v1")
    raw = bytes(range(100, 132))
    patterns = [raw.hex().encode(), raw, raw[::-1]]
    plan = {**plan_of(case), "step": "redeem", "form": form}
    before, after, output = search(plan, raw if is_raw else raw.hex().encode(), patterns, tmp_path)
    assert "secret_wrong" in output
    assert before == ([0, 1, 0] if is_raw else [1, 0, 0])
    assert after == before
