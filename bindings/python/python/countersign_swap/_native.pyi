"""Types of the compiled module.

The docstrings are those of the module: `python stubs.py` writes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, final

from countersign_swap._shapes import (
    Blame,
    CallCode,
    Code,
    Coverage,
    Family,
    FaultCode,
    HoldCode,
    Htlc,
    HtlcTerms,
    Leg,
    Line,
    Matched,
    NativePayload,
    Notice,
    PinChange,
    Proof,
    RecoveryContext,
    Request,
    Role,
    Terms,
    Transaction,
    Value,
    WalletContext,
)

__all__ = [
    "ChainAnswer",
    "ChainRequest",
    "CheckedReceipt",
    "Coverage",
    "Difference",
    "Htlc",
    "HtlcTerms",
    "Key",
    "Line",
    "Matched",
    "Machine",
    "NativePayload",
    "Need",
    "Notice",
    "Order",
    "OrderPage",
    "PinChange",
    "Policy",
    "Proof",
    "Quorum",
    "Reader",
    "Record",
    "Recovery",
    "Refusal",
    "Registry",
    "Request",
    "Sentence",
    "SignedOrder",
    "Terms",
    "Transaction",
    "UnsignedOrder",
    "Value",
    "__version__",
    "check_receipt",
    "descriptors",
    "families",
    "in_whole_units",
    "order_page",
    "split_batch",
    "verify_line",
    "verify_many",
    "write_receipt",
]

__version__: str

# Documents are text as it came: parsing loses duplicate keys and the spelling of numbers.
_Bytes = bytes | bytearray | memoryview
_Text = str | _Bytes

class Refusal(Exception):
    """A document, key, signature or state that is not accepted.

    The text of the exception has all of these attributes but `blame`.

    Attributes:
        code: The stable snake_case code, as docs/codes.md of the project lists them; also `used_up` and `signature_missing`.
        message: The rule that was broken, and what to do about it.
        at: Where: an RFC 6901 pointer into the input, with a byte range behind `#` where a payload is meant.
        expected: What would have been right, or None.
        actual: What came instead, or None.
        blame: Who has to act: `service`, `caller`, `unsupported`, `bug`, or `chain` where only waiting can help.
    """
    code: Code | HoldCode | FaultCode | CallCode
    message: str
    at: str
    expected: str | None
    actual: str | None
    blame: Blame

@final
class Registry:
    """What the wallet has pinned: chains, assets and solvers.

    Read it once and share it: it is immutable, usable from all threads, and can be pickled.

    Args:
        json: The registry document.

    Raises:
        Refusal: At the first member that is malformed or contradictory.
    """
    def __new__(cls, json: _Text) -> Registry: ...
    def diff(self, newer: Registry) -> list[PinChange]:
        """Compares a newer registry with this one, which is pinned. Show the changes to the owner before you pin the newer one.

        Returns:
            Everything that differs, sorted by entry and member; nothing if both pin the same.
        """
    def __getnewargs__(self) -> tuple[bytes]: ...

@final
class Policy:
    """The wallet's own limits: timelocks, fees, and the warnings that are refused.

    Immutable, usable from all threads, and can be pickled.

    Args:
        json: The policy document. What it leaves out keeps its default.

    Raises:
        Refusal: At the first member that is malformed or unknown.
    """
    def __new__(cls, json: _Text | None = None) -> Policy: ...
    def __getnewargs__(self) -> tuple[bytes]: ...

@final
class Order:
    """A verified order: every byte that would be signed agrees with the request, the registry and the record, or is shown.

    Only `Order.verify` makes one. Immutable and usable from all threads.
    """
    @staticmethod
    def verify(
        request: _Text,
        response: _Text,
        registry: Registry,
        policy: Policy | None = None,
        record: _Text | None = None,
    ) -> Order:
        """Verifies what the service returned for an order.

        Args:
            request: The wallet's create-order request, as it was sent.
            response: The service's response, as it came. Do not parse it first: that loses duplicate keys and number spellings.
            registry: What the wallet has pinned.
            policy: The wallet's limits, by default those of `Policy()`.
            record: The order record, where the wallet has it.

        Raises:
            Refusal: At the first member or byte that is malformed, unknown or contradictory.
        """
    @property
    def family(self) -> Family:
        """The family that signs, such as `evm`."""
    @property
    def order_id(self) -> str:
        """The order's id."""
    def terms(self) -> Terms:
        """Returns the terms that the owner agrees to, as values."""
    def summary(self) -> list[Line]:
        """Returns what the owner reads before signing: every value that the response chose."""
    def warnings(self) -> list[Notice]:
        """Returns what the owner should know."""
    def coverage(self) -> list[Coverage]:
        """Returns which bytes of the response each topic of the summary describes."""
    def check_deadline(self, now: float) -> None:
        """Checks that there is still time to pay. Call it again right before broadcasting.

        Args:
            now: The time in Unix seconds, such as `time.time()`.

        Raises:
            Refusal: When it is too late.
            ValueError: If the time is negative, above 2^64 seconds or not a number.
        """
    def wallet_calls(self) -> list[str]:
        """Returns what wallets take that choose nonce and fees themselves, as JSON texts.

        On EVM chains these are the parameters of `eth_sendTransaction`, one for each call; on Starknet the calls of
        `account.execute`.

        Raises:
            Refusal: With the code `unsupported_family` for a family without such an interface.
        """
    def matches(self, transaction: _Text) -> Role:
        """Returns what a transaction does in this order, such as `approval` or `initiate`.

        Use it with wallets that choose nonce and fees themselves: everything that they may not choose must be as it was verified. What the
        owner would have to be warned about is refused: on EVM and Tron another approval above the amount than the verified one, on Tron a
        permission or signatures that only the chain can judge. `match_with_warnings` returns it.

        Args:
            transaction: The transaction that the wallet signed or sent, in the form that docs/spec/batch.md of the project lists: on
                EVM chains the JSON that `eth_getTransactionByHash` returns, or the raw bytes in hex.

        Raises:
            Refusal: With the code `transaction_mismatch` and the first difference if it is not part of the order, or with the warnings if
                it is.
        """
    def match_with_warnings(self, transaction: _Text) -> Matched:
        """Returns what a transaction does in this order, such as `approval` or `initiate`, and what the wallet changed or added although it may.

        Show the warnings to the owner: the role alone does not say what else was sent.

        Args:
            transaction: As for `matches`.

        Raises:
            Refusal: With the code `transaction_mismatch` and the first difference if it is not part of the order, or with
                `warning_refused` for a warning that the policy refuses.
        """
    def find_payment(self, effect: _Text) -> str:
        """Finds the payment of an order by what a transaction did.

        Use it with wallets that send in a form of their own: by a bundler, a relay, the owners of a Safe or the members of a multisig. The
        wallet or node that returned the JSON is trusted for this: whether the payment is final, a reader of the source leg decides.

        Args:
            effect: JSON that the wallet or node returned for a method that docs/spec/batch.md of the project lists, such as
                `wallet_getCallsStatus` or `eth_getTransactionReceipt`.

        Returns:
            The id of the transaction that paid, as explorers show it.

        Raises:
            Refusal: With the code `transaction_mismatch` if the transaction failed, is not confirmed or does not show the payment, or with
                `unsupported_family` for a source of a family without such a method.
        """
    def prepare(self, wallet: _Text | WalletContext) -> UnsignedOrder:
        """Adds the wallet's nonce, fees or coins. May be called again, as often as they change.

        Args:
            wallet: The family's wallet context: a dict such as `EvmWallet`, or its JSON as docs/spec/batch.md of the project describes it. A
                `secret_key` in it is not used.

        Raises:
            Refusal: At the member of `/wallet` that is missing, malformed or invalid.
            TypeError: If a member of the dict has a type that no wallet context has, such as `float`.
        """
    def prepare_gasless(self) -> UnsignedOrder:
        """Prepares the gasless path, for which a wallet needs neither nonce nor fees.

        Raises:
            Refusal: With the code `nothing_to_sign` if the order does not offer it.
        """

