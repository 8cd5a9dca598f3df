"""Signers outside of the library: their signatures are attached, and the artefacts are those that the fixtures expect."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import countersign_swap
from cases import Case, accepted, all_accepted

Sign = Callable[[Case, countersign_swap.Request], str]
BLOCKHASH = "SysvarC1ock11111111111111111111111111111111"


def prepare(case: Case, registry: countersign_swap.Registry, wallet: dict[str, Any] | None = None) -> countersign_swap.UnsignedOrder:
    """Prepares a case with its wallet context, some members of which are replaced."""
    documents = case.documents
    order = countersign_swap.Order.verify(documents["request"], documents["response"], registry, record=documents.get("order"))
    assert order.order_id.lower() == case.expect["order_id"].lower()
    return order.prepare(json.dumps({**json.loads(documents["wallet"]), **(wallet or {})}))


def with_key(family: str) -> list[Case]:
    return [case for case in accepted(f"{family}.jsonl") if '"secret_key"' in case.documents["wallet"]]


def check(family: str, registry: countersign_swap.Registry, sign: Sign, same_nonces: bool = True) -> None:
    """Signs every request of every case. Libraries that choose nonces as ours does make the bytes that the fixtures expect."""
    cases = with_key(family)
    for case in cases:
        unsigned, local = prepare(case, registry), prepare(case, registry)
        local.sign(case.key)
        if local.missing():
            # An account's permission asks for several keys.
            continue
        for request in unsigned.requests():
            unsigned.attach(request.name, sign(case, request))
        assert unsigned.missing() == []
        if same_nonces:
            assert json.loads(unsigned.artefacts()) == case.expect["artefacts"], case.id
        ours, theirs = local.finish(), unsigned.finish()
        assert [transaction.id for transaction in ours.transactions()] == [transaction.id for transaction in theirs.transactions()]
        if same_nonces:
            assert (ours.transactions(), ours.gasless()) == (theirs.transactions(), theirs.gasless())
    assert len(cases) > 30


def hex_key(case: Case) -> bytes:
    return bytes.fromhex(case.key.removeprefix("0x"))


def test_evm_by_eth_account(registry: countersign_swap.Registry) -> None:
    accounts = pytest.importorskip("eth_account")

    def sign(case: Case, request: countersign_swap.Request) -> str:
        account = accounts.Account.from_key(case.key)
        assert account.address == request.signer
        native = json.loads(request.native.value)
        if request.native.kind == "typed_data":
            return str(account.sign_typed_data(full_message=native).signature.hex())
        del native["from"]
        if native["type"] == "0x0":
            # eth-account takes no type for a legacy transaction.
            del native["type"]
        signed = account.sign_transaction(native)
        # The low bit of v: what EIP-155 adds to it is 35 and twice the chain's id.
        parity = signed.v if signed.v < 2 else (signed.v - 35) % 2
        return f"{signed.r:064x}{signed.s:064x}{parity + 27:02x}"

    check("evm", registry, sign)


def test_tron_by_eth_keys(registry: countersign_swap.Registry) -> None:
    keys = pytest.importorskip("eth_keys")

    def sign(case: Case, request: countersign_swap.Request) -> str:
        signature = keys.keys.PrivateKey(hex_key(case)).sign_msg_hash(request.digest)
        return f"{signature.r:064x}{signature.s:064x}{signature.v + 27:02x}"

    check("tron", registry, sign)


def test_starknet_by_starknet_py(registry: countersign_swap.Registry) -> None:
    pytest.importorskip("starknet_py")
    from starknet_py.hash.utils import message_signature
    from starknet_py.utils.typed_data import TypedData

    def sign(case: Case, request: countersign_swap.Request) -> str:
        digest = int.from_bytes(request.digest, "big")
        if request.native.kind == "typed_data":
            typed_data = TypedData.from_dict(json.loads(request.native.value))
            assert typed_data.message_hash(int(request.signer, 16)) == digest, case.id
        r, s = message_signature(digest, int(case.key, 16))
        return f"{r:#x},{s:#x}"

    # starknet-py derives the nonce of a signature in another way than starknet.js, where the fixtures come from.
    check("starknet", registry, sign, same_nonces=False)


def solana_keypair(solders: Any, key: str) -> Any:
    keypair = solders.keypair.Keypair
    try:
        return keypair.from_base58_string(key)
    except ValueError:
        # A seed of 32 bytes.
        return keypair.from_seed(bytes(solders.pubkey.Pubkey.from_string(key)))


def test_solana_by_solders(registry: countersign_swap.Registry) -> None:
    pytest.importorskip("solders")
    import solders.keypair
    import solders.message
    import solders.pubkey
    import solders.transaction

    def sign(case: Case, request: countersign_swap.Request) -> str:
        keypair = solana_keypair(solders, case.key)
        assert str(keypair.pubkey()) == request.signer
        transaction = solders.transaction.VersionedTransaction.from_bytes(base64.b64decode(request.native.value))
        message = solders.message.to_bytes_versioned(transaction.message)
        assert message == request.payload
        return str(keypair.sign_message(message))

    check("solana", registry, sign)


def bech32_payload(text: str) -> bytes:
    """The bytes of a `suiprivkey1` text; its checksum is the library's to check."""
    values = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(letter) for letter in text.rsplit("1", 1)[1][:-6]]
    bits = "".join(f"{value:05b}" for value in values)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))


