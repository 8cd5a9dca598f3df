"""The states of an order as Python objects: what they return, what they refuse, and that nothing can crash them."""

from __future__ import annotations

import inspect
import json
import pickle
import threading
import typing
from collections.abc import Callable
from typing import Any

import pytest

import countersign_swap
from cases import REGISTRY, Case, all_accepted, families, rejected

EXACT = "evm-token-approval-exact"


def case_of(identifier: str) -> Case:
    return all_accepted()[identifier]


def verify(case: Case, registry: countersign_swap.Registry) -> countersign_swap.Order:
    documents = case.documents
    return countersign_swap.Order.verify(documents["request"], documents["response"], registry, record=documents.get("order"))


@pytest.mark.parametrize("family", families())
def test_steps_give_what_the_line_gives(family: str, registry: countersign_swap.Registry) -> None:
    for case in all_accepted().values():
        if not case.id.startswith(f"{family}-"):
            continue
        result = json.loads(countersign_swap.verify_line(case.line, registry))
        order = verify(case, registry)
        assert (order.family, order.order_id) == (result["family"], result["order_id"])
        assert (order.terms().order_id, order.terms().family) == (order.order_id, order.family)
        unsigned = order.prepare(case.documents["wallet"])
        assert [f"{line.topic}: {line.text}" for line in unsigned.summary()] == result["summary"]
        assert [request.name for request in unsigned.requests()] == unsigned.missing()
        if '"secret_key"' in case.documents["wallet"]:
            unsigned.sign(bytearray(case.key.encode()))
        assert unsigned.artefacts() == json.dumps(result["artefacts"], separators=(",", ":"), ensure_ascii=False)
        assert [(notice.code, notice.message) for notice in unsigned.warnings()] == [
            (warning["code"], warning["message"]) for warning in result["warnings"]
        ]
        covered = order.coverage()
        assert covered
        assert {part.topic for part in covered} <= {line.topic for line in order.summary()}


def test_summary_lines_carry_typed_values(registry: countersign_swap.Registry) -> None:
    pay = next(line for line in verify(case_of(EXACT), registry).summary() if line.topic == "pay")
    (amount,) = pay.values
    assert (amount.kind, amount.unit, amount.decimals) == ("amount", "cbbtc", 8)
    assert amount.number == int(json.loads(case_of(EXACT).documents["request"])["source"]["amount"])
    assert repr(amount).startswith("Value(kind='amount', text='")
    assert amount == pay.values[0]


@pytest.mark.parametrize("family", families())
def test_rejected_documents_raise_the_code_at_the_place(family: str, registry: countersign_swap.Registry) -> None:
    checked = 0
    for case in rejected(family):
        if case.code is None or (case.registry, case.policy) != (REGISTRY, "{}"):
            continue
        try:
            line = json.loads(case.line)
        except (ValueError, RecursionError):
            continue  # What is wrong is the text of the line itself.
        documents = [json.dumps(line.get(name)) for name in ("request", "response", "order")]
        expected = json.loads(countersign_swap.verify_line(json.dumps(line), registry)).get("error")
        if expected is None or not {"request", "response"} <= line.keys() or not expected["at"].startswith(("/request", "/response", "/order")):
            continue
        with pytest.raises(countersign_swap.Refusal) as refused:
            countersign_swap.Order.verify(documents[0], documents[1], registry, None, None if documents[2] == "null" else documents[2])
        error = refused.value
        assert (error.code, error.message) == (expected["code"], expected["message"]), case.id
        assert error.at.partition("#")[0] == expected["at"].partition("#")[0], case.id
        assert (error.expected, error.actual) == (expected.get("expected"), expected.get("got")), case.id
        assert error.blame in ("service", "caller", "unsupported")
        checked += 1
    assert checked > 50


def test_an_order_is_prepared_as_often_as_fees_change(registry: countersign_swap.Registry) -> None:
    order = verify(case_of(EXACT), registry)
    wallet = json.loads(case_of(EXACT).documents["wallet"])
    digests = set()
    for nonce in range(3):
        digests.add(order.prepare(json.dumps({**wallet, "nonce": nonce})).requests()[0].digest)
    assert len(digests) == 3


