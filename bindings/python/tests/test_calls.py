"""When calls of swaps begin, and what they do after the end. Nothing here needs the sandbox."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Dict, List

import pytest

from cases import REGISTRY
from countersign_swap import Key, Refusal
from countersign_swap.swap import AsyncSwaps, MemoryStore, Swaps, local_key

ORDER = "a" * 64
WISH: Dict[str, Any] = {
    "from_": "base:usdc",
    "to": "bitcoin:btc",
    "amount": "1.5 usdc",
    "receive_at": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
}


def options() -> Dict[str, Any]:
    def send(*_: Any) -> Any:
        raise ConnectionError("nothing is sent here")

    return {
        "service": "https://service.example",
        "registry": REGISTRY,
        "nodes": {"base": ["https://base.example"], "bitcoin": ["https://bitcoin.example"]},
        "accounts": {"base": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"},
        "signers": {"base": local_key(Key("evm", "0x" + "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"))},
        "store": MemoryStore(),
        "send": send,
    }


def test_a_call_begins_when_it_is_called_and_not_with_the_first_look_at_its_changes() -> None:
    swaps = Swaps(**options())
    with pytest.raises(ValueError, match="amount"):
        swaps.create(**{**WISH, "amount": "many"})
    with pytest.raises(Refusal):
        swaps.follow("?")
    changes = swaps.create(**WISH)
    swaps.close()
    # It had begun.
    with pytest.raises(RuntimeError):
        next(changes)


def test_after_close_every_call_raises_at_once() -> None:
    swaps = Swaps(**options())
    swaps.close()
    swaps.close()
    calls: List[Callable[[], Any]] = [
        lambda: swaps.create(**WISH),
        lambda: swaps.follow(ORDER),
        lambda: swaps.refund(ORDER),
        lambda: swaps.instant_refund(ORDER),
        lambda: swaps.quote(from_="base:usdc", to="bitcoin:btc", amount=1),
        swaps.resume,
        swaps.orders,
        swaps.phrase,
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_the_same_with_asyncio() -> None:
    async def run() -> None:
        swaps = AsyncSwaps(**options())
        with pytest.raises(ValueError, match="amount"):
            swaps.create(**{**WISH, "amount": "many"})
        await swaps.close()
        calls: List[Callable[[], Any]] = [lambda: swaps.create(**WISH), lambda: swaps.follow(ORDER), swaps.resume, swaps.phrase]
        for call in calls:
            with pytest.raises(RuntimeError, match="closed"):
                call()
        with pytest.raises(RuntimeError, match="closed"):
            await swaps.orders()

    asyncio.run(run())
