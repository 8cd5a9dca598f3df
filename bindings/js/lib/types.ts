// What the objects return. The names are those of the JSON contract, in JavaScript's spelling.

/** A chain family. Litecoin is of the family `bitcoin`. */
export type Family = "bitcoin" | "evm" | "solana" | "starknet" | "sui" | "tron";

/** A side of the swap: what you pay, or what you are paid. */
export type Leg = "source" | "destination";

/** How much attention something deserves. */
export type Severity = "info" | "caution" | "danger";

/** One value, as text for people and in parts for programs. */
export interface Value {
  readonly kind: "text" | "number" | "at_least" | "at_most" | "amount" | "account" | "hash" | "timelock";
  /** The value as a person reads it. Untrusted text in it is escaped; it still needs to be set as text, never as HTML. */
  readonly text: string;
  /** Numbers, amounts and timelocks: base units, blocks, slots or milliseconds. */
  readonly number: bigint | null;
  /** Amounts: the symbol of the asset. Timelocks: `blocks`, `slots` or `ms`. */
  readonly unit: string | null;
  /** Amounts: decimal places of one whole unit. */
  readonly decimals: number | null;
}

/** One line of a summary. */
export interface Line {
  /** What it is about. */
  readonly topic: string;
  /** What it says. Untrusted text in it is escaped. */
  readonly text: string;
  readonly severity: Severity;
  /** The values that the text is made of. */
  readonly values: readonly Value[];
}

/** Something that the owner should know. */
export interface Warning {
  /** The stable code. */
  readonly code: string;
  /** The text that a person reads. */
  readonly message: string;
  readonly severity: Severity;
}

/** Which bytes of the response the lines about one topic describe. */
export interface Coverage {
  /** The topic of the lines. */
  readonly topic: string;
  /** JSON pointer of the payload. */
  readonly at: string;
  /** First byte in the decoded payload; null for the whole member. */
  readonly start: number | null;
  /** The byte after the last. */
  readonly end: number | null;
  /** What these bytes are. */
  readonly what: string;
}

/** The terms that the owner agrees to. Null where the payload does not state something. */
export interface Terms {
  readonly orderId: string;
  /** The family that signs. */
  readonly family: Family;
  /** What the owner pays. */
  readonly pay: Value;
  /** Display name of the source chain. */
  readonly sourceChain: string;
  /** What the owner receives, as the request has it. */
  readonly receive: Value;
  /** Display name of the destination chain. */
  readonly destinationChain: string;
  /** Where the owner is paid. */
  readonly payout: string | null;
  /** Who receives a refund; on Bitcoin-like chains the x-only key. */
  readonly initiator: string | null;
  /** Who may redeem with the secret. */
  readonly redeemer: string | null;
  /** The pinned solver that the redeemer belongs to. */
  readonly solverId: string | null;
  /** How long until a refund is possible. */
  readonly timelock: Value | null;
  /** SHA-256 of the secret, in hex. */
  readonly secretHash: string | null;
}

/** A payload as the wallets of its chain take it. */
export interface NativePayload {
  /** Which of the two the value is: JSON text (the first four) or base64 (the others). */
  readonly kind:
    | "evm_transaction"
    | "tron_transaction"
    | "starknet_invoke"
    | "typed_data"
    | "solana_transaction"
    | "sui_transaction"
    | "psbt";
  readonly value: string;
}

/** Something to sign. */
export interface SigningRequest {
  /** The name under which the signature is attached. */
  readonly name: string;
  /** The account whose signature is needed. */
  readonly signer: string;
  readonly scheme: "secp256k1_keccak256" | "secp256k1_sha256" | "secp256k1_sha256d" | "bip340" | "ed25519" | "sui" | "stark";
  /** The bytes that the digest is computed from. */
  readonly payload: Uint8Array;
  /** What is signed. Ed25519 signs the payload itself, which is then here too. */
  readonly digest: Uint8Array;
  /** The payload as the chain's own wallets take it. */
  readonly native: NativePayload;
}

/** A signed transaction. */
export interface Transaction {
  /** What it does: `approval`, `initiate`, `refund` and so on. */
  readonly role: string;
  /** Its id, as explorers write it. */
  readonly id: string;
  /** What nodes accept: the bytes in hex, on EVM chains with `0x`; on Starknet and Sui the JSON that their interfaces take. */
  readonly payload: string;
  /** The outputs that it spends, on Bitcoin-like chains. */
  readonly spends: readonly string[];
}

