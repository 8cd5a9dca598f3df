"""What the package takes: documents and keys as bytes of any kind, wallet contexts as dicts, columns of data frames, times."""

from __future__ import annotations

import decimal
import enum
import json
import time
import unittest.mock
from collections.abc import Callable
from typing import Any

import pytest

import countersign_swap
from cases import Case, accepted, all_accepted, families

EXACT = "evm-token-approval-exact"
RECORD = "evm-record-evm-v1"


class Number(enum.IntEnum):
    """A number with a text of its own."""

    ONE = 1


def verify(case: Case, registry: countersign_swap.Registry) -> countersign_swap.Order:
    documents = case.documents
    return countersign_swap.Order.verify(documents["request"], documents["response"], registry, record=documents.get("order"))


@pytest.mark.parametrize("kind", [str.encode, lambda text: bytearray(text.encode()), lambda text: memoryview(text.encode())])
def test_documents_are_bytes_of_any_kind(kind: Callable[[str], Any], registry: countersign_swap.Registry) -> None:
    case = all_accepted()[RECORD]
    documents = {name: kind(text) for name, text in case.documents.items()}
    order = countersign_swap.Order.verify(documents["request"], documents["response"], registry, record=documents["order"])
    assert order.terms() == verify(case, registry).terms()
    assert order.prepare(documents["wallet"]).artefacts() == order.prepare(case.documents["wallet"]).artefacts()
    line = countersign_swap.verify_line(case.line, registry)
    assert countersign_swap.verify_line(kind(case.line), registry) == line
    assert list(countersign_swap.verify_many([kind(case.line)] * 2, registry)) == [line] * 2


def test_a_view_of_part_of_a_buffer_is_that_part(registry: countersign_swap.Registry) -> None:
    line = all_accepted()[RECORD].line
    view = memoryview(f"<<{line}>>".encode())[2:-2]
    assert countersign_swap.verify_line(view, registry) == countersign_swap.verify_line(line, registry)


def as_dict(wallet: str) -> Any:
    """A wallet context with numbers as int, where it has them as decimal text."""
    members: Any = json.loads(wallet)
    for name in ("max_fee_per_gas", "max_priority_fee_per_gas", "gas_price", "gas_budget", "fee_rate"):
        if name in members and members[name].isdigit():
            members[name] = int(members[name])
    return members


@pytest.mark.parametrize("family", families())
def test_a_wallet_context_is_a_dict(family: str, registry: countersign_swap.Registry) -> None:
    numbers = 0
    for case in accepted(f"{family}.jsonl"):
        wallet = as_dict(case.documents["wallet"])
        numbers += wallet != json.loads(case.documents["wallet"])
        order = verify(case, registry)
        assert order.prepare(wallet).artefacts() == order.prepare(case.documents["wallet"]).artefacts(), case.id
    assert numbers > 20 or family in ("solana", "starknet", "tron")


def test_a_recovery_context_is_a_dict(registry: countersign_swap.Registry) -> None:
    case = all_accepted()[RECORD]
    recovery = countersign_swap.Recovery.refund(case.documents["order"], "source", registry)
    wallet: Any = {**json.loads(case.documents["wallet"]), "gas_limit": 300_000}
    misspelt: Any = {**wallet, "gas_limits": 1}
    assert recovery.prepare(as_dict(json.dumps(wallet))).artefacts() == recovery.prepare(json.dumps(wallet)).artefacts()
    with pytest.raises(countersign_swap.Refusal) as refused:
        recovery.prepare(misspelt)
    assert refused.value.at == "/wallet/gas_limits"


def test_a_recovery_on_solana_may_have_a_message_of_version_1(registry: countersign_swap.Registry) -> None:
    case = all_accepted()["solana-record-testnet"]
    recovery = countersign_swap.Recovery.refund(case.documents["order"], "source", registry)
    wallet: countersign_swap.SolanaRecovery = {"recent_blockhash": "1" * 32}
    config: countersign_swap.SolanaConfig = {"compute_unit_limit": 100_000, "loaded_accounts_data_size_limit": 65_536}
    assert recovery.prepare(wallet).requests()[0].payload[0] < 128
    assert recovery.prepare({**wallet, "config": config}).requests()[0].payload[0] == 129
    with pytest.raises(countersign_swap.Refusal) as refused:
        recovery.prepare({**wallet, "config": {**config, "compute_unit_limit": 0}})
    assert (refused.value.code, refused.value.at) == ("gas_limit_too_low", "/wallet/config/compute_unit_limit")