def test_sui_by_solders(registry: countersign_swap.Registry) -> None:
    pytest.importorskip("solders")
    from solders.keypair import Keypair

    signed = 0
    for case in with_key("sui"):
        secret = bech32_payload(case.key) if case.key.startswith("suiprivkey") else b"\0" + hex_key(case)
        unsigned = prepare(case, registry)
        request = unsigned.requests()[0]
        keypair = Keypair.from_seed(secret[1:])
        if secret[0] != 0 or request.name != "transaction":
            continue  # A key of another curve than Ed25519.
        signature = b"\0" + bytes(keypair.sign_message(request.digest)) + bytes(keypair.pubkey())
        unsigned.attach(request.name, base64.b64encode(signature).decode())
        assert json.loads(unsigned.artefacts()) == case.expect["artefacts"], case.id
        assert request.payload.endswith(base64.b64decode(request.native.value))
        signed += 1
    assert signed > 30


def test_bitcoin_by_embit(registry: countersign_swap.Registry) -> None:
    pytest.importorskip("embit")
    from embit.ec import PrivateKey
    from embit.psbt import PSBT

    signed = 0
    for case in with_key("bitcoin"):
        unsigned, local = prepare(case, registry), prepare(case, registry)
        local.sign(case.key)
        requests = unsigned.requests()
        psbt = PSBT.from_string(requests[0].native.value)
        keys = [PrivateKey(bytes.fromhex(key)) for key in re.findall("[0-9a-f]{64}", case.key)]
        if sum(psbt.sign_with(key) for key in keys) < len(requests):
            continue  # A kind of input that embit does not sign.
        signed += 1
        unsigned.attach("psbt", str(psbt))
        assert unsigned.missing() == []
        theirs, ours = unsigned.finish().transactions(), local.finish().transactions()
        assert [transaction.id for transaction in ours] == [case.expect["artefacts"]["deposit"]["tx_id"]]
        # embit looks for signatures of 70 bytes, and only in legacy inputs do these belong to the id.
        if not any(request.signer[0] in "1mnL" for request in requests):
            assert [transaction.id for transaction in theirs] == [transaction.id for transaction in ours]
    assert signed > 5


def test_a_signature_of_another_key_is_refused_and_changes_nothing(registry: countersign_swap.Registry) -> None:
    keys = pytest.importorskip("eth_keys")
    case = with_key("evm")[0]
    unsigned = prepare(case, registry)
    request = unsigned.requests()[0]
    signature = keys.keys.PrivateKey(b"\x01" * 32).sign_msg_hash(request.digest).to_bytes().hex()
    with pytest.raises(countersign_swap.Refusal) as refused:
        unsigned.attach(request.name, signature)
    assert (refused.value.code, refused.value.blame) == ("signature_mismatch", "caller")
    assert request.name in unsigned.missing()


def eth_transaction(case: Case, request: countersign_swap.Request) -> bytes:
    accounts = pytest.importorskip("eth_account")
    native = json.loads(request.native.value)
    signed = accounts.Account.from_key(case.key).sign_transaction({name: native[name] for name in native if name != "from"})
    return bytes(signed.raw_transaction)


def solana_transaction(case: Case, request: countersign_swap.Request) -> bytes:
    pytest.importorskip("solders")
    import solders.keypair
    import solders.pubkey
    import solders.transaction

    unsigned = solders.transaction.VersionedTransaction.from_bytes(base64.b64decode(request.native.value))
    return bytes(solders.transaction.VersionedTransaction(unsigned.message, [solana_keypair(solders, case.key)]))


def bitcoin_psbt(case: Case, request: countersign_swap.Request) -> bytes:
    pytest.importorskip("embit")
    from embit.ec import PrivateKey
    from embit.psbt import PSBT

    psbt = PSBT.from_string(request.native.value)
    assert psbt.sign_with(PrivateKey(hex_key(case))) == 1
    return bytes(psbt.serialize())


@pytest.mark.parametrize(
    ("identifier", "sign", "change", "code"),
    [
        ("evm-token-approval-exact", eth_transaction, {"nonce": 23}, "transaction_mismatch"),
        ("solana-native-v0", solana_transaction, {"recent_blockhash": BLOCKHASH}, "transaction_mismatch"),
        ("bitcoin-p2wpkh", bitcoin_psbt, {"fee_rate": "3"}, "psbt_mismatch"),
    ],
)
def test_a_signer_may_return_the_signed_transaction(
    identifier: str,
    sign: Callable[[Case, countersign_swap.Request], bytes],
    change: dict[str, Any],
    code: str,
    registry: countersign_swap.Registry,
) -> None:
    case = all_accepted()[identifier]
    unsigned, other = prepare(case, registry), prepare(case, registry, change)

    def transactions(order: countersign_swap.UnsignedOrder) -> list[bytes]:
        return [sign(case, request) for request in order.requests() if request.native.kind != "typed_data"]

    before = unsigned.artefacts()
    for transaction in [*transactions(other), b"", b"\0"]:
        with pytest.raises(countersign_swap.Refusal) as refused:
            unsigned.attach_transaction(transaction)
        assert refused.value.code == (code if len(transaction) > 1 else "transaction_mismatch")
        assert refused.value.at == "/transaction"
    with pytest.raises(TypeError):
        unsigned.attach_transaction("0x02")  # type: ignore[arg-type]
    assert unsigned.artefacts() == before, "a refused transaction changes nothing"

    wanted = [request.name for request in unsigned.requests() if request.native.kind != "typed_data"]
    assert [name for transaction in transactions(unsigned) for name in unsigned.attach_transaction(transaction)] == wanted
    assert not set(wanted) & set(unsigned.missing())