@final
class UnsignedOrder:
    """Payloads for any signer, and the signatures that have been attached so far.

    Usable from all threads. After `finish` it is used up: every method raises a `Refusal` with the code `used_up`.
    """
    @property
    def family(self) -> Family:
        """The family that signs."""
    @property
    def order_id(self) -> str:
        """The order's id."""
    def summary(self) -> list[Line]:
        """Returns what the owner reads before signing. The last lines are the digests."""
    def warnings(self) -> list[Notice]:
        """Returns what the owner should know."""
    def requests(self) -> list[Request]:
        """Returns what signers are asked for, in the order in which payloads are sent."""
    def missing(self) -> list[str]:
        """Returns the names of the requests that still need a signature."""
    def sign(self, key: Key | _Text) -> None:
        """Signs with a local key whatever that key can sign. Prefer an external signer and `attach`.

        Args:
            key: A `Key`, which is parsed once; or the key in its family's usual text form, or as bytes: 32 bytes are the raw key (on
                Solana the seed, or 64 bytes the keypair), and any other number of bytes is the text in UTF-8. The library's own copies are
                wiped. Python cannot wipe a `str` or `bytes`: pass a `bytearray` and clear it afterwards.

        Raises:
            Refusal: With the code `key_malformed` or `key_mismatch`, never with any part of the key.
        """
    def attach(self, name: _Text, signature: _Text) -> None:
        """Proves a signature of an external signer and attaches it. A signature that is refused changes nothing.

        Args:
            name: The name of the request.
            signature: The family's usual text form, or the text of a JSON object as docs/spec/batch.md describes it.

        Raises:
            Refusal: If the signature is malformed or not the signer's over exactly this digest.
        """
    def attach_transaction(self, transaction: _Bytes) -> list[str]:
        """Takes the signatures out of a transaction that an external signer has signed, proves and attaches them.

        A transaction that is refused changes nothing.

        Args:
            transaction: The bytes, in the form that docs/spec/batch.md of the project lists: on EVM chains EIP-2718, on Solana the wire
                format, on Bitcoin-like chains a PSBT.

        Returns:
            The names of the requests whose signatures it had.

        Raises:
            Refusal: With the code `transaction_mismatch` or `psbt_mismatch` if it is not one of the requested payloads, or as `attach`.
        """
    def artefacts(self) -> str:
        """Returns the artefacts with the signatures so far: the JSON of `countersign batch`."""
    def finish(self) -> SignedOrder:
        """Combines the payloads with their signatures. This uses the order up.

        Raises:
            Refusal: With the code `signature_missing`. The order can then still be signed.
        """

