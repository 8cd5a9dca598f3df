/** Browser wallets behind `window.ethereum` or EIP-6963: they choose nonce and fees, sign and send. */
import type { HexString, Order, Role, TypedDataSigner, UnsignedOrder } from "../lib/index.js";
import { typedDataSignature } from "../lib/typed-data.js";

/** A provider by EIP-1193, or a client of viem. */
export interface Eip1193Provider {
  // Libraries narrow the type of the request to the methods that they know.
  request(request: never): Promise<unknown>;
}

/** Waits until a transaction is in a block, and fails if it was reverted: `(hash) => client.waitForTransactionReceipt({ hash })`. */
export type WaitForReceipt = (hash: HexString) => Promise<unknown>;

/**
 * Has the wallet sign the message of the gasless path and attaches the signature.
 *
 * @param unsigned - From `order.prepareGasless()`.
 * @param by - Who signs. A long signature is that of a contract wallet, and has a warning, because only the chain can check it.
 */
export async function signTypedData(unsigned: UnsignedOrder, provider: Eip1193Provider, by: TypedDataSigner = {}): Promise<void> {
  for (const { name, signer, native } of unsigned.missingRequests) {
    if (native.kind !== "typed_data") throw new TypeError(`${name} is a transaction; prepare the order with prepareGasless()`);
    const answer = asHex(await ask(provider, "eth_signTypedData_v4", [signer, native.value]));
    unsigned.attach(name, typedDataSignature(answer, by));
  }
}

/** How the calls of an order are sent. */
export interface SendOptions {
  /**
   * Whether the wallet gets the gas limits that the service proposed. Pass `false` for a Safe, which signs a gas limit as its `safeTxGas`;
   * and rather use {@link sendCalls}, because its answer is the hash of a Safe transaction, for which no node has a receipt.
   */
  readonly gas?: boolean;
}

/**
 * Has the wallet send the calls of an order one after another, each when the one before is in a block: `eth_sendTransaction`.
 *
 * The wallet may change fees, and a malicious one more than that: {@link checkSent} compares what it sent. If the wallet fails with anything
 * but the owner's refusal, the call may have been sent: look into the wallet before the order is sent again.
 *
 * @returns The transaction hashes.
 * @throws CountersignError `order_expired` or `deadline_too_close` if there is no time left for the next call.
 */
export async function sendTransactions(
  order: Order,
  provider: Eip1193Provider,
  waitForReceipt: WaitForReceipt,
  options: SendOptions = {},
): Promise<HexString[]> {
  const hashes: HexString[] = [];
  for (const call of order.walletCalls("evm")) {
    const last = hashes.at(-1);
    // An approval has to count before the wallet estimates the gas of the call that needs it.
    if (last !== undefined) await waitForReceipt(last);
    // The owner may have taken hours, and what is locked too late waits for its timelock.
    order.checkDeadline(Math.floor(Date.now() / 1000));
    const { from, to, data, value, chainId } = call;
    const sent = options.gas === false ? { from, to, data, value, chainId } : call;
    hashes.push(asHex(await ask(provider, "eth_sendTransaction", [sent])));
  }
  return hashes;
}

/**
 * Reads a transaction that the wallet sent (`eth_getTransactionByHash`) and compares it with the order, as `order.matches` does. Wallets
 * let people edit an approval, some append bytes to the calldata, and a malicious one changes more: a larger approval and appended bytes are
 * refused too, and `order.matchWithWarnings` returns what they are.
 *
 * @param provider - Reads the chain. A node of your own is better than the wallet that sent the transaction.
 * @returns What the transaction does: `approval_reset`, `approval` or `initiate`.
 * @throws CountersignError `transaction_mismatch` with the first difference if it is not part of the order.
 */
export async function checkSent(order: Order, provider: Eip1193Provider, hash: string): Promise<Role> {
  const found = await ask(provider, "eth_getTransactionByHash", [hash]);
  if (typeof found !== "object" || found === null) throw new TypeError(`the provider does not know ${hash} yet`);
  // With the hash that was asked for: the transaction must have it.
  return order.matches({ ...found, hash });
}

/** The id of a batch, alone or as the wallet's answer of version 2.0.0 has it. */
export type CallsId = string | { readonly id: string };

/**
 * What a wallet does with several calls: `supported` sends them in one transaction, `ready` does so once the owner has let it change the
 * account, `unsupported` does not, and `unknown` does not say.
 */
export type Atomicity = "supported" | "ready" | "unsupported" | "unknown";

