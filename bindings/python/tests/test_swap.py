"""Whole swaps against the sandbox, honest and with lies. Skipped where the sandbox is not built: `cargo build` in `sandbox/`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from countersign_swap import Refusal, UnsignedOrder
from countersign_swap.swap import AsyncSwaps, Change, FileStore, MemoryStore, NothingSent, Swaps, _send, local_key

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT / "sandbox" / "examples" / "python"))
from sandbox import Sandbox, built  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

PROGRAM = built("countersign-sandbox", "COUNTERSIGN_SANDBOX", CHECKOUT / "sandbox" / "target")
pytestmark = pytest.mark.skipif(
    not (os.environ.get("COUNTERSIGN_SANDBOX") or Path(PROGRAM).is_file()), reason="the sandbox is not built: cargo build in sandbox/"
)
AMOUNTS = {"base": "1.5 usdc", "litecoin": "0.3 ltc", "solana": "0.4 sol", "tron": "40 usdt", "starknet": "300 strk", "sui": "20 sui"}


class User:
    """The sandbox's user: what a wallet has."""

    def __init__(self, sandbox: Any) -> None:
        home = Path(sandbox.config).parent
        config = json.loads(Path(sandbox.config).read_text())
        self.service, self.accounts = config["base_url"], config["owners"]
        self.registry = (home / "registry.json").read_bytes()
        self.nodes = json.loads((home / "nodes.json").read_text())
        files = {chain: config["key_files"].get(chain, config["key_file"]) for chain in self.accounts}
        self.signers = {chain: local_key((home / file).read_text().strip()) for chain, file in files.items()}

    def options(self, **changes: Any) -> Dict[str, Any]:
        options: Dict[str, Any] = {
            "service": self.service,
            "app_id": "sandbox",
            "registry": self.registry,
            "nodes": self.nodes,
            "accounts": self.accounts,
            "signers": self.signers,
            "consent": lambda order: bool(order["summary"]),
            "store": MemoryStore(),
            "poll_ms": 100,
        }
        options.update(changes)
        return options

    def wish(self, source: str, to: str) -> Dict[str, Any]:
        return {
            "from_": source,
            "to": to,
            "amount": AMOUNTS[source.split(":")[0]],
            "receive_at": self.accounts[to.split(":")[0]],
        }


@pytest.fixture
def start() -> Iterator[Callable[..., Tuple[Any, User]]]:
    running: List[Any] = []

    def begin(*assets: str) -> Tuple[Any, User]:
        sandbox = Sandbox("--chains", ",".join(asset.split(":")[0] for asset in assets))
        running.append(sandbox)
        return sandbox, User(sandbox)

    yield begin
    for sandbox in running:
        sandbox.stop()


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("base:usdc", "litecoin:ltc"),
        ("litecoin:ltc", "base:usdc"),
        ("solana:sol", "tron:usdt"),
        ("tron:usdt", "solana:sol"),
        ("starknet:strk", "sui:sui"),
        ("sui:sui", "starknet:strk"),
    ],
)
def test_a_swap_of_each_family_completes(start: Any, source: str, to: str) -> None:
    _, user = start(source, to)
    with Swaps(**user.options()) as swaps:
        quote = swaps.quote(**{name: value for name, value in user.wish(source, to).items() if name != "receive_at"})
        assert int(quote["receive"]["number"]) > 0
        changes = list(swaps.create(**user.wish(source, to)))
        assert changes[-1]["reason"] == "complete", changes
        assert [order["outcome"] for order in swaps.orders()] == ["complete"]
        assert len((swaps.phrase() or "").split()) == 12


EVM_TO_LITECOIN, LITECOIN_TO_EVM = ("base:usdc", "litecoin:ltc"), ("litecoin:ltc", "base:usdc")