@final
class Key:
    """A local key, parsed once, for `UnsignedOrder.sign` and `local_key`.

    It is wiped when nothing refers to it any more, and cannot be pickled. Its `repr` shows its family and its account. Usable from all
    threads.

    Args:
        family: The family that the key signs for, such as `evm`. Litecoin is of the family `bitcoin`.
        key: The key in its family's usual text form, or as bytes: 32 bytes are the raw key (on Solana the seed, or 64 bytes the keypair),
            and any other number of bytes is the text in UTF-8. Python cannot wipe a `str` or `bytes`: pass a `bytearray` and clear it
            afterwards.

    Raises:
        Refusal: With the code `key_malformed`, never with any part of the key.
        ValueError: If the family is another word.
    """
    def __new__(cls, family: Family, key: _Text) -> Key: ...
    @property
    def family(self) -> Family:
        """The family that the key signs for."""
    @property
    def account(self) -> str | None:
        """The account that the key controls; None on Starknet and Bitcoin-like chains, where it does not follow from the key."""

@final
class SignedOrder:
    """An order with all its signatures. Immutable and usable from all threads."""
    @property
    def order_id(self) -> str:
        """The order's id."""
    def warnings(self) -> list[Notice]:
        """Returns what the owner should know."""
    def transactions(self) -> list[Transaction]:
        """Returns the transactions in the order in which they are broadcast."""
    def gasless(self) -> str | None:
        """Returns the signature that the service is sent on the gasless path; None where the wallet chose another path."""

