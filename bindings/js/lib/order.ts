// A verified order.
import * as glue from "countersign-glue";
import { usage } from "./error.js";
import { CREATE, Made, handleOf, once } from "./handle.js";
import { type JsonText, contractBytes, describe, documentBytes, foreignBytes, members, wholeNumber } from "./input.js";
import { call } from "./module.js";
import { read } from "./output.js";
import { UnsignedOrder } from "./signing.js";
import { type Policy, type Registry, policyHandle, registryHandle } from "./trust.js";
import type { Coverage, EvmCall, ExternalTransaction, Family, Matched, Notice, Role, StarknetCall, SummaryLine, Terms, WalletContext } from "./types.js";

/** The documents of one order, as text or bytes, exactly as sent and received. */
export interface Documents {
  /** The wallet's own create-order request. */
  readonly request: JsonText;
  /** The service's response, in its envelope. */
  readonly response: JsonText;
  /** The order record, bare or in its envelope. Needed on Bitcoin-like chains to recompute the deposit address. */
  readonly record?: JsonText | null;
}

/** Returns the bytes of the documents. @internal */
export function openDocuments(documents: unknown): { request: Uint8Array; response: Uint8Array; record: Uint8Array | undefined } {
  const { request, response, record } = members(documents, "documents");
  return {
    request: documentBytes(request, "documents.request"),
    response: documentBytes(response, "documents.response"),
    record: record === undefined || record === null ? undefined : documentBytes(record, "documents.record"),
  };
}

/** An order whose every byte equals the request, the registry or the record, or is shown in {@link Order.summary}. */
export class Order extends Made {
  private constructor(key: typeof CREATE, handle: glue.Order) {
    super(key, handle, "Order.verify");
  }

  /**
   * Verifies an order.
   *
   * @param policy - The wallet's limits; the default policy without it.
   * @throws {@link CountersignError} at the first member or byte that is malformed, unknown or contradictory. Then nothing may be
   *   signed.
   */
  static verify(documents: Documents, registry: Registry, policy?: Policy): Order {
    const { request, response, record } = openDocuments(documents);
    const [pinned, limits] = [registryHandle(registry), policyHandle(policy)];
    return new Order(CREATE, call(() => glue.Order.verify(request, response, record, pinned, limits)));
  }

  /** The family that signs. */
  get family(): Family {
    return this.terms.family;
  }

  /** The order's id. */
  get orderId(): string {
    return this.terms.orderId;
  }

