"""Keys that are parsed once, and registries that are compared."""

from __future__ import annotations

import json
import pickle

import pytest

import countersign_swap
from cases import REGISTRY, Case, all_accepted
from countersign_swap import Key, Order, Refusal, Registry, UnsignedOrder

CASE = "evm-token-approval-exact"


def prepare(case: Case, registry: Registry) -> UnsignedOrder:
    order = Order.verify(case.documents["request"], case.documents["response"], registry, record=case.documents.get("order"))
    return order.prepare(case.documents["wallet"])


def test_a_key_signs_orders_of_its_family(registry: Registry) -> None:
    case = all_accepted()[CASE]
    by_text = prepare(case, registry)
    by_text.sign(case.key)
    expected = by_text.finish().transactions()
    keys = [Key("evm", form) for form in (case.key, case.key.encode(), bytearray.fromhex(case.key.removeprefix("0x")))]
    for key in [*keys, keys[0]]:
        unsigned = prepare(case, registry)
        unsigned.sign(key)
        assert unsigned.finish().transactions() == expected


def test_a_key_shows_its_family_and_its_account() -> None:
    case = all_accepted()[CASE]
    key = Key("evm", case.key)
    assert key.family == "evm"
    assert key.account is not None and key.account.lower() == json.loads(case.documents["request"])["source"]["owner"].lower()
    assert repr(key) == f"<countersign_swap.Key(evm, {key.account})>"
    assert str(key) == repr(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert not any(case.key[2:] in str(getattr(key, name, "")) for name in dir(key))
    other = next(case for name, case in all_accepted().items() if name.startswith("bitcoin") and '"secret_key"' in case.documents["wallet"])
    assert Key("bitcoin", other.key).account is None


def test_a_key_that_does_not_fit_is_refused_without_a_part_of_it(registry: Registry) -> None:
    case = all_accepted()[CASE]
    with pytest.raises(Refusal) as refused:
        Key("evm", case.key[:-2])
    assert (refused.value.code, refused.value.at) == ("key_malformed", "/key")
    assert case.key[2:20] not in str(refused.value)
    with pytest.raises(ValueError, match="family: expected evm"):
        Key("ethereum", case.key)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Key("evm", 7)  # type: ignore[arg-type]
    unsigned = prepare(case, registry)
    with pytest.raises(Refusal) as refused:
        unsigned.sign(Key("tron", case.key))
    assert refused.value.code == "key_mismatch"
    assert unsigned.missing()


def test_a_newer_registry_is_compared_with_the_pinned_one(registry: Registry) -> None:
    newer = json.loads(REGISTRY)
    asset = newer["assets"][0]
    asset["min_amount"] = "12345"
    assert registry.diff(registry) == []
    (change,) = registry.diff(Registry(json.dumps(newer)))
    assert isinstance(change, countersign_swap.PinChange)
    assert (change.entry, change.field, change.new) == (f"asset {asset['id']}", "smallest amount", "12345")