def test_a_finished_order_is_used_up(registry: countersign_swap.Registry) -> None:
    unsigned = verify(case_of(EXACT), registry).prepare(case_of(EXACT).documents["wallet"])
    with pytest.raises(countersign_swap.Refusal) as missing:
        unsigned.finish()
    assert missing.value.code == "signature_missing"
    unsigned.sign(case_of(EXACT).key)
    signed = unsigned.finish()
    assert [transaction.role for transaction in signed.transactions()] == ["approval", "initiate"]
    calls: list[Callable[[], Any]] = [
        lambda: unsigned.family,
        lambda: unsigned.order_id,
        unsigned.summary,
        unsigned.warnings,
        unsigned.requests,
        unsigned.missing,
        unsigned.artefacts,
        unsigned.finish,
        lambda: unsigned.sign(case_of(EXACT).key),
        lambda: unsigned.attach("initiate", "0x00"),
    ]
    for call in calls:
        with pytest.raises(countersign_swap.Refusal) as used:
            call()
        assert (used.value.code, used.value.blame) == ("used_up", "caller")


def test_only_one_of_many_threads_finishes(registry: countersign_swap.Registry) -> None:
    unsigned = verify(case_of(EXACT), registry).prepare(case_of(EXACT).documents["wallet"])
    unsigned.sign(case_of(EXACT).key)
    codes: list[str] = []

    def finish() -> None:
        try:
            unsigned.finish()
            codes.append("finished")
        except countersign_swap.Refusal as refusal:
            codes.append(refusal.code)

    threads = [threading.Thread(target=finish) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == ["finished"] + ["used_up"] * 15


def test_the_gasless_path_needs_no_wallet_context(registry: countersign_swap.Registry) -> None:
    order = verify(case_of(EXACT), registry)
    unsigned = order.prepare_gasless()
    unsigned.sign(case_of(EXACT).key)
    assert unsigned.finish().gasless() == case_of(EXACT).expect["artefacts"]["typed_data"]["signature"]
    assert [json.loads(call)["to"] for call in order.wallet_calls()]
    with pytest.raises(countersign_swap.Refusal) as refused:
        verify(case_of("sui-native"), registry).prepare_gasless()
    assert refused.value.code == "nothing_to_sign"
    with pytest.raises(countersign_swap.Refusal) as refused:
        verify(case_of("sui-native"), registry).wallet_calls()
    assert refused.value.code == "unsupported_family"


def test_a_deadline_passes(registry: countersign_swap.Registry) -> None:
    order = verify(case_of("evm-record-evm-v1"), registry)
    order.check_deadline(1_772_600_800)
    with pytest.raises(countersign_swap.Refusal):
        order.check_deadline(2**63)


def test_a_recovery_refunds_and_redeems(registry: countersign_swap.Registry) -> None:
    case = case_of("evm-record-evm-v1")
    wallet = json.loads(case.documents["wallet"]) | {"gas_limit": 300_000}
    recovery = countersign_swap.Recovery.refund(case.documents["order"], "source", registry)
    assert recovery.family == "evm"
    unsigned = recovery.prepare(json.dumps(wallet))
    assert unsigned.missing() == ["refund"]
    unsigned.sign(case.key)
    assert [transaction.role for transaction in unsigned.finish().transactions()] == ["refund"]
    wrong = "11" * 32
    with pytest.raises(countersign_swap.Refusal) as refused:
        countersign_swap.Recovery.redeem(case.documents["order"], "destination", wrong, registry)
    assert refused.value.code == "secret_wrong"
    assert wrong not in str(refused.value)
    with pytest.raises(ValueError, match="leg: expected source or destination"):
        countersign_swap.Recovery.refund(case.documents["order"], "elsewhere", registry)  # type: ignore[arg-type]
    with pytest.raises(countersign_swap.Refusal) as refused:
        recovery.prepare(json.dumps({**wallet, "Nonce": 1}))
    assert refused.value.at == "/wallet/Nonce"


def test_a_record_says_what_its_htlcs_must_hold(registry: countersign_swap.Registry) -> None:
    case = case_of("evm-record-evm-v1")
    order = json.loads(case.documents["order"])
    htlc = order.get("result", order)["destination_swap"]
    record = countersign_swap.Record.verify(case.documents["request"], case.documents["response"], case.documents["order"], registry)
    terms = record.terms("destination")
    assert (terms.chain, terms.amount, terms.timelock, terms.unit) == ("base", int(htlc["amount"]), htlc["timelock"], "blocks")
    assert (terms.swap_id, terms.secret_hash, terms.account) == (htlc["swap_id"], htlc["secret_hash"], None)
    assert record.order_id == order.get("result", order)["order_id"]
    # An hour at the nominal pace of Base, and minutes at the one that counts.
    assert [warning.code for warning in record.warnings()] == ["destination_timelock_short"]
    with pytest.raises(ValueError, match="source or destination"):
        record.terms("nowhere")  # type: ignore[arg-type]


def test_what_a_wallet_sent_is_compared_with_the_order(registry: countersign_swap.Registry) -> None:
    case = case_of(EXACT)
    order = verify(case, registry)
    unsigned = order.prepare(case.documents["wallet"])
    unsigned.sign(case.key)
    for transaction in unsigned.finish().transactions():
        assert order.matches(transaction.payload) == transaction.role
        matched = order.match_with_warnings(transaction.payload)
        assert (matched.role, matched.warnings) == (transaction.role, [])
        with pytest.raises(countersign_swap.Refusal) as refused:
            order.matches(transaction.payload[:-2])
        assert (refused.value.code, refused.value.at) == ("transaction_mismatch", "/transaction")


def test_a_transaction_that_states_that_it_failed_is_no_payment(registry: countersign_swap.Registry) -> None:
    case = case_of("tron-token-approval-exact")
    order = verify(case, registry)
    paying = case.expect["artefacts"]["initiate"]

    def sent(outcome: str) -> str:
        return json.dumps({"raw_data_hex": paying["raw_data"], "signature": [paying["signature"]], "ret": [{"contractRet": outcome}]})

    assert order.matches(sent("SUCCESS")) == "initiate"
    for match in (order.matches, order.match_with_warnings):
        with pytest.raises(countersign_swap.Refusal, match="the transaction failed") as refused:
            match(sent("OUT_OF_ENERGY"))
        assert (refused.value.code, refused.value.at) == ("transaction_mismatch", "/transaction/ret/0/contractRet")


def test_the_payment_of_bundled_calls_is_found_in_their_status(registry: countersign_swap.Registry) -> None:
    case = case_of("evm-record-evm-v3")
    order = verify(case, registry)
    record = json.loads(case.documents["order"])
    # The swap id of the record was computed by another tool; the log is that of version 3 of the contract.
    topics = [
        "0x01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65",
        f"0x{record['source_swap']['swap_id']}",
        f"0x{record['source_swap']['secret_hash']}",
        f"0x{order.terms().pay.number:064x}",
    ]
    contract = json.loads(order.wallet_calls()[-1])["to"]
    receipt = {"transactionHash": f"0x{'77' * 32}", "status": "0x1", "logs": [{"address": contract, "topics": topics, "data": "0x"}]}
    for status in (receipt, {"status": 200, "receipts": [receipt]}, {"status": "CONFIRMED", "receipts": [receipt]}):
        assert order.find_payment(json.dumps(status)) == receipt["transactionHash"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"status": 100}, "/calls/status"),
        ({"status": 200}, "/calls/receipts"),
        ({**receipt, "logs": []}, "/calls/receipts"),
    ]
    for unpaid, at in wrong:
        with pytest.raises(countersign_swap.Refusal) as refused:
            order.find_payment(json.dumps(unpaid))
        assert (refused.value.code, refused.value.at) == ("transaction_mismatch", at)
    with pytest.raises(countersign_swap.Refusal) as refused:
        verify(case_of("sui-native"), registry).find_payment(json.dumps(receipt))
    assert refused.value.code == "unsupported_family"


