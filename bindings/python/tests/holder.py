"""A process that passes a key to the package, and waits after each step so that `test_memory.py` can search its memory.

The key comes masked, and is unmasked byte by byte: the only copy of it is the one that this program holds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import countersign_swap

MASK = 0x5A


def unmask(masked: str) -> bytearray:
    """The key, in one allocation that never moves."""
    data = bytes.fromhex(masked)
    key = bytearray(len(data))
    for index, byte in enumerate(data):
        key[index] = byte ^ MASK
    return key


def between(head: str, key: bytearray, tail: str) -> bytearray:
    """A document that contains the key, in one allocation that never moves."""
    document = bytearray(len(head) + len(key) + len(tail))
    document[: len(head)] = bytearray(head.encode())
    document[len(head) : len(head) + len(key)] = key
    document[len(head) + len(key) :] = bytearray(tail.encode())
    return document


def as_form(document: bytearray, form: str) -> Any:
    """The document as this type, and no copy of it elsewhere."""
    if form == "bytearray":
        return document
    if form == "memoryview":
        return memoryview(document)
    copy = bytes(document) if form == "bytes" else document.decode()
    document[:] = bytearray(len(document))
    return copy


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    registry = countersign_swap.Registry(plan["registry"])
    key = unmask(plan["key"])
    if plan["head"] is not None:
        document = between(plan["head"], key, plan["tail"])
        key[:] = bytearray(len(key))
        key = document
    argument = as_form(key, plan["form"])
    del key

    def order() -> countersign_swap.Order:
        return countersign_swap.Order.verify(plan["request"], plan["response"], registry, record=plan["order"])

    def pause(step: str) -> None:
        print(step, flush=True)
        sys.stdin.readline()

    pause("before")
    kept: Any
    if plan["step"] == "verify_line":
        kept = countersign_swap.verify_line(argument, registry)
    elif plan["step"] == "verify_many":
        kept = list(countersign_swap.verify_many([argument] * 3, registry))
    elif plan["step"] == "prepare":
        kept = order().prepare(argument)
    elif plan["step"] == "prepare_dict":
        wallet: Any = {**json.loads(plan["wallet"]), "secret_key": argument}
        kept = order().prepare(wallet)
    elif plan["step"] == "sign":
        unsigned = order().prepare(plan["wallet"])
        unsigned.sign(argument)
        kept = (unsigned.requests(), unsigned.finish().transactions())
    elif plan["step"] == "key":
        parsed = countersign_swap.Key(plan["family"], argument)
        first, second = order().prepare(plan["wallet"]), order().prepare(plan["wallet"])
        first.sign(parsed)
        second.sign(parsed)
        kept = (repr(parsed), first.finish().transactions() == second.finish().transactions())
        del parsed
    else:
        try:
            countersign_swap.Recovery.redeem(plan["order"], "destination", argument, registry)
            kept = "redeemed"
        except countersign_swap.Refusal as refusal:
            kept = refusal
    pause(f"after {kept}")


if __name__ == "__main__":
    main()
