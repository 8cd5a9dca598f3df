"""What the objects return: numbers are numbers, and values compare, hash, travel between processes and become JSON."""

from __future__ import annotations

import copy
import decimal
import json
import multiprocessing
import pickle
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import countersign_swap
from cases import REGISTRY, Case, all_accepted, families

RECORD = "evm-record-evm-v1"


def verify(case: Case, registry: countersign_swap.Registry) -> countersign_swap.Order:
    documents = case.documents
    return countersign_swap.Order.verify(documents["request"], documents["response"], registry, record=documents.get("order"))


def results(case: Case, registry: countersign_swap.Registry) -> Iterator[Any]:
    """One or more results of each kind that an order has before its end."""
    order = verify(case, registry)
    unsigned = order.prepare(case.documents["wallet"])
    yield from (order.terms(), order.terms().pay, *order.summary(), *order.warnings(), *order.coverage())
    yield from (each for request in unsigned.requests() for each in (request, request.native))
    if '"secret_key"' in case.documents["wallet"]:
        unsigned.sign(case.key)
        if not unsigned.missing():
            transactions = unsigned.finish().transactions()
            yield from transactions
            if case.id.startswith("evm-"):
                yield from (order.match_with_warnings(sent.payload) for sent in transactions)
    if "order" in case.documents:
        record = countersign_swap.Record.verify(case.documents["request"], case.documents["response"], case.documents["order"], registry)
        yield from (record.terms("source"), record.terms("destination"))


def one_of_each(registry: countersign_swap.Registry) -> list[Any]:
    found: dict[Any, Any] = {}
    for family in families():
        for case in [case for case in all_accepted().values() if case.id.startswith(f"{family}-")][:20]:
            found.update({(family, type(result)): result for result in results(case, registry)})
    found.update({type(result): result for result in results(all_accepted()[RECORD], registry)})
    return list(found.values())


def test_results_travel_through_pickle(registry: countersign_swap.Registry) -> None:
    originals = one_of_each(registry)
    kinds = {type(original).__name__ for original in originals}
    assert kinds == {"Terms", "Value", "Line", "Notice", "Coverage", "Request", "NativePayload", "Transaction", "Matched", "HtlcTerms"}
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(originals, protocol)) == originals
    assert copy.deepcopy(originals) == originals
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(repr, originals) == [repr(original) for original in originals]
        assert pool.map(copy.copy, originals) == originals


def test_what_pickle_did_not_store_is_no_value(registry: countersign_swap.Registry) -> None:
    pay: Any = verify(all_accepted()[RECORD], registry).terms().pay
    restore, members = pay.__reduce__()
    assert restore(*members) == pay
    with pytest.raises(ValueError, match="another version"):
        restore(*members[:-1])
    with pytest.raises(TypeError):
        restore(1, *members[1:])
    for number in (-1, 2**256):
        with pytest.raises(ValueError, match="256 bits"):
            restore(*members[:2], number, *members[3:])


def test_results_compare_and_hash(registry: countersign_swap.Registry) -> None:
    originals, again = one_of_each(registry), one_of_each(registry)
    assert originals == again
    assert [hash(original) for original in originals] == [hash(each) for each in again]
    assert len({*originals, *again}) == len(set(originals)) > len(originals) / 2
    assert originals[0] != again[-1] and originals[0] != "text"


def test_results_become_json(registry: countersign_swap.Registry) -> None:
    for original in one_of_each(registry):
        members = json.loads(json.dumps(original.to_dict()))
        assert list(members) == list(type(original).__match_args__)
        for name, value in members.items():
            attribute = getattr(original, name)
            if isinstance(attribute, bytes):
                assert bytes.fromhex(value[2:]) == attribute
            elif isinstance(attribute, (str, int, type(None))):
                assert (value, type(value)) == (attribute, type(attribute))
    terms = verify(all_accepted()[RECORD], registry).terms()
    assert terms.to_dict()["pay"]["number"] == terms.pay.number


@pytest.mark.skipif(sys.version_info < (3, 10), reason="match is newer")
def test_results_match_by_position(registry: countersign_swap.Registry) -> None:
    namespace: dict[str, Any] = {"countersign_swap": countersign_swap, "value": verify(all_accepted()[RECORD], registry).terms().pay}
    exec("match value:\n    case countersign_swap.Value('amount', _, number, unit): pass", namespace)
    assert (namespace["number"], namespace["unit"]) == (namespace["value"].number, namespace["value"].unit)


def test_amounts_are_numbers(registry: countersign_swap.Registry) -> None:
    case = all_accepted()[RECORD]
    order = verify(case, registry)
    pay = order.terms().pay
    assert pay.number == int(json.loads(case.documents["request"])["source"]["amount"])
    assert pay.number is not None and pay.decimals is not None
    assert decimal.Decimal(countersign_swap.in_whole_units(pay)) == decimal.Decimal(pay.number).scaleb(-pay.decimals)
    texts = [value for line in order.summary() for value in line.values if value.number is None]
    assert texts and [countersign_swap.in_whole_units(value) for value in texts] == [value.text for value in texts]
    record = countersign_swap.Record.verify(case.documents["request"], case.documents["response"], case.documents["order"], registry)
    assert type(record.terms("source").amount) is int


def test_the_build_has_every_family() -> None:
    assert sorted(countersign_swap.families()) == families()


def test_a_recovery_says_who_is_paid_and_how_much(registry: countersign_swap.Registry) -> None:
    case = all_accepted()[RECORD]
    record = countersign_swap.Record.verify(case.documents["request"], case.documents["response"], case.documents["order"], registry)
    recovery = countersign_swap.Recovery.refund(case.documents["order"], "source", registry)
    terms = record.terms("source")
    assert (recovery.role, recovery.family, recovery.order_id) == ("refund", terms.family, record.order_id)
    assert (recovery.payee, recovery.amount) == (terms.initiator, terms.amount)
    assert repr(recovery) == f"<countersign_swap.Recovery {record.order_id}: refund of {terms.amount} on {terms.chain} to {terms.initiator}>"


def test_objects_say_what_they_are_and_no_secret(registry: countersign_swap.Registry) -> None:
    case = all_accepted()["evm-token-approval-exact"]
    pins = json.loads(REGISTRY)
    counts = [len(pins[name]) for name in ("chains", "assets", "solvers")]
    assert repr(registry) == "<countersign_swap.Registry of {} chains, {} assets and {} solvers>".format(*counts)
    assert repr(countersign_swap.Policy()) == "Policy(b'{}')"
    order = verify(case, registry)
    unsigned = order.prepare(case.documents["wallet"])
    name = order.order_id
    assert repr(order) == f"<countersign_swap.Order {name}: evm>"
    assert repr(unsigned) == f"<countersign_swap.UnsignedOrder {name}: evm, missing approval, initiate, typed_data>"
    unsigned.sign(case.key)
    assert repr(unsigned) == f"<countersign_swap.UnsignedOrder {name}: evm, missing nothing>"
    signed = unsigned.finish()
    assert repr(unsigned) == "<countersign_swap.UnsignedOrder that is used up>"
    broadcast = ", ".join(f"{transaction.role} {transaction.id}" for transaction in signed.transactions())
    assert repr(signed) == f"<countersign_swap.SignedOrder {name}: {broadcast}, gasless>"


def test_objects_can_be_referred_to_weakly(registry: countersign_swap.Registry) -> None:
    order = verify(all_accepted()[RECORD], registry)
    seen: weakref.WeakSet[Any] = weakref.WeakSet([registry, order])
    assert len(seen) == 2
    del order
    assert list(seen) == [registry]
