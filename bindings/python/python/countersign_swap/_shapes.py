# Generated from the lists of crates/json by `UPDATE=1 cargo test -p countersign-json --test shapes`. Do not edit.
"""The values that the objects return, the words in them, and the wallet contexts that the objects take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing import Any, final

    from typing_extensions import NotRequired, TypeAlias

__all__ = [
    "BitcoinRecovery",
    "BitcoinSignature",
    "BitcoinWallet",
    "Blame",
    "CallCode",
    "Code",
    "CoinSelection",
    "ContractSignature",
    "Coverage",
    "DataAvailabilityMode",
    "EcdsaSignature",
    "EvmRecovery",
    "EvmWallet",
    "Family",
    "FaultCode",
    "FunctionNames",
    "GasCoin",
    "HoldCode",
    "Htlc",
    "HtlcState",
    "HtlcTerms",
    "KeyServiceSignature",
    "Leg",
    "Line",
    "Matched",
    "NativePayload",
    "Notice",
    "PayloadKind",
    "PinChange",
    "Proof",
    "RecoveryContext",
    "Request",
    "ResourceBound",
    "ResourceBounds",
    "Role",
    "Scheme",
    "Severity",
    "SolanaConfig",
    "SolanaRecovery",
    "SolanaWallet",
    "StarknetRecovery",
    "StarknetSignature",
    "StarknetWallet",
    "SuiRecovery",
    "SuiWallet",
    "SwapAlert",
    "SwapCode",
    "SwapEvent",
    "SwapOutcome",
    "SwapPurpose",
    "SwapStatusName",
    "SwapStop",
    "SwapTask",
    "Terms",
    "TimelockUnit",
    "Transaction",
    "TronKey",
    "TronPermission",
    "TronRecovery",
    "TronWallet",
    "TxOrdering",
    "Utxo",
    "ValidDuring",
    "Value",
    "ValueKind",
    "WalletContext",
]

# A number. As text it is decimal; a fee rate may have decimal places.
NumberLike: TypeAlias = Union[int, str]

Family: TypeAlias = Literal[
    "evm",
    "tron",
    "starknet",
    "solana",
    "sui",
    "bitcoin",
]
"""A chain family. Litecoin is of the family `bitcoin`."""

Leg: TypeAlias = Literal[
    "source",
    "destination",
]
"""A leg of the swap: `source`, what the owner pays, or `destination`, what the owner receives."""

Severity: TypeAlias = Literal[
    "info",
    "caution",
    "danger",
]
"""How much attention something deserves."""

ValueKind: TypeAlias = Literal[
    "text",
    "number",
    "at_least",
    "at_most",
    "amount",
    "account",
    "hash",
    "timelock",
]
"""What a value is."""

TimelockUnit: TypeAlias = Literal[
    "blocks",
    "slots",
    "ms",
]
"""The unit of a timelock."""

PayloadKind: TypeAlias = Literal[
    "evm_transaction",
    "tron_transaction",
    "starknet_invoke",
    "typed_data",
    "solana_transaction",
    "sui_transaction",
    "psbt",
]
"""The form of a payload: JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others)."""

Scheme: TypeAlias = Literal[
    "secp256k1_keccak256",
    "secp256k1_sha256",
    "secp256k1_sha256d",
    "bip340",
    "ed25519",
    "sui",
    "stark",
]
"""A signature scheme, with the hash of its digest."""

Role: TypeAlias = Literal[
    "approval_reset",
    "approval",
    "initiate",
    "redeem",
    "refund",
    "claim",
]
"""What a transaction does."""

HtlcState: TypeAlias = Literal[
    "absent",
    "locked",
    "redeemed",
    "refunded",
    "unclear",
]
"""The state of an HTLC. `unclear` never counts as funded."""

DataAvailabilityMode: TypeAlias = Literal[
    "L1",
    "L2",
]
"""Where Starknet keeps a nonce, or takes a fee."""

CoinSelection: TypeAlias = Literal[
    "all",
    "lowest_fee",
]
"""Which outputs of a Bitcoin-like wallet are spent: `all`, or those with the lowest fee."""

TxOrdering: TypeAlias = Literal[
    "given",
    "bip69",
    "shuffled",
]
"""The order of inputs and outputs of a Bitcoin-like transaction: as `given`, by BIP 69, or `shuffled` with a seed."""

FunctionNames: TypeAlias = Literal[
    "current",
    "older",
]
"""The names of the functions of the HTLC package on Sui."""

Blame: TypeAlias = Literal[
    "service",
    "caller",
    "unsupported",
    "chain",
    "bug",
]
"""Who has to act: the `service`, because the response or the record is wrong; the `caller`, because of an argument, a key or a document of the wallet's own; nobody if the order is `unsupported` by this build; nobody but time or the other party if the `chain` does not show what is needed; the developers of this library if it is a `bug`."""

