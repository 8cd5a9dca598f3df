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
 * The wallet may change fees, and a malicious one more than that: {@link checkSent} compares what it sent.
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
 * Reads a transaction that the wallet sent (`eth_getTransactionByHash`) and compares it with the order. Wallets let people edit an
 * approval, and a malicious one changes more.
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

/**
 * Has the wallet send all calls of an order as one atomic batch: `wallet_sendCalls` (EIP-5792, version 2.0.0).
 *
 * @returns The id of the batch, for `wallet_getCallsStatus`.
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
  const answer = await ask(provider, "wallet_sendCalls", [batch]);
  // Version 1.0 of the method returned the id alone.
  return asHex(typeof answer === "object" && answer !== null && Object.hasOwn(answer, "id") ? (answer as { id: unknown }).id : answer);
}

function ask(provider: Eip1193Provider, method: string, params: readonly unknown[]): Promise<unknown> {
  return provider.request({ method, params } as never);
}

function asHex(answer: unknown): HexString {
  if (typeof answer !== "string") throw new TypeError("the wallet did not answer with text");
  return answer as HexString;
}
