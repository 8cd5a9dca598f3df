// Generated from the lists of crates/json by `UPDATE=1 cargo test -p countersign-json --test shapes`. Do not edit.

/** Bytes or a number in hex with `0x`. */
export type HexString = `0x${string}`;

/** A number: whole, except that a fee rate may have decimal places. Above 2^53 a `number` is not exact, and a bigint or text is needed. */
export type NumberLike = bigint | number | string;

/** A chain family. Litecoin is of the family `bitcoin`. */
export type Family =
  | "evm"
  | "tron"
  | "starknet"
  | "solana"
  | "sui"
  | "bitcoin";

/** A leg of the swap: `source`, what the owner pays, or `destination`, what the owner receives. */
export type Leg =
  | "source"
  | "destination";

/** How much attention something deserves. */
export type Severity =
  | "info"
  | "caution"
  | "danger";

/** What a value is. */
export type ValueKind =
  | "text"
  | "number"
  | "at_least"
  | "at_most"
  | "amount"
  | "account"
  | "hash"
  | "timelock";

/** The unit of a timelock. */
export type TimelockUnit =
  | "blocks"
  | "slots"
  | "ms";

/** The form of a payload: JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others). */
export type PayloadKind =
  | "evm_transaction"
  | "tron_transaction"
  | "starknet_invoke"
  | "typed_data"
  | "solana_transaction"
  | "sui_transaction"
  | "psbt";

/** A signature scheme, with the hash of its digest. */
export type Scheme =
  | "secp256k1_keccak256"
  | "secp256k1_sha256"
  | "secp256k1_sha256d"
  | "bip340"
  | "ed25519"
  | "sui"
  | "stark";

/** What a transaction does. */
export type Role =
  | "approval_reset"
  | "approval"
  | "initiate"
  | "redeem"
  | "refund"
  | "claim";

/** The state of an HTLC. `unclear` never counts as funded. */
export type HtlcState =
  | "absent"
  | "locked"
  | "redeemed"
  | "refunded"
  | "unclear";

/** Where Starknet keeps a nonce, or takes a fee. */
export type DataAvailabilityMode =
  | "L1"
  | "L2";

/** Which outputs of a Bitcoin-like wallet are spent: `all`, or those with the lowest fee. */
export type CoinSelection =
  | "all"
  | "lowest_fee";

/** The order of inputs and outputs of a Bitcoin-like transaction: as `given`, by BIP 69, or `shuffled` with a seed. */
export type TxOrdering =
  | "given"
  | "bip69"
  | "shuffled";

/** The names of the functions of the HTLC package on Sui. */
export type FunctionNames =
  | "current"
  | "older";

/** Who has to act: the `service`, because the response or the record is wrong; the `caller`, because of an argument, a key or a document of the wallet's own; nobody if the order is `unsupported` by this build; nobody but time or the other party if the `chain` does not show what is needed; the developers of this library if it is a `bug`. */
export type Blame =
  | "service"
  | "caller"
  | "unsupported"
  | "chain"
  | "bug";