@final
class Recovery:
    """A refund or a redemption from an order record alone.

    A record by itself is only coherent: its parties may be anybody's. Verify it first (`Record.verify`), or show the owner who
    is paid.
    """
    @staticmethod
    def refund(record: _Text, leg: Leg, registry: Registry) -> Recovery:
        """Returns the recovery that refunds a leg after its timelock.

        Args:
            record: The order record.
            leg: `source` or `destination`.
            registry: What the wallet has pinned.

        Raises:
            Refusal: If the record is malformed or contradicts the registry or itself.
            ValueError: If the leg is another word.
        """
    @staticmethod
    def redeem(record: _Text, leg: Leg, secret: _Text, registry: Registry) -> Recovery:
        """Returns the recovery that redeems a leg with the secret. Broadcasting it makes the secret public: do it
        at once, or check the chain again before.

        Args:
            record: The order record.
            leg: `source` or `destination`.
            secret: Its 32 bytes, or 64 hex digits with or without `0x`. The library's own copies are wiped.
            registry: What the wallet has pinned.

        Raises:
            Refusal: As for `refund`, and if the secret does not match the record's hash. It never has any part of the secret.
            ValueError: If the leg is another word.
        """
    @property
    def family(self) -> Family:
        """The family that signs."""
    @property
    def order_id(self) -> str:
        """The order's id, as the record has it."""
    @property
    def role(self) -> Literal["refund", "redeem"]:
        """What it does: `refund` or `redeem`."""
    @property
    def payee(self) -> str:
        """Who is paid; on Bitcoin-like chains the x-only key that takes the coins."""
    @property
    def amount(self) -> int:
        """The amount of the leg in base units, before any fee."""
    def prepare(self, wallet: _Text | RecoveryContext, policy: Policy | None = None) -> UnsignedOrder:
        """Adds the wallet's nonce, fees or coins. May be called again, as often as they change.

        Args:
            wallet: The wallet context of a recovery: a dict such as `EvmRecovery`, or its JSON as docs/spec/batch.md of the project
                describes it.
            policy: The wallet's limits, by default those of `Policy()`.

        Raises:
            Refusal: At the member of `/wallet` that is missing, unknown, malformed or invalid.
            TypeError: If a member of the dict has a type that no wallet context has, such as `float`.
        """

@final
class Record:
    """The verified record of an order that is under way. Nothing to sign comes out of it."""
    @staticmethod
    def verify(
        request: _Text,
        response: _Text,
        record: _Text,
        registry: Registry,
        policy: Policy | None = None,
    ) -> Record:
        """Verifies the record of an order that may be funded, redeemed or refunded already.

        Args:
            request: The wallet's create-order request.
            response: The service's response.
            record: The order record.
            registry: What the wallet has pinned.
            policy: The wallet's limits, by default those of `Policy()`.

        Raises:
            Refusal: At the first member or byte that is malformed, unknown or contradictory.
        """
    @property
    def order_id(self) -> str:
        """The order's id."""
    def terms(self, leg: Leg) -> HtlcTerms:
        """Returns what the HTLC of a leg must hold, and where it is.

        Args:
            leg: `source` or `destination`.

        Raises:
            ValueError: If the leg is another word.
        """
    def warnings(self) -> list[Notice]:
        """Returns what the owner should know."""
    def reader(
        self,
        leg: Leg,
        endpoint: _Text,
        *,
        known: _Text | None = None,
        protocol: Literal["esplora", "rpc"] | None = None,
    ) -> Reader:
        """Creates the reader of the HTLC of a leg for one endpoint. It says what to ask; the caller's own connection sends it.

        Args:
            leg: `source` or `destination`.
            endpoint: The endpoint's name in the quorum.
            known: What `Reader.known` was after the last reading of this endpoint. It notices an endpoint that falls behind.
            protocol: Bitcoin-like chains: `esplora` for an Esplora server, `rpc` for a node's own RPC.

        Raises:
            Refusal: At the member of `/known` that is malformed.
            ValueError: If the leg or the protocol is another word.
        """
    def judge(self, quorum: Quorum, now: float) -> Proof:
        """Compares what the endpoints show of the destination with the verified terms, and returns the proof that it is funded.

        Args:
            quorum: What the readers of the destination have shown.
            now: The time in Unix seconds, such as `time.time()`.

        Raises:
            Refusal: While the secret must not be revealed, with the blame `chain`.
            ValueError: If the time is negative, above 2^64 seconds or not a number.
        """
    def state(self, leg: Leg, quorum: Quorum) -> Htlc:
        """Returns the state of the HTLC of a leg, on which enough endpoints agree. For display: only `judge` decides about the secret.

        Args:
            leg: `source` or `destination`.
            quorum: What the readers of that leg have shown.

        Raises:
            Refusal: If too few endpoints agree, with the blame `chain`.
            ValueError: If the leg is another word.
        """