  /** The terms that the owner agrees to, as values. */
  get terms(): Terms {
    return once(this, "terms", () => read(call(() => this.#handle.terms())));
  }

  /** What the owner reads before signing: every value that the response chose. Show all of it. */
  get summary(): readonly SummaryLine[] {
    return once(this, "summary", () => read(call(() => this.#handle.summary())));
  }

  /** What the owner should know. A policy can refuse orders with some warnings. */
  get warnings(): readonly Notice[] {
    return once(this, "warnings", () => read(call(() => this.#handle.warnings())));
  }

  /** Which bytes of the response each line of the summary describes. */
  get coverage(): readonly Coverage[] {
    return once(this, "coverage", () => read(call(() => this.#handle.coverage())));
  }

  /**
   * Checks that there is still time to pay. Call it again right before submitting.
   *
   * @param now - Unix seconds: `Math.floor(Date.now() / 1000)`.
   */
  checkDeadline(now: number): void {
    const seconds = BigInt(wholeNumber(now, "now"));
    call(() => this.#handle.checkDeadline(seconds));
  }

  /**
   * Returns what wallets take that choose nonce and fees themselves: on EVM chains the parameters of `eth_sendTransaction`, one
   * for each call, on Starknet the calls of `account.execute`.
   *
   * @param family - The order's family, which gives the calls their type.
   * @throws {@link CountersignError} `unsupported_family` for other families.
   */
  walletCalls(family: "evm"): readonly EvmCall[];
  walletCalls(family: "starknet"): readonly StarknetCall[];
  walletCalls(family?: Family): readonly (EvmCall | StarknetCall)[];
  walletCalls(family: Family = this.family): readonly (EvmCall | StarknetCall)[] {
    if (family !== this.family) throw usage("usage", "the order is of another family", this.family, typeof family === "string" ? family : describe(family));
    return JSON.parse(call(() => this.#handle.walletCalls())).map((text: string) => JSON.parse(text));
  }

  /**
   * Returns what a transaction does in this order, such as `approval` or `initiate`. Use it with wallets that choose nonce and fees
   * themselves: everything that they may not choose must be as it was verified. What the owner would have to be warned about is refused: on
   * EVM and Tron another approval above the amount than the verified one, on Tron a permission or signatures that only the chain can
   * judge. {@link Order.matchWithWarnings} returns it.
   *
   * @param transaction - The transaction that the wallet signed or sent, in the form that `docs/spec/batch.md#external-transactions`
   *   lists: on EVM chains what `eth_getTransactionByHash` returns, as an object or its text, or the raw bytes in hex.
   * @throws {@link CountersignError} `transaction_mismatch` with the first difference if it is not part of the order, or with the warnings
   *   if it is.
   */
  matches(transaction: ExternalTransaction): Role {
    return call(() => this.#handle.matches(transactionBytes(transaction))) as Role;
  }

  /**
   * Returns what a transaction does in this order, and what the wallet changed or added although it may. Show the warnings to the owner: the
   * role alone does not say what else was sent.
   *
   * @param transaction - As for {@link Order.matches}.
   * @throws {@link CountersignError} `transaction_mismatch` with the first difference if it is not part of the order; `warning_refused` for a
   *   warning that the policy refuses.
   */
  matchWithWarnings(transaction: ExternalTransaction): Matched {
    return read(call(() => this.#handle.matchWithWarnings(transactionBytes(transaction))));
  }

  /**
   * Finds the payment of an order by what a transaction did, and returns the id of the transaction. Use it with wallets that send in a form
   * of their own: by a bundler, a relay, the owners of a Safe or the members of a multisig. The wallet or node is trusted for this: whether
   * the payment is final, a reader of the source leg decides.
   *
   * @param effect - As an object or its text (`docs/spec/batch.md#bundled-calls`): on EVM what `wallet_getCallsStatus` or
   *   `eth_getTransactionReceipt` returned; on Tron `gettransactioninfobyid`; on Starknet
   *   `starknet_getTransactionReceipt`; on Solana `getTransaction`, not with `jsonParsed`.
   * @throws {@link CountersignError} `transaction_mismatch` if the transaction failed, is not confirmed or does not show the payment;
   *   `unsupported_family` for a source of another family.
   */
  findPayment(effect: JsonText | object): string {
    const bytes = foreignBytes(effect, "effect");
    return call(() => this.#handle.findPayment(bytes));
  }

  /**
   * Prepares the order with the wallet context of its family: nonce, fees, coins. It can be prepared again, as often as those
   * change.
   *
   * @param wallet - The family's wallet context: `{ nonce: 7, maxFeePerGas: 30_000_000_000n, .. }`. Or its JSON, as
   *   `docs/spec/batch.md#wallet-contexts` has it; bytes of it can be wiped.
   * @throws {@link CountersignError} at the member of `/wallet` that is missing, malformed or invalid.
   */
  prepare(wallet: WalletContext | JsonText): UnsignedOrder {
    const bytes = contractBytes(wallet, "wallet");
    try {
      return UnsignedOrder.from(call(() => this.#handle.prepare(bytes)));
    } finally {
      bytes.fill(0);
    }
  }

  /**
   * Prepares the gasless path, for which a wallet needs neither nonce nor fees: the service submits what is signed.
   *
   * @throws {@link CountersignError} `nothing_to_sign` if the order does not offer it.
   */
  prepareGasless(): UnsignedOrder {
    return UnsignedOrder.from(call(() => this.#handle.prepareGasless()));
  }

  get #handle(): glue.Order {
    return handleOf(this, Order, "order");
  }
}

function transactionBytes(transaction: ExternalTransaction): Uint8Array {
  // The members of the other chains' transactions are theirs.
  const isOurs = typeof transaction === "object" && transaction !== null && Object.hasOwn(transaction, "txBytes");
  return isOurs ? contractBytes(transaction, "transaction") : foreignBytes(transaction, "transaction");
}
