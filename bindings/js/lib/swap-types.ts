// What whole swaps take and report. Names are those of the JSON of `countersign-swap`, in camel case.
import type { CountersignError } from "./error.js";
import type { ModuleSource } from "./module.js";
import type { Order } from "./order.js";
import type { UnsignedOrder } from "./signing.js";
import type { SwapStore } from "./swap-store.js";
import type { SwapAlert, SwapOutcome, SwapPurpose, SwapStatusName, SwapStop, SwapTask, TronPermission } from "./shapes.js";
import type { Terms } from "./types.js";

/** Connects a chain by the wallet's own connection: EIP-1193, or any other object that answers JSON-RPC calls. */
export interface ChainProvider {
  // Libraries narrow the type of the request to the methods that they know.
  request(request: never): Promise<unknown>;
}

/**
 * An endpoint of a chain: its URL (https, or http to this machine), a URL with the name of who runs it, or a provider. The endpoints of one
 * host, or of one name, have one word.
 */
export type ChainEndpoint = string | { readonly url: string; readonly provider: string } | ChainProvider;

/** The endpoints of a chain, of which more than half must agree. */
export type ChainEndpoints = ChainEndpoint | readonly ChainEndpoint[] | { readonly endpoints: readonly ChainEndpoint[]; readonly quorum?: number };

/** What {@link Swaps.open} takes. */
export interface SwapsOptions {
  /** The URL of the service. */
  readonly service: string | URL;
  /** The application's id, if the service wants one. */
  readonly appId?: string | undefined;
  /** The pinned registry, as text or bytes of JSON. */
  readonly registry: string | Uint8Array;
  /** The wallet's limits, as text or bytes of JSON; the default policy without it. */
  readonly policy?: string | Uint8Array | undefined;
  /** The endpoints of each chain, by its name in asset ids: `{ base: "https://...", litecoin: ["https://...", "https://..."] }`. */
  readonly nodes: Readonly<Record<string, ChainEndpoints>>;
  /** The owner's addresses, by chain (`base`) or by family (`evm`). */
  readonly accounts?: Readonly<Record<string, string>> | undefined;
  /**
   * The permissions under which the accounts on Tron sign, by chain or as `tron`: an id whose only key is the account's own, or the permission as
   * `/wallet/getaccount` describes it. The signer attaches as many signatures as it asks for. Without one, an account's own key signs.
   */
  readonly permissions?: Readonly<Record<string, number | TronPermission>> | undefined;
  /**
   * Whether a payment is always the account's own transactions, which cost gas, although the order offers a gasless message. Without it, they
   * are offered only to an account whose code refuses the message.
   */
  readonly ownTransactions?: boolean | undefined;
  /** What signs for the accounts, by chain or by family. */
  readonly signers?: Readonly<Record<string, Signer>> | undefined;
  /** Where swaps are kept: `fileStore` in Node, `indexedDbStore` in a browser. */
  readonly store: SwapStore;
  /**
   * Asks the owner whether to pay an order. Show the whole summary and every warning. Only `true` is a yes; whatever is neither `true` nor
   * `false` pays nothing, and is an error of the loop over the order's changes.
   */
  readonly consent: (order: ConsentRequest) => boolean | Promise<boolean>;
  /** Whether the service's relayer may redeem where the owner's account does not sign or has no coins for the fee, once the destination is proven to be funded. */
  readonly relayer?: boolean | undefined;
  /**
   * Whether to believe the service about a destination that is not connected, and to swap where only its relayer could redeem. **A dishonest
   * service then has the funds**: it can keep the secret, take what was paid, and pay nothing. Consents to such orders have the warning
   * `trusts_the_service`.
   */
  readonly trustTheService?: boolean | undefined;
  /** How soon the owner's transactions should be mined: `normal` by default. */
  readonly speed?: "slow" | "normal" | "fast" | undefined;
  /**
   * Whether no signer ever sends a payment by itself. Otherwise an order counts as paid from the moment its signer gets the payment, so that
   * it is not paid twice if the page or the process ends before the signer is done.
   */
  readonly signOnly?: boolean | undefined;
  /** Milliseconds between two looks at an order, for tests; by default the wait adapts. */
  readonly pollMs?: number | undefined;
  /** Sends the HTTP requests; by default the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Where the WebAssembly module comes from, in a browser; see {@link init}. */
  readonly module?: ModuleSource | undefined;
}

/** What a quote is asked for. */
export interface QuoteRequest {
  /** The asset to pay, such as `base:usdc`. */
  readonly from: string;
  /** The asset to receive. */
  readonly to: string;
  /** What to pay: text with a unit, such as `1.5 usdc`, or base units. */
  readonly amount: string | bigint;
  /** The least to receive. */
  readonly atLeast?: string | bigint | undefined;
  /** Hundredths of a percent that the solver may pay less than was quoted. */
  readonly slippage?: number | undefined;
  /** Only quotes of this solver. */
  readonly solver?: string | undefined;
}

/** What a swap is created from. */
export interface SwapRequest extends QuoteRequest {
  /** The owner's address on the destination chain. */
  readonly receiveAt: string;
  /** The owner's address on the source chain; by default the account there. */
  readonly fromOwner?: string | undefined;
  /** What is accepted that would otherwise be refused: with `contract_changed`, a pinned contract that you have inspected. */
  readonly accept?: readonly "contract_changed"[] | undefined;
  readonly affiliateFees?: readonly { readonly address: string; readonly asset: string; readonly fee: number }[] | undefined;
}