Code: TypeAlias = Literal[
    "json_syntax",
    "json_not_utf8",
    "json_duplicate_key",
    "json_too_deep",
    "json_too_large",
    "missing_field",
    "unexpected_field",
    "misspelt_field",
    "wrong_type",
    "text_not_plain",
    "decimal_empty",
    "decimal_sign",
    "decimal_exponent",
    "decimal_fraction",
    "decimal_space",
    "decimal_hex",
    "decimal_leading_zero",
    "decimal_digit",
    "number_too_large",
    "integer_not_exact",
    "hex_prefix",
    "hex_empty",
    "hex_digit",
    "hex_odd_length",
    "hex_length",
    "asset_id_malformed",
    "address_malformed",
    "address_checksum",
    "address_network",
    "amount_zero",
    "same_asset",
    "mixed_networks",
    "delegate_not_supported",
    "payout_invalid",
    "registry_malformed",
    "unknown_generation",
    "unknown_chain",
    "unknown_asset",
    "unsupported_family",
    "service_error",
    "status_not_ok",
    "error_beside_ok",
    "order_id_malformed",
    "mixed_families",
    "legacy_key_beside",
    "chain_mismatch",
    "unknown_contract",
    "unknown_token",
    "unknown_spender",
    "generation_mismatch",
    "unexpected_selector",
    "calldata_length",
    "calldata_padding",
    "calldata_offset",
    "amount_mismatch",
    "value_mismatch",
    "initiator_mismatch",
    "redeemer_invalid",
    "unknown_redeemer",
    "secret_hash_mismatch",
    "secret_hash_trivial",
    "timelock_zero",
    "timelock_too_long",
    "gas_limit_too_low",
    "gas_limit_too_high",
    "unexpected_approval",
    "approval_below_amount",
    "approval_not_exact",
    "destination_data_too_long",
    "typed_data_primary_type",
    "typed_data_types",
    "typed_data_domain",
    "typed_data_with_delegate",
    "payloads_disagree",
    "record_mismatch",
    "record_version",
    "record_swap_id",
    "record_pays_less",
    "pays_too_little",
    "record_pays_elsewhere",
    "record_outlasts_source",
    "record_solver",
    "record_funded",
    "record_redeemed",
    "record_refunded",
    "record_changed",
    "record_secret_known",
    "time_malformed",
    "transaction_id_malformed",
    "order_expired",
    "deadline_too_close",
    "created_in_future",
    "expiration_passed",
    "expiration_too_late",
    "wallet_chain_mismatch",
    "nonce_limit",
    "priority_fee_above_cap",
    "key_malformed",
    "key_mismatch",
    "signature_malformed",
    "signature_high_s",
    "signature_mismatch",
    "account_not_deployed",
    "signature_count",
    "nothing_to_sign",
    "secret_wrong",
    "warning_refused",
    "cannot_be_judged",
    "signature_missing",
    "transaction_mismatch",
    "internal",
    "kind_malformed",
    "kind_not_programmable",
    "unexpected_command",
    "unexpected_argument",
    "unexpected_input",
    "unknown_registry",
    "coin_type_mismatch",
    "object_digest_malformed",
    "gas_coin_count",
    "gas_coin_twice",
    "gas_coin_is_input",
    "address_balance_payment",
    "insufficient_funds",
    "transaction_encoding",
    "transaction_too_large",
    "transaction_malformed",
    "transaction_trailing",
    "message_version",
    "lookup_table",
    "signature_slots",
    "unexpected_signer",
    "fee_payer_mismatch",
    "sponsor_invalid",
    "unknown_sponsor",
    "sponsor_signature",
    "unexpected_instruction",
    "instruction_data",
    "account_mismatch",
    "account_flags",
    "account_unused",
    "gasless_native",
    "blockhash_malformed",
    "blockhash_expired",
    "felt_out_of_range",
    "call_form_unknown",
    "typed_data_revision",
    "not_taproot",
    "address_not_derived",
    "amount_above_supply",
    "fee_rate_zero",
    "fee_rate_too_high",
    "utxo_twice",
    "utxo_unsupported",
    "utxo_mismatch",
    "change_to_deposit",
    "transaction_above_standard",
    "psbt_mismatch",
    "funding_mismatch",
    "instant_refund_mismatch",
    "sighash_mismatch",
    "gas_price_too_high",
    "allowance_too_low",
    "simulation_reverted",
    "contract_signature_refused",
    "simulation_differs",
    "finality_mark_missing",
    "lower_height_missing",
    "node_outdated",
    "decimals_differ",
    "mint_restricts",
    "permission_mismatch",
    "receiver_not_payable",
    "address_on_trust",
    "refund_key_not_yours",
    "redeem_key_not_yours",
    "amount_below_dust",
    "sponsor_pays_deposit",
    "unlimited_approval",
    "approval_above_amount",
    "unpinned_registry_version",
    "unpinned_solver",
    "secret_not_yours",
    "trusts_the_service",
    "no_order_record",
    "amount_outside_limits",
    "pays_less_within_slippage",
    "destination_timelock_close",
    "timelocks_depend_on_pace",
    "destination_timelock_short",
    "affiliate_fees_not_requested",
    "nonce_differs",
    "gasless_form_unproven",
    "timelock_above_listed",
    "funding_tx_differs",
    "swap_id_unchecked",
    "contract_signature_unverified",
    "signature_unverified",
    "own_signature_overwritten",
    "calldata_suffix",
    "wallet_assertion",
    "wallet_nonce",
    "wallet_lock_time",
    "nonce_gap",
    "fee_above_payout",
    "gas_limit_above_cap",
    "fee_too_low",
    "secret_for_less",
    "outputs_left",
    "mint_authorities",
    "single_provider",
    "finality_ignores_value",
    "key_not_checked",
]
"""The code of a refusal or a warning."""