/** The code of a refusal or a warning. */
export type Code =
  | "json_syntax"
  | "json_not_utf8"
  | "json_duplicate_key"
  | "json_too_deep"
  | "json_too_large"
  | "missing_field"
  | "unexpected_field"
  | "misspelt_field"
  | "wrong_type"
  | "text_not_plain"
  | "decimal_empty"
  | "decimal_sign"
  | "decimal_exponent"
  | "decimal_fraction"
  | "decimal_space"
  | "decimal_hex"
  | "decimal_leading_zero"
  | "decimal_digit"
  | "number_too_large"
  | "integer_not_exact"
  | "hex_prefix"
  | "hex_empty"
  | "hex_digit"
  | "hex_odd_length"
  | "hex_length"
  | "asset_id_malformed"
  | "address_malformed"
  | "address_checksum"
  | "address_network"
  | "amount_zero"
  | "same_asset"
  | "mixed_networks"
  | "delegate_not_supported"
  | "payout_invalid"
  | "registry_malformed"
  | "unknown_generation"
  | "unknown_chain"
  | "unknown_asset"
  | "unsupported_family"
  | "service_error"
  | "status_not_ok"
  | "error_beside_ok"
  | "order_id_malformed"
  | "mixed_families"
  | "legacy_key_beside"
  | "chain_mismatch"
  | "unknown_contract"
  | "unknown_token"
  | "unknown_spender"
  | "generation_mismatch"
  | "unexpected_selector"
  | "calldata_length"
  | "calldata_padding"
  | "calldata_offset"
  | "amount_mismatch"
  | "value_mismatch"
  | "initiator_mismatch"
  | "redeemer_invalid"
  | "unknown_redeemer"
  | "secret_hash_mismatch"
  | "secret_hash_trivial"
  | "timelock_zero"
  | "timelock_too_long"
  | "gas_limit_too_low"
  | "gas_limit_too_high"
  | "unexpected_approval"
  | "approval_below_amount"
  | "approval_not_exact"
  | "destination_data_too_long"
  | "typed_data_primary_type"
  | "typed_data_types"
  | "typed_data_domain"
  | "typed_data_with_delegate"
  | "payloads_disagree"
  | "record_mismatch"
  | "record_version"
  | "record_swap_id"
  | "record_pays_less"
  | "pays_too_little"
  | "record_pays_elsewhere"
  | "record_outlasts_source"
  | "record_solver"
  | "record_funded"
  | "record_redeemed"
  | "record_refunded"
  | "record_changed"
  | "record_secret_known"
  | "time_malformed"
  | "transaction_id_malformed"
  | "order_expired"
  | "deadline_too_close"
  | "created_in_future"
  | "expiration_passed"
  | "expiration_too_late"
  | "wallet_chain_mismatch"
  | "nonce_limit"
  | "priority_fee_above_cap"
  | "key_malformed"
  | "key_mismatch"
  | "signature_malformed"
  | "signature_high_s"
  | "signature_mismatch"
  | "account_not_deployed"
  | "signature_count"
  | "nothing_to_sign"
  | "secret_wrong"
  | "warning_refused"
  | "cannot_be_judged"
  | "signature_missing"
  | "transaction_mismatch"
  | "internal"
  | "kind_malformed"
  | "kind_not_programmable"
  | "unexpected_command"
  | "unexpected_argument"
  | "unexpected_input"
  | "unknown_registry"
  | "coin_type_mismatch"
  | "object_digest_malformed"
  | "gas_coin_count"
  | "gas_coin_twice"
  | "gas_coin_is_input"
  | "address_balance_payment"
  | "insufficient_funds"
  | "transaction_encoding"
  | "transaction_too_large"
  | "transaction_malformed"
  | "transaction_trailing"
  | "message_version"
  | "lookup_table"
  | "signature_slots"
  | "unexpected_signer"
  | "fee_payer_mismatch"
  | "sponsor_invalid"
  | "unknown_sponsor"
  | "sponsor_signature"
  | "unexpected_instruction"
  | "instruction_data"
  | "account_mismatch"
  | "account_flags"
  | "account_unused"
  | "gasless_native"
  | "blockhash_malformed"
  | "blockhash_expired"
  | "felt_out_of_range"
  | "call_form_unknown"
  | "typed_data_revision"
  | "not_taproot"
  | "address_not_derived"
  | "amount_above_supply"
  | "fee_rate_zero"
  | "fee_rate_too_high"
  | "utxo_twice"
  | "utxo_unsupported"
  | "utxo_mismatch"
  | "change_to_deposit"
  | "transaction_above_standard"
  | "psbt_mismatch"
  | "funding_mismatch"
  | "instant_refund_mismatch"
  | "sighash_mismatch"
  | "gas_price_too_high"
  | "allowance_too_low"
  | "simulation_reverted"
  | "contract_signature_refused"
  | "simulation_differs"
  | "finality_mark_missing"
  | "lower_height_missing"
  | "node_outdated"
  | "decimals_differ"
  | "mint_restricts"
  | "permission_mismatch"
  | "receiver_not_payable"
  | "address_on_trust"
  | "refund_key_not_yours"
  | "redeem_key_not_yours"
  | "amount_below_dust"
  | "sponsor_pays_deposit"
  | "unlimited_approval"
  | "approval_above_amount"
  | "unpinned_registry_version"
  | "unpinned_solver"
  | "secret_not_yours"
  | "trusts_the_service"
  | "no_order_record"
  | "amount_outside_limits"
  | "pays_less_within_slippage"
  | "destination_timelock_close"
  | "timelocks_depend_on_pace"
  | "destination_timelock_short"
  | "affiliate_fees_not_requested"
  | "nonce_differs"
  | "gasless_form_unproven"
  | "timelock_above_listed"
  | "funding_tx_differs"
  | "swap_id_unchecked"
  | "contract_signature_unverified"
  | "signature_unverified"
  | "own_signature_overwritten"
  | "calldata_suffix"
  | "wallet_assertion"
  | "wallet_nonce"
  | "wallet_lock_time"
  | "nonce_gap"
  | "fee_above_payout"
  | "gas_limit_above_cap"
  | "fee_too_low"
  | "secret_for_less"
  | "outputs_left"
  | "mint_authorities"
  | "single_provider"
  | "finality_ignores_value"
  | "key_not_checked";