/** What one HTLC of a swap must hold, and where it is. */
export interface HtlcTerms {
  /** The chain's name in asset ids. */
  readonly chain: string;
  readonly family: Family;
  /** The asset's id. */
  readonly asset: string;
  /** The pinned contract, program or package; on Bitcoin-like chains the internal key. */
  readonly htlc: string | null;
  /** Sui: the registry object of the pinned package. */
  readonly htlcRegistry: string | null;
  /** The pinned token, as the registry writes it; null for the chain's own coin. */
  readonly token: string | null;
  /** The pinned generation of the contract. */
  readonly generation: string | null;
  /** The swap's id in the record; on Bitcoin-like chains the HTLC's address. */
  readonly swapId: string;
  /** What stores the swap: the swap account on Solana, the order's dynamic field on Sui. Null where it is read by its id. */
  readonly account: string | null;
  /** Tokens on Solana: the account that holds the tokens of all swaps. */
  readonly vault: string | null;
  /** Who pays and gets a refund; on Bitcoin-like chains the x-only key. */
  readonly initiator: string;
  /** Who redeems with the secret; on Bitcoin-like chains the x-only key. */
  readonly redeemer: string;
  /** Base units. */
  readonly amount: bigint;
  /** The timelock, in `unit`. */
  readonly timelock: number;
  readonly unit: "blocks" | "slots" | "ms";
  /** Nominal milliseconds of one unit. */
  readonly unitMillis: number;
  /** SHA-256 of the secret, in hex. */
  readonly secretHash: string;
}

/** A request to an endpoint of a chain. The caller's connection sends it as it is. */
export type ChainRequest =
  | {
      readonly kind: "json_rpc";
      readonly method: string;
      /** The parameters, parsed. */
      readonly params: unknown;
      /** The parameters as JSON text. */
      readonly paramsText: string;
    }
  | {
      readonly kind: "get";
      /** The path below the endpoint's URL, which begins with `/`. */
      readonly path: string;
    }
  | {
      readonly kind: "post";
      /** The path below the endpoint's URL, which begins with `/`. */
      readonly path: string;
      /** The media type for the header `content-type`. */
      readonly contentType: string;
      readonly body: Uint8Array;
    };

/**
 * The answer to one {@link ChainRequest}. Its content is untrusted, and nothing in it needs to be checked before it is handed over.
 *
 * - `result`: the parsed `result` of a JSON-RPC reply. Integers above 2^53 must be `bigint`: a `number` has lost digits, and is then not
 *   accepted as an amount.
 * - `resultText`: the same as JSON text.
 * - `error`: the `error` of a JSON-RPC reply.
 * - `status`, `body`, `grpcStatus`: the response to a GET or POST with any status, and its header `grpc-status`.
 * - `failed`: no complete response arrived. This never says anything about the chain.
 * - `response`, `place`: what {@link splitBatch} returns.
 */
export type ChainAnswer =
  | { readonly result: unknown }
  | { readonly resultText: string | Uint8Array }
  | { readonly error: { readonly code?: number; readonly message?: string; readonly data?: unknown } }
  | { readonly status: number; readonly body: Uint8Array; readonly grpcStatus?: string | undefined }
  | { readonly failed: "connect" | "timeout" | "interrupted" | "too_large" | "unsupported" | "other"; readonly detail?: string | undefined }
  | { readonly response: BatchResponse; readonly place: number };

/** The response to a JSON-RPC batch with the ids 0, 1, and so on. */
export interface BatchResponse {
  /** The HTTP status. */
  readonly status: number;
  readonly body: Uint8Array;
  /** The number of calls in the batch. */
  readonly calls: number;
}

/** What a chain shows of one HTLC. Members that a state does not have are null. */
export interface Htlc {
  readonly state: "absent" | "locked" | "redeemed" | "refunded" | "unclear";
  /** `locked`: who gets a refund. */
  readonly initiator: string | null;
  /** `locked`: who redeems. */
  readonly redeemer: string | null;
  /** `locked`: base units. */
  readonly amount: bigint | null;
  /** `locked`: the token, as the registry writes it; null for the chain's own coin. */
  readonly token: string | null;
  /** `locked`: the hash that locks it, where the chain shows it. */
  readonly secretHash: string | null;
  /** `locked`: the timelock in the chain's own unit. */
  readonly timelock: number | null;
  /** `locked`: how much of the timelock has passed. */
  readonly elapsed: number | null;
  /** `locked`: whether what the HTLC holds covers the amount. */
  readonly covered: boolean | null;
  /** `redeemed`: the secret in hex, where the transaction shows it. It is public then. */
  readonly secret: string | null;
  /** `redeemed`, `refunded`: the transaction, where it is known. */
  readonly transaction: string | null;
  /** `unclear`: why. */
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
export interface Funded {
  /** The order that it is a proof for. */
  readonly orderId: string;
  /** What is left of the destination's timelock. */
  readonly left: number;
  /** `blocks`, `slots` or `ms`. */
  readonly unit: string;
}