def test_a_wallet_context_holds_what_json_can_say(registry: countersign_swap.Registry) -> None:
    order = verify(all_accepted()[EXACT], registry)
    wallet: countersign_swap.EvmWallet = {"nonce": 1, "max_fee_per_gas": 10**9, "max_priority_fee_per_gas": 10**8}
    expected = order.prepare(json.dumps({**wallet, "max_fee_per_gas": "1000000000", "max_priority_fee_per_gas": "100000000"}))
    assert order.prepare(wallet).artefacts() == expected.artefacts()
    odd: Any = {**wallet, "nonce": Number.ONE, "extra\n\"\u2028😀": [(), {"a": None}, "\\", True]}
    assert order.prepare(odd).artefacts() == expected.artefacts()

    def changed(name: Any, value: Any) -> Any:
        return {**wallet, name: value}

    wrong: list[tuple[str, Any, str]] = [
        ("nonce", -1, "/wallet/nonce"),
        ("nonce", 2**64, "/wallet/nonce"),
        ("nonce", True, "/wallet/nonce"),
        ("max_fee_per_gas", 2**128, "/wallet/max_fee_per_gas"),
        ("max_fee_per_gas", -1, "/wallet/max_fee_per_gas"),
        ("max_fee_per_gas", None, "/wallet/max_fee_per_gas"),
        ("Nonce", 1, "/wallet/Nonce"),
    ]
    for name, value, at in wrong:
        with pytest.raises(countersign_swap.Refusal) as refused:
            order.prepare(changed(name, value))
        assert refused.value.at == at, (name, value)
    for value in (1.0, 1e9, float("nan"), decimal.Decimal(1), b"1", {1}, object()):
        with pytest.raises(TypeError, match="expected max_fee_per_gas to be"):
            order.prepare(changed("max_fee_per_gas", value))
    with pytest.raises(TypeError, match="keys of wallet must be str"):
        order.prepare(changed(1, 2))
    endless: Any = dict(wallet)
    endless["again"] = endless
    with pytest.raises(ValueError, match="nested too deeply"):
        order.prepare(endless)
    with pytest.raises(ValueError, match="surrogate"):
        order.prepare(changed("a", "\ud800"))


def raw_key(case: Case) -> bytes | None:
    """The bytes of a key that is written in hex or base58; None for other forms."""
    text = case.key.removeprefix("0x")
    if case.id.startswith("solana"):
        alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
        number = 0
        for letter in text:
            number = number * 58 + alphabet.index(letter)
        return number.to_bytes(64 if len(text) > 44 else 32, "big")
    if case.id.startswith("starknet") or len(text) == 64:
        return bytes.fromhex(text.rjust(64, "0"))
    return None


@pytest.mark.parametrize("family", families())
def test_keys_are_raw_bytes_too(family: str, registry: countersign_swap.Registry) -> None:
    signed = 0
    for case in accepted(f"{family}.jsonl"):
        raw = raw_key(case) if '"secret_key"' in case.documents["wallet"] else None
        if raw is None:
            continue
        order = verify(case, registry)
        for key in (raw, bytearray(raw), memoryview(raw), case.key.encode()):
            unsigned = order.prepare(case.documents["wallet"])
            unsigned.sign(key)
            assert json.loads(unsigned.artefacts()) == case.expect["artefacts"], case.id
        signed += 1
    assert signed > (10 if family != "sui" else 1)


def test_keys_of_other_lengths_are_text(registry: countersign_swap.Registry) -> None:
    case = all_accepted()[EXACT]
    unsigned = verify(case, registry).prepare(case.documents["wallet"])
    for key in (b"\x01" * 31, b"\x01" * 33, b"\x01" * 64, b"", b"\x00" * 32):
        with pytest.raises(countersign_swap.Refusal) as refused:
            unsigned.sign(key)
        assert refused.value.code == "key_malformed"
    with pytest.raises(ValueError, match="UTF-8"):
        unsigned.sign(b"\xff" * 33)
    with pytest.raises(countersign_swap.Refusal) as refused:
        unsigned.sign(b"\x01" * 32)
    assert refused.value.code == "key_mismatch"


def test_a_secret_is_raw_bytes_or_text(registry: countersign_swap.Registry) -> None:
    record = all_accepted()[RECORD].documents["order"]
    for secret in (b"\x01" * 32, bytearray(32), memoryview(bytes(32)), "01" * 32, b"01" * 32, "0x" + "01" * 32):
        with pytest.raises(countersign_swap.Refusal) as refused:
            countersign_swap.Recovery.redeem(record, "destination", secret, registry)
        assert refused.value.code == "secret_wrong"
    for secret in (b"\x01" * 31, "01" * 31):
        with pytest.raises(countersign_swap.Refusal) as refused:
            countersign_swap.Recovery.redeem(record, "destination", secret, registry)
        assert refused.value.at == "/secret"


