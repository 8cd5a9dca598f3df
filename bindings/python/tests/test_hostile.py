"""What hosts return wrongly, by the table that every language's tests share. The machine is a script, so that each case takes no time."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from countersign_swap import swap
from countersign_swap.swap import AsyncSwaps, FileStore, MemoryStore, NothingSent, Swaps
from scripted import Need, Unsigned

TABLE = json.loads((Path(__file__).resolve().parents[2] / "hostile.json").read_text())
ORDER = "ab" * 32


class Script:
    """A machine that has one need, and stops with the reply to it as the reason."""

    need: Dict[str, Any] = {}
    refuses = False

    def __init__(self, options: str, registry: Any, policy: Any, nodes: str, documents: List[Tuple[str, bytes]], place: str, now: int) -> None:
        assert isinstance(place, str) and all(isinstance(data, bytes) for _, data in documents)
        self.options = json.loads(options)
        self.calls: List[int] = []
        self.events: List[Dict[str, Any]] = []
        self.needs: List[Need] = []

    def create(self, wish: str) -> int:
        call = len(self.calls) + 1
        self.calls.append(call)
        self.events.append({"event": "created", "call": call, "order_id": ORDER})
        self.needs.append(Need(call, {"order_id": ORDER, **self.need}, [b"{}"]))
        return call

    follow = refund = create

    def list(self) -> int:
        call = len(self.calls) + 1
        self.calls.append(call)
        self.events.append({"event": "listed", "call": call, "orders": []})
        return call

    def poll(self, now: int) -> Tuple[List[Need], List[int], str, Optional[int]]:
        events, self.events = self.events, []
        needs, self.needs = self.needs, []
        return needs, [], json.dumps(events), None

    def reply(self, number: int, reply: str, body: Optional[bytes] = None) -> bool:
        if self.refuses:
            self.refuses = False
            raise ValueError("refused at the border")
        assert body is None or isinstance(body, bytes)
        self.events.append({"event": "stopped", "call": number, "order_id": ORDER, "reason": json.loads(reply), "message": "", "error": None})
        return True

    def take_unsigned(self, number: int) -> Unsigned:
        return Unsigned()

    def reply_signed(self, number: int, order: Unsigned) -> bool:
        return self.reply(number, '{"signed": true}')


def http(method: str, url: str, headers: Dict[str, str], body: Optional[bytes]) -> Any:
    return 200, {}, b"{}"


KINDS: Dict[str, Dict[str, Any]] = {
    "http": {"kind": "http", "method": "POST", "url": "https://node.example/", "headers": []},
    "store": {"kind": "store", "names": ["orders/1/journal"]},
    "consent": {"kind": "consent", "summary": [], "warnings": []},
    "sign": {"kind": "sign", "purpose": "funding", "chain": "base", "account": "0x"},
}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    monkeypatch.setattr(swap, "Machine", Script)

    def needs(kind: str) -> Any:
        monkeypatch.setattr(Script, "need", KINDS[kind])
        return Script

    yield needs


def options(**changes: Any) -> Dict[str, Any]:
    given: Dict[str, Any] = {"service": "https://service.example", "registry": b"{}", "store": MemoryStore(), "send": http, "consent": lambda _: True}
    return {**given, **changes}


WISH: Dict[str, Any] = {"from_": "base:usdc", "to": "litecoin:ltc", "amount": "1", "receive_at": "ltc1"}


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """Returns what the work returns, or raises what it raises. A call that hangs fails the test, and not the whole run."""
    ends: List[Any] = []

    def run() -> None:
        try:
            ends.append((work(), None))
        except BaseException as error:
            ends.append((None, error))

    threading.Thread(target=run, daemon=True).start()
    until = time.monotonic() + seconds
    while not ends and time.monotonic() < until:
        time.sleep(0.005)
    assert ends, "it hangs"
    result, error = ends[0]
    if error is not None:
        raise error
    return result


def reply_of(**changes: Any) -> Any:
    """Returns the reply that the machine got. Whatever it was, other calls go on."""
    with Swaps(**options(**changes)) as swaps:
        last = within(5, lambda: list(swaps.create(**WISH)))[-1]
        assert within(5, swaps.orders) == []
        return last["reason"]


def test_only_true_is_a_yes(machine: Any) -> None:
    machine("consent")
    for answer in TABLE["consent"]["yes"]:
        assert reply_of(consent=lambda _: answer) == {"consent": True}
    for answer in TABLE["consent"]["no"]:
        assert reply_of(consent=lambda _: answer) == {"consent": False}
    for answer in TABLE["consent"]["wrong"]:
        with Swaps(**options(consent=lambda _: answer)) as swaps, pytest.raises(TypeError, match="must return True or False"):
            within(5, lambda: list(swaps.create(**WISH)))
    assert reply_of(consent=None) == {"consent": False}


def test_what_is_answered_in_one_call_ends_no_other_call_of_the_same_order(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The machine hears the first call's answer first, and the second call ends first.
    answered, reply = threading.Event(), Script.reply
    first: List[str] = []

    def second_first(script: Script, number: int, text: str, body: Optional[bytes] = None) -> bool:
        if number == 1:
            first.append(text)
            answered.set()
            return True
        return reply(script, number, text, body) and reply(script, 1, first[0])

    def consent(order: Any) -> Any:
        if asked.acquire(blocking=False):
            return "yes"
        answered.wait(5)
        return False

    asked = threading.Semaphore(1)
    monkeypatch.setattr(machine("consent"), "reply", second_first)
    with Swaps(**options(consent=consent)) as swaps:
        calls = [swaps.create(**WISH), swaps.follow(ORDER)]
        assert within(5, lambda: list(calls[1]))[-1]["reason"] == {"consent": False}
        with pytest.raises(TypeError, match="must return True or False"):
            within(5, lambda: list(calls[0]))


def test_a_coroutine_is_no_yes(machine: Any) -> None:
    machine("consent")
    asked = []

    async def consent(order: Any) -> bool:
        asked.append(order)
        return True

    with Swaps(**options(consent=consent)) as swaps:
        changes = swaps.create(**WISH)
        assert within(5, lambda: next(changes))["event"] == "created"
        with pytest.raises(TypeError, match="awaitable; use AsyncSwaps"):
            within(5, lambda: next(changes))
        assert within(5, swaps.orders) == []
    assert asked == []


def test_calls_hold_no_thread_that_a_signer_needs(machine: Any) -> None:
    machine("sign")

    async def sign(order: Unsigned, task: Any) -> None:
        await asyncio.to_thread(setattr, order, "is_signed", True)

    async def run() -> List[Any]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with AsyncSwaps(**options(signers={"base": sign})) as swaps:
            assert await swaps.orders() == []
            return [end["reason"] for end in await asyncio.gather(*(swaps.refund(ORDER) for _ in range(3)))]

    assert within(10, lambda: asyncio.run(run())) == [{"signed": True}] * 3


def test_what_a_coroutine_returns_is_checked_too(machine: Any) -> None:
    machine("consent")

    async def end(answer: Any) -> Any:
        async def consent(order: Any) -> Any:
            return answer

        async with AsyncSwaps(**options(consent=consent)) as swaps:
            return [change async for change in swaps.create(**WISH)][-1]["reason"]

    assert asyncio.run(end(True)) == {"consent": True}
    assert asyncio.run(end(False)) == {"consent": False}
    for answer in TABLE["consent"]["wrong"]:
        with pytest.raises(TypeError, match="must return True or False"):
            asyncio.run(end(answer))


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("kind", list(KINDS))
def test_whatever_a_host_raises_answers_the_need(machine: Any, kind: str, error: BaseException) -> None:
    machine(kind)

    class Store(MemoryStore):
        def write(self, documents: Any) -> None:
            raise error

    def fails(*_: Any) -> Any:
        raise error

    changes: Dict[str, Any] = {"http": {"send": fails}, "store": {"store": Store()}, "consent": {"consent": fails}, "sign": {"signers": {"base": fails}}}
    reply = reply_of(**changes[kind])
    assert reply.get("failed") == "interrupted" or reply.get("stored") is False or reply.get("consent") is False or "signer_failed" in reply


def test_a_wrong_answer_of_the_transport_fails_that_need_alone(machine: Any) -> None:
    machine("http")

    def sends(answer: Any) -> Any:
        return reply_of(send=lambda *_: answer)

    transport = TABLE["transport"]
    for status in transport["status"]["good"]:
        assert sends((status, {}, b"{}")) == {"status": status, "headers": []}
    for headers in transport["headers"]["good"]:
        assert sends((200, headers, b"{}"))["status"] == 200
    assert sends((200, {}, bytearray(b"{}")))["status"] == 200
    wrong: List[Any] = [(status, {}, b"{}") for status in transport["status"]["wrong"]]
    wrong += [(200, headers, b"{}") for headers in transport["headers"]["wrong"]]
    wrong += [(200, {}, body) for body in transport["body"]["wrong"]]
    wrong += [None, 200, (), (200,), (200, {}, b"{}", 1), "200", {}]
    for answer in wrong:
        assert sends(answer)["failed"] == "interrupted", answer


def test_only_none_says_that_documents_are_kept(machine: Any) -> None:
    machine("store")

    async def later() -> None:
        pass

    for result in [*TABLE["store"]["write"]["wrong"], "awaitable"]:

        class Store(MemoryStore):
            def write(self, documents: Any) -> Any:
                return later() if result == "awaitable" else result

        assert reply_of(store=Store())["stored"] is False, result
    assert reply_of() == {"stored": True}


def test_a_store_that_opens_wrongly_is_an_error_and_is_closed(machine: Any) -> None:
    machine("store")
    wrong = [*TABLE["store"]["open"]["wrong"], *((place, []) for place in TABLE["store"]["place"]["wrong"])]
    wrong += [("here", [("version", "1")]), ("here", [(1, b"1")]), ("here", [None])]
    for opened in wrong:
        closed = []

        class Store(MemoryStore):
            def open(self) -> Any:
                return opened

            def close(self) -> None:
                closed.append(True)

        with pytest.raises((TypeError, ValueError)):
            Swaps(**options(store=Store()))
        assert closed == [True], opened


def test_what_a_signer_returns_is_no_statement_but_none_and_sent(machine: Any) -> None:
    machine("sign")

    def sign(order: Unsigned, task: Any) -> None:
        order.is_signed = True

    assert reply_of(signers={"base": sign}) == {"signed": True}
    assert reply_of(signers={"evm": lambda *_: "sent"}) == {"sent": True}
    assert "left out" in reply_of(signers={"base": lambda *_: None})["not_signed"]
    assert reply_of()["not_signed"] == "there is no signer for base"
    for result in TABLE["signer"]["wrong"]:
        reply = reply_of(signers={"base": lambda *_: result})
        assert "the signer returned" in reply["signer_failed"] and "code" not in reply, result

    async def later(*_: Any) -> None:
        pass

    assert "coroutine" in reply_of(signers={"base": later})["signer_failed"]


def test_the_machine_learns_the_code_of_a_signer_that_fails(machine: Any) -> None:
    machine("sign")

    def failing(code: Any) -> Any:
        def sign(*_: Any) -> None:
            raise type("WalletError", (Exception,), {"code": code})("no")

        return reply_of(signers={"base": sign})

    for code in TABLE["signer"]["nothing_sent"]:
        assert failing(code) == {"signer_failed": "no", "code": str(code)}
    for code in TABLE["signer"]["maybe_sent"]:
        assert failing(code).get("code") == (str(code) if type(code) is int else None), code

    def none(*_: Any) -> None:
        raise NothingSent("the device is locked")

    assert reply_of(signers={"base": none}) == {"not_signed": "the device is locked"}


def test_a_reply_that_the_machine_refuses_fails_that_need_alone(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in KINDS:
        monkeypatch.setattr(machine(kind), "refuses", True)
        reply = reply_of(signers={"base": lambda order, _: setattr(order, "is_signed", True)})
        assert reply.get("failed") == "interrupted" or reply.get("stored") is False or reply.get("consent") is False or "signer_failed" in reply


def test_a_pump_that_dies_is_an_error_in_every_call_and_never_an_end(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go = threading.Event(), threading.Event()
    monkeypatch.setattr(machine("consent"), "refuses", False)

    def consent(_: Any) -> bool:
        asked.set()
        return go.wait(10)

    swaps = Swaps(**options(consent=consent))
    changes = swaps.create(**WISH)
    assert within(5, lambda: next(changes))["event"] == "created"
    assert asked.wait(5)

    def broken(now: int) -> Any:
        raise OverflowError("the clock")

    monkeypatch.setattr(swaps._machine, "poll", broken, raising=False)
    go.set()
    with pytest.raises(RuntimeError, match="swaps have stopped: OverflowError: the clock"):
        within(5, lambda: list(changes))
    for call in (swaps.orders, swaps.phrase, lambda: swaps.quote(from_="a", to="b", amount="1"), lambda: list(swaps.follow(ORDER))):
        with pytest.raises(RuntimeError, match="swaps have stopped"):
            within(5, call)
    within(5, swaps.close)


def test_closing_during_a_prompt_is_no_end(machine: Any) -> None:
    machine("consent")
    go = threading.Event()
    with Swaps(**options(consent=lambda _: go.wait(10))) as swaps:
        changes = swaps.create(**WISH)
        assert within(5, lambda: next(changes))["event"] == "created"
        refunds: List[BaseException] = []
        thread = threading.Thread(target=lambda: refunds.append(pytest.raises(RuntimeError, swaps.refund, ORDER).value))
        thread.start()
        time.sleep(0.1)
    with pytest.raises(RuntimeError, match="was closed"):
        within(5, lambda: list(changes))
    thread.join(5)
    assert "was closed" in str(refunds[0])
    with pytest.raises(RuntimeError, match="is closed"):
        swaps.phrase()
    go.set()


def test_a_swap_starts_at_once(machine: Any) -> None:
    machine("consent")
    asked = threading.Event()

    def consent(_: Any) -> bool:
        asked.set()
        return False

    with Swaps(**options(consent=consent)) as swaps:
        swaps.create(**WISH)
        assert asked.wait(5)


def test_the_service_is_trusted_only_by_a_word(machine: Any) -> None:
    machine("consent")
    for change, expected in (({}, False), ({"relayer": True}, False), ({"trust_the_service": True}, True)):
        with Swaps(**options(**change)) as swaps:
            machine_: Any = swaps._machine
            assert machine_.options["trust_the_service"] is expected


# ---- The store in files.


def test_a_store_is_free_again_after_a_second_opening_failed(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "swaps")
    store.open()
    for second in (store, FileStore(tmp_path / "swaps")):
        with pytest.raises(BlockingIOError):
            second.open()
    store.close()
    again = FileStore(tmp_path / "swaps")
    again.open()
    again.close()
    store.open()
    store.close()


@pytest.mark.parametrize("folder", [".", "orders", "orders/1"])
def test_a_store_that_cannot_be_read_is_not_a_new_one(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(tmp_path)
    store.open()
    documents: List[Tuple[str, Optional[bytes]]] = [("index", b"1"), ("orders/1/journal", b"{}"), ("phrase", b"words")]
    store.write(documents)
    store.close()
    scandir = os.scandir

    def fails(path: Any = ".") -> Any:
        if os.path.normpath(path) == os.path.normpath(tmp_path / folder):
            raise OSError(errno.EMFILE, "too many open files")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", fails)
        with pytest.raises(OSError, match="too many open files"):
            store.open()
    assert sorted(store.open()[1]) == documents
    store.close()


CHILD = """
import os, sys, time
sys.path[:0] = {path!r}
from countersign_swap.swap import FileStore
store = FileStore(sys.argv[1])
store.open()
if os.fork() == 0:
    time.sleep(60)
    os._exit(0)
