"""Runs whole swaps, from a quote to their end: plain (`Swaps`) or with asyncio (`AsyncSwaps`).

The machine in `_native` decides everything and does no I/O. This module does what it needs: HTTP requests, durable files, consent, signatures.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Set, Tuple, Union

from countersign_swap._native import Machine, Need, Refusal, UnsignedOrder

__all__ = ["AsyncSwaps", "FileStore", "MemoryStore", "Store", "Swaps", "local_key"]

Change = Dict[str, Any]
#: Method, URL, headers and body in; status, headers and body out. Raises `ConnectionRefusedError` only if nothing can have been sent.
Send = Callable[[str, str, Dict[str, str], Optional[bytes]], Tuple[int, Dict[str, str], bytes]]
#: Signs the order, or returns "sent" if the wallet has sent the payment by itself. The second argument has order_id, purpose, chain, account.
Signer = Callable[[UnsignedOrder, Dict[str, str]], Any]
Text = Union[str, bytes]

MAX_BODY = 16 << 20
TIMEOUT = 20.0


class Store(Protocol):
    """Keeps documents by name. One machine at a time may have it open."""

    def open(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        """Locks the store, and returns what identifies the place, and every document."""

    def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
        """Writes documents in this order, and deletes those without bytes. On return, they survive a power failure."""

    def close(self) -> None:
        """Releases the lock."""


class MemoryStore:
    """Keeps documents in memory, for tests. What it keeps is lost with the process, and funds with it."""

    def __init__(self) -> None:
        self.documents: Dict[str, bytes] = {}

    def open(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        return "memory", list(self.documents.items())

    def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
        for name, data in documents:
            if data is None:
                self.documents.pop(name, None)
            else:
                self.documents[name] = data

    def close(self) -> None:
        pass


class FileStore:
    """Keeps documents as files of a directory that only the user can read. Raises `BlockingIOError` if another process has it open.

    The program `countersign` can read the directory. Do not let it, or a host in another language, work on these orders meanwhile.
    """

    def __init__(self, directory: Union[str, "os.PathLike[str]"]) -> None:
        self._root = os.path.abspath(directory)
        self._lock: Optional[int] = None

    def open(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        self._make(self._root)
        self._lock = os.open(os.path.join(self._root, ".host-lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._lock)
        except OSError:
            self.close()
            raise BlockingIOError(f"another process has {self._root} open") from None
        documents = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for file in files:
                if not file.startswith(".") and file != "lock":
                    path = os.path.join(folder, file)
                    with open(path, "rb") as opened:
                        name = os.path.relpath(path, self._root).replace(os.sep, "/")
                        documents.append((name, opened.read()))
        status = os.stat(self._root)
        return f"{self._root} {status.st_dev} {status.st_ino}", documents

    def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
        for name, data in documents:
            path = os.path.join(self._root, *name.split("/"))
            folder = os.path.dirname(path)
            self._make(folder)
            if data is None:
                if os.path.exists(path):
                    os.remove(path)
            else:
                beside = os.path.join(folder, f".new-{os.path.basename(path)}")
                opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(opened, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, path)
            _sync(folder)

    def _make(self, folder: str) -> None:
        if not os.path.isdir(folder):
            parent = os.path.dirname(folder)
            self._make(parent)
            os.mkdir(folder, 0o700)
            _sync(parent)

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


if os.name == "nt":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]

    def _sync(folder: str) -> None:
        """A directory cannot be synced: a rename is as durable as the file system's journal makes it."""

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _sync(folder: str) -> None:
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def local_key(key: Union[str, bytes, bytearray]) -> Signer:
    """Returns a signer that signs with a key in memory."""

    def sign(order: UnsignedOrder, task: Dict[str, str]) -> None:
        order.sign(key)

    return sign


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Headers contain the application id, so no redirect is followed."""

    def redirect_request(self, *_: Any) -> None:
        return None


# No proxy: plain HTTP is allowed because it stays on this machine.
_opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))


def _send(method: str, url: str, headers: Dict[str, str], body: Optional[bytes]) -> Tuple[int, Dict[str, str], bytes]:
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        response = _opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        # Every status is an answer.
        response = error
    with response:
        names = {name.lower(): value for name, value in response.headers.items()}
        return response.status, names, response.read(MAX_BODY + 1)


class Swaps:
    """Runs whole swaps in a thread of its own.

    Args:
        service: The URL of the service.
        registry: The pinned registry, as JSON.
        store: Where orders are kept, such as `FileStore("swaps")`.
        nodes: The endpoints of each chain: `{"base": ["https://.."]}`.
        accounts: The owner's addresses, by chain (`base`) or by family (`evm`).
        signers: What signs for them, by chain or by family: see `local_key`.
        consent: Called with terms, summary and warnings; returns whether the owner agrees. Without it nothing is paid.
        policy: The wallet's limits, as JSON.
        app_id: The application's id, if the service wants one.
        relayer: Whether the service's relayer may redeem where the owner has no account, once the destination is proven to be funded.
        speed: `slow`, `normal` or `fast`: how soon the owner's transactions should be mined.
        sign_only: Whether no signer ever sends a payment by itself. Otherwise an order counts as paid from the moment its signer gets the
            payment, so that it is not paid twice if the process ends before the signer is done.
        poll_ms: Milliseconds between two looks at an order, for tests.
        send: Sends one HTTP request, in place of urllib.

    Raises:
        Refusal: At the first member that is invalid.
        BlockingIOError: If another process has the store open.
    """

    def __init__(
        self,
        *,
        service: str,
        registry: Text,
        store: Store,
        nodes: Optional[Mapping[str, Any]] = None,
        accounts: Optional[Mapping[str, str]] = None,
        signers: Optional[Mapping[str, Signer]] = None,
        consent: Optional[Callable[[Change], bool]] = None,
        policy: Text = b"",
        app_id: Optional[str] = None,
        relayer: bool = False,
        speed: str = "normal",
        sign_only: bool = False,
        poll_ms: Optional[int] = None,
        send: Optional[Send] = None,
    ) -> None:
        options: Dict[str, Any] = {"service": service, "accounts": dict(accounts or {}), "relayer": relayer, "speed": speed, "sign_only": sign_only}
        options.update({name: value for name, value in (("app_id", app_id), ("poll_ms", poll_ms)) if value is not None})
        self._signers = dict(signers or {})
        self._consent = consent
        self._send = send or _send
        self._store = store
        place, documents = store.open()
        try:
            self._machine = Machine(
                json.dumps(options), registry, policy, json.dumps(dict(nodes or {})), documents, place, _now()
            )
        except BaseException:
            store.close()
            raise
        # Every call wakes the pump; replies are (id, JSON, body or signed order).
        self._wake: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        self._listeners: Dict[int, Callable[[Optional[Change]], None]] = {}
        self._calls: Dict[str, Set[int]] = {}
        self._lock = threading.Lock()
        self._closed = False
        # When each request under way is given up, by the monotonic clock.
        self._deadlines: Dict[int, float] = {}
        # An owner who is asked must not hold up requests.
        self._asker = ThreadPoolExecutor(16, "countersign-owner")
        # Documents are written one after the other.
        self._writer = ThreadPoolExecutor(1, "countersign-store")
        self._thread = threading.Thread(target=self._pump, name="countersign", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Swaps":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops, and releases the store. Orders under way are continued by the next one that opens it."""
        if not self._closed:
            self._closed = True
            self._wake.put(None)
            self._thread.join()
            self._asker.shutdown(wait=False)
            self._writer.shutdown(wait=True)
            self._store.close()

    def quote(self, *, from_: str, to: str, amount: Union[str, int], **options: Any) -> Change:
        """Returns the best quote: `solver_id`, `pay` and `receive`."""
        return self._only(lambda: self._machine.quote(_wish(from_=from_, to=to, amount=amount, **options)))

    def create(self, *, from_: str, to: str, amount: Union[str, int], receive_at: str, **options: Any) -> Iterator[Change]:
        """Creates an order, pays it, and follows it to its end. Yields what changes; the last one has `event` `stopped` and a `reason`.

        Amounts are base units (`1500000`), or whole units with the symbol (`"1.5 usdc"`). Other options: `at_least`, `from_owner`,
        `slippage`, `solver`, and `accept`: with `["contract_changed"]`, a pinned contract that has changed and that you have inspected.
        """
        wish = _wish(from_=from_, to=to, amount=amount, receive_at=receive_at, **options)
        return self._changes(lambda: self._machine.create(wish))

    def follow(self, order_id: str) -> Iterator[Change]:
        """Continues a stored order, from wherever it is."""
        return self._changes(lambda: self._machine.follow(order_id), order_id)

    def refund(self, order_id: str) -> Change:
        """Refunds a stored order if its timelock has expired. Returns the last change."""
        return list(self._changes(lambda: self._machine.refund(order_id), order_id))[-1]

    def orders(self) -> List[Change]:
        """Returns the stored orders: `order_id`, `from`, `to`, `may_be_paid` and `outcome`."""
        orders: List[Change] = self._only(self._machine.list)["orders"]
        return orders

    def phrase(self) -> Optional[str]:
        """Returns the words of the rescue phrase; None before the first order. Whoever has them has the funds of every open order."""
        return self._machine.phrase()

    def _only(self, start: Callable[[], int]) -> Change:
        return list(self._changes(start))[-1]

    def _changes(self, start: Callable[[], int], order_id: Optional[str] = None) -> Iterator[Change]:
        changes: "queue.SimpleQueue[Optional[Change]]" = queue.SimpleQueue()
        self._start(start, changes.put, order_id)
        while True:
            change = changes.get()
            if change is None:
                return
            yield _checked(change)

    def _start(self, start: Callable[[], int], listener: Callable[[Optional[Change]], None], order_id: Optional[str] = None) -> None:
        """Starts a call. The listener gets its changes, and None behind the last one."""
        with self._lock:
            if self._closed:
                raise RuntimeError("this object is closed")
            call = start()
            self._listeners[call] = listener
            if order_id is not None:
                self._calls.setdefault(order_id.lower(), set()).add(call)
        self._wake.put(_nothing)

    def _pump(self) -> None:
        try:
            while True:
                needs, withdrawn, events, wake_at = self._machine.poll(_now())
                for number in withdrawn:
                    self._deadlines.pop(number, None)
                for need in needs:
                    self._begin(need)
                for event in json.loads(events):
                    self._tell(event)
                waits = [] if wake_at is None else [(wake_at - _now()) / 1000]
                waits += [end - time.monotonic() for end in self._deadlines.values()]
                timeout = max(0.0, min(waits)) if waits else None
                try:
                    woken = [self._wake.get(timeout=timeout)]
                    while not self._wake.empty():
                        woken.append(self._wake.get())
                except queue.Empty:
                    self._give_up()
                    continue
                for each in woken:
                    if each is None:
                        return
                    each()
        finally:
            self._end()

    def _begin(self, need: Need) -> None:
        kind = json.loads(need.detail)["kind"]
        if kind == "http":
            # A thread each: a server that answers byte by byte must not hold up another request.
            self._deadlines[need.id] = time.monotonic() + TIMEOUT
            threading.Thread(target=self._meet, args=(need,), name="countersign-http", daemon=True).start()
        else:
            (self._writer if kind == "store" else self._asker).submit(self._meet, need)

    def _give_up(self) -> None:
        """Replies to the requests that take too long. What still comes of them is ignored."""
        now = time.monotonic()
        for number in [number for number, end in self._deadlines.items() if end <= now]:
            del self._deadlines[number]
            self._machine.reply(number, '{"failed": "timeout"}')

    def _end(self) -> None:
        with self._lock:
            for listener in self._listeners.values():
                listener(None)
            self._listeners.clear()

    def _tell(self, event: Change) -> None:
        with self._lock:
            order_id = event.get("order_id", "").lower()
            if event["event"] == "created":
                self._calls.setdefault(order_id, set()).add(event["call"])
            if "call" in event:
                calls = [event["call"]]
            elif order_id:
                calls = sorted(self._calls.get(order_id, ()))
            else:
                calls = list(self._listeners)
            is_last = event["event"] in ("stopped", "failed", "quoted", "listed")
            for call in calls:
                listener = self._listeners.get(call)
                if listener is None:
                    continue
                try:
                    listener(event)
                    if is_last:
                        listener(None)
                except RuntimeError:
                    # The loop that listened is closed.
                    self._listeners.pop(call, None)
                if is_last:
                    self._listeners.pop(call, None)
                    for each in self._calls.values():
                        each.discard(call)

    def _meet(self, need: Need) -> None:
        """Does what is needed, and hands over the reply."""
        detail = json.loads(need.detail)
        if detail["kind"] == "sign":
            return self._sign(need.id, detail)
        body = None
        if detail["kind"] == "http":
            reply, body = self._fetch(detail, need.bodies[0])
        elif detail["kind"] == "store":
            reply = self._keep(list(zip(detail["names"], need.bodies)))
        else:
            reply = {"consent": self._ask(detail)}
        self._reply(need.id, reply, body)

    def _reply(self, number: int, reply: Change, body: Optional[bytes] = None) -> None:
        # JSON in ASCII, so that no text of an error can make it invalid.
        text = json.dumps(reply)
        self._wake.put(lambda: self._hand_over(number, text, body))

    def _hand_over(self, number: int, text: str, body: Optional[bytes]) -> None:
        self._deadlines.pop(number, None)
        self._machine.reply(number, text, body)

    def _fetch(self, detail: Change, body: Optional[bytes]) -> Tuple[Change, Optional[bytes]]:
        try:
            status, headers, content = self._send(detail["method"], detail["url"], dict(detail["headers"]), body)
        except Exception as error:  # Whatever fails, the machine decides what it means.
            return {"failed": _failed(error), "detail": type(error).__name__}, None
        wanted = [[name, headers[name]] for name in ("retry-after", "grpc-status") if name in headers]
        return {"status": status, "headers": wanted}, content

    def _keep(self, documents: List[Tuple[str, Optional[bytes]]]) -> Change:
        try:
            self._store.write(documents)
        except Exception as error:
            return {"stored": False, "detail": _text(error)}
        return {"stored": True}

    def _ask(self, order: Change) -> bool:
        try:
            return bool(self._consent and self._consent(order))
        except Exception:
            return False

    def _sign(self, number: int, task: Dict[str, str]) -> None:
        order = self._machine.take_unsigned(number)
        if order is None:
            return
        signer = self._signers.get(task["chain"]) or self._signers.get(order.family)
        try:
            if signer is None:
                return self._reply(number, {"not_signed": f"there is no signer for {task['chain']}"})
            if signer(order, task) != "sent":
                return self._wake.put(lambda: self._hand_back(number, order))
        except Exception as error:
            return self._reply(number, {"not_signed": _text(error)})
        if task["purpose"] != "funding":
            return self._reply(number, {"not_signed": "only a payment may be sent by the wallet itself"})
        self._reply(number, {"sent": True})

    def _hand_back(self, number: int, order: UnsignedOrder) -> None:
        try:
            self._machine.reply_signed(number, order)
        except Exception as error:
            self._machine.reply(number, json.dumps({"not_signed": _text(error)}))


