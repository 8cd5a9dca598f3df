"""Reads chains through connections that a program already has: web3.py's provider, and plain HTTP.

Nothing here interprets an answer. `countersign_swap` does, so a connection can neither forge a proof nor hide a missing one.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Literal

from countersign_swap import ChainAnswer, ChainRequest, Quorum, Reader, Record, split_batch

Connection = Callable[[Sequence[ChainRequest]], Sequence[ChainAnswer]]
_MAX_RESPONSE = 16 * 1024 * 1024


def web3(provider: Any) -> Connection:
    """Returns the connection of a provider of web3.py: `Web3(..).provider`, below its middleware."""

    def send(request: ChainRequest) -> ChainAnswer:
        reply = provider.make_request(request.method, request.params)
        if reply.get("error") is not None:
            return ChainAnswer.error(json.dumps(reply["error"]))
        return ChainAnswer.result(json.dumps(reply.get("result")))

    return lambda requests: [send(request) for request in requests]


def json_rpc(url: str, timeout: float = 10) -> Connection:
    """Returns a connection to a JSON-RPC interface: an EVM chain, Starknet, Solana, a Bitcoin node."""

    def send(requests: Sequence[ChainRequest]) -> Sequence[ChainAnswer]:
        calls = [
            f'{{"jsonrpc":"2.0","id":{place},"method":{json.dumps(request.method)},"params":{request.params_text}}}'
            for place, request in enumerate(requests)
        ]
        body = calls[0] if len(calls) == 1 else f"[{','.join(calls)}]"
        status, answer, _ = _send(url, body.encode(), "application/json", timeout)
        return split_batch(answer, len(calls), status)

    return send


def http(base: str, timeout: float = 10) -> Connection:
    """Returns a connection to an HTTP interface: an Esplora server, Tron's, Sui's gRPC-web."""

    def send(request: ChainRequest) -> ChainAnswer:
        status, body, grpc_status = _send(f"{base.rstrip('/')}{request.path}", request.body, request.content_type, timeout)
        return ChainAnswer.http(status, body, grpc_status)

    return lambda requests: [send(request) for request in requests]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An endpoint that sends elsewhere is not the endpoint that was chosen."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _send(url: str, body: bytes | None, content_type: str | None, timeout: float) -> tuple[int, bytes, str | None]:
    headers = {} if content_type is None else {"content-type": content_type}
    request = urllib.request.Request(url, body, headers)
    try:
        response = _OPENER.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        whole = response.read(_MAX_RESPONSE + 1)
        if len(whole) > _MAX_RESPONSE:
            raise ValueError("the response is too large")
        return response.status, whole, response.headers.get("grpc-status")


def read(reader: Reader, connection: Connection) -> Reader:
    """Drives a reader to its end. What a connection raises counts as no answer."""
    while (requests := reader.next()) is not None:
        try:
            answers = list(connection(requests))
        except Exception as error:  # noqa: BLE001 - whatever a connection raises
            kind = "timeout" if isinstance(error, TimeoutError) else "other"
            answers = [ChainAnswer.failed(kind, str(error))] * len(requests)
        reader.answer(answers)
    return reader


def read_all(record: Record, leg: Literal["source", "destination"], endpoints: dict[str, Connection], needed: int) -> Quorum:
    """Reads the HTLC of a leg from several endpoints at once, until enough of them agree."""
    quorum = Quorum(list(endpoints), needed)
    pool = ThreadPoolExecutor(max_workers=len(endpoints))
    try:
        for done in as_completed([pool.submit(read, record.reader(leg, name), endpoints[name]) for name in endpoints]):
            quorum.hear(done.result())
            if quorum.is_settled:
                break
    finally:
        # The connections have time limits of their own.
        pool.shutdown(wait=False, cancel_futures=True)
    return quorum
