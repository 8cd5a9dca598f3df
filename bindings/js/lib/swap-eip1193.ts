// Browser wallets as signers of swaps.
import type { UnsignedOrder } from "./signing.js";
import type { ChainProvider, Signer, SigningTask } from "./swap-types.js";
import { type TypedDataSigner, typedDataSignature } from "./typed-data.js";

/** The members of a transaction that the wallet does not choose by itself. */
const FIXED = ["from", "to", "data", "value", "chainId"];

/** A provider that takes the option of viem's clients. */
interface Retrying {
  request(request: object, options: { readonly retryCount: number }): Promise<unknown>;
}

/** Thrown by a {@link Signer} that has neither signed nor sent anything, so that it can be asked again. */
export class NothingSent extends Error {
  override readonly name = "NothingSent";
}

/**
 * Signs with a browser wallet (EIP-1193, EIP-6963). It signs messages; transactions it sends by itself, with its own nonce and fees:
 * payments, redemptions and refunds. No prompt is opened for what is not needed any more. One that is open cannot be taken back: if it is
 * confirmed hours later, the wallet sends it then.
 *
 * @param by - Who signs messages. Name a contract wallet whose signature is as short as a key's, such as a Safe with one owner.
 */
export function eip1193Signer(provider: ChainProvider, by: TypedDataSigner = {}): Signer {
  // Clients of viem send a request that failed again, and the wallet could pay with each. Providers ignore the option.
  const once = { retryCount: 0 };
  const ask = (method: string, params: readonly unknown[]) => (provider as unknown as Retrying).request({ method, params }, once);
  /** Returns what the wallet is asked to send. */
  const transaction = async (value: string): Promise<readonly unknown[]> => {
    const whole = JSON.parse(value) as Record<string, unknown>;
    // A wallet that ignores `chainId` would pay the same address on another chain.
    if (BigInt((await ask("eth_chainId", [])) as string) !== BigInt(whole["chainId"] as string)) throw new NothingSent("the wallet is on another chain");
    return [Object.fromEntries(FIXED.map((name) => [name, whole[name]]))];
  };
  /** Has the wallet send a transaction, unless it is not needed any more before its prompt is opened. */
  const send = async (value: string, signal: AbortSignal): Promise<unknown> => {
    const params = await certain(async () => {
      // A wallet that is locked says its chain when it is unlocked, which can be hours later, or never.
      const late = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("the transaction is not needed any more")), { once: true });
      });
      const known = await Promise.race([transaction(value), late]);
      signal.throwIfAborted();
      return known;
    });
    return ask("eth_sendTransaction", params);
  };
  return async (unsigned: UnsignedOrder, task: SigningTask) => {
    const open = unsigned.requests.filter(({ name }) => unsigned.missing.includes(name));
    const message = open.find(({ native }) => native.kind === "typed_data");
    const approvals = open.filter(({ name }) => name.startsWith("approval"));
    if (approvals.length > 0) {
      // An approval has to be in a block before what it is for. That takes as long as the owner takes, so everything is then looked at again:
      // the deadline, the record, and whether a message is enough.
      await certain(async () => {
        for (const { native } of approvals) await mined(ask, await send(native.value, task.signal), task.signal);
      });
      return "again";
    }
    if (message) {
      const signature = await certain(() => ask("eth_signTypedData_v4", [message.signer, message.native.value]));
      return certain(async () => unsigned.attach(message.name, typeof signature === "string" ? typedDataSignature(signature, by) : (signature as string)));
    }
    const call = open.find(({ name }) => name === "initiate" || task.purpose !== "funding");
    if (call?.native.kind !== "evm_transaction") throw new NothingSent("the order has no transaction that a wallet could send");
    // It is reported however late it is: a redemption shows the secret.
    await send(call.native.value, task.signal);
    return "sent";
  };
}

/** Does what sends no payment, so that nothing was paid if it fails. */
async function certain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new NothingSent(error instanceof Error ? error.message : String((error as { message?: unknown } | null)?.message), { cause: error });
  }
}

/** Waits until a transaction is in a block. */
async function mined(ask: (method: string, params: readonly unknown[]) => Promise<unknown>, hash: unknown, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const receipt = (await ask("eth_getTransactionReceipt", [hash])) as { status?: string } | null;
    if (receipt?.status === "0x0") throw new NothingSent("the approval was reverted");
    if (receipt) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