def test_the_payment_of_another_account_is_found_on_solana(registry: countersign_swap.Registry) -> None:
    case = case_of("solana-native-legacy")
    order = verify(case, registry)
    transaction = case.expect["artefacts"]["transaction"]
    shown: dict[str, Any] = {"slot": 1, "transaction": [transaction["signed"], "base64"], "meta": {"err": None}, "version": "legacy"}
    assert order.find_payment(json.dumps(shown)) == transaction["signature"]
    shown["meta"] = {"err": {"InstructionError": [0, {"Custom": 1}]}}
    with pytest.raises(countersign_swap.Refusal) as refused:
        order.find_payment(json.dumps(shown))
    assert (refused.value.code, refused.value.at) == ("transaction_mismatch", "/calls/meta/err")


def test_objects_of_the_wrong_type_are_type_errors(registry: countersign_swap.Registry) -> None:
    case = case_of(EXACT)
    order = verify(case, registry)
    unsigned = order.prepare(case.documents["wallet"])
    wrong: list[Any] = [None, 1, 1.5, [], object(), ("{}",), type]
    for value in wrong:
        calls: list[Callable[[], Any]] = [
            lambda: countersign_swap.Registry(value),
            lambda: countersign_swap.verify_line(value, registry),
            lambda: list(countersign_swap.verify_many([value], registry)),
            lambda: countersign_swap.Order.verify(value, case.documents["response"], registry),
            lambda: countersign_swap.Order.verify(case.documents["request"], value, registry),
            lambda: countersign_swap.Order.verify(case.documents["request"], case.documents["response"], value),
            lambda: countersign_swap.Recovery.refund(value, "source", registry),
            lambda: countersign_swap.Record.verify(value, value, value, registry),
            lambda: order.prepare(value),
            lambda: order.matches(value),
            lambda: order.check_deadline("1" if isinstance(value, (int, float)) else value),  # type: ignore[arg-type]
            lambda: unsigned.sign(value),
            lambda: unsigned.attach("initiate", value),
            lambda: unsigned.attach(value, "0x00"),
        ]
        for call in calls:
            with pytest.raises(TypeError):
                call()
    for one_document in ("{}", b"{}", bytearray(b"{}"), memoryview(b"{}"), 1, None):
        with pytest.raises(TypeError):
            countersign_swap.verify_many(one_document, registry)  # type: ignore[arg-type]
    for name in ("Order", "UnsignedOrder", "SignedOrder", "Recovery", "Record", "Reader", "ChainRequest", "ChainAnswer", "Terms", "Value"):
        with pytest.raises(TypeError):
            getattr(countersign_swap, name)()