/** Why the secret must not be released. */
export type HoldCode =
  | "destination_not_funded"
  | "destination_not_final"
  | "destination_differs"
  | "destination_not_covered"
  | "destination_no_time"
  | "destination_redeemed"
  | "destination_refunded"
  | "chain_stale"
  | "endpoints_disagree"
  | "destination_unclear";

/** What is wrong with an endpoint, apart from the codes of refusals. */
export type FaultCode =
  | "connect"
  | "timeout"
  | "interrupted"
  | "response_too_large"
  | "unsupported"
  | "network"
  | "node_http_status"
  | "node_error"
  | "node_malformed"
  | "node_wrong_chain"
  | "node_went_back"
  | "node_too_much"
  | "transaction_rejected";

/** Why a call failed, apart from the other codes: the object is `used_up`, an argument is invalid (`usage`), or a signature is missing. */
export type CallCode =
  | "used_up"
  | "usage"
  | "signature_missing";

/** Why a whole swap, or a call of it, failed, apart from the other codes: the owner, the store, the service, a node, or the connection to one of them. A test of `countersign-swap` compares them with what it returns. */
export type SwapCode =
  | "declined"
  | "not_signed"
  | "owner_unavailable"
  | "store_failed"
  | "contract_changed"
  | "secret_used"
  | "derive_failed"
  | "failed"
  | "http_status"
  | "service_error"
  | "random"
  | "no_quote"
  | "quote_mismatch"
  | "quote_too_low"
  | "transport_connect"
  | "transport_timeout"
  | "transport_interrupted"
  | "transport_too_large"
  | "transport_encoded"
  | "transport_setup"
  | "transport_insecure"
  | "node_disagree"
  | "node_endpoint"
  | "not_connected";

/** What happened in a whole swap: the member `event`. */
export type SwapEvent =
  | "quoted"
  | "phrase_created"
  | "contract"
  | "warning"
  | "created"
  | "deposit"
  | "status"
  | "alert"
  | "stopped"
  | "listed"
  | "failed";

/** The status of an order of a whole swap. */
export type SwapStatusName =
  | "unsigned"
  | "expired"
  | "paying"
  | "needs_owner"
  | "waiting"
  | "redeeming"
  | "redeem_now"
  | "awaiting_refund"
  | "refunding"
  | "refused"
  | "lost"
  | "ended";

/** What only the owner can do for a whole swap. */
export type SwapTask =
  | "secret"
  | "broadcast_funding"
  | "redeem"
  | "broadcast_redemption"
  | "refund";

/** How a swap ended. */
export type SwapOutcome =
  | "complete"
  | "refunded"
  | "expired"
  | "lost";

/** What the owner of a whole swap should hear at once. */
export type SwapAlert =
  | "retrying"
  | "maybe_paid"
  | "redeem_now"
  | "stated_only"
  | "other";

/** Why an order is not followed any longer. It ended, or only the service says so, or something is in the way. */
export type SwapStop =
  | "complete"
  | "refunded"
  | "expired"
  | "lost"
  | "stated_complete"
  | "stated_refunded"
  | "stated_expired"
  | "stated_lost"
  | "refunding"
  | "not_refunded"
  | "not_signed"
  | "needs_owner"
  | "evidence_needed"
  | "unavailable"
  | "refused"
  | "failed"
  | "other";

/** What a signature is for. */
export type SwapPurpose =
  | "funding"
  | "redemption"
  | "refund";

/** One value, as text for people and in its parts for programs. */
export interface TypedValue {
  /** What it is. */
  readonly kind: ValueKind;
  /** The value as a person reads it; untrusted text in it is escaped. */
  readonly text: string;
  /** Of numbers, bounds, amounts and timelocks: the number, for amounts in base units, for timelocks in `unit`. */
  readonly number: bigint | null;
  /** Of amounts: the asset's symbol. Of timelocks: `blocks`, `slots` or `ms`. */
  readonly unit: string | null;
  /** Of amounts: decimal places of one whole unit. */
  readonly decimals: number | null;
}

/** One line of a summary. */
export interface SummaryLine {
  /** What the line is about, such as `secret hash`. */
  readonly topic: string;
  /** The text; untrusted text in it is escaped. */
  readonly text: string;
  /** How much attention it deserves. */
  readonly severity: Severity;
  /** The values in the text. */
  readonly values: readonly TypedValue[];
}

/** A warning: something that the owner should know. */
export interface Notice {
  /** The stable code. */
  readonly code: Code;
  /** The text that a person reads. */
  readonly message: string;
  /** How much attention it deserves. */
  readonly severity: Severity;
}