HoldCode: TypeAlias = Literal[
    "destination_not_funded",
    "destination_not_final",
    "destination_differs",
    "destination_not_covered",
    "destination_no_time",
    "destination_redeemed",
    "destination_refunded",
    "chain_stale",
    "endpoints_disagree",
    "destination_unclear",
]
"""Why the secret must not be released."""

FaultCode: TypeAlias = Literal[
    "connect",
    "timeout",
    "interrupted",
    "response_too_large",
    "unsupported",
    "network",
    "node_http_status",
    "node_error",
    "node_malformed",
    "node_wrong_chain",
    "node_went_back",
    "node_too_much",
    "transaction_rejected",
]
"""What is wrong with an endpoint, apart from the codes of refusals."""

CallCode: TypeAlias = Literal[
    "used_up",
    "usage",
    "signature_missing",
]
"""Why a call failed, apart from the other codes: the object is `used_up`, an argument is invalid (`usage`), or a signature is missing."""

SwapCode: TypeAlias = Literal[
    "declined",
    "not_signed",
    "owner_unavailable",
    "store_failed",
    "contract_changed",
    "secret_used",
    "derive_failed",
    "failed",
    "http_status",
    "service_error",
    "random",
    "no_quote",
    "quote_mismatch",
    "quote_too_low",
    "transport_connect",
    "transport_timeout",
    "transport_interrupted",
    "transport_too_large",
    "transport_encoded",
    "transport_setup",
    "transport_insecure",
    "node_disagree",
    "node_endpoint",
    "not_connected",
]
"""Why a whole swap, or a call of it, failed, apart from the other codes: the owner, the store, the service, a node, or the connection to one of them. A test of `countersign-swap` compares them with what it returns."""

SwapEvent: TypeAlias = Literal[
    "quoted",
    "phrase_created",
    "contract",
    "warning",
    "created",
    "deposit",
    "status",
    "alert",
    "stopped",
    "listed",
    "failed",
]
"""What happened in a whole swap: the member `event`."""

SwapStatusName: TypeAlias = Literal[
    "unsigned",
    "expired",
    "paying",
    "needs_owner",
    "waiting",
    "redeeming",
    "redeem_now",
    "awaiting_refund",
    "refunding",
    "refused",
    "lost",
    "ended",
]
"""The status of an order of a whole swap."""

SwapTask: TypeAlias = Literal[
    "secret",
    "broadcast_funding",
    "redeem",
    "broadcast_redemption",
    "refund",
]
"""What only the owner can do for a whole swap."""

SwapOutcome: TypeAlias = Literal[
    "complete",
    "refunded",
    "expired",
    "lost",
]
"""How a swap ended."""

SwapAlert: TypeAlias = Literal[
    "retrying",
    "maybe_paid",
    "redeem_now",
    "stated_only",
    "other",
]
"""What the owner of a whole swap should hear at once."""

SwapStop: TypeAlias = Literal[
    "complete",
    "refunded",
    "expired",
    "lost",
    "stated_complete",
    "stated_refunded",
    "stated_expired",
    "stated_lost",
    "refunding",
    "not_refunded",
    "not_signed",
    "needs_owner",
    "evidence_needed",
    "unavailable",
    "refused",
    "failed",
    "other",
]
"""Why an order is not followed any longer. It ended, or only the service says so, or something is in the way."""

SwapPurpose: TypeAlias = Literal[
    "funding",
    "redemption",
    "refund",
]
"""What a signature is for."""

