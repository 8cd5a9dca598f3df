"""A program reads chains through its own connections, and judges as the Rust library does: recorded conversations."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import countersign_swap
from cases import FIXTURES, all_accepted

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import connections  # noqa: E402

FAMILIES = ("bitcoin", "evm", "solana", "starknet", "sui", "tron")


def conversations(family: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / "readers" / f"{family}.jsonl").read_text().splitlines()]


def conversation(family: str, case: str) -> dict[str, Any]:
    return next(line for line in conversations(family) if line["case"] == case)


def open_record(line: dict[str, Any], registry: countersign_swap.Registry) -> countersign_swap.Record:
    documents = all_accepted()[line["fixture"]].documents
    return countersign_swap.Record.verify(documents["request"], documents["response"], documents["order"], registry)


def to_answer(answer: dict[str, Any]) -> countersign_swap.ChainAnswer:
    if "result" in answer:
        return countersign_swap.ChainAnswer.result(answer["result"])
    if "error" in answer:
        return countersign_swap.ChainAnswer.error(json.dumps(answer["error"]))
    if "status" in answer:
        return countersign_swap.ChainAnswer.http(answer["status"], bytes.fromhex(answer["body"][2:]), answer.get("grpc_status"))
    return countersign_swap.ChainAnswer.failed(answer["failed"], answer["detail"])


def as_json(request: countersign_swap.ChainRequest) -> dict[str, Any]:
    body = None if request.body is None else f"0x{request.body.hex()}"
    assert request.params_text is None or request.params == json.loads(request.params_text)
    return {
        "kind": request.kind,
        "method": request.method,
        "params": request.params_text,
        "path": request.path,
        "content_type": request.content_type,
        "body": body,
    }


def play(record: countersign_swap.Record, line: dict[str, Any], endpoint: str = "one") -> countersign_swap.Reader:
    reader = record.reader(line["leg"], endpoint, protocol=line["protocol"])
    for turn in line["rounds"]:
        requests = reader.next()
        assert requests is not None
        assert [as_json(request) for request in requests] == turn["requests"]
        reader.answer([to_answer(answer) for answer in turn["answers"]])
    assert reader.next() is None
    return reader


def verdict(record: countersign_swap.Record, quorum: countersign_swap.Quorum, line: dict[str, Any]) -> dict[str, Any]:
    try:
        proof = record.judge(quorum, line["now"])
    except countersign_swap.Refusal as refusal:
        assert refusal.blame == "chain"
        return {"code": refusal.code}
    assert proof.order_id == record.order_id
    return {"left": proof.left, "unit": proof.unit}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_conversation_has_its_requests_and_its_outcome(family: str, registry: countersign_swap.Registry) -> None:
    for line in conversations(family):
        record, expected = open_record(line, registry), line["outcome"]
        reader = play(record, line)
        assert (reader.fault and reader.fault.code, reader.height) == (expected["fault"], expected["height"]), line["case"]
        quorum = countersign_swap.Quorum(["one"], 1)
        quorum.hear(reader)
        assert quorum.is_settled
        assert verdict(record, quorum, line) == expected["verdict"], line["case"]
        if expected["state"] is None:
            with pytest.raises(countersign_swap.Refusal):
                record.state("destination", quorum)
        else:
            state = record.state("destination", quorum).to_dict()
            amount = expected["state"]["amount"]
            assert state == {**expected["state"], "amount": amount and int(amount)}


def test_misuse_raises_and_what_endpoints_do_wrong_does_not(registry: countersign_swap.Registry) -> None:
    line = conversation("evm", "funded")
    record = open_record(line, registry)
    reader = record.reader("destination", "one")
    requests = reader.next()
    assert requests is not None and reader.next() == requests
    with pytest.raises(ValueError, match="one for each request"):
        reader.answer([])
    with pytest.raises(TypeError):
        reader.answer([None] * len(requests))  # type: ignore[list-item]
    assert reader.next() == requests
    quorum = countersign_swap.Quorum(["one"], 1)
    quorum.hear(reader)
    assert not quorum.is_settled
    reader.answer([countersign_swap.ChainAnswer.result("{")] * len(requests))
    assert reader.next() is None
    assert reader.fault is not None and (reader.fault.code, reader.fault.blame) == ("node_malformed", "chain")
    with pytest.raises(ValueError, match="source or destination"):
        record.reader("nowhere", "one")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="esplora or rpc"):
        record.reader("destination", "one", protocol="grpc")  # type: ignore[arg-type]
    with pytest.raises(countersign_swap.Refusal) as malformed:
        record.reader("destination", "one", known="{}")
    assert malformed.value.at.startswith("/known")
    with pytest.raises(countersign_swap.Refusal):
        countersign_swap.Quorum(["one", "two"], 1)
    assert "params" not in repr(requests[0])


def test_what_is_known_shows_an_endpoint_that_went_back(registry: countersign_swap.Registry) -> None:
    line = conversation("evm", "funded")
    record = open_record(line, registry)
    known = json.loads(play(record, line).known)
    known["height"] += 1000
    reader = record.reader("destination", "one", known=json.dumps(known))
    reader.answer([to_answer(answer) for answer in line["rounds"][0]["answers"]])
    assert reader.fault is not None and reader.fault.code == "node_went_back"


class Provider:
    """A provider of web3.py, which answers from a conversation."""

    def __init__(self, line: dict[str, Any]) -> None:
        pairs = [pair for turn in line["rounds"] for pair in zip(turn["requests"], turn["answers"])]
        self.answers = {(request["method"], json.dumps(json.loads(request["params"]))): answer for request, answer in pairs}

    def make_request(self, method: str, params: Any) -> dict[str, Any]:
        answer = self.answers[method, json.dumps(params)]
        if "error" in answer:
            return {"jsonrpc": "2.0", "id": 1, "error": answer["error"]}
        return {"jsonrpc": "2.0", "id": 1, "result": json.loads(answer["result"])}


class Broken:
    def make_request(self, method: str, params: Any) -> dict[str, Any]:
        raise ConnectionError("no route")


def test_web3_reads_through_its_provider(registry: countersign_swap.Registry) -> None:
    line = conversation("evm", "funded")
    record = open_record(line, registry)
    endpoints = {name: connections.web3(Provider(line)) for name in ("one", "two")}
    quorum = connections.read_all(record, "destination", {**endpoints, "three": connections.web3(Broken())}, 2)
    assert verdict(record, quorum, line) == line["outcome"]["verdict"]
    alone = connections.read_all(record, "destination", {"three": connections.web3(Broken())}, 1)
    with pytest.raises(countersign_swap.Refusal, match="no route"):
        record.judge(alone, line["now"])


def serve(line: dict[str, Any]) -> ThreadingHTTPServer:
    """Serves a conversation as nodes do: JSON-RPC alone and in batches, GET and POST."""
    pairs = [pair for turn in line["rounds"] for pair in zip(turn["requests"], turn["answers"])]
    calls = {(one["method"], one["params"]): answer for one, answer in pairs if one["kind"] == "json_rpc"}
    paths = {(one["path"], one["body"]): answer for one, answer in pairs if one["kind"] != "json_rpc"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(paths[self.path, None])

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if calls:
                asked = json.loads(body)
                replies = [self.call(one) for one in (asked if isinstance(asked, list) else [asked])]
                text = f"[{','.join(reversed(replies))}]" if isinstance(asked, list) else replies[0]
                self.reply({"status": 200, "body": f"0x{text.encode().hex()}"})
            else:
                self.reply(paths[self.path, f"0x{body.hex()}"])

        def call(self, one: dict[str, Any]) -> str:
            answer = next(answer for (method, params), answer in calls.items() if (method, json.loads(params)) == (one["method"], one["params"]))
            part = f'"result":{answer["result"]}' if "result" in answer else f'"error":{json.dumps(answer["error"])}'
            return f'{{"jsonrpc":"2.0","id":{one["id"]},{part}}}'

        def reply(self, answer: dict[str, Any]) -> None:
            body = bytes.fromhex(answer["body"][2:])
            self.send_response(answer["status"])
            if answer.get("grpc_status") is not None:
                self.send_header("grpc-status", answer["grpc_status"])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_read_over_http(family: str, registry: countersign_swap.Registry) -> None:
    line = conversation(family, "funded")
    record = open_record(line, registry)
    server = serve(line)
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        is_rpc = line["rounds"][0]["requests"][0]["kind"] == "json_rpc"
        connection = connections.json_rpc(base) if is_rpc else connections.http(base)
        quorum = connections.read_all(record, "destination", {"one": connection}, 1)
        assert verdict(record, quorum, line) == line["outcome"]["verdict"]
    finally:
        server.shutdown()
        server.server_close()
