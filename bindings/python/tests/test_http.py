"""The HTTP client of swaps, against servers that are slow on purpose. The machine is a script."""

from __future__ import annotations

import errno
import http.client
import os
import select
import socket
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional
from urllib.error import URLError

import pytest

from countersign_swap import swap
from countersign_swap.swap import _failed, _send
from scripted import Driven, Scripted, threads, until


class Server:
    """Answers every request with some bytes, and then with one byte after the other until the client leaves. It has one thread.

    Without an answer it only listens; without feeding it leaves after the answer.
    """

    def __init__(self, answer: Optional[bytes], feeds: bool = True, family: int = socket.AF_INET) -> None:
        self.socket = socket.create_server(("127.0.0.1" if family == socket.AF_INET else "::1", 0), family=family, backlog=64)
        self.port = self.socket.getsockname()[1]
        self.answer, self.feeds = answer, feeds
        self.open: List[socket.socket] = []
        self.fed: List[socket.socket] = []
        self.heard = b""
        self.is_over = False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while not self.is_over:
            readable, _, _ = select.select([self.socket, *self.open], [], [], 0.02)
            for each in readable:
                if each is self.socket:
                    self.open.append(each.accept()[0])
                else:
                    self._hear(each)
            for each in self.fed:
                self._say(each, b"x")
            self.fed = [each for each in self.fed if each in self.open]
        for each in [self.socket, *self.open]:
            each.close()

    def _hear(self, client: socket.socket) -> None:
        try:
            heard = client.recv(65536)
        except OSError:
            heard = b""
        self.heard += heard
        if not heard:
            self._leave(client)
        elif self.answer is not None and b"\r\n\r\n" in self.heard:
            self._say(client, self.answer)
            if self.feeds:
                self.fed.append(client)
            else:
                self._leave(client)

    def _say(self, client: socket.socket, data: bytes) -> None:
        try:
            client.sendall(data)
        except OSError:
            self._leave(client)

    def _leave(self, client: socket.socket) -> None:
        if client in self.open:
            self.open.remove(client)
            client.close()

    def close(self) -> None:
        self.is_over = True
        self.thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: List[Server] = []

    def start(*arguments: Any, **options: Any) -> Server:
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "Machine", Scripted)


def files() -> int:
    """Returns how many files this process has open, where the system says it."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


#: Where the bytes never end, and what comes before that. A server of TLS that says nothing is in its handshake.
SLOW: Dict[str, Optional[bytes]] = {
    "status": b"",
    "headers": b"HTTP/1.1 200 OK\r\nserver: ",
    "continued": b"HTTP/1.1 100 Continue\r\nserver: ",
    "body": b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10000\r\n",
    "handshake": None,
}


def url_of(server: Server, where: str) -> str:
    return f"{'https' if where == 'handshake' else 'http'}://127.0.0.1:{server.port}/"


@pytest.mark.parametrize("where", list(SLOW))
def test_a_server_that_feeds_bytes_for_ever_keeps_neither_threads_nor_files(where: str, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "TIMEOUT", 0.3)
    server = serve(SLOW[where])
    with Driven() as driven:
        driven.get(url_of(server, where))
        assert driven.reply()[1]["failed"] == "timeout"
        until(lambda: threads("http") == 0 and not server.open)
        before = files()
        asked = {driven.get(url_of(server, where)) for _ in range(50)}
        while asked:
            # What a request says that was given up comes later, and is ignored.
            number, reply = driven.reply()
            assert number not in asked or reply["failed"] == "timeout"
            asked.discard(number)
        until(lambda: threads("http") == 0 and not server.open and files() <= before)


@pytest.mark.parametrize("how", ["withdrawn", "closed"])
def test_a_request_that_is_not_needed_any_more_ends(how: str, serve: Any) -> None:
    server = serve(SLOW["body"])
    with Driven() as driven:
        number = driven.get(url_of(server, "body"))
        until(lambda: bool(server.open))
        assert threads("http") == 1
        if how == "withdrawn":
            driven.withdraw(number)
        else:
            driven.swaps.close()
        until(lambda: threads("http") == 0 and not server.open)


def test_a_request_that_was_given_up_before_it_is_connected_is_not_sent(serve: Any) -> None:
    server = serve(SLOW["status"])
    exchange = swap._Exchange()
    exchange.end()
    with pytest.raises(URLError):
        exchange.send("GET", f"http://127.0.0.1:{server.port}/", {}, None)
    until(lambda: not server.open)
    assert server.heard == b""


def test_a_request_and_its_response_are_those_that_were_meant(serve: Any) -> None:
    server = serve(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nRetry-After: 2\r\ncontent-length: 2\r\n\r\nno", feeds=False)
    status, headers, body = _send("POST", f"http://127.0.0.1:{server.port}/v1?a=b", {"x-key": "1"}, b"{}")
    assert (status, headers["retry-after"], body) == (302, "2", b"no")
    head, _, sent = server.heard.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "post /v1?a=b http/1.1"
    assert sorted(lines[1:]) == [
        "accept-encoding: identity",
        "connection: close",
        "content-length: 2",
        f"host: 127.0.0.1:{server.port}",
        "user-agent: countersign",
        "x-key: 1",
    ]
    assert sent in (b"{}", b"")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_an_address_of_ipv6_is_connected(serve: Any) -> None:
    server = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", feeds=False, family=socket.AF_INET6)
    assert _send("GET", f"http://[::1]:{server.port}", {}, None)[0] == 200
    assert f"Host: [::1]:{server.port}".encode() in server.heard


def test_an_address_of_a_missing_family_is_passed_over(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", feeds=False)
    create = socket.socket

    def connect_to(*families: int) -> int:
        addresses = [(family, socket.SOCK_STREAM, 0, "", ("127.0.0.1", server.port)) for family in families]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
        return _send("GET", f"http://name.example:{server.port}/", {}, None)[0]

    def without_ipv6(family: int, *arguments: Any, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        return create(family, *arguments, **options)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    assert connect_to(socket.AF_INET6, socket.AF_INET) == 200
    # Nothing was sent where no other address is there.
    with pytest.raises(URLError) as raised:
        connect_to(socket.AF_INET6)
    assert _failed(raised.value) == "connect"


@pytest.mark.parametrize("half", [b"content-length: 9\r\n\r\nhalf", b"transfer-encoding: chunked\r\n\r\n9\r\nhalf"])
def test_half_a_response_is_an_interruption(half: bytes, serve: Any) -> None:
    server = serve(b"HTTP/1.1 200 OK\r\n" + half, feeds=False)
    with pytest.raises(http.client.IncompleteRead) as raised:
        _send("GET", f"http://127.0.0.1:{server.port}/", {}, None)
    assert _failed(raised.value) == "interrupted"


def test_what_cannot_connect_was_not_sent(serve: Any) -> None:
    server = serve(b"", feeds=False)
    server.close()
    for host in ("127.0.0.1", "name.invalid"):
        with pytest.raises(URLError) as raised:
            _send("POST", f"http://{host}:{server.port}/", {}, b"{}")
        assert _failed(raised.value) == "connect"