/** Thrown when the wallet may have sent the calls of an order, or not. Sending them again can pay twice: look into the wallet first. */
export class FateUnknown extends Error {
  override readonly name = "FateUnknown";
}

/** Codes of wallets that take no batch, or not this one, and have sent nothing: EIP-1193, EIP-1474, EIP-5792. */
const NO_BATCH = [-32601, -32004, 4200, 5700, 5710, 5740, 5750, 5760];
/** The owner has declined, or has not connected the account: nothing was sent, and nothing else is tried. */
const DECLINED = [4001, 4100];

/**
 * Asks the wallet whether it sends several calls in one transaction on the order's chain: `wallet_getCapabilities` (EIP-5792). Nothing is
 * sent, and a wallet that fails to answer is `unknown`.
 */
export async function atomicity(order: Order, provider: Eip1193Provider): Promise<Atomicity> {
  const [first] = order.walletCalls("evm");
  if (!first) return "unknown";
  const { from, chainId } = first;
  try {
    return atomicityOf(await ask(provider, "wallet_getCapabilities", [from, [chainId]]), chainId);
  } catch (error) {
    if (!isOneOf([-32602], error)) return "unknown";
  }
  // The first version of the method took the account alone.
  return ask(provider, "wallet_getCapabilities", [from]).then((answer) => atomicityOf(answer, chainId), () => "unknown");
}

function atomicityOf(answer: unknown, chainId: string): Atomicity {
  const chains = Object.entries(membersOf(answer));
  // Chain 0 means all chains; an entry of the chain itself counts more.
  for (const chain of [BigInt(chainId), 0n]) {
    const found = chains.find(([name]) => /^(0x[\da-f]+|\d+)$/i.test(name) && BigInt(name) === chain);
    const { atomic, atomicBatch } = membersOf(found?.[1]);
    const { status, supported } = membersOf(atomic ?? atomicBatch);
    if (status === "supported" || status === "ready" || status === "unsupported") return status;
    if (typeof supported === "boolean") return supported ? "supported" : "unsupported";
  }
  // Wallets leave out the chains and capabilities that they do not have.
  return "unsupported";
}

/** How a wallet has sent an order: as a batch with an id, or as transactions with hashes. */
export type SentOrder =
  | { readonly kind: "batch"; readonly id: string }
  | { readonly kind: "transactions"; readonly hashes: readonly HexString[] };

/**
 * Has the wallet send an order: as one atomic batch if the wallet says that it can ({@link atomicity}), and otherwise one call after another
 * ({@link sendTransactions}). If the wallet refuses the batch with a code that says that it sent nothing, the calls are sent one by one.
 *
 * Nothing is sent a second time: if the owner declines, or if the batch may have been sent, this fails. {@link paymentOfCalls} and
 * {@link checkSent} prove what was sent.
 *
 * @throws FateUnknown if nobody knows whether the batch was sent.
 */
export async function sendOrder(
  order: Order,
  provider: Eip1193Provider,
  waitForReceipt: WaitForReceipt,
  options: SendOptions = {},
): Promise<SentOrder> {
  const can = await atomicity(order, provider);
  if (can === "supported" || can === "ready") {
    try {
      return { kind: "batch", id: await sendCalls(order, provider) };
    } catch (error) {
      if (error instanceof FateUnknown || !isOneOf(NO_BATCH, error)) throw error;
    }
  }
  return { kind: "transactions", hashes: await sendTransactions(order, provider, waitForReceipt, options) };
}

/**
 * Has the wallet send all calls of an order as one atomic batch: `wallet_sendCalls` (EIP-5792, version 2.0.0). {@link sendOrder} asks first
 * whether the wallet can do this.
 *
 * @returns The id of the batch, for {@link paymentOfCalls}.
 * @throws FateUnknown if nobody knows whether the batch was sent; what the wallet threw where its code says that it was not.
 */
export async function sendCalls(order: Order, provider: Eip1193Provider): Promise<string> {
  order.checkDeadline(Math.floor(Date.now() / 1000));
  const calls = order.walletCalls("evm");
  const [first] = calls;
  if (!first) throw new TypeError("the order has no calls");
  const batch = {
    version: "2.0.0",
    from: first.from,
    chainId: first.chainId,
    // Without the approval the other call fails, and an approval alone should not stay.
    atomicRequired: true,
    calls: calls.map(({ to, data, value }) => ({ to, data, value })),
  };
  const lost = (why: string, cause: unknown) =>
    new FateUnknown(`${why}, so the calls may have been sent; look into the wallet before anything is sent again`, { cause });
  let answer: unknown;
  try {
    answer = await ask(provider, "wallet_sendCalls", [batch]);
  } catch (error) {
    throw isOneOf([...NO_BATCH, ...DECLINED], error) ? error : lost("the wallet failed", error);
  }
  try {
    return idOf(answer);
  } catch (error) {
    throw lost("the wallet did not say the id of the batch", error);
  }
}