def test_text_that_is_not_utf8_is_refused_without_being_quoted(registry: countersign_swap.Registry) -> None:
    case = case_of(EXACT)
    unsigned = verify(case, registry).prepare(case.documents["wallet"])
    with pytest.raises(ValueError, match="surrogate"):
        countersign_swap.Registry("\ud800")
    with pytest.raises(ValueError, match="surrogate") as surrogate:
        unsigned.sign(case.key + "\udfff")
    with pytest.raises(ValueError, match="UTF-8") as invalid:
        unsigned.sign(case.key.encode() + b"\xff")
    with pytest.raises(countersign_swap.Refusal) as malformed:
        unsigned.sign(case.key + "0")
    for error in (surrogate.value, invalid.value, malformed.value):
        assert case.key[:12] not in f"{error!r} {vars(error)} {error.__cause__!r} {error.__context__!r}"
    for text in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", "\x00"):
        with pytest.raises(countersign_swap.Refusal):
            countersign_swap.Registry(text)
        assert "error" in json.loads(countersign_swap.verify_line(text, registry))


def test_huge_and_deep_documents_are_refused(registry: countersign_swap.Registry) -> None:
    case = case_of(EXACT)
    huge = " " * (16 * 1024 * 1024) + case.line
    assert json.loads(countersign_swap.verify_line(huge, registry))["error"]["code"] == "json_too_large"
    large = case.line[:-1] + ',"padding":"' + "x" * (5 * 1024 * 1024) + '"}'
    assert len(list(countersign_swap.verify_many([large] * 3, registry))) == 3
    for text in ("[" * 1_000_000, '{"a":' * 1_000_000, '"' + "\\u0000" * 1_000_000, "9" * 5_000_000):
        assert "error" in json.loads(countersign_swap.verify_line(text, registry))
        with pytest.raises(countersign_swap.Refusal):
            countersign_swap.Registry(text)
        with pytest.raises(countersign_swap.Refusal):
            countersign_swap.Order.verify(text, text, registry)
    unsigned = verify(case, registry).prepare(case.documents["wallet"])
    for signature in ("00" * 5_000_000, '{"contract":' * 100_000, '{"'):
        with pytest.raises(countersign_swap.Refusal):
            unsigned.attach("typed_data", signature)


def test_a_surviving_bytearray_may_change_afterwards(registry: countersign_swap.Registry) -> None:
    case = case_of(EXACT)
    key = bytearray(case.key.encode())
    unsigned = verify(case, registry).prepare(case.documents["wallet"])
    unsigned.sign(key)
    key[:] = bytes(len(key))
    assert unsigned.missing() == []


def test_pins_limits_and_refusals_can_be_pickled(registry: countersign_swap.Registry) -> None:
    policy = countersign_swap.Policy(b'{"refused_warnings": ["unlimited_approval"]}')
    copies = pickle.loads(pickle.dumps((registry, policy)))
    line = case_of("evm-token-approval-unlimited").line
    assert countersign_swap.verify_line(line, *copies) == countersign_swap.verify_line(line, registry, policy)
    with pytest.raises(countersign_swap.Refusal) as refused:
        countersign_swap.Registry("[]")
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (str(copy), vars(copy)) == (str(refused.value), vars(refused.value))
    assert type(copy) is countersign_swap.Refusal


def test_everything_has_a_docstring() -> None:
    for name in countersign_swap.__all__:
        item = getattr(countersign_swap, name)
        # The text of an alias stands below it in the source: it has no place for one.
        if not callable(item) or typing.get_origin(item) in (typing.Literal, typing.Union):
            continue
        assert inspect.getdoc(item), name
        assert item.__module__ in ("countersign_swap", "countersign_swap._native", "countersign_swap._shapes"), name
        for member in vars(item) if isinstance(item, type) else ():
            if not member.startswith("_"):
                assert inspect.getdoc(getattr(item, member)), f"{name}.{member}"
