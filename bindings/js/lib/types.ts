// What goes in and comes out. Names are those of the JSON contract, in JavaScript's spelling; most types are made from its shapes.
import type * as shapes from "./shapes.js";
import type { HexString } from "./shapes.js";

// The tables of the conversion are not for callers.
export type * from "./shapes.js";

/** The code of an error: of a refusal, of what a chain or an endpoint shows, of a whole swap, or of a call that cannot be done. */
export type ErrorCode = shapes.Code | shapes.HoldCode | shapes.FaultCode | shapes.CallCode | shapes.SwapCode | "not_initialized" | "init_failed";

/** A signed transaction. What nodes accept and explorers write is hex with `0x` on EVM chains. */
export type Transaction =
  | (Omit<shapes.Transaction, "id" | "payload"> & { readonly family: "evm"; readonly id: HexString; readonly payload: HexString })
  | (shapes.Transaction & { readonly family: Exclude<shapes.Family, "evm"> });

/** The parameter of `eth_sendTransaction`: quantities are in hex. */
export interface EvmCall {
  readonly from: HexString;
  readonly to: HexString;
  readonly data: HexString;
  readonly value: HexString;
  readonly chainId: HexString;
}

/** A call of `account.execute` of starknet.js. */
export interface StarknetCall {
  readonly contractAddress: HexString;
  readonly entrypoint: string;
  readonly calldata: readonly HexString[];
}

/** What {@link UnsignedOrder.attach} takes. */
export type Signature =
  | string
  | Uint8Array
  /** Starknet: felts. */
  | readonly (string | bigint)[]
  | shapes.StarknetSignature
  /** EVM and Tron: r and s, with v or the parity in any usual form. */
  | shapes.EcdsaSignature
  /** EVM and Tron: DER of a key service, with its public key. */
  | shapes.KeyServiceSignature
  /** EVM: of a contract wallet, which only the chain can check. */
  | shapes.ContractSignature
  | shapes.BitcoinSignature;

/** What {@link Order.matches} takes: text, bytes of text, or the object that a node or a wallet returned; on Sui its two parts in base64. */
export type ExternalTransaction = string | Uint8Array | { readonly txBytes: string; readonly signatures: readonly string[] } | object;

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