if sys.argv[2] == "close":
    store.close()
    print("free", flush=True)
    time.sleep(60)
print("free", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("how", ["close", "exit"])
def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path, how: str) -> None:
    arguments = [sys.executable, "-c", CHILD.format(path=sys.path), str(tmp_path), how]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert child.stdout is not None and child.stdout.readline() == "free\n"
        if how == "exit":
            child.wait(20)
        store = FileStore(tmp_path)
        store.open()
        store.close()
    finally:
        # The child of the child is in its group.
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _place(store: FileStore) -> str:
    place, _ = store.open()
    store.close()
    return place


def test_an_older_index_that_is_put_back_is_another_place(tmp_path: Path) -> None:
    root = tmp_path / "swaps"
    store = FileStore(root)
    store.open()
    store.write([("index", b"1 0 place\n"), ("version", b"1\n")])
    store.close()
    first = _place(store)
    assert _place(FileStore(root)) == first
    old = (root / "index").read_bytes()
    store.open()
    store.write([("index", b"2 0 place\n")])
    store.close()
    assert _place(store) == first
    # With the content, the times and the mark of the older one.
    mark, times = (root / ".host-mark").read_bytes(), os.stat(root / "index")
    (root / "index").write_bytes(old)
    os.utime(root / "index", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / ".host-mark").write_bytes(mark)
    second = _place(store)
    assert second != first
    os.remove(root / "index")
    assert _place(store) not in (first, second)


@pytest.mark.skipif(os.name == "nt", reason="flock")
def test_a_store_respects_the_lock_of_others(tmp_path: Path) -> None:
    import fcntl

    store = FileStore(tmp_path)
    store.open()
    store.close()
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        with open(tmp_path / ".host-lock", "r+") as other:
            fcntl.flock(other, kind)
            with pytest.raises(BlockingIOError):
                store.open()
    store.open()
    with open(tmp_path / ".host-lock", "r+") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    store.close()
