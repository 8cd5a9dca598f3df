"""The page of an order, receipts, and descriptors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import countersign_swap
from cases import REGISTRY, Case, all_accepted, families, program
from countersign_swap import Order, Policy, Refusal, Registry, check_receipt, order_page, write_receipt

CASE = "evm-token-approval-exact"
LOCALES = Path(__file__).resolve().parents[3] / "crates" / "view" / "locales"
# The key of test 1 of RFC 8032.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def documents(case: Case) -> dict[str, Any]:
    return {"request": case.documents["request"], "response": case.documents["response"], "record": case.documents.get("order")}


def changed(case: Case) -> dict[str, Any]:
    request = json.loads(case.documents["request"])
    request["source"]["amount"] += "1"
    return {**documents(case), "request": json.dumps(request)}


@pytest.mark.parametrize("family", families())
def test_an_order_has_a_page_and_a_sentence(family: str, registry: Registry) -> None:
    case = next(case for name, case in all_accepted().items() if name.startswith(family))
    page = order_page(**documents(case), registry=registry)
    assert page.ok and page.html.startswith("<!DOCTYPE html>")
    assert page.sentence is not None and page.sentence.text.startswith("Lock ")
    assert page.sentence.values["pay"].split(" (")[0] in page.sentence.text
    german = order_page(**documents(case), registry=registry, language="de")
    assert german.sentence is not None and "sperren" in german.sentence.text
    assert (german.sentence.message, german.sentence.values) == (page.sentence.message, page.sentence.values)
    refused = order_page(**changed(case), registry=registry)
    assert (refused.ok, refused.sentence) == (False, None)
    assert "Do not sign" in refused.html


def test_a_page_is_that_of_the_program(registry: Registry, tmp_path: Path) -> None:
    native = program()
    if native is None:
        pytest.skip("the native program is not built")
    case = all_accepted()[CASE]
    files = {"registry": REGISTRY, "request": case.documents["request"], "response": case.documents["response"]}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = [part for name in files for part in (f"--{name}", name)]
    subprocess.run([native, "explain", "--json", *flags, "--html", "page.html"], cwd=tmp_path, check=True, capture_output=True)
    page = order_page(files["request"], files["response"], registry)
    assert (tmp_path / "page.html").read_text() == page.html


def test_messages_of_another_language_show_every_value(registry: Registry) -> None:
    case = all_accepted()[CASE]
    messages = (LOCALES / "en.ftl").read_text().replace("Lock ", "Zet vast: ")
    page = order_page(**documents(case), registry=registry, language="nl", messages=messages)
    assert page.sentence is not None and page.sentence.text.startswith("Zet vast: ")
    assert 'lang="nl"' in page.html
    with pytest.raises(ValueError, match="language: expected en, de"):
        order_page(**documents(case), registry=registry, language="nl")
    with pytest.raises(ValueError, match="messages: expected the message lock does not show"):
        order_page(**documents(case), registry=registry, language="nl", messages="decimal-sign = ,\nlock = Zet { $pay } vast.")


def test_a_prepared_page_has_the_digests_of_its_own_order(registry: Registry) -> None:
    case = all_accepted()[CASE]
    order = Order.verify(**documents(case), registry=registry)
    unsigned = order.prepare(case.documents["wallet"])
    page = order_page(**documents(case), registry=registry, prepared=unsigned)
    assert all(request.digest.hex() in page.html for request in unsigned.requests())
    with pytest.raises(ValueError, match="prepared: expected the order of these documents"):
        order_page(**changed(case), registry=registry, prepared=unsigned)
    unsigned.sign(case.key)
    unsigned.finish()
    with pytest.raises(Refusal) as refused:
        order_page(**documents(case), registry=registry, prepared=unsigned)
    assert refused.value.code == "used_up"
    with pytest.raises(Refusal) as refused:
        order_page("{", case.documents["response"], registry)
    assert refused.value.at.startswith("/request")


def test_a_receipt_is_written_signed_and_checked(registry: Registry) -> None:
    case = all_accepted()[CASE]
    receipt = write_receipt(**documents(case), registry=registry, key=SEED)
    assert receipt == write_receipt(**documents(case), registry=registry, key=bytes.fromhex(SEED))
    checked = check_receipt(receipt, registry, signer=PUBLIC)
    assert (checked.is_proven, checked.signer, checked.differences, checked.own_limits) == (True, PUBLIC, [], [])
    assert checked.verdict is not None and json.loads(checked.verdict)["ok"] is True
    refused = check_receipt(write_receipt(**changed(case), registry=registry), registry)
    assert refused.is_proven and refused.signer is None
    assert refused.verdict is not None and json.loads(refused.verdict)["ok"] is False
    forged = receipt.replace(b'"ok":true', b'"ok":false', 1)
    try:
        assert not check_receipt(forged, registry).is_proven
    except Refusal as refusal:
        assert refusal.at.startswith("/verdict")
    other = check_receipt(write_receipt(**documents(case), registry=registry), registry, signer=PUBLIC)
    assert not other.is_proven and other.verdict is None
    assert [difference.at for difference in other.differences] == ["/public_key"]


def test_a_receipt_says_under_which_policy_it_was_made(registry: Registry) -> None:
    case = all_accepted()[CASE]
    own = Policy('{"refused_warnings": ["unlimited_approval"]}')
    receipt = write_receipt(**documents(case), registry=registry, policy=own)
    checked = check_receipt(receipt, registry)
    assert checked.is_proven and len(checked.own_limits) == 1 and "unlimited_approval" in checked.own_limits[0]
    assert check_receipt(receipt, registry, own).is_proven
    strict = check_receipt(receipt, registry, Policy())
    assert not strict.is_proven and all(difference.at.startswith("/policy") for difference in strict.differences)


def test_what_is_no_receipt_or_no_key_is_refused_without_a_part_of_it(registry: Registry) -> None:
    case = all_accepted()[CASE]
    with pytest.raises(Refusal) as refused:
        write_receipt(**documents(case), registry=registry, key=SEED[:-2])
    assert (refused.value.code, refused.value.at) == ("key_malformed", "/key")
    assert SEED[:16] not in str(refused.value)
    with pytest.raises(Refusal) as refused:
        check_receipt("{}", registry)
    assert refused.value.code == "missing_field"
    receipt = write_receipt(**documents(case), registry=registry)
    with pytest.raises(Refusal) as refused:
        check_receipt(receipt, registry, signer="d75a")
    assert refused.value.at == "/signer"
    with pytest.raises(Refusal) as refused:
        write_receipt(json.dumps({"secret_key": 1}), "{}", registry)
    assert refused.value.code == "unexpected_field"


def test_descriptors_are_those_of_the_pinned_contracts(registry: Registry) -> None:
    files = countersign_swap.descriptors(registry)
    assert len(files) > 2
    for name, text in files.items():
        assert name.endswith(".json") and json.loads(text)["context"]
