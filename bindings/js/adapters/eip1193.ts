/** Browser wallets behind `window.ethereum` or EIP-6963: they choose nonce and fees, sign and send. */
import type { Order, UnsignedOrder } from "../lib/index.js";

/** A provider by EIP-1193. */
export interface Eip1193Provider {
  request(request: { method: string; params?: unknown }): Promise<unknown>;
}

/** Waits until a transaction is in a block, and fails if it was reverted: `(hash) => client.waitForTransactionReceipt({ hash })`. */
export type WaitForReceipt = (hash: string) => Promise<unknown>;

/**
 * Has the wallet sign the message of the gasless path and attaches the signature.
 *
 * @param unsigned - From `order.prepareGasless()`.
 */
export async function signTypedData(unsigned: UnsignedOrder, provider: Eip1193Provider): Promise<void> {
  const missing = unsigned.missing;
  for (const { name, signer, native } of unsigned.requests.filter((request) => missing.includes(request.name))) {
    if (native.kind !== "typed_data") throw new TypeError(`${name} is a transaction; prepare the order with prepareGasless()`);
    unsigned.attach(name, asText(await provider.request({ method: "eth_signTypedData_v4", params: [signer, native.value] })));
  }
}

/**
 * Has the wallet send the calls of an order one after another, each when the one before is in a block: `eth_sendTransaction`.
 *
 * The wallet may change fees, and a malicious one more than that: {@link checkSent} compares what it sent.
 *
 * @returns The transaction hashes.
 */
export async function sendTransactions(order: Order, provider: Eip1193Provider, waitForReceipt: WaitForReceipt): Promise<string[]> {
  const hashes: string[] = [];
  for (const call of order.walletCalls()) {
    const last = hashes.at(-1);
    // An approval has to count before the wallet estimates the gas of the call that needs it.
    if (last !== undefined) await waitForReceipt(last);
    hashes.push(asText(await provider.request({ method: "eth_sendTransaction", params: [call] })));
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
export async function checkSent(order: Order, provider: Eip1193Provider, hash: string): Promise<string> {
  const found = await provider.request({ method: "eth_getTransactionByHash", params: [hash] });
  if (typeof found !== "object" || found === null) throw new TypeError(`the provider does not know ${hash} yet`);
  // With the hash that was asked for: the transaction must have it.
  return order.matches(JSON.stringify({ ...found, hash }));
}

/**
 * Has the wallet send all calls of an order as one atomic batch: `wallet_sendCalls` (EIP-5792, version 2.0.0).
 *
 * @returns The id of the batch, for `wallet_getCallsStatus`.
 */
export async function sendCalls(order: Order, provider: Eip1193Provider): Promise<string> {
  const calls = order.walletCalls();
  const [first] = calls;
  if (!first) throw new TypeError("the order has no calls");
  const batch = {
    version: "2.0.0",
    from: first["from"],
    chainId: first["chainId"],
    // Without the approval the other call fails, and an approval alone should not stay.
    atomicRequired: true,
    calls: calls.map(({ to, data, value }) => ({ to, data, value })),
  };
  const answer = await provider.request({ method: "wallet_sendCalls", params: [batch] });
  // Version 1.0 of the method returned the id alone.
  return asText(typeof answer === "object" && answer !== null && "id" in answer ? answer.id : answer);
}

function asText(answer: unknown): string {
  if (typeof answer !== "string") throw new TypeError("the wallet did not answer with text");
  return answer;
}