@final
class ChainRequest:
    """A request to an endpoint of a chain. The caller's connection sends it as it is."""
    @property
    def kind(self) -> Literal["json_rpc", "get", "post"]:
        """`json_rpc`, `get` or `post`."""
    @property
    def method(self) -> str | None:
        """JSON-RPC: the method."""
    @property
    def params(self) -> Any:
        """JSON-RPC: the parameters, parsed."""
    @property
    def params_text(self) -> str | None:
        """JSON-RPC: the parameters as JSON text."""
    @property
    def path(self) -> str | None:
        """GET and POST: the path below the endpoint's URL, which begins with `/`."""
    @property
    def content_type(self) -> str | None:
        """POST: the media type for the header `content-type`."""
    @property
    def body(self) -> bytes | None:
        """POST: the body."""

@final
class ChainAnswer:
    """The answer to one `ChainRequest`. Its content is untrusted, and nothing in it needs to be checked before it is handed over."""
    @staticmethod
    def result(text: _Text) -> ChainAnswer:
        """Creates the answer for the `result` of a JSON-RPC reply.

        Args:
            text: The result as JSON text: `json.dumps(reply["result"])`.
        """
    @staticmethod
    def error(text: _Text) -> ChainAnswer:
        """Creates the answer for the `error` of a JSON-RPC reply.

        Args:
            text: The error as JSON text, of any shape: `json.dumps(reply["error"])`.
        """
    @staticmethod
    def http(status: int, body: _Text, grpc_status: str | None = None) -> ChainAnswer:
        """Creates the answer for the response to a GET or POST.

        Args:
            status: The HTTP status; any of them.
            body: The body as it came.
            grpc_status: The header `grpc-status`, if there is one.
        """
    @staticmethod
    def failed(kind: str, detail: str | None = None) -> ChainAnswer:
        """Creates the answer for a request without a complete response. This never says anything about the chain.

        Args:
            kind: `connect`, `timeout`, `interrupted`, `too_large`, `unsupported` or `other`.
            detail: The message of the connection.
        """

@final
class Reader:
    """Reads one HTLC from one endpoint: says what to ask, and takes the answers. It has no connection of its own.

    Only `Record.reader` makes one.
    """
    @property
    def endpoint(self) -> str:
        """The endpoint's name in the quorum."""
    def next(self) -> list[ChainRequest] | None:
        """Returns the requests to send now, all at once; None once the reading has ended. Calling it again changes nothing."""
    def answer(self, answers: Sequence[ChainAnswer]) -> None:
        """Takes the answers to these requests, one for each, in their order. What the endpoint did wrong is `fault`, not an exception.

        Raises:
            ValueError: For another number of answers. The reader is then unchanged.
        """
    @property
    def fault(self) -> Refusal | None:
        """Why the endpoint's answers cannot be used, as a `Refusal`. None while the reading goes on, and if it is complete."""
    @property
    def height(self) -> int | None:
        """The height of the newest block that the endpoint shows; None before the end."""
    @property
    def known(self) -> str:
        """What is known about the endpoint now, as JSON, for the argument `known` of its next reader. Keep it if the quorum agrees with the
        endpoint.
        """

@final
class Quorum:
    """What several endpoints show of one HTLC.

    Args:
        endpoints: The names of the endpoints. A name that is there twice counts once.
        needed: How many of them must agree: more than half, and at most all.

    Raises:
        Refusal: At `/quorum`, if `needed` is another number.
    """
    def __new__(cls, endpoints: Sequence[str], needed: int) -> Quorum: ...
    def hear(self, reader: Reader) -> None:
        """Takes what the endpoint of a reader shows. A reader that has not ended says nothing. The first word of each endpoint counts."""
    @property
    def is_settled(self) -> bool:
        """Whether enough endpoints agree, or every endpoint has spoken."""

def verify_line(line: _Text, registry: Registry, policy: Policy | None = None) -> str:
    """Verifies one case in JSON and returns one line of JSON, exactly as `countersign batch` prints it.

    Never raises for what the line contains: a line that is refused, or that is not JSON at all, gives a line with `error`.

    Args:
        line: A case with the members `id`, `request`, `response`, and optionally `order` and `wallet`.
        registry: What the wallet has pinned.
        policy: The wallet's limits, by default those of `Policy()`.
    """