@pytest.mark.parametrize(
    ("lie", "route", "end"),
    [
        ("evm-contract", EVM_TO_LITECOIN, "unknown_contract"),
        ("evm-redeemer", EVM_TO_LITECOIN, "unknown_redeemer"),
        ("evm-amount", EVM_TO_LITECOIN, "amount_mismatch"),
        ("record-pays-less", EVM_TO_LITECOIN, "record_pays_less"),
        ("record-redeem-key", EVM_TO_LITECOIN, "record_pays_elsewhere"),
        ("record-hash", EVM_TO_LITECOIN, "record_mismatch"),
        ("service-error-beside-ok", EVM_TO_LITECOIN, "error_beside_ok"),
        ("service-lists-twin", EVM_TO_LITECOIN, "secret_used"),
        ("service-gone", EVM_TO_LITECOIN, "complete"),
        ("endpoint-fails", EVM_TO_LITECOIN, "complete"),
        ("endpoint-denies", EVM_TO_LITECOIN, "complete"),
        ("relayer-invents", LITECOIN_TO_EVM, "complete"),
    ],
)
def test_a_lie_ends_as_it_must(start: Any, lie: str, route: Tuple[str, str], end: str) -> None:
    sandbox, user = start(*route)
    sandbox.post("lies", name=lie, on="true")
    with Swaps(**user.options()) as swaps:
        assert _end(lambda: list(swaps.create(**user.wish(*route)))) == end


def _end(run: Callable[[], List[Change]]) -> str:
    """How a swap ended: the reason, or the code of the error."""
    try:
        last = run()[-1]
    except Refusal as refusal:
        code: str = refusal.code
        return code
    error: Optional[Dict[str, str]] = last["error"]
    return error["code"] if error else str(last["reason"])


def test_the_secret_is_not_sent_before_the_solver_has_paid(start: Any) -> None:
    sandbox, user = start(*EVM_TO_LITECOIN)
    sandbox.post("lies", name="solver-pays-less", on="true")
    store, sent = MemoryStore(), []

    def send(method: str, url: str, headers: Dict[str, str], body: Optional[bytes]) -> Tuple[int, Dict[str, str], bytes]:
        sent.append(url.encode() + (body or b""))
        return _send(method, url, headers, body)

    with Swaps(**user.options(store=store, send=send)) as swaps:
        changes = swaps.create(**user.wish(*EVM_TO_LITECOIN))
        next(change for change in changes if change.get("message", "").startswith("paid;"))
        time.sleep(2)
    secret = next(data for name, data in store.documents.items() if name.endswith("/secret"))
    assert sent and not any(secret in each for each in sent)


def test_a_deposit_comes_back_before_its_timelock_ends_if_the_solver_signs_too(start: Any) -> None:
    sandbox, user = start(*LITECOIN_TO_EVM)
    sandbox.post("lies", name="solver-never-pays-evm", on="true")
    with Swaps(**user.options()) as swaps:
        changes = swaps.create(**user.wish(*LITECOIN_TO_EVM))
        order_id = next(change["order_id"] for change in changes if change.get("status") == "waiting")
        # Until the payment is in a block, there may be nothing to sign.
        while (asked := swaps.instant_refund(order_id))["reason"] == "not_refunded":
            time.sleep(0.1)
        assert (asked["event"], asked["reason"]) == ("stopped", "refunding")
        assert next(change["reason"] for change in changes if change["event"] == "stopped") == "refunded"
        assert [order["outcome"] for order in swaps.orders()] == ["refunded"]


def test_only_a_bitcoin_like_deposit_is_refunded_at_once(start: Any) -> None:
    sandbox, user = start(*EVM_TO_LITECOIN)
    sandbox.post("lies", name="solver-never-pays", on="true")
    with Swaps(**user.options()) as swaps:
        changes = swaps.create(**user.wish(*EVM_TO_LITECOIN))
        order_id = next(change["order_id"] for change in changes if change.get("status") == "waiting")
        with pytest.raises(Refusal) as refused:
            swaps.instant_refund(order_id)
        assert (refused.value.code, refused.value.at) == ("usage", "/order_id")


