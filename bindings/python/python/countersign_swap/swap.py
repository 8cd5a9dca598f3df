"""Runs whole swaps, from a quote to their end: plain (`Swaps`) or with asyncio (`AsyncSwaps`).

The machine in `_native` decides everything and does no I/O. This module does what it needs: HTTP requests, durable files, consent, signatures.
"""

from __future__ import annotations

import asyncio
import http.client
import inspect
import json
import os
import queue
import secrets
import socket
import ssl
import threading
import time
import urllib.error
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import (
    Any,
    AsyncIterator,
    Callable,
    Dict,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Set,
    Tuple,
    Union,
)
from urllib.parse import urlsplit

from countersign_swap._native import Key, Machine, Need, Refusal, UnsignedOrder

__all__ = ["AsyncSwaps", "FileStore", "MemoryStore", "NothingSent", "Store", "Swaps", "local_key"]

Change = Dict[str, Any]
#: What a call hears: its changes, an error that ends it, and None behind the last change.
Heard = Union[Change, BaseException, None]
#: Method, URL, headers and body in; status, headers and body out. Raises `ConnectionRefusedError` only if nothing can have been sent. It must
#: end by itself after some 20 seconds, however slowly bytes arrive: nobody else can end it, and each call has a thread.
Send = Callable[[str, str, Dict[str, str], Optional[bytes]], Tuple[int, Dict[str, str], bytes]]
#: Signs the order and returns None, or returns "sent" if the wallet has sent the transaction by itself. The second argument has order_id,
#: purpose, chain, account; and replaces where the fee of a Bitcoin-like payment is raised with the same coins: the id of the first one.
#: Unless `sign_only` is set, a signer that raises anything but `NothingSent`, or an error whose `code` says that nothing was sent
#: (EIP-1193), may have sent the payment: it is not asked again, and the order counts as paid. While it signs, it is not asked for the same
#: purpose of the same order, unless it takes more than ten minutes.
Signer = Callable[[UnsignedOrder, Dict[str, str]], Any]
Text = Union[str, bytes]
#: Base units (`1500000`), or whole units with the symbol (`"1.5 usdc"`).
Amount = Union[str, int]

MAX_BODY = 16 << 20
#: Seconds until a complete response.
TIMEOUT = 20.0
#: Seconds after which a signer at work counts as lost, and is asked again: a redemption that nobody signs loses the funds, and two do no harm.
LOST = 600.0


class NothingSent(Exception):
    """Raised by a signer that has neither signed nor sent anything, so that it can be asked again."""