/** Bytes of the response that the lines of one topic describe. */
export interface Coverage {
  /** The topic of the lines. */
  readonly topic: string;
  /** JSON pointer of the payload. */
  readonly at: string;
  /** The first byte in the decoded payload; none for the whole member. */
  readonly start: number | null;
  /** The byte after the last; none for the whole member. */
  readonly end: number | null;
  /** What these bytes are. */
  readonly what: string;
}

/** The terms that the owner agrees to. */
export interface Terms {
  /** The order's id. */
  readonly orderId: string;
  /** The family that signs. */
  readonly family: Family;
  /** What the owner pays. */
  readonly pay: TypedValue;
  /** Display name of the source chain. */
  readonly sourceChain: string;
  /** What the owner receives, as requested. */
  readonly receive: TypedValue;
  /** Display name of the destination chain. */
  readonly destinationChain: string;
  /** The address at which the owner is paid. */
  readonly payout: string | null;
  /** Who receives a refund; on Bitcoin-like chains the x-only key. None where the payload does not state it. */
  readonly initiator: string | null;
  /** Who may redeem with the secret. None where the payload does not state it. */
  readonly redeemer: string | null;
  /** The id of the pinned solver that the redeemer belongs to; none if it is not pinned. */
  readonly solverId: string | null;
  /** How long until a refund is possible. None where the payload does not state it. */
  readonly timelock: TypedValue | null;
  /** SHA-256 of the secret, 64 hex digits without `0x`. */
  readonly secretHash: string | null;
}

/** A payload in the form that wallets accept. */
export interface NativePayload {
  /** Its form. */
  readonly kind: PayloadKind;
  /** JSON (`evm_transaction`, `tron_transaction`, `starknet_invoke`, `typed_data`) or base64 (the others). */
  readonly value: string;
}

/** Something to sign. */
export interface SigningRequest {
  /** The name under which the signature is attached. */
  readonly name: string;
  /** The account whose signature is needed. */
  readonly signer: string;
  /** The signature scheme. */
  readonly scheme: Scheme;
  /** The bytes that the digest is computed from. */
  readonly payload: Uint8Array;
  /** What is signed. Ed25519 signs the payload itself, so then this is the payload too. */
  readonly digest: Uint8Array;
  /** The payload in the form that the chain's own wallets accept. */
  readonly native: NativePayload;
}

/** A signed transaction. */
export interface Transaction {
  /** What it does, such as `approval` or `initiate`. */
  readonly role: Role;
  /** Its id, as explorers write it. */
  readonly id: string;
  /** What nodes accept: the bytes in hex, on EVM chains with `0x`; on Starknet and Sui the JSON that their nodes accept. */
  readonly payload: string;
  /** The outputs that it spends, on Bitcoin-like chains. */
  readonly spends: readonly string[];
}

/** What a transaction of an external wallet is in an order. */
export interface Matched {
  /** What it does, such as `approval` or `initiate`. */
  readonly role: Role;
  /** What the wallet changed or added although it may. */
  readonly warnings: readonly Notice[];
}

/** What one HTLC of a swap must hold, and where it is. */
export interface HtlcTerms {
  /** The chain's name in asset ids. */
  readonly chain: string;
  /** The chain's family. */
  readonly family: Family;
  /** The asset's id. */
  readonly asset: string;
  /** The pinned contract, program or package; on Bitcoin-like chains the internal key. */
  readonly htlc: string | null;
  /** The registry object of the pinned package, on Sui. */
  readonly htlcRegistry: string | null;
  /** The pinned token, as the registry writes it; none for the chain's own coin. */
  readonly token: string | null;
  /** The pinned generation of the contract, as the registry writes it. */
  readonly generation: string | null;
  /** The swap's id in the record; on Bitcoin-like chains the HTLC's address. */
  readonly swapId: string;
  /** What stores the swap: the swap account on Solana, the order's dynamic field on Sui. None where it is read by its id. */
  readonly account: string | null;
  /** The account that holds the tokens of all swaps, for tokens on Solana. */
  readonly vault: string | null;
  /** Who pays and gets a refund; on Bitcoin-like chains the x-only key. */
  readonly initiator: string;
  /** Who redeems with the secret; on Bitcoin-like chains the x-only key. */
  readonly redeemer: string;
  /** The amount in base units. */
  readonly amount: bigint;
  /** The timelock, in `unit`. */
  readonly timelock: number;
  /** The unit of the timelock. */
  readonly unit: TimelockUnit;
  /** Nominal milliseconds of one unit. */
  readonly unitMillis: number;
  /** SHA-256 of the secret, 64 hex digits without `0x`. */
  readonly secretHash: string;
}