def test_the_readme_swaps(start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox, user = start(*EVM_TO_LITECOIN)
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    code = re.sub(r"nodes=\{.*\}", "nodes=nodes", blocks[0])
    code = code.replace('"https://service.example"', "service").replace('"ltc1q.."', "receive_at")
    assert "example" not in code
    (tmp_path / "registry.json").write_bytes(user.registry)
    monkeypatch.chdir(tmp_path)
    names = {
        "Path": Path,
        "service": user.service,
        "nodes": user.nodes,
        "address": user.accounts["base"],
        "key": sandbox.key,
        "receive_at": user.accounts["litecoin"],
        "show_and_ask": lambda summary, warnings: bool(summary),
    }
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out.endswith("stopped complete\n")


def test_asyncio_and_coroutines(start: Any) -> None:
    _, user = start(*EVM_TO_LITECOIN)

    async def swap() -> List[Change]:
        async def consent(order: Change) -> bool:
            await asyncio.sleep(0)
            return any(line["topic"] for line in order["summary"])

        async def sign(order: UnsignedOrder, task: Dict[str, str]) -> None:
            await asyncio.sleep(0)
            user.signers[task["chain"]](order, task)

        signers = {chain: sign for chain in user.signers}
        async with AsyncSwaps(**user.options(consent=consent, signers=signers)) as swaps:
            return [change async for change in swaps.create(**user.wish(*EVM_TO_LITECOIN))]

    assert asyncio.run(swap())[-1]["reason"] == "complete"


def test_a_server_that_feeds_bytes_for_ever_is_given_up(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, user = start(*EVM_TO_LITECOIN)
    monkeypatch.setattr("countersign_swap.swap.TIMEOUT", 1.0)
    server = socket.create_server(("127.0.0.1", 0))

    def feed(connection: socket.socket) -> None:
        with connection:
            try:
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.1)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=feed, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    nodes = {name: [*urls[:2], url] for name, urls in user.nodes.items()}
    with Swaps(**user.options(nodes=nodes)) as swaps:
        assert _end(lambda: list(swaps.create(**user.wish(*EVM_TO_LITECOIN)))) == "complete"
    server.close()


def test_a_redemption_that_is_not_signed_is_left_to_the_relayer(start: Any) -> None:
    _, user = start(*LITECOIN_TO_EVM)
    asked: List[str] = []

    def sign(order: UnsignedOrder, task: Dict[str, str]) -> Optional[str]:
        asked.append(task["purpose"])
        if task["purpose"] == "redemption":
            raise NothingSent("the device is locked")
        user.signers[task["chain"]](order, task)
        return None

    signers = {**user.signers, "base": sign}
    with Swaps(**user.options(signers=signers, relayer=True)) as swaps:
        assert _end(lambda: list(swaps.create(**user.wish(*LITECOIN_TO_EVM)))) == "complete"
    assert "redemption" in asked


def test_a_wallet_sends_a_redemption_by_itself(start: Any) -> None:
    _, user = start(*LITECOIN_TO_EVM)
    store, sent = MemoryStore(), []

    def sign(order: UnsignedOrder, task: Dict[str, str]) -> str:
        # A wallet of its own: what it does with the order, nobody here sees.
        user.signers[task["chain"]](order, task)
        transactions = order.finish().transactions()
        sent.append(task["purpose"])
        for endpoint in user.nodes["base"]:
            call = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [transactions[0].payload]}
            _send("POST", endpoint["url"], {"content-type": "application/json"}, json.dumps(call).encode())
        return "sent"

    with Swaps(**user.options(signers={**user.signers, "base": sign}, store=store)) as swaps:
        assert _end(lambda: list(swaps.create(**user.wish(*LITECOIN_TO_EVM)))) == "complete"
    assert sent == ["redemption"]
    journal = next(data.decode() for name, data in store.documents.items() if name.endswith("/journal"))
    # Before the wallet saw it, and after it was sent.
    assert journal.index('"signer"') < journal.index('"own"') < journal.index('"redemption"')


