"""A small wallet that swaps from one EVM chain to another. countersign checks what the service returns and signs it."""

import hashlib
import json
import secrets
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

# `orders(bytes32)` of the swap contract: initiator, redeemer, block, timelock, amount, and the block in which it
# ended.
ORDERS = "0x9c3f1e90"


class Refused(Exception):
    """Raised if countersign refuses what the service returned."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


def fetch(method, url, body=None):
    headers = {"content-type": "application/json", "service-app-id": "example"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        # Refusals have an error status, but also a body.
        with error:
            return json.load(error)


def until(read, seconds=20):
    """Calls `read` until it returns something, and returns that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = read()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError("the swap does not go on")


class Wallet:
    """A single-key wallet. `nodes` are URLs by chain, `registry` is the path of the pinned registry, `program` that of countersign."""

    def __init__(self, service, nodes, registry, address, key, program):
        self.service, self.nodes, self.registry = service, nodes, registry
        self.address, self.key, self.program = address, key, program

    def call(self, method, path, body=None):
        answer = fetch(method, f"{self.service}/v2{path}", body)
        if answer["status"] != "Ok":
            raise RuntimeError(answer["error"])
        return answer["result"]

    def node(self, asset, method, *parameters):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        answer = fetch("POST", self.nodes[asset.split(":")[0]], request)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def sent(self, asset):
        """Returns how many transactions the wallet has sent on a chain."""
        return int(self.node(asset, "eth_getTransactionCount", self.address, "pending"), 16)

    def sign(self, request, result, record):
        """Compares response and record with the request and signs, using countersign. Raises `Refused`."""
        asset = request["source"]["asset"]
        tip = int(self.node(asset, "eth_maxPriorityFeePerGas"), 16)
        base = int(self.node(asset, "eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
        wallet = {
            "nonce": self.sent(asset),
            "max_fee_per_gas": str(2 * base + tip),
            "max_priority_fee_per_gas": str(tip),
            "secret_key": f"0x{self.key}",
        }
        case = {"id": "swap", "request": request, "response": {"status": "Ok", "result": result}, "order": record, "wallet": wallet}
        command = [self.program, "batch", "--registry", self.registry]
        # One case per line on stdin, one result per line on stdout. A refusal is also a result.
        done = subprocess.run(command, input=json.dumps(case) + "\n", capture_output=True, text=True, check=False)
        if not done.stdout:
            raise RuntimeError(done.stderr)
        verdict = json.loads(done.stdout)
        if not verdict["ok"]:
            raise Refused(verdict["error"])
        return verdict["artefacts"]

    def send(self, asset, signed):
        """Sends a signed transaction and waits until it is in a block."""
        sent = self.node(asset, "eth_sendRawTransaction", signed)
        receipt = until(lambda: self.node(asset, "eth_getTransactionReceipt", sent))
        if receipt["status"] != "0x1":
            raise RuntimeError(f"{sent} has failed")

    def is_paid(self, leg, record):
        """Returns whether the destination chain itself shows that the solver has paid what was agreed."""
        with open(self.registry, encoding="utf-8") as file:
            assets = json.load(file)["assets"]
        contract = next(asset["htlc"]["address"] for asset in assets if asset["id"] == leg["asset"])
        call = {"to": contract, "data": ORDERS + record["destination_swap"]["swap_id"]}
        words = bytes.fromhex(self.node(leg["asset"], "eth_call", call, "latest")[2:])
        _, redeemer, initiated, timelock, amount, ended = (int.from_bytes(words[at : at + 32], "big") for at in range(0, 192, 32))
        agrees = redeemer == int(self.address, 16) and amount >= int(leg["amount"]) and timelock == record["destination_swap"]["timelock"]
        return initiated > 0 and ended == 0 and agrees

    def swap(self, source, destination, amount):
        """Swaps an amount in base units, and returns the record of the completed order."""
        query = urllib.parse.urlencode({"from": source, "to": destination, "from_amount": amount})
        quote = self.call("GET", f"/quote?{query}")[0]
        secret = secrets.token_bytes(32)
        leg = {"asset": destination, "owner": self.address, "amount": quote["destination"]["amount"]}
        request = {
            "source": {"asset": source, "owner": self.address, "amount": str(amount)},
            "destination": leg,
            "secret_hash": hashlib.sha256(secret).hexdigest(),
        }
        result = self.call("POST", "/orders", request)
        record = self.call("GET", f"/orders/{result['order_id']}")
        artefacts = self.sign(request, result, record)
        for name in ("approval", "initiate"):
            if artefacts.get(name):
                self.send(source, artefacts[name]["signed"])
        # Anyone with the secret can take the payment, so it is revealed only after the solver has paid.
        until(lambda: self.is_paid(leg, record))
        self.call("PATCH", f"/orders/{result['order_id']}?action=redeem", {"secret": secret.hex()})

        def redeemed():
            now = self.call("GET", f"/orders/{result['order_id']}")
            return now if now["destination_swap"]["redeem_tx_hash"] else None

        return until(redeemed)