def test_columns_of_data_frames_are_lines(registry: countersign_swap.Registry) -> None:
    lines = [case.line for case in accepted("evm.jsonl")[:20]]
    expected = [countersign_swap.verify_line(line, registry) for line in lines]
    arrow = pytest.importorskip("pyarrow")
    for kind in (arrow.string(), arrow.large_string(), arrow.string_view(), arrow.binary(), arrow.large_binary(), arrow.binary_view()):
        column = arrow.array([line.encode() for line in lines], arrow.binary()).cast(kind)
        assert list(countersign_swap.verify_many(column, registry)) == expected, kind
        assert list(countersign_swap.verify_many(arrow.chunked_array([column, column]), registry)) == expected * 2, kind
    with pytest.raises(TypeError, match="NoneType"):
        list(countersign_swap.verify_many(arrow.array([None], arrow.string()), registry))
    with pytest.raises(TypeError, match="int"):
        list(countersign_swap.verify_many(arrow.array([1]), registry))
    with pytest.raises(TypeError, match="Mock"):
        list(countersign_swap.verify_many([unittest.mock.Mock()], registry))
    numpy = pytest.importorskip("numpy")
    assert list(countersign_swap.verify_many(numpy.array(lines), registry)) == expected
    assert list(countersign_swap.verify_many(numpy.array(lines, dtype=object), registry)) == expected


def test_times_are_seconds_of_any_number(registry: countersign_swap.Registry) -> None:
    order = verify(all_accepted()[RECORD], registry)
    order.check_deadline(1_772_600_800)
    order.check_deadline(1_772_600_800.75)
    for late in (time.time() + 10**9, 2**63, 2**64 - 1, 1e19):
        with pytest.raises(countersign_swap.Refusal):
            order.check_deadline(late)
    for wrong in (-1, 2**64, 10**30, -0.5, 1e30, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="negative or too large|not a time"):
            order.check_deadline(wrong)


def test_numbers_out_of_range_are_value_errors(registry: countersign_swap.Registry) -> None:
    for threads in (0, -1, 2**70, 10**30):
        with pytest.raises(ValueError, match="threads|negative or too large"):
            countersign_swap.verify_many(["{}"], registry, threads=threads)
    assert len(list(countersign_swap.verify_many(["{}"], registry, threads=10**9))) == 1
    calls: list[Callable[[], Any]] = [
        lambda: countersign_swap.Quorum(["one"], -1),
        lambda: countersign_swap.ChainAnswer.http(70_000, b""),
        lambda: countersign_swap.split_batch(b"[]", -1),
        lambda: countersign_swap.split_batch(b"[]", 1, -200),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="negative or too large"):
            call()


class Liar(str):
    """Text that says of itself what it is not."""

    def __len__(self) -> int:
        return 1 << 44

    def __iter__(self) -> Any:
        return iter("another")

    def __contains__(self, part: object) -> bool:
        return False

    def __str__(self) -> str:
        return "another"


@pytest.mark.parametrize("length", [1 << 44, 2**63 - 1])
def test_text_is_what_it_holds_and_not_what_it_says(registry: countersign_swap.Registry, length: int) -> None:
    liar = type("LongLiar", (Liar,), {"__len__": lambda _: length})
    case = all_accepted()[EXACT]
    assert countersign_swap.verify_line(liar(case.line), registry) == countersign_swap.verify_line(case.line, registry)
    wallet = json.dumps({**json.loads(case.documents["wallet"]), "secret_key": case.key})
    order = verify(case, registry)
    assert order.prepare(liar(wallet)).artefacts() == order.prepare(wallet).artefacts()
    unsigned = order.prepare(case.documents["wallet"])
    unsigned.sign(liar(case.key))
    assert unsigned.missing() == []


def test_a_context_that_changes_while_it_is_read_is_no_panic(registry: countersign_swap.Registry) -> None:
    case = all_accepted()[EXACT]
    wallet: Any = json.loads(case.documents["wallet"])

    class Growing(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            for number in range(100):
                wallet[f"new {number}"] = number
            return iter(())

    order = verify(case, registry)
    expected = order.prepare(case.documents["wallet"]).artefacts()
    wallet["access_list"] = Growing([1])
    assert order.prepare(wallet).artefacts() == expected


def test_half_a_surrogate_pair_is_not_quoted(registry: countersign_swap.Registry) -> None:
    case = all_accepted()[EXACT]
    wallets: list[Any] = [{"nonce": "\ud800key"}, {"\ud800key": 1}]
    for wallet in wallets:
        with pytest.raises(ValueError, match="lone surrogate") as refused:
            verify(case, registry).prepare(wallet)
        assert not isinstance(refused.value, UnicodeEncodeError) and "key" not in str(refused.value)