/** The best quote. */
export interface Quote {
  readonly solverId: string;
  readonly pay: Terms["pay"];
  readonly receive: Terms["receive"];
}

/** What the owner is asked to agree to. */
export interface ConsentRequest {
  readonly orderId: string;
  readonly terms: Terms;
  /** What the owner reads: every value that the response chose. Show all of it. */
  readonly summary: Order["summary"];
  readonly warnings: Order["warnings"];
}

/** What a {@link Signer} is told. */
export interface SigningTask {
  readonly orderId: string;
  readonly purpose: SwapPurpose;
  /** The chain's name in asset ids. */
  readonly chain: string;
  /** The account that signs; empty for a deposit that any wallet may pay. */
  readonly account: string;
  /** The id of the payment that this one replaces for a higher fee, with the same coins: only on Bitcoin-like chains. */
  readonly replaces?: string;
  /** Aborted when the signatures are not needed any more. A wallet that sends by itself may be doing so: return `sent` once it has. */
  readonly signal: AbortSignal;
}

/**
 * Has an order signed: `(unsigned) => signWithViem(unsigned, account)`, `(unsigned) => unsigned.sign(key)`. Every signature is proven.
 *
 * Throw `NothingSent` if nothing was signed or sent. After any other error the wallet may have sent the payment, unless the error, or
 * one of its causes, has a code of EIP-1193 or JSON-RPC that says otherwise, or `signOnly` is set: the signer is then not asked again, and the
 * order counts as paid. The text of an error is part of what the owner reads, so it must have no key.
 *
 * It is asked for one purpose of an order once at a time, and counts as lost after ten minutes. Once `signal` is aborted, it should end: with
 * `NothingSent` if no prompt is open, and with `sent` once that was sent. Until it ends, it is not asked again.
 *
 * @returns `sent` if the wallet has sent the payment, the redemption or the refund by itself, or may have; `again` if something else was done
 *   first, such as an approval, so that the order has to be prepared again, by the same call. Anything else counts only if every signature is
 *   there.
 */
export type Signer = (unsigned: UnsignedOrder, task: SigningTask) => SignerResult | Promise<SignerResult>;
export type SignerResult = void | "sent" | "again";

/** How a swap ended. */
export type Outcome = SwapOutcome;

/** The status of an order. */
export type SwapStatus =
  | { readonly status: Exclude<SwapStatusName, "needs_owner" | "waiting" | "awaiting_refund" | "refused" | "ended"> }
  | { readonly status: "needs_owner"; readonly what: SwapTask }
  | { readonly status: "waiting"; readonly reason: string; readonly code: string }
  | { readonly status: "awaiting_refund"; readonly reason: string }
  | { readonly status: "refused"; readonly refusal: { readonly code: string; readonly at: string } }
  | { readonly status: "ended"; readonly outcome: Outcome };

/** Why an order is not followed any longer. It ended, or only the service says so, or something is in the way. */
export type StopReason = SwapStop;

/** The last change of an order that is followed. */
export interface Stopped {
  readonly event: "stopped";
  readonly orderId: string;
  readonly reason: StopReason;
  /** A sentence for the owner. */
  readonly message: string;
  /** Why, where there is an error. */
  readonly error: CountersignError | null;
}

/** Something that happened. Every `message` is a sentence for the owner; untrusted text in it is escaped. */
export type SwapChange =
  /** The rescue phrase was generated. Show {@link Swaps.phrase} to the owner once. */
  | { readonly event: "phrase_created" }
  /** A contract is seen for the first time, or its change was accepted, and its description was stored. Nothing is paid yet. */
  | { readonly event: "contract"; readonly orderId: string; readonly asset: string; readonly isNew: boolean; readonly message: string }
  /** Something to know before paying: one provider decides what a chain shows (`single_provider`), or what others can do to a token. */
  | { readonly event: "warning"; readonly orderId: string; readonly code: string; readonly message: string }
  /** An order was created and stored. Nothing is paid yet. */
  | { readonly event: "created"; readonly orderId: string }
  /** Pay the deposit address that the summary has, from any wallet. The order counts as paid from now on. */
  | { readonly event: "deposit"; readonly orderId: string; readonly message: string; readonly summary: Order["summary"] }
  | ({
      readonly event: "status";
      readonly orderId: string;
      readonly message: string;
      /** Whether the payment is on chain, or may have been sent: from here, or by a signer that got it. */
      readonly isPaid: boolean;
      /** What did not work this time, or is missing. */
      readonly trouble?: string;
    } & SwapStatus)
  /** The owner should hear this at once. */
  | {
      readonly event: "alert";
      readonly orderId: string;
      readonly alert: SwapAlert;
      readonly message: string;
    }
  | Stopped;

/** A stored order. */
export interface StoredSwap {
  readonly orderId: string;
  readonly from: string;
  readonly to: string;
  /** Whether the payment may be on chain. */
  readonly mayBePaid: boolean;
  /** How it ended; null if it has not. */
  readonly outcome: Outcome | null;
  /** Why the order cannot be read; null if it can. It may be paid. */
  readonly error: string | null;
}