def verify_many(
    lines: Iterable[_Text],
    registry: Registry,
    policy: Policy | None = None,
    threads: int | None = None,
) -> Iterator[str]:
    """Verifies many cases on several threads. Returns an iterator over one line of JSON for each, in the order of the input.

    The lines are read as the results are taken, so neither are ever all in memory. The interpreter lock is released while lines are
    verified: other Python threads go on. Ctrl-C ends the iteration.

    Args:
        lines: Cases as `verify_line` takes them: a list, a generator, an open file, or a column of pandas, numpy or pyarrow.
        registry: What the wallet has pinned.
        policy: The wallet's limits, by default those of `Policy()`.
        threads: How many threads verify, by default as many as this process may run at once; more than 256 count as 256.

    Raises:
        TypeError: If the lines are one document. While iterating, if a line is neither text nor bytes.
        ValueError: If the number of threads is less than 1 or too large.
    """
def split_batch(body: _Text, calls: int, status: int = ...) -> list[ChainAnswer]:
    """Splits the response to a JSON-RPC batch into the answers to its calls.

    Args:
        body: The body of the response, as it came. The ids of the calls must have been 0, 1, and so on.
        calls: The number of calls.
        status: The HTTP status.
    """
def in_whole_units(value: Value) -> str:
    """Returns an amount in whole units, such as `1.5`, exactly. Any other value is returned as its text."""
def families() -> list[Family]:
    """Returns the families that this build has code for. An order of any other is refused as `unsupported_family`."""

@final
class Machine:
    """Runs whole swaps without I/O: `poll` says what is needed, and `reply` takes it."""
    def __new__(
        cls,
        options: _Text,
        registry: _Text,
        policy: _Text,
        nodes: _Text,
        documents: Sequence[tuple[str, _Text]],
        place: str,
        now: int,
    ) -> Machine: ...
    def quote(self, wish: _Text) -> int:
        """Asks for the best quote."""
    def create(self, wish: _Text) -> int:
        """Creates an order, and follows it to its end."""
    def follow(self, order: str) -> int:
        """Continues a stored order."""
    def refund(self, order: str) -> int:
        """Refunds a stored order whose timelock has expired."""
    def instant_refund(self, order: str) -> int:
        """Asks for the refund of a stored order on a Bitcoin-like chain before its timelock ends."""
    def phrase(self) -> str | None:
        """Returns the words of the rescue phrase; None before the first order."""
    def poll(self, now: int) -> tuple[list[Need], list[int], str, int | None]:
        """Goes on as far as possible.

        Returns:
            The needs, the numbers of those that are not needed any more, the events as a JSON array, and when to poll again at the latest, in
            Unix milliseconds.
        """
    def list(self) -> int:
        """Lists the stored orders."""
    def reply(self, id: int, reply: _Text, body: bytes | None = None) -> bool:
        """Takes a reply as JSON, with a body beside it. Returns whether it was still wanted."""
    def take_unsigned(self, id: int) -> UnsignedOrder | None:
        """Returns the order that a need wants signed; None if it is not wanted any more."""
    def reply_signed(self, id: int, order: UnsignedOrder) -> bool:
        """Takes a signed order back, which uses it up. Returns whether it was still wanted."""

@final
class Need:
    """Something that only the host can do."""
    @property
    def id(self) -> int:
        """The number under which it is replied to."""
    @property
    def call(self) -> int:
        """The number of the call that needs it."""
    @property
    def detail(self) -> str:
        """What is needed, as JSON without the bytes."""
    @property
    def bodies(self) -> list[bytes | None]:
        """The bytes: the body of a request, or one entry for each document, None to delete it."""

@final
class Sentence:
    """What an order does, in one sentence."""
    @property
    def message(self) -> str:
        """The id of the message, such as `lock`."""
    @property
    def values(self) -> dict[str, str]:
        """The values by name: `pay`, `source`, `receive`, `destination`, `payout`, `refund`."""
    @property
    def text(self) -> str:
        """The sentence in the chosen language."""

