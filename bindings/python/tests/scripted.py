"""A machine that needs what a test says, and notes the replies."""

from __future__ import annotations

import json
import queue
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from countersign_swap.swap import MemoryStore, Swaps


class Need:
    def __init__(self, number: int, detail: Dict[str, Any], bodies: List[Optional[bytes]]) -> None:
        self.id, self.call, self.detail, self.bodies = number, number, json.dumps(detail), bodies


class Unsigned:
    """An order to sign."""

    family = "evm"

    def __init__(self) -> None:
        self.is_signed = False

    def missing(self) -> List[str]:
        return [] if self.is_signed else ["initiate"]


class Scripted:
    def __init__(self, *_: Any) -> None:
        self.needs: List[Need] = []
        self.withdrawn: List[int] = []
        self.replies: "queue.SimpleQueue[Tuple[int, Dict[str, Any]]]" = queue.SimpleQueue()

    def poll(self, now: int) -> Tuple[List[Need], List[int], str, Optional[int]]:
        needs, withdrawn = self.needs, self.withdrawn
        self.needs, self.withdrawn = [], []
        return needs, withdrawn, "[]", None

    def reply(self, number: int, reply: str, body: Optional[bytes] = None) -> bool:
        self.replies.put((number, json.loads(reply)))
        return True

    def take_unsigned(self, number: int) -> Unsigned:
        return Unsigned()

    def reply_signed(self, number: int, order: Unsigned) -> bool:
        return self.reply(number, '{"signed": true}')


class Driven:
    """`Swaps` around a scripted machine."""

    def __init__(self, **options: Any) -> None:
        self.swaps = Swaps(service="https://service.example", registry=b"{}", store=MemoryStore(), **options)
        self.machine: Any = self.swaps._machine
        self.last = 0

    def __enter__(self) -> "Driven":
        return self

    def __exit__(self, *_: object) -> None:
        self.swaps.close()

    def ask(self, body: Optional[bytes] = None, **detail: Any) -> int:
        self.last += 1
        need = Need(self.last, detail, [body])
        # In the pump's thread, as everything of the machine.
        self.swaps._wake.put(lambda: self.machine.needs.append(need))
        return need.id

    def get(self, url: str) -> int:
        return self.ask(kind="http", method="GET", url=url, headers=[])

    def sign(self, order: str, purpose: str = "redemption") -> int:
        return self.ask(kind="sign", order_id=order, purpose=purpose, chain="base", account="0x")

    def withdraw(self, number: int) -> None:
        def withdraw() -> None:
            told = [need for need in self.machine.needs if need.id != number]
            # One that was not told yet is simply not told.
            if len(told) == len(self.machine.needs):
                self.machine.withdrawn.append(number)
            self.machine.needs = told

        self.swaps._wake.put(withdraw)

    def reply(self) -> Tuple[int, Dict[str, Any]]:
        """Returns the next reply."""
        reply: Tuple[int, Dict[str, Any]] = self.machine.replies.get(timeout=10)
        return reply

    def is_silent(self) -> bool:
        time.sleep(0.1)
        return bool(self.machine.replies.empty())


def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds. Fails if it does not."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


def threads(kind: str) -> int:
    """Returns how many threads meet needs of a kind."""
    return sum(thread.name == f"countersign-{kind}" for thread in threading.enumerate())