class Store(Protocol):
    """Keeps documents by name. One machine at a time may have it open."""

    def open(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        """Locks the store, and returns what identifies the place, and every document.

        The place changes if an older document `index` is put back there; it is empty where the store cannot tell. Two orders could
        otherwise share a secret.
        """

    def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
        """Writes documents in this order, and deletes those without bytes. When it returns None, they survive a power failure."""

    def close(self) -> None:
        """Releases the lock."""


class MemoryStore:
    """Keeps documents in memory, for tests. What it keeps is lost with the process, and funds with it."""

    def __init__(self) -> None:
        self.documents: Dict[str, bytes] = {}

    def open(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        # What a caller puts back here, nobody notices.
        return "", list(self.documents.items())

    def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
        for name, data in documents:
            if data is None:
                self.documents.pop(name, None)
            else:
                self.documents[name] = data

    def close(self) -> None:
        pass


class FileStore:
    """Keeps documents as files of a directory that only the user can read. Raises `BlockingIOError` if it is open elsewhere.

    The directory is locked by its file `.host-lock`, which the program `countersign` and the hosts in other languages respect. An older
    `index` that is put back there is noticed by the file `.host-mark`.
    """

    def __init__(self, directory: Union[str, "os.PathLike[str]"]) -> None:
        self._root = os.path.abspath(directory)
        self._lock: Optional[int] = None
        self._mark = ""
        _stores.add(self)

    def open(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        if self._lock is not None:
            raise BlockingIOError(f"{self._root} is open already")
        self._make(self._root)
        lock = os.open(os.path.join(self._root, ".host-lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(lock)
        except OSError:
            os.close(lock)
            raise BlockingIOError(f"another process has {self._root} open") from None
        self._lock = lock
        try:
            return self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> Tuple[str, List[Tuple[str, bytes]]]:
        documents = list(self._documents(self._root))
        try:
            with open(os.path.join(self._root, ".host-mark"), "r", encoding="ascii") as opened_mark:
                mark, _, index = opened_mark.read().partition(" ")
        except (OSError, ValueError):
            mark = index = ""
        # The mark is valid as long as `index` is the file that was written with it.
        self._mark = mark if mark and index == self._index() else secrets.token_hex(16)
        status = os.stat(self._root)
        return f"{self._root} {status.st_dev} {status.st_ino} {self._mark}", documents

    def _documents(self, folder: str) -> Iterator[Tuple[str, bytes]]:
        """Yields what a folder has. What cannot be read is an error: a store that looks new would be written over, and its keys lost."""
        with os.scandir(folder) as entries:
            for entry in entries:
                # Marks, locks, and what was not completely written.
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    yield from self._documents(entry.path)
                elif entry.name != "lock":
                    with open(entry.path, "rb") as opened:
                        yield os.path.relpath(entry.path, self._root).replace(os.sep, "/"), opened.read()

    def _index(self) -> str:
        """Returns what tells the file `index` from every other that was or will be there. A copied file has another time of change."""
        try:
            status = os.stat(os.path.join(self._root, "index"))
        except FileNotFoundError:
            return "none"
        return f"{status.st_ino} {status.st_ctime_ns}"

    def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
        if self._lock is None:
            raise ValueError("the store is not open")
        for name, data in documents:
            self._put(os.path.join(self._root, *name.split("/")), data)
            if name == "index":
                self._put(os.path.join(self._root, ".host-mark"), f"{self._mark} {self._index()}".encode())

    def _put(self, path: str, data: Optional[bytes]) -> None:
        folder = os.path.dirname(path)
        self._make(folder)
        if data is None:
            try:
                os.remove(path)
            except FileNotFoundError:
                pass
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
        lock, self._lock = self._lock, None
        if lock is not None:
            # A child process that was forked has the file open too.
            _unlock(lock)
            os.close(lock)

    def _forget(self) -> None:
        """In a child process: closes the file, which keeps the parent's lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


_stores: "weakref.WeakSet[FileStore]" = weakref.WeakSet()


def _forget_stores() -> None:
    for store in list(_stores):
        store._forget()


if hasattr(os, "register_at_fork"):
    # A child would hold the lock for as long as it lives.
    os.register_at_fork(after_in_child=_forget_stores)

if os.name == "nt":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]

    def _unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined, unused-ignore]

    def _sync(folder: str) -> None:
        """A directory cannot be synced: a rename is as durable as the file system's journal makes it."""

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

    def _sync(folder: str) -> None:
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def local_key(key: Union[Key, str, bytes, bytearray]) -> Signer:
    """Returns a signer that signs with a key in memory. A `Key` is parsed once, and its text is in no memory afterwards."""

    def sign(order: UnsignedOrder, task: Dict[str, str]) -> None:
        try:
            order.sign(key)
        except Exception as error:
            raise NothingSent(_text(error)) from error

    return sign


_tls: Callable[[], ssl.SSLContext] = lru_cache(maxsize=None)(ssl.create_default_context)


class _Exchange:
    """One HTTP request, which anybody can end.

    It has a connection of its own, through no proxy: plain HTTP is allowed because it stays on this machine. No redirect is followed, because
    headers contain the application id.
    """

    def __init__(self) -> None:
        #: When it is given up, by the monotonic clock.
        self.deadline = time.monotonic() + TIMEOUT
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self._is_over = False

    def end(self) -> None:
        """Shuts the connection down, which ends what waits for it.

        The timeout of a socket cannot do that: it begins anew with each byte, so that a server decides how long a thread and a file stay.
        """
        with self._lock:
            self._is_over = True
            if self._socket is not None:
                try:
                    # Not the method of TLS, which would have the reader go on without decryption.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    # Nothing is connected yet, or any longer.
                    pass

    def _hold(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = connection
            if self._is_over:
                connection.close()
                raise TimeoutError("the request was given up")
        return connection

    def send(self, method: str, url: str, headers: Dict[str, str], body: Optional[bytes]) -> Tuple[int, Dict[str, str], bytes]:
        parts = urlsplit(url)
        host, is_tls = parts.hostname or "", parts.scheme == "https"
        # The port is always named: it would otherwise be looked for in the address.
        port = parts.port or (443 if is_tls else 80)
        connection = http.client.HTTPSConnection(host, port, context=_tls()) if is_tls else http.client.HTTPConnection(host, port)
        try:
            try:
                connection.sock = self._connect(host, port)
            except OSError as error:
                # Nothing was sent: urllib says so with this error.
                raise urllib.error.URLError(error) from error
            if is_tls:
                secure = _tls().wrap_socket(connection.sock, server_hostname=host, do_handshake_on_connect=False)
                connection.sock = self._hold(secure)
                secure.do_handshake()
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body, {"user-agent": "countersign", "connection": "close", **headers})
            with connection.getresponse() as response:
                content = response.read(MAX_BODY + 1)
                if response.length and len(content) <= MAX_BODY:
                    raise http.client.IncompleteRead(content, response.length)
                return response.status, {name.lower(): value for name, value in response.headers.items()}, content
        finally:
            with self._lock:
                self._socket = None
            connection.close()

    def _connect(self, host: str, port: int) -> socket.socket:
        """Connects to the first address that answers. Each has the time that is left, so that many do not take longer."""
        failed = OSError("the host has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
            try:
                connection = socket.socket(family, kind, protocol)
            except OSError as error:
                # The system lacks this family of addresses.
                failed = error
                continue
            try:
                self._hold(connection).settimeout(max(self.deadline - time.monotonic(), 0.001))
                connection.connect(address)
                # The body is not held back until the headers are acknowledged.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as error:
                failed = error
                connection.close()
        raise failed


def _send(method: str, url: str, headers: Dict[str, str], body: Optional[bytes]) -> Tuple[int, Dict[str, str], bytes]:
    return _Exchange().send(method, url, headers, body)


class _Signing:
    """A signer at work: for which need, whether that was withdrawn, since when, and the needs that wait for the same."""

    def __init__(self, number: int, waiting: List[Need]) -> None:
        self.number, self.is_withdrawn, self.since, self.waiting = number, False, time.monotonic(), waiting


def _task(need: Need) -> Tuple[str, str]:
    detail = json.loads(need.detail)
    return detail["order_id"], detail["purpose"]


class Swaps:
    """Runs whole swaps in a thread of its own.

    Args:
        service: The URL of the service.
        registry: The pinned registry, as JSON.
        store: Where orders are kept, such as `FileStore("swaps")`.
        nodes: The endpoints of each chain: `{"base": ["https://.."]}`.
        accounts: The owner's addresses, by chain (`base`) or by family (`evm`).
        permissions: The permissions under which the accounts on Tron sign, by chain or as `tron`: an id whose only key is the account's own, or
            the permission as `/wallet/getaccount` describes it. The signer attaches as many signatures as it asks for. Without one, an
            account's own key signs.
        own_transactions: Whether a payment is always the account's own transactions, which cost gas, although the order offers a gasless
            message. Without it, they are offered only to an account whose code refuses the message.
        signers: What signs for them, by chain or by family: see `local_key`.
        consent: Called with terms, summary and warnings. Only `True` is a yes: whatever is neither `True` nor `False` pays nothing, and is
            raised as an error. Without it nothing is paid.
        policy: The wallet's limits, as JSON.
        app_id: The application's id, if the service wants one.
        relayer: Whether the service's relayer may redeem where the owner's account does not sign or has no coins for the fee, once the
            destination is proven to be funded.
        trust_the_service: Whether to believe the service about a destination that is not connected, and to swap where only its relayer
            could redeem. **A dishonest service then has the funds**: it can keep the secret, take what was paid, and pay nothing.
        speed: `slow`, `normal` or `fast`: how soon the owner's transactions should be mined.
        sign_only: Whether no signer ever sends a payment by itself. Otherwise an order counts as paid from the moment its signer gets the
            payment, so that it is not paid twice if the process ends before the signer is done.
        poll_ms: Milliseconds between two looks at an order, for tests.
        send: Sends one HTTP request, in place of this module.

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
        permissions: Optional[Mapping[str, Any]] = None,
        own_transactions: bool = False,
        signers: Optional[Mapping[str, Signer]] = None,
        consent: Optional[Callable[[Change], bool]] = None,
        policy: Text = b"",
        app_id: Optional[str] = None,
        relayer: bool = False,
        trust_the_service: bool = False,
        speed: str = "normal",
        sign_only: bool = False,
        poll_ms: Optional[int] = None,
        send: Optional[Send] = None,
    ) -> None:
        options: Dict[str, Any] = {
            "service": service,
            "accounts": dict(accounts or {}),
            "own_transactions": own_transactions,
            "signers": list(signers or {}),
            "relayer": relayer,
            "trust_the_service": trust_the_service,
            "speed": speed,
            "sign_only": sign_only,
        }
        options.update({name: value for name, value in (("app_id", app_id), ("permissions", permissions), ("poll_ms", poll_ms)) if value is not None})
        self._signers = dict(signers or {})
        self._consent = consent
        self._send = send
        self._store = store
        opened = store.open()
        try:
            place, documents = _opened(opened)
            self._machine = Machine(
                json.dumps(options), registry, policy, json.dumps(dict(nodes or {})), documents, place, _now()
            )
        except BaseException:
            store.close()
            raise
        # Every call wakes the pump; replies are (id, JSON, body or signed order).
        self._wake: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        self._listeners: Dict[int, Callable[[Heard], None]] = {}
        self._calls: Dict[str, Set[int]] = {}
        self._lock = threading.Lock()
        self._closed = False
        # Why nothing goes on any more.
        self._failure: Optional[BaseException] = None
        # What an owner's consent returned that is no answer, by call.
        self._no_answers: Dict[int, TypeError] = {}
        # The requests under way.
        self._requests: Dict[int, _Exchange] = {}
        # The signers at work, by order and purpose: two calls at once could send two transactions.
        self._signing: Dict[Tuple[str, str], _Signing] = {}
        # Documents are written one after the other.
        self._writer = ThreadPoolExecutor(1, "countersign-store")
        self._thread = threading.Thread(target=self._pump, name="countersign", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Swaps":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops, and releases the store. Orders under way are continued by the next one that opens it; loops over them raise."""
        if not self._closed:
            self._closed = True
            self._wake.put(None)
            self._thread.join()
            self._writer.shutdown(wait=True)
            self._store.close()

    def quote(
        self,
        *,
        from_: str,
        to: str,
        amount: Amount,
        at_least: Optional[Amount] = None,
        slippage: Optional[int] = None,
        solver: Optional[str] = None,
    ) -> Change:
        """Returns the best quote: `solver_id`, `pay` and `receive`."""
        wish = _wish(from_=from_, to=to, amount=amount, at_least=at_least, slippage=slippage, solver=solver)
        return self._only(lambda: self._machine.quote(wish))

    def create(
        self,
        *,
        from_: str,
        to: str,
        amount: Amount,
        receive_at: str,
        from_owner: Optional[str] = None,
        at_least: Optional[Amount] = None,
        slippage: Optional[int] = None,
        solver: Optional[str] = None,
        affiliate_fees: Optional[Sequence[Mapping[str, Any]]] = None,
        accept: Optional[Sequence[Literal["contract_changed"]]] = None,
    ) -> Iterator[Change]:
        """Creates an order, pays it, and follows it to its end. Yields what changes; the last one has `event` `stopped` and a `reason`.

        Args:
            from_: The asset to pay, such as `base:usdc`.
            to: The asset to receive.
            amount: What to pay: base units (`1500000`), or whole units with the symbol (`"1.5 usdc"`).
            receive_at: The address that is paid.
            from_owner: The address that pays, if it is not the one in `accounts`.
            at_least: The least to receive, in units of `to`.
            slippage: How much less than quoted may be received, in hundredths of a percent.
            solver: The id of the only solver whose quotes count.
            affiliate_fees: Fees for others, as the service's interface has them.
            accept: With `["contract_changed"]`, a pinned contract that has changed and that you have inspected.
        """
        wish = _wish(
            from_=from_,
            to=to,
            amount=amount,
            receive_at=receive_at,
            from_owner=from_owner,
            at_least=at_least,
            slippage=slippage,
            solver=solver,
            affiliate_fees=affiliate_fees and [dict(fee) for fee in affiliate_fees],
            accept=accept and list(accept),
        )
        return self._changes(lambda: self._machine.create(wish))

    def follow(self, order_id: str) -> Iterator[Change]:
        """Continues a stored order, from wherever it is."""
        return self._changes(lambda: self._machine.follow(order_id), order_id)

    def resume(self) -> Iterator[Change]:
        """Continues every stored order that has not ended, and yields their changes as they come. Each order ends with `stopped`.

        One that cannot be continued ends with the reason `failed`, and does not end the others.
        """
        changes: "queue.SimpleQueue[Heard]" = queue.SimpleQueue()
        return self._heard(changes, self._follow_all(self.orders(), changes.put))

    def refund(self, order_id: str) -> Change:
        """Refunds a stored order if its timelock has expired. Returns the last change."""
        return list(self._changes(lambda: self._machine.refund(order_id), order_id))[-1]

    def instant_refund(self, order_id: str) -> Change:
        """Asks for the refund of a stored order on a Bitcoin-like chain before its timelock ends. The solver has to sign it too.

        Returns the last change, with the reason `refunding` once the service has the owner's signatures; `follow` shows the refund. The
        reason is `not_refunded` while neither the service nor the endpoints show the payment: ask again once it is in a block.
        """
        return list(self._changes(lambda: self._machine.instant_refund(order_id), order_id))[-1]

    def orders(self) -> List[Change]:
        """Returns the stored orders: `order_id`, `from`, `to`, `may_be_paid` and `outcome`."""
        orders: List[Change] = self._only(self._machine.list)["orders"]
        return orders

    def phrase(self) -> Optional[str]:
        """Returns the words of the rescue phrase; None before the first order. Whoever has them has the funds of every open order."""
        self._check_running()
        return self._machine.phrase()

    def _check_running(self) -> None:
        if self._closed:
            raise RuntimeError("this object is closed")
        if self._failure is not None:
            raise _again(self._failure)
        if not self._thread.is_alive():
            raise RuntimeError("this object is another process's: a forked child has none of its threads")

    def _only(self, start: Callable[[], int]) -> Change:
        return list(self._changes(start))[-1]

    def _changes(self, start: Callable[[], int], order_id: Optional[str] = None) -> Iterator[Change]:
        changes: "queue.SimpleQueue[Heard]" = queue.SimpleQueue()
        self._start(start, changes.put, order_id)
        # Only now a generator: what is wrong in the arguments is an error at once, and the swap does not wait for the first look at it.
        return self._heard(changes)

    def _heard(self, changes: "queue.SimpleQueue[Heard]", calls: int = 1) -> Iterator[Change]:
        while calls:
            change = changes.get()
            if change is None:
                calls -= 1
            else:
                yield _checked(change)

    def _follow_all(self, orders: List[Change], put: Callable[[Heard], None]) -> int:
        """Follows the orders that have not ended. Returns how many: as often, None is put behind the last change of one."""
        listen = _once(put)
        open_orders = [order["order_id"] for order in orders if order["outcome"] is None]
        for order_id in open_orders:
            self._start(partial(self._machine.follow, order_id), partial(_stops, order_id, listen), order_id)
        return len(open_orders)

    def _start(self, start: Callable[[], int], listener: Callable[[Heard], None], order_id: Optional[str] = None) -> None:
        """Starts a call. The listener gets its changes, and None behind the last one; or the error that ends it."""
        with self._lock:
            self._check_running()
            call = start()
            self._listeners[call] = listener
            if order_id is not None:
                self._calls.setdefault(order_id.lower(), set()).add(call)
        self._wake.put(_nothing)

    def _pump(self) -> None:
        error: BaseException = RuntimeError("this object was closed; what is under way is continued by the next one")
        try:
            self._run()
        except BaseException as caught:  # Whatever it is, every call hears it: nothing goes on any more.
            error = caught
        finally:
            self._end(error)

    def _run(self) -> None:
        while True:
            needs, withdrawn, events, wake_at = self._machine.poll(_now())
            for number in withdrawn:
                self._withdraw(number)
            for need in needs:
                self._begin(need)
            for event in json.loads(events):
                self._tell(event)
            waits = [] if wake_at is None else [(wake_at - _now()) / 1000]
            waits += [exchange.deadline - time.monotonic() for exchange in self._requests.values()]
            timeout = min(max(0.0, min(waits)), threading.TIMEOUT_MAX) if waits else None
            woken: List[Optional[Callable[[], None]]] = []
            try:
                woken.append(self._wake.get(timeout=timeout))
                while not self._wake.empty():
                    woken.append(self._wake.get())
            except queue.Empty:
                pass
            for each in woken:
                if each is None:
                    return
                each()
            self._give_up()

    def _begin(self, need: Need) -> None:
        detail = json.loads(need.detail)
        kind = detail["kind"]
        if kind == "store":
            self._writer.submit(self._meet, need)
        elif kind == "http":
            self._requests[need.id] = exchange = _Exchange()
            self._in_thread(need, kind, exchange)
        elif kind == "consent":
            self._in_thread(need, kind)
        else:
            at_work = self._signing.get(_task(need))
            if at_work is not None and time.monotonic() < at_work.since + LOST:
                at_work.waiting.append(need)
            else:
                self._signing[_task(need)] = _Signing(need.id, at_work.waiting if at_work else [])
                self._in_thread(need, kind)

    def _in_thread(self, need: Need, kind: str, exchange: Optional[_Exchange] = None) -> None:
        """Meets a need in a thread of its own: neither a slow server nor an owner who takes hours may hold up anything else."""
        try:
            threading.Thread(target=self._meet, args=(need, exchange), name=f"countersign-{kind}", daemon=True).start()
        except RuntimeError as error:
            # The process can have no more threads. Nothing was sent.
            self._reply(need, kind, _did_not(kind, NothingSent(_text(error))))

    def _end_signing(self, need: Need, text: Optional[str]) -> None:
        """Replies to a need, and to those that waited for its signer. What it has sent, or why not, holds for them too; a signature does not."""
        at_work, asked = self._signing.get(_task(need)), [need]
        # Otherwise another call has begun meanwhile, and nobody waits for this one.
        if at_work is not None and at_work.number == need.id:
            del self._signing[_task(need)]
            # One transaction is reported once: for a withdrawn need only if no other need waits.
            asked = [] if at_work.is_withdrawn and at_work.waiting else asked
            asked += at_work.waiting
        for each in asked:
            if text is not None:
                self._hand_over(each.id, "sign", text, None)
            elif each is not need:
                self._begin(each)

    def _withdraw(self, number: int) -> None:
        """Ends a request that is not needed any more. A signer is not ended: what it has sent has to be known all the same."""
        exchange = self._requests.pop(number, None)
        if exchange is not None:
            exchange.end()
        for at_work in self._signing.values():
            at_work.is_withdrawn |= at_work.number == number
            at_work.waiting = [need for need in at_work.waiting if need.id != number]

    def _give_up(self) -> None:
        """Ends the requests that take too long."""
        now = time.monotonic()
        for number in [number for number, exchange in self._requests.items() if exchange.deadline <= now]:
            self._withdraw(number)
            self._machine.reply(number, '{"failed": "timeout"}')

    def _end(self, error: BaseException) -> None:
        """Ends every call with an error: one that is not followed any longer must not look as if it had ended."""
        for exchange in self._requests.values():
            exchange.end()
        with self._lock:
            self._failure = error
            for listener in self._listeners.values():
                try:
                    listener(_again(error))
                except RuntimeError:
                    # The loop that listened is closed.
                    pass
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
            wrong = self._no_answers.pop(event["call"], None) if event["event"] == "stopped" else None
            for call in calls:
                listener = self._listeners.get(call)
                if listener is None:
                    continue
                try:
                    listener(event if wrong is None else wrong)
                    if is_last:
                        listener(None)
                except RuntimeError:
                    # The loop that listened is closed.
                    self._listeners.pop(call, None)
                if is_last:
                    self._listeners.pop(call, None)
                    for each in self._calls.values():
                        each.discard(call)

    def _meet(self, need: Need, exchange: Optional[_Exchange] = None) -> None:
        """Does what is needed, and hands over the reply. What goes wrong is a reply, too: a need that stays open is a swap that hangs."""
        detail = json.loads(need.detail)
        kind = detail["kind"]
        if kind in ("consent", "sign") and (self._closed or self._failure is not None):
            # Nobody hears the answer, so no owner is asked.
            return
        reply: Optional[Change]
        body = None
        try:
            if kind == "http":
                reply, body = self._fetch(detail, need.bodies[0], exchange)
            elif kind == "store":
                reply = self._keep(list(zip(detail["names"], need.bodies)))
            elif kind == "consent":
                reply = {"consent": self._ask(detail, need.call)}
            else:
                reply = self._sign(need.id, detail)
        except BaseException as error:  # Also SystemExit, which ends only the thread that raises it.
            reply, body = _did_not(kind, error), None
        self._reply(need, kind, reply, body)

    def _reply(self, need: Need, kind: str, reply: Optional[Change], body: Optional[bytes] = None) -> None:
        """Has the pump hand over a reply; None if the order was handed back, or is not wanted any more."""
        # JSON in ASCII, so that no text of an error can make it invalid.
        text = None if reply is None else json.dumps(reply)

        def hand_over() -> None:
            if kind == "sign":
                self._end_signing(need, text)
            elif text is not None:
                self._hand_over(need.id, kind, text, body)

        self._wake.put(hand_over)

    def _hand_over(self, number: int, kind: str, text: str, body: Optional[bytes]) -> None:
        """Hands over a reply, also one to a need that was withdrawn: the machine knows what it is still good for."""
        self._requests.pop(number, None)
        try:
            self._machine.reply(number, text, body)
        except (Refusal, ValueError, TypeError, OverflowError) as error:
            # A reply that the machine refuses fails what was needed, not every swap.
            self._machine.reply(number, json.dumps(_did_not(kind, error)))

    def _fetch(self, detail: Change, body: Optional[bytes], exchange: Optional[_Exchange]) -> Tuple[Change, Optional[bytes]]:
        send = self._send or (exchange or _Exchange()).send
        try:
            answer = send(detail["method"], detail["url"], dict(detail["headers"]), body)
        except Exception as error:  # Whatever fails, the machine decides what it means.
            return {"failed": _failed(error), "detail": type(error).__name__}, None
        status, headers, content = _answered(answer)
        return {"status": status, "headers": headers}, content

    def _keep(self, documents: List[Tuple[str, Optional[bytes]]]) -> Change:
        result: Any = self._store.write(documents)  # type: ignore[func-returns-value]
        if result is not None:
            # A coroutine, for example, which has written nothing.
            _drop(result)
            raise TypeError(f"the store's write returned {type(result).__name__}, not None")
        return {"stored": True}

    def _ask(self, order: Change, call: int) -> bool:
        if self._consent is None:
            return False
        answer: Any = self._consent(order)
        if answer is True or answer is False:
            return bool(answer)
        _drop(answer)
        what = "an awaitable; use AsyncSwaps" if inspect.isawaitable(answer) else type(answer).__name__
        self._no_answers[call] = TypeError(f"consent must return True or False, not {what}; nothing was paid")
        return False

    def _sign(self, number: int, task: Dict[str, str]) -> Optional[Change]:
        """Has an order signed, and returns the reply; None if it was handed back."""
        order = self._machine.take_unsigned(number)
        if order is None:
            return None
        signer = self._signers.get(task["chain"]) or self._signers.get(order.family)
        if signer is None:
            return {"not_signed": f"there is no signer for {task['chain']}"}
        result = signer(order, task)
        if isinstance(result, str) and result == "sent":
            return {"sent": True}
        # Anything else is no statement: it counts only if the signatures are there.
        if result is not None and order.missing():
            _drop(result)
            raise TypeError(f"the signer returned {type(result).__name__}, not None or 'sent'")
        if order.missing():
            return {"not_signed": f"the signer left out {', '.join(order.missing())}"}
        self._wake.put(lambda: self._hand_back(number, order))
        return None

    def _hand_back(self, number: int, order: UnsignedOrder) -> None:
        try:
            self._machine.reply_signed(number, order)
        except (Refusal, ValueError, TypeError) as error:
            self._machine.reply(number, json.dumps(_did_not("sign", error)))


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

    async def quote(
        self,
        *,
        from_: str,
        to: str,
        amount: Amount,
        at_least: Optional[Amount] = None,
        slippage: Optional[int] = None,
        solver: Optional[str] = None,
    ) -> Change:
        """Returns the best quote: see `Swaps.quote`."""
        wish = _wish(from_=from_, to=to, amount=amount, at_least=at_least, slippage=slippage, solver=solver)
        return await self._last(lambda: self._swaps._machine.quote(wish))

    def create(
        self,
        *,
        from_: str,
        to: str,
        amount: Amount,
        receive_at: str,
        from_owner: Optional[str] = None,
        at_least: Optional[Amount] = None,
        slippage: Optional[int] = None,
        solver: Optional[str] = None,
        affiliate_fees: Optional[Sequence[Mapping[str, Any]]] = None,
        accept: Optional[Sequence[Literal["contract_changed"]]] = None,
    ) -> AsyncIterator[Change]:
        """Creates an order and follows it: see `Swaps.create`."""
        wish = _wish(
            from_=from_,
            to=to,
            amount=amount,
            receive_at=receive_at,
            from_owner=from_owner,
            at_least=at_least,
            slippage=slippage,
            solver=solver,
            affiliate_fees=affiliate_fees and [dict(fee) for fee in affiliate_fees],
            accept=accept and list(accept),
        )
        return self._changes(lambda: self._swaps._machine.create(wish))

    def resume(self) -> AsyncIterator[Change]:
        """Continues every stored order that has not ended: see `Swaps.resume`."""
        changes: "asyncio.Queue[Heard]" = asyncio.Queue()
        calls = self._swaps._follow_all(self._swaps.orders(), lambda change: self._put(changes, change))
        return self._heard(changes, calls)

    def follow(self, order_id: str) -> AsyncIterator[Change]:
        """Continues a stored order: see `Swaps.follow`."""
        return self._changes(lambda: self._swaps._machine.follow(order_id), order_id)

    async def refund(self, order_id: str) -> Change:
        """Refunds a stored order: see `Swaps.refund`."""
        return await self._last(lambda: self._swaps._machine.refund(order_id), order_id)

    async def instant_refund(self, order_id: str) -> Change:
        """Asks for the refund of a stored order before its timelock ends: see `Swaps.instant_refund`."""
        return await self._last(lambda: self._swaps._machine.instant_refund(order_id), order_id)

    async def orders(self) -> List[Change]:
        """Returns the stored orders: see `Swaps.orders`."""
        orders: List[Change] = (await self._last(self._swaps._machine.list))["orders"]
        return orders

    def phrase(self) -> Optional[str]:
        """Returns the words of the rescue phrase: see `Swaps.phrase`."""
        return self._swaps.phrase()

    def _changes(self, start: Callable[[], int], order_id: Optional[str] = None) -> AsyncIterator[Change]:
        changes: "asyncio.Queue[Heard]" = asyncio.Queue()
        self._swaps._start(start, lambda change: self._put(changes, change), order_id)
        return self._heard(changes)

    async def _last(self, start: Callable[[], int], order_id: Optional[str] = None) -> Change:
        """Returns the last change of a call. It waits in no thread: the loop has few, and signers may need them."""
        return [change async for change in self._changes(start, order_id)][-1]

    async def _heard(self, changes: "asyncio.Queue[Heard]", calls: int = 1) -> AsyncIterator[Change]:
        while calls:
            change = await changes.get()
            if change is None:
                calls -= 1
            else:
                yield _checked(change)

    def _put(self, changes: "asyncio.Queue[Heard]", change: Heard) -> None:
        self._loop.call_soon_threadsafe(changes.put_nowait, change)


def _nothing() -> None:
    pass


def _once(put: Callable[[Heard], None]) -> Callable[[Heard], None]:
    """Passes on what several calls hear, once: what concerns no order is told to every call."""
    last: List[Heard] = [None]

    def listen(change: Heard) -> None:
        if change is None or change is not last[0]:
            last[0] = change
            put(change)

    return listen


def _stops(order_id: str, listen: Callable[[Heard], None], change: Heard) -> None:
    """Passes on a change. A call that failed, or whose owner gave no answer, is the end of its order, and of no other."""
    if isinstance(change, dict) and change["event"] == "failed":
        error = change["error"]
        change = {"event": "stopped", "order_id": order_id, "reason": "failed", "message": error["message"], "error": error}
    elif isinstance(change, TypeError):
        change = {"event": "stopped", "order_id": order_id, "reason": "failed", "message": _text(change), "error": None}
    listen(change)


def _text(error: BaseException) -> str:
    """The text of an error, in characters that every JSON may have."""
    try:
        text = str(error) or type(error).__name__
    except Exception:
        text = type(error).__name__
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _drop(result: Any) -> None:
    """Closes a coroutine that nobody will run."""
    if inspect.iscoroutine(result):
        result.close()


def _again(error: BaseException) -> BaseException:
    """Returns an error of its own for each call that is ended by another one."""
    if isinstance(error, RuntimeError):
        return RuntimeError(*error.args)
    wrapped = RuntimeError(f"swaps have stopped: {type(error).__name__}: {_text(error)}")
    wrapped.__cause__ = error
    return wrapped


def _did_not(kind: str, error: BaseException) -> Change:
    """Returns the reply to a need of this kind that was not met."""
    if kind == "http":
        return {"failed": "interrupted", "detail": f"{type(error).__name__}: {_text(error)}"}
    if kind == "store":
        return {"stored": False, "detail": _text(error)}
    if kind == "consent":
        return {"consent": False}
    if isinstance(error, NothingSent):
        return {"not_signed": _text(error)}
    code = getattr(error, "code", None)
    return {"signer_failed": _text(error), **({"code": str(code)} if type(code) is int else {})}


def _opened(opened: Any) -> Tuple[str, List[Tuple[str, bytes]]]:
    """Checks what a store returned when it was opened."""
    if inspect.isawaitable(opened):
        _drop(opened)
        raise TypeError("the store's open returned an awaitable")
    place, documents = opened
    if not isinstance(place, str):
        raise TypeError(f"the store's place is not str but {type(place).__name__}")
    checked = []
    for name, data in documents:
        if not isinstance(name, str) or not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError("the store's documents are not pairs of str and bytes")
        checked.append((str(name), bytes(data)))
    return place, checked


def _answered(answer: Any) -> Tuple[int, List[List[str]], bytes]:
    """Checks what a transport returned. The machine would take a wrong type for its own mistake."""
    if inspect.isawaitable(answer):
        _drop(answer)
        raise TypeError("the transport returned an awaitable")
    status, headers, body = answer
    if type(status) is not int or not 100 <= status <= 999:
        raise TypeError(f"the transport's status is {status!r:.40}, not an HTTP status")
    if not isinstance(headers, Mapping):
        raise TypeError(f"the transport's headers are {type(headers).__name__}, not a mapping of str to str")
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError(f"the transport's body is {type(body).__name__}, not bytes")
    wanted = []
    for name in ("retry-after", "grpc-status"):
        if name in headers:
            value = headers[name]
            if not isinstance(value, str):
                raise TypeError(f"the transport's header {name} is {type(value).__name__}, not str")
            wanted.append([name, str(value)])
    return status, wanted, bytes(body)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _wish(*, from_: str, amount: Amount, **options: Any) -> str:
    """Returns a wish as JSON. Numbers that are amounts are written as text."""
    wish = {"from": from_, "amount": str(amount), **{name: value for name, value in options.items() if value is not None}}
    if "at_least" in wish:
        wish["at_least"] = str(wish["at_least"])
    return json.dumps(wish)


def _failed(error: Exception) -> str:
    """Returns what failed. Only after "connect" nothing can have been sent."""
    # `URLError` wraps what happens before the request is written, here and in urllib.
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(error, (urllib.error.URLError, ConnectionRefusedError)) and getattr(reason, "errno", None) in _NOT_CONNECTED:
        return "connect"
    # They are one class since Python 3.10.
    return "timeout" if isinstance(reason, (TimeoutError, socket.timeout)) else "interrupted"


def _errors() -> Any:
    import errno

    return {errno.ECONNREFUSED, errno.EAFNOSUPPORT, errno.ENETUNREACH, errno.EHOSTUNREACH, socket.EAI_NONAME, socket.EAI_AGAIN}


_NOT_CONNECTED = _errors()


def _checked(change: Union[Change, BaseException]) -> Change:
    """Raises the error of a call that failed, or that ended it."""
    if isinstance(change, BaseException):
        raise change
    if change["event"] == "failed":
        refusal = Refusal(f"{change['error']['code']}: {change['error']['message']}")
        vars(refusal).update(change["error"])
        raise refusal
    return change