/** How long {@link paymentOfCalls} waits. */
export interface WaitOptions {
  /** Milliseconds between two questions: 2000 by default. */
  readonly every?: number;
  /** Ends the waiting, such as `AbortSignal.timeout(120_000)`. The calls are not taken back by that. */
  readonly signal?: AbortSignal;
}

/**
 * Waits until the wallet calls a batch confirmed (`wallet_getCallsStatus`), and finds the payment in its receipts. The wallet states all
 * this; whether the payment is final, the chain says.
 *
 * @param id - What {@link sendCalls} returned, or the wallet's answer.
 * @returns The hash of the transaction that paid.
 * @throws CountersignError `transaction_mismatch` if the calls failed, paid other terms, or if the wallet gives no receipts.
 */
export async function paymentOfCalls(order: Order, provider: Eip1193Provider, id: CallsId, options: WaitOptions = {}): Promise<HexString> {
  const { every = 2000, signal } = options;
  const asked = idOf(id);
  for (;;) {
    signal?.throwIfAborted();
    const status = await ask(provider, "wallet_getCallsStatus", [asked]);
    if (status === null || status === undefined) throw new TypeError(`the wallet does not know the batch ${asked}`);
    try {
      return order.findPayment(status as object) as HexString;
    } catch (error) {
      const { code, at, actual } = error as SomeError;
      const isPending = code === "transaction_mismatch" && at === "/calls/status" && /^1\d\d$/.test(String(actual));
      if (!isPending) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

/**
 * Finds the payment in the receipt of a transaction (`eth_getTransactionReceipt`). For transactions that are not the owner's own, which
 * {@link checkSent} refuses: of a relay, a bundler or the owners of a Safe.
 *
 * @param provider - Reads the chain.
 * @returns The hash.
 */
export async function paymentOfReceipt(order: Order, provider: Eip1193Provider, hash: string): Promise<HexString> {
  const receipt = await ask(provider, "eth_getTransactionReceipt", [hash]);
  if (typeof receipt !== "object" || receipt === null) throw new TypeError(`the provider has no receipt of ${hash} yet`);
  const found = order.findPayment(receipt) as HexString;
  if (found.toLowerCase() !== hash.toLowerCase()) throw new TypeError(`the provider returned the receipt of ${found} for ${hash}`);
  return found;
}

function ask(provider: Eip1193Provider, method: string, params: readonly unknown[]): Promise<unknown> {
  // Clients of viem send a request that failed again, up to three times, and the wallet could pay with each. Providers ignore the option.
  return (provider as unknown as RetryingProvider).request({ method, params }, { retryCount: 0 });
}

/** A provider that takes the option of viem's clients. */
interface RetryingProvider {
  request(request: object, options: { readonly retryCount: number }): Promise<unknown>;
}

/** The parts of an error that are looked at: a wallet's or this library's. */
interface SomeError {
  readonly code?: unknown;
  readonly at?: unknown;
  readonly actual?: unknown;
}

/**
 * Returns whether an error has one of these codes itself. The code of a `cause` is not asked: a wallet that has sent the calls may fail
 * afterwards, because a node does not know a method.
 */
function isOneOf(codes: readonly number[], error: unknown): boolean {
  return typeof error === "object" && error !== null && codes.includes((error as SomeError).code as number);
}

/** Returns the id of a batch. Version 1.0 of the method returned the id alone. */
function idOf(answer: unknown): string {
  const id = typeof answer === "string" ? answer : membersOf(answer)["id"];
  if (typeof id !== "string" || id === "") throw new TypeError("the wallet gave no id of the batch");
  return id;
}

/** Returns a copy of an object's own members; none for what is no object. */
function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object.assign(Object.create(null) as Record<string, unknown>, typeof value === "object" ? value : undefined);
}

function asHex(answer: unknown): HexString {
  if (typeof answer !== "string") throw new TypeError("the wallet did not answer with text");
  return answer as HexString;
}