def test_only_the_service_could_redeem_and_the_owner_is_told(start: Any) -> None:
    _, user = start(*LITECOIN_TO_EVM)
    accounts = {"litecoin": user.accounts["litecoin"]}
    with Swaps(**user.options(accounts=accounts, relayer=True)) as swaps, pytest.raises(ValueError, match="trust_the_service"):
        swaps.create(**user.wish(*LITECOIN_TO_EVM))
    # An account without a signer counts as none.
    with Swaps(**user.options(signers={}, relayer=True)) as swaps, pytest.raises(ValueError, match="^signers/base: expected a signer"):
        swaps.create(**user.wish(*LITECOIN_TO_EVM))
    warnings: List[str] = []

    def consent(order: Change) -> bool:
        warnings.extend(warning["code"] for warning in order["warnings"])
        return True

    with Swaps(**user.options(accounts=accounts, trust_the_service=True, consent=consent)) as swaps:
        assert _end(lambda: list(swaps.create(**user.wish(*LITECOIN_TO_EVM)))) == "complete"
    assert "trusts_the_service" in warnings


def test_one_body_of_the_wrong_type_ends_nothing(start: Any) -> None:
    _, user = start(*EVM_TO_LITECOIN)
    wrong: List[Any] = [(200, {}, "{}"), (-1, {}, b""), ("200", {}, b""), (200, None, b""), (200, {"retry-after": 1}, b""), None]

    paid = threading.Event()

    def send(method: str, url: str, headers: Dict[str, str], body: Optional[bytes]) -> Any:
        return wrong.pop() if wrong and paid.is_set() else _send(method, url, headers, body)

    with Swaps(**user.options(send=send)) as swaps:
        for change in swaps.create(**user.wish(*EVM_TO_LITECOIN)):
            if change.get("is_paid"):
                paid.set()
    assert (change["reason"], wrong) == ("complete", [])


def test_a_store_is_opened_again_before_its_first_order(start: Any, tmp_path: Path) -> None:
    _, user = start(*EVM_TO_LITECOIN)
    store = tmp_path / "new" / "swaps"
    for _ in range(2):
        with Swaps(**user.options(store=FileStore(store))) as swaps:
            assert swaps.orders() == []
    with Swaps(**user.options(store=FileStore(store))) as swaps:
        changes = list(swaps.create(**user.wish(*EVM_TO_LITECOIN)))
    assert [change["event"] for change in changes][:2] == ["phrase_created", "created"]
    assert changes[-1]["reason"] == "complete"


def test_a_swap_that_could_not_end_from_here_is_refused(start: Any) -> None:
    _, user = start(*EVM_TO_LITECOIN)
    wish = user.wish(*LITECOIN_TO_EVM)
    one = {"litecoin": user.accounts["litecoin"]}
    for options, at in (
        ({"accounts": one}, "accounts/base"),
        ({"nodes": {"litecoin": user.nodes["litecoin"]}}, "nodes/base"),
        ({"nodes": {"base": user.nodes["base"]}}, "nodes/litecoin"),
        ({"accounts": {"base": user.accounts["base"]}}, "from_owner"),
        # A chain may have been taken off the list since an order was paid, so its name stops no opening.
        ({"accounts": {**user.accounts, "evn": user.accounts["base"]}}, "accounts/evn"),
        ({"nodes": {**user.nodes, "evn": user.nodes["base"]}}, "nodes/evn"),
    ):
        with Swaps(**user.options(**options)) as swaps, pytest.raises(ValueError, match=at):
            list(swaps.create(**wish))
    with pytest.raises(Refusal, match="address_malformed"):
        Swaps(**user.options(accounts={"base": user.accounts["litecoin"]}))


def test_a_declined_order_is_not_paid(start: Any) -> None:
    _, user = start(*EVM_TO_LITECOIN)
    with Swaps(**user.options(consent=lambda order: False)) as swaps:
        assert _end(lambda: list(swaps.create(**user.wish(*EVM_TO_LITECOIN)))) == "declined"
        assert [order["may_be_paid"] for order in swaps.orders()] == [False]


def test_what_is_not_stored_is_not_done(start: Any) -> None:
    _, user = start(*EVM_TO_LITECOIN)

    class Full(MemoryStore):
        def write(self, documents: List[Tuple[str, Optional[bytes]]]) -> None:
            raise OSError("no space left")

    with Swaps(**user.options(store=Full())) as swaps:
        with pytest.raises(Refusal, match="no space left"):
            list(swaps.create(**user.wish(*EVM_TO_LITECOIN)))


