"""Owners and signers who take their time: they hold up nothing else, and nobody is asked twice at once. The machine is a script."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, Tuple

import pytest

from countersign_swap import swap
from countersign_swap.swap import NothingSent
from scripted import Driven, Need, Scripted, Unsigned, threads, until


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "Machine", Scripted)


class Wallet:
    """A signer that is done when the test says so, once for each call."""

    def __init__(self) -> None:
        self.asked: List[Tuple[str, str]] = []
        self.go = threading.Semaphore(0)
        self.end: Any = "sent"

    def __call__(self, order: Unsigned, task: Dict[str, str]) -> Any:
        self.asked.append((task["order_id"], task["purpose"]))
        assert self.go.acquire(timeout=30)
        if self.end == "signed":
            order.is_signed = True
            return None
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def test_owners_who_are_asked_hold_up_no_signature() -> None:
    go = threading.Event()

    def sign(order: Unsigned, task: Dict[str, str]) -> None:
        order.is_signed = True

    with Driven(consent=lambda _: go.wait(30), signers={"base": sign}) as driven:
        for _ in range(17):
            driven.ask(kind="consent", summary=[], warnings=[])
        redemption = driven.sign("a")
        assert driven.reply() == (redemption, {"signed": True})
        go.set()
        assert [driven.reply()[1] for _ in range(17)] == [{"consent": True}] * 17


@pytest.mark.parametrize("end", ["sent", NothingSent("no")])
def test_a_signer_at_work_is_not_asked_again_for_the_same(end: Any) -> None:
    wallet = Wallet()
    wallet.end = end
    expected = {"sent": True} if end == "sent" else {"not_signed": "no"}
    with Driven(signers={"base": wallet}) as driven:
        first = driven.sign("a")
        until(lambda: len(wallet.asked) == 1)
        # The machine gives the signature up, and asks again.
        for number in range(first, first + 20):
            driven.withdraw(number)
            driven.sign("a")
        other, refund = driven.sign("b"), driven.sign("a", "refund")
        until(lambda: len(wallet.asked) == 3)
        assert driven.is_silent() and threads("sign") == 3
        assert sorted(wallet.asked) == [("a", "redemption"), ("a", "refund"), ("b", "redemption")]
        wallet.go.release(3)
        # One transaction is reported once: for the need that waits, and not for the withdrawn one, too.
        replies = [driven.reply() for _ in range(3)]
        assert sorted(replies) == [(number, expected) for number in (first + 20, other, refund)] and driven.is_silent()
        # It is asked again once it is done.
        wallet.go.release()
        again = driven.sign("a")
        assert driven.reply() == (again, expected)
        assert len(wallet.asked) == 4
        # What was sent is reported for a withdrawn need for which no other waits.
        last = driven.sign("a")
        until(lambda: len(wallet.asked) == 5)
        driven.withdraw(last)
        assert driven.is_silent()
        wallet.go.release()
        assert driven.reply() == (last, expected)


def test_what_is_begun_at_the_end_asks_no_owner() -> None:
    wallet = Wallet()
    asked: List[Any] = []
    with Driven(signers={"base": wallet}, consent=asked.append) as driven:
        number = driven.last
    for detail in ({"kind": "consent"}, {"kind": "sign", "order_id": "a", "purpose": "redemption", "chain": "base", "account": "0x"}):
        driven.swaps._meet(Need(number, detail, [None]))  # type: ignore[arg-type]
    assert not asked and not wallet.asked and driven.machine.replies.empty()


def test_a_signature_is_for_the_order_that_it_was_asked_for() -> None:
    wallet = Wallet()
    wallet.end = "signed"
    with Driven(signers={"base": wallet}) as driven:
        numbers = [driven.sign("a") for _ in range(3)]
        until(lambda: len(wallet.asked) == 1)
        for number in numbers:
            assert driven.is_silent()
            wallet.go.release()
            assert driven.reply() == (number, {"signed": True})
        assert len(wallet.asked) == 3


def test_a_signer_that_is_lost_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wallet = Wallet()
    with Driven(signers={"base": wallet}) as driven:
        numbers = [driven.sign("a"), driven.sign("a")]
        until(lambda: len(wallet.asked) == 1)
        assert driven.is_silent() and len(wallet.asked) == 1
        monkeypatch.setattr(swap, "LOST", 0.0)
        numbers.append(driven.sign("a"))
        until(lambda: len(wallet.asked) == 2)
        wallet.go.release(2)
        assert sorted(driven.reply()[0] for _ in range(3)) == numbers
        assert driven.is_silent() and len(wallet.asked) == 2


def test_a_process_that_can_have_no_more_threads_fails_that_need_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, full = threading.Thread.start, threading.Event()

    def start(thread: threading.Thread) -> None:
        if full.is_set():
            raise RuntimeError("can't start new thread")
        begin(thread)

    def sign(order: Unsigned, task: Dict[str, str]) -> str:
        return "sent"

    monkeypatch.setattr(threading.Thread, "start", start)
    with Driven(consent=lambda _: True, signers={"base": sign}) as driven:
        full.set()
        assert driven.get("http://127.0.0.1:1/") and driven.reply()[1]["failed"] == "interrupted"
        assert driven.ask(kind="consent", summary=[], warnings=[]) and driven.reply()[1] == {"consent": False}
        assert driven.sign("a") and driven.reply()[1] == {"not_signed": "can't start new thread"}
        full.clear()
        assert driven.sign("a") and driven.reply()[1] == {"sent": True}