/** The state of one HTLC. */
export interface Htlc {
  /** The state. Members that it does not have are empty. */
  readonly state: HtlcState;
  /** If `locked`: who gets a refund. */
  readonly initiator: string | null;
  /** If `locked`: who redeems. */
  readonly redeemer: string | null;
  /** If `locked`: the amount in base units. */
  readonly amount: bigint | null;
  /** If `locked`: the token, as the registry writes it; none for the chain's own coin. */
  readonly token: string | null;
  /** If `locked`: the secret hash, where the chain shows it. */
  readonly secretHash: string | null;
  /** If `locked`: the timelock in the chain's own unit. */
  readonly timelock: number | null;
  /** If `locked`: how much of the timelock has passed, in the same unit. */
  readonly elapsed: number | null;
  /** If `locked`: whether the balance of the HTLC covers the amount. */
  readonly covered: boolean | null;
  /** If `redeemed`: the secret in hex, where the transaction shows it. It is then public. */
  readonly secret: string | null;
  /** If `redeemed` or `refunded`: the id of the transaction, where it is known. */
  readonly transaction: string | null;
  /** If `unclear`: why. */
  readonly reason: string | null;
  /** Height of the block at which the state was read. */
  readonly height: number;
  /** Number of blocks from the one that created the state to the newest, both included; 0 while it is in no block. */
  readonly depth: number;
  /** Whether the state is in a final block, by the policy's rule for the chain. */
  readonly isFinal: boolean;
  /** How many endpoints show this state. */
  readonly agreed: number;
  /** How many endpoints must show it. */
  readonly needed: number;
}

/** The proof that a destination is funded. */
export interface Proof {
  /** Id of the order that the proof is for. */
  readonly orderId: string;
  /** What is left of the destination's timelock, in `unit`. */
  readonly left: number;
  /** The unit of what is left. */
  readonly unit: TimelockUnit;
  /** The last time at which the proof is valid, in Unix seconds. Judge again after it, with a new reading. */
  readonly freshUntil: number;
}

/** One value that differs between two registries. */
export interface PinChange {
  /** The entry: `chain ethereum`, `asset ethereum:usdc`, `solver <id> on ethereum, <address>`, `sponsor on solana, <address>`. */
  readonly entry: string;
  /** The member of the entry, such as `htlc address`. */
  readonly field: string;
  /** What was pinned before; none if it is new. */
  readonly old: string | null;
  /** What would be pinned now; none if it is gone. */
  readonly new: string | null;
}