if TYPE_CHECKING:

    @final
    class Value:
        """One value, as text for people and in its parts for programs."""

        __match_args__ = ("kind", "text", "number", "unit", "decimals",)
        @property
        def kind(self) -> ValueKind:
            """What it is."""
            ...
        @property
        def text(self) -> str:
            """The value as a person reads it; untrusted text in it is escaped."""
            ...
        @property
        def number(self) -> int | None:
            """Of numbers, bounds, amounts and timelocks: the number, for amounts in base units, for timelocks in `unit`."""
            ...
        @property
        def unit(self) -> str | None:
            """Of amounts: the asset's symbol. Of timelocks: `blocks`, `slots` or `ms`."""
            ...
        @property
        def decimals(self) -> int | None:
            """Of amounts: decimal places of one whole unit."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Line:
        """One line of a summary."""

        __match_args__ = ("topic", "text", "severity", "values",)
        @property
        def topic(self) -> str:
            """What the line is about, such as `secret hash`."""
            ...
        @property
        def text(self) -> str:
            """The text; untrusted text in it is escaped."""
            ...
        @property
        def severity(self) -> Severity:
            """How much attention it deserves."""
            ...
        @property
        def values(self) -> list[Value]:
            """The values in the text."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Notice:
        """A warning: something that the owner should know."""

        __match_args__ = ("code", "message", "severity",)
        @property
        def code(self) -> Code:
            """The stable code."""
            ...
        @property
        def message(self) -> str:
            """The text that a person reads."""
            ...
        @property
        def severity(self) -> Severity:
            """How much attention it deserves."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Coverage:
        """Bytes of the response that the lines of one topic describe."""

        __match_args__ = ("topic", "at", "start", "end", "what",)
        @property
        def topic(self) -> str:
            """The topic of the lines."""
            ...
        @property
        def at(self) -> str:
            """JSON pointer of the payload."""
            ...
        @property
        def start(self) -> int | None:
            """The first byte in the decoded payload; none for the whole member."""
            ...
        @property
        def end(self) -> int | None:
            """The byte after the last; none for the whole member."""
            ...
        @property
        def what(self) -> str:
            """What these bytes are."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Terms:
        """The terms that the owner agrees to."""

        __match_args__ = ("order_id", "family", "pay", "source_chain", "receive", "destination_chain", "payout", "initiator", "redeemer", "solver_id", "timelock", "secret_hash",)
        @property
        def order_id(self) -> str:
            """The order's id."""
            ...
        @property
        def family(self) -> Family:
            """The family that signs."""
            ...
        @property
        def pay(self) -> Value:
            """What the owner pays."""
            ...
        @property
        def source_chain(self) -> str:
            """Display name of the source chain."""
            ...
        @property
        def receive(self) -> Value:
            """What the owner receives, as requested."""
            ...
        @property
        def destination_chain(self) -> str:
            """Display name of the destination chain."""
            ...
        @property
        def payout(self) -> str | None:
            """The address at which the owner is paid."""
            ...
        @property
        def initiator(self) -> str | None:
            """Who receives a refund; on Bitcoin-like chains the x-only key. None where the payload does not state it."""
            ...
        @property
        def redeemer(self) -> str | None:
            """Who may redeem with the secret. None where the payload does not state it."""
            ...
        @property
        def solver_id(self) -> str | None:
            """The id of the pinned solver that the redeemer belongs to; none if it is not pinned."""
            ...
        @property
        def timelock(self) -> Value | None:
            """How long until a refund is possible. None where the payload does not state it."""
            ...
        @property
        def secret_hash(self) -> str | None:
            """SHA-256 of the secret, 64 hex digits without `0x`."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class NativePayload:
        """A payload in the form that wallets accept."""

        __match_args__ = ("kind", "value",)
        @property
        def kind(self) -> PayloadKind:
            """Its form."""
            ...
        @property
        def value(self) -> str:
            """JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others)."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Request:
        """Something to sign."""

        __match_args__ = ("name", "signer", "scheme", "payload", "digest", "native",)
        @property
        def name(self) -> str:
            """The name under which the signature is attached."""
            ...
        @property
        def signer(self) -> str:
            """The account whose signature is needed."""
            ...
        @property
        def scheme(self) -> Scheme:
            """The signature scheme."""
            ...
        @property
        def payload(self) -> bytes:
            """The bytes that the digest is computed from."""
            ...
        @property
        def digest(self) -> bytes:
            """What is signed. Ed25519 signs the payload itself, so then this is the payload too."""
            ...
        @property
        def native(self) -> NativePayload:
            """The payload in the form that the chain's own wallets accept."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Transaction:
        """A signed transaction."""

        __match_args__ = ("role", "id", "payload", "spends",)
        @property
        def role(self) -> Role:
            """What it does, such as `approval` or `initiate`."""
            ...
        @property
        def id(self) -> str:
            """Its id, as explorers write it."""
            ...
        @property
        def payload(self) -> str:
            """What nodes accept: the bytes in hex, on EVM chains with `0x`; on Starknet and Sui the JSON that their nodes accept."""
            ...
        @property
        def spends(self) -> list[str]:
            """The outputs that it spends, on Bitcoin-like chains."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Matched:
        """What a transaction of an external wallet is in an order."""

        __match_args__ = ("role", "warnings",)
        @property
        def role(self) -> Role:
            """What it does, such as `approval` or `initiate`."""
            ...
        @property
        def warnings(self) -> list[Notice]:
            """What the wallet changed or added although it may."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class HtlcTerms:
        """What one HTLC of a swap must hold, and where it is."""

        __match_args__ = ("chain", "family", "asset", "htlc", "htlc_registry", "token", "generation", "swap_id", "account", "vault", "initiator", "redeemer", "amount", "timelock", "unit", "unit_millis", "secret_hash",)
        @property
        def chain(self) -> str:
            """The chain's name in asset ids."""
            ...
        @property
        def family(self) -> Family:
            """The chain's family."""
            ...
        @property
        def asset(self) -> str:
            """The asset's id."""
            ...
        @property
        def htlc(self) -> str | None:
            """The pinned contract, program or package; on Bitcoin-like chains the internal key."""
            ...
        @property
        def htlc_registry(self) -> str | None:
            """The registry object of the pinned package, on Sui."""
            ...
        @property
        def token(self) -> str | None:
            """The pinned token, as the registry writes it; none for the chain's own coin."""
            ...
        @property
        def generation(self) -> str | None:
            """The pinned generation of the contract, as the registry writes it."""
            ...
        @property
        def swap_id(self) -> str:
            """The swap's id in the record; on Bitcoin-like chains the HTLC's address."""
            ...
        @property
        def account(self) -> str | None:
            """What stores the swap: the swap account on Solana, the order's dynamic field on Sui. None where it is read by its id."""
            ...
        @property
        def vault(self) -> str | None:
            """The account that holds the tokens of all swaps, for tokens on Solana."""
            ...
        @property
        def initiator(self) -> str:
            """Who pays and gets a refund; on Bitcoin-like chains the x-only key."""
            ...
        @property
        def redeemer(self) -> str:
            """Who redeems with the secret; on Bitcoin-like chains the x-only key."""
            ...
        @property
        def amount(self) -> int:
            """The amount in base units."""
            ...
        @property
        def timelock(self) -> int:
            """The timelock, in `unit`."""
            ...
        @property
        def unit(self) -> TimelockUnit:
            """The unit of the timelock."""
            ...
        @property
        def unit_millis(self) -> int:
            """Nominal milliseconds of one unit."""
            ...
        @property
        def secret_hash(self) -> str:
            """SHA-256 of the secret, 64 hex digits without `0x`."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Htlc:
        """The state of one HTLC."""

        __match_args__ = ("state", "initiator", "redeemer", "amount", "token", "secret_hash", "timelock", "elapsed", "covered", "secret", "transaction", "reason", "height", "depth", "is_final", "agreed", "needed",)
        @property
        def state(self) -> HtlcState:
            """The state. Members that it does not have are empty."""
            ...
        @property
        def initiator(self) -> str | None:
            """If `locked`: who gets a refund."""
            ...
        @property
        def redeemer(self) -> str | None:
            """If `locked`: who redeems."""
            ...
        @property
        def amount(self) -> int | None:
            """If `locked`: the amount in base units."""
            ...
        @property
        def token(self) -> str | None:
            """If `locked`: the token, as the registry writes it; none for the chain's own coin."""
            ...
        @property
        def secret_hash(self) -> str | None:
            """If `locked`: the secret hash, where the chain shows it."""
            ...
        @property
        def timelock(self) -> int | None:
            """If `locked`: the timelock in the chain's own unit."""
            ...
        @property
        def elapsed(self) -> int | None:
            """If `locked`: how much of the timelock has passed, in the same unit."""
            ...
        @property
        def covered(self) -> bool | None:
            """If `locked`: whether the balance of the HTLC covers the amount."""
            ...
        @property
        def secret(self) -> str | None:
            """If `redeemed`: the secret in hex, where the transaction shows it. It is then public."""
            ...
        @property
        def transaction(self) -> str | None:
            """If `redeemed` or `refunded`: the id of the transaction, where it is known."""
            ...
        @property
        def reason(self) -> str | None:
            """If `unclear`: why."""
            ...
        @property
        def height(self) -> int:
            """Height of the block at which the state was read."""
            ...
        @property
        def depth(self) -> int:
            """Number of blocks from the one that created the state to the newest, both included; 0 while it is in no block."""
            ...
        @property
        def is_final(self) -> bool:
            """Whether the state is in a final block, by the policy's rule for the chain."""
            ...
        @property
        def agreed(self) -> int:
            """How many endpoints show this state."""
            ...
        @property
        def needed(self) -> int:
            """How many endpoints must show it."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class Proof:
        """The proof that a destination is funded."""

        __match_args__ = ("order_id", "left", "unit", "fresh_until",)
        @property
        def order_id(self) -> str:
            """Id of the order that the proof is for."""
            ...
        @property
        def left(self) -> int:
            """What is left of the destination's timelock, in `unit`."""
            ...
        @property
        def unit(self) -> TimelockUnit:
            """The unit of what is left."""
            ...
        @property
        def fresh_until(self) -> int:
            """The last time at which the proof is valid, in Unix seconds. Judge again after it, with a new reading."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

    @final
    class PinChange:
        """One value that differs between two registries."""

        __match_args__ = ("entry", "field", "old", "new",)
        @property
        def entry(self) -> str:
            """The entry: `chain ethereum`, `asset ethereum:usdc`, `solver <id> on ethereum, <address>`, `sponsor on solana, <address>`."""
            ...
        @property
        def field(self) -> str:
            """The member of the entry, such as `htlc address`."""
            ...
        @property
        def old(self) -> str | None:
            """What was pinned before; none if it is new."""
            ...
        @property
        def new(self) -> str | None:
            """What would be pinned now; none if it is gone."""
            ...
        def to_dict(self) -> dict[str, Any]:
            """Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`."""
            ...

else:
    from countersign_swap._native import Value, Line, Notice, Coverage, Terms, NativePayload, Request, Transaction, Matched, HtlcTerms, Htlc, Proof, PinChange

class EvmWallet(TypedDict):
    """The wallet context of an EVM chain. Transactions are of type EIP-1559 with `max_fee_per_gas` and `max_priority_fee_per_gas`, and legacy ones with `gas_price`."""

    nonce: NumberLike
    """Nonce of the first transaction. Each further one takes the next."""

    max_fee_per_gas: NotRequired[NumberLike | None]
    """Wei per unit of gas; required without `gas_price`."""

    max_priority_fee_per_gas: NotRequired[NumberLike | None]
    """Wei per unit of gas, at most `max_fee_per_gas`; required with it."""

    gas_price: NotRequired[NumberLike | None]
    """Wei per unit of gas, for a legacy transaction; ignored beside `max_fee_per_gas`."""

    chain_id: NotRequired[NumberLike | None]
    """The chain that the wallet is set to, which must be that of the asset."""

    reset_approval: NotRequired[bool | None]
    """Whether the allowance is set to zero first, in a transaction of its own."""

    secret_key: NotRequired[str | None]
    """The key of the sender, 64 hex digits. Without it nothing is signed."""

class EvmRecovery(EvmWallet):
    """The wallet context of a recovery on an EVM chain."""

    sender: NotRequired[str | None]
    """The account that sends and pays for the transaction; the payee if it is missing."""

    gas_limit: NotRequired[NumberLike | None]
    """The gas limit, at most that of the policy."""

    accept_low_fee: NotRequired[bool | None]
    """Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing."""

class TronWallet(TypedDict):
    """The wallet context of Tron."""

    ref_block_bytes: str
    """Bytes 6 and 7 of the reference block's number."""

    ref_block_hash: str
    """Bytes 8 to 15 of the reference block's id."""

    expiration: NumberLike
    """When the transaction expires, in Unix milliseconds."""

    timestamp: NumberLike
    """The time of the transaction, in Unix milliseconds."""

    chain_id: NotRequired[NumberLike | None]
    """The chain that the wallet is set to, which must be that of the asset."""

    reset_approval: NotRequired[bool | None]
    """Whether the allowance is set to zero first, in a transaction of its own."""

    permission_id: NotRequired[NumberLike | None]
    """The permission of the sender's account under which calls are signed: 0, which is the default, or 2 to 9."""

    permission: NotRequired[TronPermission | None]
    """The keys of that permission. Without them the sender's own key signs."""

    secret_key: NotRequired[str | None]
    """The key of the owner, or of the permission, 64 hex digits. Without it nothing is signed."""

class TronPermission(TypedDict):
    """A permission of a Tron account, as `/wallet/getaccount` returns it. Its further members are not read."""

    id: NotRequired[NumberLike | None]
    """Which one: `permission_id`, if both are given; otherwise 0 if it is missing."""

    threshold: NumberLike
    """The weight that the signatures must reach."""

    keys: list[TronKey]
    """One to five keys, none twice."""

    operations: NotRequired[str | None]
    """The 32 bytes of what an active permission allows, which must include calls of contracts."""

class TronKey(TypedDict):
    """A key of a permission."""

    address: str
    """The account of the key, in base58check, or in hex with its prefix `41`."""

    weight: NumberLike
    """How much its signature counts, from 1 on."""

class TronRecovery(TronWallet):
    """The wallet context of a recovery on Tron."""

    sender: NotRequired[str | None]
    """The account that sends and pays for the transaction; the payee if it is missing."""

    fee_limit: NotRequired[NumberLike | None]
    """The fee limit in sun, at most that of the policy."""

    accept_low_fee: NotRequired[bool | None]
    """Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing."""

class StarknetWallet(TypedDict):
    """The wallet context of Starknet."""

    nonce: NumberLike
    """Nonce of the account."""

    resource_bounds: ResourceBounds
    """The most that the transaction may use and pay."""

    chain_id: NotRequired[NumberLike | None]
    """The chain that the wallet is set to, which must be that of the asset: a short string such as `SN_MAIN`, or its number."""

    tip: NotRequired[NumberLike | None]
    """FRI per unit of L2 gas; 0 if it is missing."""

    public_key: NotRequired[str | None]
    """The account's public key. Without it a local key cannot be checked."""

    cairo_version: NotRequired[NumberLike | None]
    """The account's Cairo version, 0 or 1; 1 if it is missing. It determines how the account takes several calls."""

    paymaster_data: NotRequired[list[NumberLike] | None]
    """Felts for the paymaster."""

    account_deployment_data: NotRequired[list[NumberLike] | None]
    """Felts that deploy the account."""

    nonce_data_availability_mode: NotRequired[DataAvailabilityMode | None]
    """Where the nonce is kept; `L1` if it is missing."""

    fee_data_availability_mode: NotRequired[DataAvailabilityMode | None]
    """Where the fee is paid; `L1` if it is missing."""

    secret_key: NotRequired[str | None]
    """The key of the account, 1 to 64 hex digits. Without it nothing is signed."""

class ResourceBounds(TypedDict):
    """The resource bounds of a Starknet transaction."""

    l1_gas: ResourceBound
    """The bound of L1 gas."""

    l2_gas: ResourceBound
    """The bound of L2 gas."""

    l1_data_gas: ResourceBound
    """The bound of L1 data gas."""

class ResourceBound(TypedDict):
    """The bound of one resource."""

    max_amount: NumberLike
    """Units, at most 64 bits."""

    max_price_per_unit: NumberLike
    """FRI per unit, at most 128 bits."""

class StarknetRecovery(StarknetWallet):
    """The wallet context of a recovery on Starknet."""

    sender: NotRequired[str | None]
    """The account that sends and pays for the transaction; the payee if it is missing."""

    accept_low_fee: NotRequired[bool | None]
    """Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing."""

class SolanaWallet(TypedDict):
    """The wallet context of Solana."""

    recent_blockhash: NotRequired[str | None]
    """Base58 of 32 bytes. It replaces the blockhash of the response's own transaction, never that of the gasless one."""

    nonce_account: NotRequired[str | None]
    """A nonce account of the signer, in base58, with `nonce`: in place of a blockhash, so that the transaction does not expire."""

    nonce: NotRequired[str | None]
    """Base58 of the 32 bytes that the nonce account stores."""

    last_valid_block_height: NotRequired[NumberLike | None]
    """The last block height at which the blockhash is valid."""

    block_height: NotRequired[NumberLike | None]
    """The block height now. A blockhash that has expired is refused."""

    secret_key: NotRequired[str | None]
    """The key of the owner, in base58. Without it nothing is signed."""

class SolanaRecovery(SolanaWallet):
    """The wallet context of a recovery on Solana."""

    sender: NotRequired[str | None]
    """The account that pays for the transaction; the payee if it is missing."""

    rent_sponsor: NotRequired[str | None]
    """The account that paid the rent of the swap of an SPL token, and gets it back."""

    config: NotRequired[SolanaConfig | None]
    """The limits of a message of version 1; without them the message is a legacy one, which every wallet can sign."""

    accept_low_fee: NotRequired[bool | None]
    """Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing."""

class SolanaConfig(TypedDict):
    """The limits that a Solana message of version 1 contains."""

    compute_unit_limit: NumberLike
    """The most compute units that the transaction may use."""

    loaded_accounts_data_size_limit: NumberLike
    """The most bytes of accounts that it may load, at most 64 MiB."""

    priority_fee: NotRequired[NumberLike | None]
    """The whole priority fee in lamports; none if it is missing."""

    heap_size: NotRequired[NumberLike | None]
    """The bytes of the heap, a multiple of 1024 between 32768 and 262144; 32768 if it is missing."""

class SuiWallet(TypedDict):
    """The wallet context of Sui."""

    gas_price: NumberLike
    """MIST per unit of gas."""

    gas_budget: NumberLike
    """The most that the transaction may cost, in MIST."""

    gas_payment: list[GasCoin]
    """The coins that pay for gas, at most 256, each once. If there is none, the address balance pays, and `valid_during` is required."""

    sponsor: NotRequired[str | None]
    """The owner of the gas coins; the sender if it is missing."""

    expiration_epoch: NotRequired[NumberLike | None]
    """The last epoch in which the transaction may run."""

    valid_during: NotRequired[ValidDuring | None]
    """When a payment from the address balance is valid."""

    secret_key: NotRequired[str | None]
    """The key of the sender: `suiprivkey1..`, or the 64 hex digits of an Ed25519 seed. Without it nothing is signed."""

class ValidDuring(TypedDict):
    """When a payment from the address balance of an account on Sui is valid."""

    min_epoch: NumberLike
    """The first epoch: the current one."""

    max_epoch: NumberLike
    """The last epoch: the first one, or the next."""

    chain: str
    """The network: the digest of its genesis checkpoint, base58 of 32 bytes."""

    nonce: NumberLike
    """A number of at most 32 bits, which distinguishes transactions that are equal otherwise."""

class GasCoin(TypedDict):
    """A coin that pays for gas, or a reservation of the address balance in the form of a coin."""

    object_id: str
    """The id of the object."""

    version: NumberLike
    """Its version."""

    digest: str
    """Its digest: base58 of 32 bytes."""

class SuiRecovery(SuiWallet):
    """The wallet context of a recovery on Sui."""

    sender: NotRequired[str | None]
    """The account that sends the transaction; the payee if it is missing."""

    function_names: NotRequired[FunctionNames | None]
    """The names of the package's functions; `current` if it is missing."""

    accept_low_fee: NotRequired[bool | None]
    """Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing."""

class BitcoinWallet(TypedDict):
    """The wallet context of Bitcoin and Litecoin. Without `utxos`, only the deposit address is wanted."""

    utxos: NotRequired[list[Utxo] | None]
    """Outputs of the wallet, each once. With them, `change_address` and `fee_rate` are required."""

    change_address: NotRequired[str | None]
    """The address that receives the change."""

    fee_rate: NotRequired[NumberLike | None]
    """The fee rate in sat/vB, with decimal places if necessary; at most that of the policy."""

    selection: NotRequired[CoinSelection | None]
    """Which outputs are spent; `all` if it is missing."""

    order: NotRequired[TxOrdering | None]
    """The order of inputs and outputs; `given` if it is missing."""

    seed: NotRequired[str | None]
    """32 random bytes; required with the order `shuffled`, and refused otherwise."""

    rbf: NotRequired[bool | None]
    """Whether the transaction can be replaced; `true` if it is missing."""

    origins: NotRequired[list[str] | None]
    """Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`."""

    secret_key: NotRequired[str | None]
    """One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed."""

class Utxo(TypedDict):
    """An output of a Bitcoin-like wallet."""

    txid: str
    """The id of the transaction, as it is displayed."""

    vout: NumberLike
    """The index of the output."""

    value: NumberLike
    """Base units."""

    script_pubkey: str
    """P2WPKH, P2TR, P2SH-P2WPKH or P2PKH."""

    redeem_script: NotRequired[str | None]
    """The redeem script; required for P2SH."""

    previous_tx: NotRequired[str | None]
    """The whole transaction; required for P2PKH."""

class BitcoinRecovery(TypedDict):
    """The wallet context of a recovery on Bitcoin and Litecoin. The fee is deducted, unless `utxos` pay it."""

    funding: list[str]
    """The outputs of the HTLC, each as `<txid>:<index>:<base units>`. One that covers the amount is spent alone."""

    to: str
    """The address that receives the coins."""

    fee_rate: NumberLike
    """The fee rate in sat/vB, with decimal places if necessary; at most that of the policy."""

    utxos: NotRequired[list[Utxo] | None]
    """Outputs of the wallet that pay the fee."""

    change_address: NotRequired[str | None]
    """The address that receives the change; required with `utxos`, and refused otherwise."""

    origins: NotRequired[list[str] | None]
    """Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`."""

    accept_less: NotRequired[bool | None]
    """Whether a redemption may take less than the amount, or several outputs, although the secret becomes public; `false` if it is missing."""

    accept_low_fee: NotRequired[bool | None]
    """Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing."""

    accept_high_fee: NotRequired[bool | None]
    """Whether the fee may be higher than what is paid out; `false` if it is missing."""

    secret_key: NotRequired[str | None]
    """One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed."""

class ContractSignature(TypedDict):
    """The signature of a contract wallet over EVM typed data (ERC-1271)."""

    contract: str
    """The signature, at most 64 KiB; `0x` if the wallet keeps on chain what it signed."""

    deployed: NotRequired[bool | None]
    """Whether the account is deployed, so that the wrapper of ERC-6492 is taken off; `false` if it is missing. An order that was prepared with a connection knows it."""

class EcdsaSignature(TypedDict):
    """The signature of a key on EVM or Tron, in parts. The parity is found, so `v` may be missing or have any usual form or name."""

    r: NumberLike
    """The first number; text without `0x` is hex."""

    s: NumberLike
    """The second number; text without `0x` is hex."""

    v: NotRequired[NumberLike | None]
    """0, 1, 27 or 28, or EIP-155's, or the last byte of it."""

    y_parity: NotRequired[NumberLike | None]
    """The same as `v`."""

    recovery: NotRequired[NumberLike | None]
    """The same as `v`."""

    recovery_param: NotRequired[NumberLike | None]
    """The same as `v`."""

    network_v: NotRequired[NumberLike | None]
    """The same as `v`."""

class KeyServiceSignature(TypedDict):
    """The signature of a key service on EVM or Tron, with the public key that made it."""

    signature: str
    """DER, or another form of r and s, in hex."""

    public_key: NotRequired[str | None]
    """The public key: SEC 1 or a `SubjectPublicKeyInfo`, in hex."""

class StarknetSignature(TypedDict):
    """A signature of a Starknet account with one key."""

    r: NumberLike
    """The first felt."""

    s: NumberLike
    """The second felt."""

    recovery: NotRequired[NumberLike | None]
    """Ignored: the account's key proves a signature of two felts."""

class BitcoinSignature(TypedDict):
    """A signature of one input on Bitcoin-like chains, with the key that made it."""

    signature: str
    """The signature."""

    public_key: str
    """The public key."""

WalletContext: TypeAlias = Union[
    EvmWallet,
    TronWallet,
    StarknetWallet,
    SolanaWallet,
    SuiWallet,
    BitcoinWallet,
]
"""The wallet context of a family, for `Order.prepare`."""

RecoveryContext: TypeAlias = Union[
    EvmRecovery,
    TronRecovery,
    StarknetRecovery,
    SolanaRecovery,
    SuiRecovery,
    BitcoinRecovery,
]
"""The wallet context of a recovery, for `Recovery.prepare`."""