# Swaps into a directory, and prints the order's id and what happens.
CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from test_swap import User
from countersign_swap.swap import FileStore, Swaps
class Config: config = sys.argv[2]
user = User(Config)
with Swaps(**user.options(store=FileStore(sys.argv[3]))) as swaps:
    for change in swaps.create(**user.wish("base:usdc", "litecoin:ltc")):
        print(json.dumps(change), flush=True)
"""


def test_a_swap_is_resumed_after_its_process_was_killed(start: Any, tmp_path: Path) -> None:
    sandbox, user = start(*EVM_TO_LITECOIN)
    store = tmp_path / "swaps"
    arguments = [sys.executable, "-c", CHILD, str(Path(__file__).parent), sandbox.config, str(store)]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    order_id = ""
    for line in child.stdout:
        change = json.loads(line)
        order_id = order_id or change.get("order_id", "")
        if change.get("is_paid"):
            break
    with pytest.raises(BlockingIOError):
        Swaps(**user.options(store=FileStore(store)))
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert order_id
    with Swaps(**user.options(store=FileStore(store))) as swaps:
        assert _end(lambda: list(swaps.resume())) == "complete"
        assert [order["order_id"] for order in swaps.orders()] == [order_id]
    # Nothing that others could read.
    assert all(path.stat().st_mode & 0o077 == 0 for path in store.rglob("*"))


def test_every_open_order_is_resumed(start: Any) -> None:
    # Two payments of one token would share an allowance, so the orders have different sources.
    _, user = start(*EVM_TO_LITECOIN)
    store = MemoryStore()
    with Swaps(**user.options(store=store)) as swaps:
        for changes in [swaps.create(**user.wish(*route)) for route in (EVM_TO_LITECOIN, LITECOIN_TO_EVM)]:
            next(change for change in changes if change.get("is_paid"))
    with Swaps(**user.options(store=store)) as swaps:
        open_orders = {order["order_id"] for order in swaps.orders() if order["outcome"] is None}
        ends = {change["order_id"]: change["reason"] for change in swaps.resume() if change["event"] == "stopped"}
        assert ends == {order_id: "complete" for order_id in open_orders}
        assert [order["outcome"] for order in swaps.orders()] == ["complete", "complete"]
        assert list(swaps.resume()) == []


def test_errors_in_what_is_asked_for(start: Any) -> None:
    _, user = start(*EVM_TO_LITECOIN)
    with pytest.raises(Refusal) as refused:
        Swaps(**user.options(registry=b"{"))
    assert refused.value.at.startswith("/registry")
    keys = [{"address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "weight": 1}]
    described = {"id": 2, "threshold": 1, "keys": keys}
    for permissions, at in (({"tron": 1}, "/tron"), ({"base": described}, "/base"), ({"tron": {**described, "keys": []}}, "/tron/keys")):
        with pytest.raises((Refusal, ValueError), match="options/permissions" + at):
            Swaps(**user.options(permissions=permissions))
    Swaps(**user.options(permissions={"tron": described}, own_transactions=True)).close()
    with Swaps(**user.options()) as swaps:
        wish = user.wish(*EVM_TO_LITECOIN)
        for change, at in (({"amount": "1.5"}, "amount"), ({"to": "litecoin:nothing"}, "/to"), ({"receive_at": "0x1"}, "/receive_at")):
            with pytest.raises((Refusal, ValueError), match=at):
                list(swaps.create(**{**wish, **change}))
    with pytest.raises(RuntimeError):
        swaps.orders()


def test_one_call_does_not_wait_for_another(start: Any) -> None:
    sandbox, user = start(*EVM_TO_LITECOIN)
    asked, go = threading.Event(), threading.Event()

    def consent(order: Change) -> bool:
        asked.set()
        return go.wait(30)

    with Swaps(**user.options(consent=consent)) as swaps:
        ends: List[str] = []
        thread = threading.Thread(target=lambda: ends.append(_end(lambda: list(swaps.create(**user.wish(*EVM_TO_LITECOIN))))))
        thread.start()
        assert asked.wait(30)
        assert len(swaps.orders()) == 1
        go.set()
        thread.join(60)
        assert ends == ["complete"]