@final
class OrderPage:
    """An order as people see it."""
    @property
    def ok(self) -> bool:
        """Whether the order was verified. A refused order has a page too, which shows the received values next to the expected ones."""
    @property
    def html(self) -> str:
        """A whole HTML document without script, which loads nothing."""
    @property
    def sentence(self) -> Sentence | None:
        """What the order does, in one sentence; None for a refused order."""

@final
class Difference:
    """A difference between a receipt and what was computed again."""
    @property
    def at(self) -> str:
        """JSON pointer into the receipt."""
    @property
    def receipt(self) -> str:
        """What the receipt has."""
    @property
    def computed(self) -> str:
        """What was computed or required instead."""

@final
class CheckedReceipt:
    """What the check of a receipt found. Text of the receipt is quoted, which does not make it safe as HTML."""
    @property
    def is_proven(self) -> bool:
        """Whether everything is as the receipt says."""
    @property
    def program(self) -> str:
        """The program that wrote it, by its own words: quoted, unless it is this version."""
    @property
    def digest(self) -> str:
        """SHA-256 of what the receipt says, which is what is signed."""
    @property
    def signer(self) -> str | None:
        """The public key of the valid signature, in hex; None without one."""
    @property
    def verdict(self) -> str | None:
        """The verdict as JSON, as the receipt has it; None unless it is proven."""
    @property
    def own_limits(self) -> list[str]:
        """The limits of the receipt's policy that are not the default ones, such as `evm_timelock 100 (default 86400)`."""
    @property
    def differences(self) -> list[Difference]:
        """What differs."""

def order_page(
    request: _Text,
    response: _Text,
    registry: Registry,
    policy: Policy | None = None,
    record: _Text | None = None,
    *,
    language: _Text | None = None,
    messages: _Text | None = None,
    prepared: UnsignedOrder | None = None,
) -> OrderPage:
    """Verifies an order, and writes a page that shows it down to its bytes. What is wrong in a document is on the page.

    Args:
        request: As for `Order.verify`.
        response: As for `Order.verify`.
        registry: What the wallet has pinned.
        policy: The wallet's limits, by default those of `Policy()`.
        record: The order record, where the wallet has it.
        language: The language of the sentence, `en` or `de`; with `messages`, any language tag.
        messages: The messages of another language, in the syntax of Fluent. Each must show all of its values.
        prepared: The same order, prepared from the same documents: the page then shows what the wallet contributed, the digests and the
            signatures so far.

    Raises:
        Refusal: If a document is not JSON.
        ValueError: If there is no such language, a message does not show one of its values, or `prepared` is another order.
    """
def write_receipt(
    request: _Text,
    response: _Text,
    registry: Registry,
    policy: Policy | None = None,
    record: _Text | None = None,
    *,
    key: _Text | None = None,
) -> bytes:
    """Verifies an order, and writes a receipt of the verdict, whatever it is.

    Whoever has the same registry can check it later, also by `countersign check-receipt`. docs/spec/receipt.md of the project describes it.

    Args:
        request: As for `Order.verify`.
        response: As for `Order.verify`.
        registry: What the wallet has pinned.
        policy: The wallet's limits, by default those of `Policy()`.
        record: The order record, where the wallet has it.
        key: An Ed25519 key that signs the receipt: its seed, as 32 bytes or 64 hex digits.

    Returns:
        The file: one line of JSON.

    Raises:
        Refusal: If the request has a member `secret_key`, or the key is malformed.
    """
def check_receipt(receipt: _Text, registry: Registry, policy: Policy | None = None, *, signer: _Text | None = None) -> CheckedReceipt:
    """Verifies the documents of a receipt again, and compares everything that it says.

    Args:
        receipt: The file.
        registry: What was pinned at the time.
        policy: The policy under which it must have been made. Without it, it is checked under its own policy: show `own_limits`.
        signer: The public key that must have signed it, 64 hex digits.

    Raises:
        Refusal: If it is not a receipt. What differs in a receipt is returned.
    """
def descriptors(registry: Registry) -> dict[str, str]:
    """Writes the clear-signing descriptors (ERC-7730) of the EVM contracts that a registry pins.

    A device that has them shows an order in words.

    Returns:
        The files, by name.
    """