/** The wallet context of an EVM chain. Transactions are of type EIP-1559 with `maxFeePerGas` and `maxPriorityFeePerGas`, and legacy ones with `gasPrice`. */
export interface EvmWallet {
  /** Nonce of the first transaction. Each further one takes the next. */
  readonly nonce: NumberLike;
  /** Wei per unit of gas; required without `gasPrice`. */
  readonly maxFeePerGas?: NumberLike | undefined;
  /** Wei per unit of gas, at most `maxFeePerGas`; required with it. */
  readonly maxPriorityFeePerGas?: NumberLike | undefined;
  /** Wei per unit of gas, for a legacy transaction; ignored beside `maxFeePerGas`. */
  readonly gasPrice?: NumberLike | undefined;
  /** The chain that the wallet is set to, which must be that of the asset. */
  readonly chainId?: NumberLike | undefined;
  /** Whether the allowance is set to zero first, in a transaction of its own. */
  readonly resetApproval?: boolean | undefined;
  /** The key of the sender, 64 hex digits. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** The wallet context of a recovery on an EVM chain. */
export interface EvmRecovery extends EvmWallet {
  /** The account that sends and pays for the transaction; the payee if it is missing. */
  readonly sender?: HexString | undefined;
  /** The gas limit, at most that of the policy. */
  readonly gasLimit?: NumberLike | undefined;
  /** Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing. */
  readonly acceptLowFee?: boolean | undefined;
}

/** The wallet context of Tron. */
export interface TronWallet {
  /** Bytes 6 and 7 of the reference block's number. */
  readonly refBlockBytes: string;
  /** Bytes 8 to 15 of the reference block's id. */
  readonly refBlockHash: string;
  /** When the transaction expires, in Unix milliseconds. */
  readonly expiration: NumberLike;
  /** The time of the transaction, in Unix milliseconds. */
  readonly timestamp: NumberLike;
  /** The chain that the wallet is set to, which must be that of the asset. */
  readonly chainId?: NumberLike | undefined;
  /** Whether the allowance is set to zero first, in a transaction of its own. */
  readonly resetApproval?: boolean | undefined;
  /** The permission of the sender's account under which calls are signed: 0, which is the default, or 2 to 9. */
  readonly permissionId?: NumberLike | undefined;
  /** The keys of that permission. Without them the sender's own key signs. */
  readonly permission?: TronPermission | undefined;
  /** The key of the owner, or of the permission, 64 hex digits. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** A permission of a Tron account, as `/wallet/getaccount` returns it. Its further members are not read. */
export interface TronPermission {
  /** Which one: `permissionId`, if both are given; otherwise 0 if it is missing. */
  readonly id?: NumberLike | undefined;
  /** The weight that the signatures must reach. */
  readonly threshold: NumberLike;
  /** One to five keys, none twice. */
  readonly keys: readonly TronKey[];
  /** The 32 bytes of what an active permission allows, which must include calls of contracts. */
  readonly operations?: string | undefined;
}

/** A key of a permission. */
export interface TronKey {
  /** The account of the key, in base58check, or in hex with its prefix `41`. */
  readonly address: string;
  /** How much its signature counts, from 1 on. */
  readonly weight: NumberLike;
}

/** The wallet context of a recovery on Tron. */
export interface TronRecovery extends TronWallet {
  /** The account that sends and pays for the transaction; the payee if it is missing. */
  readonly sender?: string | undefined;
  /** The fee limit in sun, at most that of the policy. */
  readonly feeLimit?: NumberLike | undefined;
  /** Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing. */
  readonly acceptLowFee?: boolean | undefined;
}

/** The wallet context of Starknet. */
export interface StarknetWallet {
  /** Nonce of the account. */
  readonly nonce: NumberLike;
  /** The most that the transaction may use and pay. */
  readonly resourceBounds: ResourceBounds;
  /** The chain that the wallet is set to, which must be that of the asset: a short string such as `SN_MAIN`, or its number. */
  readonly chainId?: NumberLike | undefined;
  /** FRI per unit of L2 gas; 0 if it is missing. */
  readonly tip?: NumberLike | undefined;
  /** The account's public key. Without it a local key cannot be checked. */
  readonly publicKey?: HexString | undefined;
  /** The account's Cairo version, 0 or 1; 1 if it is missing. It determines how the account takes several calls. */
  readonly cairoVersion?: NumberLike | undefined;
  /** Felts for the paymaster. */
  readonly paymasterData?: readonly NumberLike[] | undefined;
  /** Felts that deploy the account. */
  readonly accountDeploymentData?: readonly NumberLike[] | undefined;
  /** Where the nonce is kept; `L1` if it is missing. */
  readonly nonceDataAvailabilityMode?: DataAvailabilityMode | undefined;
  /** Where the fee is paid; `L1` if it is missing. */
  readonly feeDataAvailabilityMode?: DataAvailabilityMode | undefined;
  /** The key of the account, 1 to 64 hex digits. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** The resource bounds of a Starknet transaction. */
export interface ResourceBounds {
  /** The bound of L1 gas. */
  readonly l1Gas: ResourceBound;
  /** The bound of L2 gas. */
  readonly l2Gas: ResourceBound;
  /** The bound of L1 data gas. */
  readonly l1DataGas: ResourceBound;
}

/** The bound of one resource. */
export interface ResourceBound {
  /** Units, at most 64 bits. */
  readonly maxAmount: NumberLike;
  /** FRI per unit, at most 128 bits. */
  readonly maxPricePerUnit: NumberLike;
}

/** The wallet context of a recovery on Starknet. */
export interface StarknetRecovery extends StarknetWallet {
  /** The account that sends and pays for the transaction; the payee if it is missing. */
  readonly sender?: HexString | undefined;
  /** Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing. */
  readonly acceptLowFee?: boolean | undefined;
}

/** The wallet context of Solana. */
export interface SolanaWallet {
  /** Base58 of 32 bytes. It replaces the blockhash of the response's own transaction, never that of the gasless one. */
  readonly recentBlockhash?: string | undefined;
  /** A nonce account of the signer, in base58, with `nonce`: in place of a blockhash, so that the transaction does not expire. */
  readonly nonceAccount?: string | undefined;
  /** Base58 of the 32 bytes that the nonce account stores. */
  readonly nonce?: string | undefined;
  /** The last block height at which the blockhash is valid. */
  readonly lastValidBlockHeight?: NumberLike | undefined;
  /** The block height now. A blockhash that has expired is refused. */
  readonly blockHeight?: NumberLike | undefined;
  /** The key of the owner, in base58. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** The wallet context of a recovery on Solana. */
export interface SolanaRecovery extends SolanaWallet {
  /** The account that pays for the transaction; the payee if it is missing. */
  readonly sender?: string | undefined;
  /** The account that paid the rent of the swap of an SPL token, and gets it back. */
  readonly rentSponsor?: string | undefined;
  /** The limits of a message of version 1; without them the message is a legacy one, which every wallet can sign. */
  readonly config?: SolanaConfig | undefined;
  /** Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing. */
  readonly acceptLowFee?: boolean | undefined;
}

/** The limits that a Solana message of version 1 contains. */
export interface SolanaConfig {
  /** The most compute units that the transaction may use. */
  readonly computeUnitLimit: NumberLike;
  /** The most bytes of accounts that it may load, at most 64 MiB. */
  readonly loadedAccountsDataSizeLimit: NumberLike;
  /** The whole priority fee in lamports; none if it is missing. */
  readonly priorityFee?: NumberLike | undefined;
  /** The bytes of the heap, a multiple of 1024 between 32768 and 262144; 32768 if it is missing. */
  readonly heapSize?: NumberLike | undefined;
}

/** The wallet context of Sui. */
export interface SuiWallet {
  /** MIST per unit of gas. */
  readonly gasPrice: NumberLike;
  /** The most that the transaction may cost, in MIST. */
  readonly gasBudget: NumberLike;
  /** The coins that pay for gas, at most 256, each once. If there is none, the address balance pays, and `validDuring` is required. */
  readonly gasPayment: readonly GasCoin[];
  /** The owner of the gas coins; the sender if it is missing. */
  readonly sponsor?: HexString | undefined;
  /** The last epoch in which the transaction may run. */
  readonly expirationEpoch?: NumberLike | undefined;
  /** When a payment from the address balance is valid. */
  readonly validDuring?: ValidDuring | undefined;
  /** The key of the sender: `suiprivkey1..`, or the 64 hex digits of an Ed25519 seed. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** When a payment from the address balance of an account on Sui is valid. */
export interface ValidDuring {
  /** The first epoch: the current one. */
  readonly minEpoch: NumberLike;
  /** The last epoch: the first one, or the next. */
  readonly maxEpoch: NumberLike;
  /** The network: the digest of its genesis checkpoint, base58 of 32 bytes. */
  readonly chain: string;
  /** A number of at most 32 bits, which distinguishes transactions that are equal otherwise. */
  readonly nonce: NumberLike;
}

/** A coin that pays for gas, or a reservation of the address balance in the form of a coin. */
export interface GasCoin {
  /** The id of the object. */
  readonly objectId: HexString;
  /** Its version. */
  readonly version: NumberLike;
  /** Its digest: base58 of 32 bytes. */
  readonly digest: string;
}

/** The wallet context of a recovery on Sui. */
export interface SuiRecovery extends SuiWallet {
  /** The account that sends the transaction; the payee if it is missing. */
  readonly sender?: HexString | undefined;
  /** The names of the package's functions; `current` if it is missing. */
  readonly functionNames?: FunctionNames | undefined;
  /** Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing. */
  readonly acceptLowFee?: boolean | undefined;
}

/** The wallet context of Bitcoin and Litecoin. Without `utxos`, only the deposit address is wanted. */
export interface BitcoinWallet {
  /** Outputs of the wallet, each once. With them, `changeAddress` and `feeRate` are required. */
  readonly utxos?: readonly Utxo[] | undefined;
  /** The address that receives the change. */
  readonly changeAddress?: string | undefined;
  /** The fee rate in sat/vB, with decimal places if necessary; at most that of the policy. */
  readonly feeRate?: NumberLike | undefined;
  /** Which outputs are spent; `all` if it is missing. */
  readonly selection?: CoinSelection | undefined;
  /** The order of inputs and outputs; `given` if it is missing. */
  readonly order?: TxOrdering | undefined;
  /** 32 random bytes; required with the order `shuffled`, and refused otherwise. */
  readonly seed?: string | undefined;
  /** Whether the transaction can be replaced; `true` if it is missing. */
  readonly rbf?: boolean | undefined;
  /** Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`. */
  readonly origins?: readonly string[] | undefined;
  /** One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** An output of a Bitcoin-like wallet. */
export interface Utxo {
  /** The id of the transaction, as it is displayed. */
  readonly txid: string;
  /** The index of the output. */
  readonly vout: NumberLike;
  /** Base units. */
  readonly value: NumberLike;
  /** P2WPKH, P2TR, P2SH-P2WPKH or P2PKH. */
  readonly scriptPubkey: string;
  /** The redeem script; required for P2SH. */
  readonly redeemScript?: string | undefined;
  /** The whole transaction; required for P2PKH. */
  readonly previousTx?: string | undefined;
}

/** The wallet context of a recovery on Bitcoin and Litecoin. The fee is deducted, unless `utxos` pay it. */
export interface BitcoinRecovery {
  /** The outputs of the HTLC, each as `<txid>:<index>:<base units>`. One that covers the amount is spent alone. */
  readonly funding: readonly string[];
  /** The address that receives the coins. */
  readonly to: string;
  /** The fee rate in sat/vB, with decimal places if necessary; at most that of the policy. */
  readonly feeRate: NumberLike;
  /** Outputs of the wallet that pay the fee. */
  readonly utxos?: readonly Utxo[] | undefined;
  /** The address that receives the change; required with `utxos`, and refused otherwise. */
  readonly changeAddress?: string | undefined;
  /** Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`. */
  readonly origins?: readonly string[] | undefined;
  /** Whether a redemption may take less than the amount, or several outputs, although the secret becomes public; `false` if it is missing. */
  readonly acceptLess?: boolean | undefined;
  /** Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing. */
  readonly acceptLowFee?: boolean | undefined;
  /** Whether the fee may be higher than what is paid out; `false` if it is missing. */
  readonly acceptHighFee?: boolean | undefined;
  /** One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed. */
  readonly secretKey?: string | undefined;
}

/** The signature of a contract wallet over EVM typed data (ERC-1271). */
export interface ContractSignature {
  /** The signature, at most 64 KiB; `0x` if the wallet keeps on chain what it signed. */
  readonly contract: HexString;
  /** Whether the account is deployed, so that the wrapper of ERC-6492 is taken off; `false` if it is missing. An order that was prepared with a connection knows it. */
  readonly deployed?: boolean | undefined;
}

/** The signature of a key on EVM or Tron, in parts. The parity is found, so `v` may be missing or have any usual form or name. */
export interface EcdsaSignature {
  /** The first number; text without `0x` is hex. */
  readonly r: NumberLike;
  /** The second number; text without `0x` is hex. */
  readonly s: NumberLike;
  /** 0, 1, 27 or 28, or EIP-155's, or the last byte of it. */
  readonly v?: NumberLike | undefined;
  /** The same as `v`. */
  readonly yParity?: NumberLike | undefined;
  /** The same as `v`. */
  readonly recovery?: NumberLike | undefined;
  /** The same as `v`. */
  readonly recoveryParam?: NumberLike | undefined;
  /** The same as `v`. */
  readonly networkV?: NumberLike | undefined;
}

/** The signature of a key service on EVM or Tron, with the public key that made it. */
export interface KeyServiceSignature {
  /** DER, or another form of r and s, in hex. */
  readonly signature: string;
  /** The public key: SEC 1 or a `SubjectPublicKeyInfo`, in hex. */
  readonly publicKey?: string | undefined;
}

/** A signature of a Starknet account with one key. */
export interface StarknetSignature {
  /** The first felt. */
  readonly r: NumberLike;
  /** The second felt. */
  readonly s: NumberLike;
  /** Ignored: the account's key proves a signature of two felts. */
  readonly recovery?: NumberLike | undefined;
}

/** A signature of one input on Bitcoin-like chains, with the key that made it. */
export interface BitcoinSignature {
  /** The signature. */
  readonly signature: string;
  /** The public key. */
  readonly publicKey: string;
}

/** The wallet context of a family, for `Order.prepare`. */
export type WalletContext =
  | EvmWallet
  | TronWallet
  | StarknetWallet
  | SolanaWallet
  | SuiWallet
  | BitcoinWallet;

/** The wallet context of a recovery, for `Recovery.prepare`. */
export type RecoveryContext =
  | EvmRecovery
  | TronRecovery
  | StarknetRecovery
  | SolanaRecovery
  | SuiRecovery
  | BitcoinRecovery;

/** Members that are decimal text in the JSON of the module, and bigint here. @internal */
export const BIGINT_MEMBERS: ReadonlySet<string> = new Set(["amount", "number"]);

/** Members of signing requests that are hex in the JSON of the module, and bytes here. @internal */
export const BYTE_MEMBERS: ReadonlySet<string> = new Set(["digest", "payload"]);

/** Members of wallet contexts that are JSON integers, by their names in JSON. @internal */
export const INTEGER_MEMBERS: ReadonlySet<string> = new Set(["block_height", "compute_unit_limit", "expiration", "heap_size", "id", "last_valid_block_height", "loaded_accounts_data_size_limit", "nonce", "permission_id", "priority_fee", "threshold", "timestamp", "vout", "weight"]);

/** Members of wallet contexts whose numbers are decimal text, by their names in JSON. @internal */
export const DECIMAL_MEMBERS: ReadonlySet<string> = new Set(["fee_rate", "gas_budget", "gas_price", "max_fee_per_gas", "max_priority_fee_per_gas"]);
