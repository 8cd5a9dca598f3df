// Browser wallets as signers of swaps.
import { usage } from "./error.js";
import type { UnsignedOrder } from "./signing.js";
import type { ChainProvider, Signer } from "./swap-types.js";

/** The members of a transaction that the wallet does not choose by itself. */
const FIXED = ["from", "to", "data", "value", "chainId"];
/** Codes of EIP-1193 and JSON-RPC after which nothing was sent: declined, not allowed, unknown method, no chain, another chain, bad request. */
const NOT_SENT = [4001, 4100, 4200, 4900, 4901, 4902, -32600, -32601, -32602];

/**
 * Signs with a browser wallet (EIP-1193, EIP-6963). It signs messages; transactions it sends by itself, with its own nonce and fees. It
 * cannot sign redemptions, which the relayer does (`relayer: true`), or a chain that needs no signer.
 */
export function eip1193Signer(provider: ChainProvider): Signer {
  const ask = (method: string, params: readonly unknown[]) => provider.request({ method, params } as never);
  /** Has the wallet send a transaction, and returns its hash. */
  const send = async (value: string) => {
    const transaction = JSON.parse(value) as Record<string, unknown>;
    // A wallet that ignores `chainId` would pay the same address on another chain.
    if (BigInt((await ask("eth_chainId", [])) as string) !== BigInt(transaction["chainId"] as string)) {
      throw Object.assign(usage("usage", "the wallet is on another chain"), { code: 4901 });
    }
    return ask("eth_sendTransaction", [Object.fromEntries(FIXED.map((name) => [name, transaction[name]]))]);
  };
  return async (unsigned: UnsignedOrder, { purpose, signal }) => {
    if (purpose !== "funding") throw usage("usage", "this wallet sends transactions, and signs none");
    const open = unsigned.requests.filter(({ name }) => unsigned.missing.includes(name));
    const message = open.find(({ native }) => native.kind === "typed_data");
    const approvals = open.filter(({ name }) => name.startsWith("approval"));
    // An approval has to be in a block before what it is for.
    for (const { native } of approvals) await mined(ask, await send(native.value), signal);
    // With it in place, a gasless order is the message alone.
    if (message && approvals.length > 0) return "again";
    if (message) return unsigned.attach(message.name, (await ask("eth_signTypedData_v4", [message.signer, message.native.value])) as string);
    const call = open.find(({ name }) => name === "initiate");
    if (!call) throw usage("usage", "the order has no transaction that a wallet could send");
    try {
      await send(call.native.value);
    } catch (error) {
      // After any other error it may have been sent.
      if (NOT_SENT.includes((error as { code?: unknown }).code as number)) throw error;
    }
    return "sent";
  };
}

/** Waits until a transaction is in a block. */
async function mined(ask: (method: string, params: readonly unknown[]) => Promise<unknown>, hash: unknown, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const receipt = (await ask("eth_getTransactionReceipt", [hash])) as { status?: string } | null;
    if (receipt?.status === "0x0") throw usage("usage", "the approval was reverted");
    if (receipt) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