class AsyncSwaps:
    """`Swaps` for asyncio. Consent and signers may be coroutines; they run in the loop that creates this object.

    It takes the arguments of `Swaps`.
    """

    def __init__(self, **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        if options.get("consent"):
            options["consent"] = self._in_loop(options["consent"])
        options["signers"] = {name: self._in_loop(signer) for name, signer in dict(options.get("signers") or {}).items()}
        self._swaps = Swaps(**options)

    def _in_loop(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*arguments: Any) -> Any:
            result = function(*arguments)
            return await result if inspect.isawaitable(result) else result

        return lambda *arguments: asyncio.run_coroutine_threadsafe(run(*arguments), self._loop).result()

    async def __aenter__(self) -> "AsyncSwaps":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops, and releases the store."""
        await asyncio.to_thread(self._swaps.close)

    async def quote(self, **wish: Any) -> Change:
        """Returns the best quote: see `Swaps.quote`."""
        return await asyncio.to_thread(lambda: self._swaps.quote(**wish))

    def create(self, *, from_: str, to: str, amount: Union[str, int], receive_at: str, **options: Any) -> AsyncIterator[Change]:
        """Creates an order and follows it: see `Swaps.create`."""
        wish = _wish(from_=from_, to=to, amount=amount, receive_at=receive_at, **options)
        return self._changes(lambda: self._swaps._machine.create(wish))

    def follow(self, order_id: str) -> AsyncIterator[Change]:
        """Continues a stored order: see `Swaps.follow`."""
        return self._changes(lambda: self._swaps._machine.follow(order_id), order_id)

    async def refund(self, order_id: str) -> Change:
        """Refunds a stored order: see `Swaps.refund`."""
        return await asyncio.to_thread(self._swaps.refund, order_id)

    async def orders(self) -> List[Change]:
        """Returns the stored orders: see `Swaps.orders`."""
        return await asyncio.to_thread(self._swaps.orders)

    def phrase(self) -> Optional[str]:
        """Returns the words of the rescue phrase: see `Swaps.phrase`."""
        return self._swaps.phrase()

    async def _changes(self, start: Callable[[], int], order_id: Optional[str] = None) -> AsyncIterator[Change]:
        changes: "asyncio.Queue[Optional[Change]]" = asyncio.Queue()
        self._swaps._start(start, lambda change: self._put(changes, change), order_id)
        while True:
            change = await changes.get()
            if change is None:
                return
            yield _checked(change)

    def _put(self, changes: "asyncio.Queue[Optional[Change]]", change: Optional[Change]) -> None:
        self._loop.call_soon_threadsafe(changes.put_nowait, change)


def _nothing() -> None:
    pass


def _text(error: Exception) -> str:
    """The text of an error, in characters that every JSON may have."""
    return str(error).encode("ascii", "backslashreplace").decode("ascii")


def _now() -> int:
    return time.time_ns() // 1_000_000


def _wish(*, from_: str, amount: Union[str, int], **options: Any) -> str:
    """Returns a wish as JSON. Numbers that are amounts are written as text."""
    wish = {"from": from_, "amount": str(amount), **{name: value for name, value in options.items() if value is not None}}
    if "at_least" in wish:
        wish["at_least"] = str(wish["at_least"])
    return json.dumps(wish)


def _failed(error: Exception) -> str:
    """Returns what failed. Only after "connect" nothing can have been sent."""
    # urllib wraps what happens until the request is written, and only that.
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(error, (urllib.error.URLError, ConnectionRefusedError)) and getattr(reason, "errno", None) in _NOT_CONNECTED:
        return "connect"
    return "timeout" if isinstance(reason, TimeoutError) else "interrupted"


def _errors() -> Any:
    import errno
    import socket

    return {errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, socket.EAI_NONAME, socket.EAI_AGAIN}


_NOT_CONNECTED = _errors()


def _checked(change: Change) -> Change:
    """Raises the error of a call that failed."""
    if change["event"] == "failed":
        refusal = Refusal(f"{change['error']['code']}: {change['error']['message']}")
        vars(refusal).update(change["error"])
        raise refusal
    return change
