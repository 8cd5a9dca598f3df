/** Signs with viem: a local account, or a wallet client whose wallet signs without sending. */
import { type Hex, type TransactionSerialized, parseTransaction, toBytes, toHex } from "viem";
import type { TypedDataSigner, UnsignedOrder } from "../lib/index.js";
import { typedDataSignature } from "../lib/typed-data.js";

/** What signs: `privateKeyToAccount(..)`, `toAccount(..)`, a wallet client, or any other object of viem with these two methods. */
export interface ViemSigner {
  // Methods with `never`, because the parameters of accounts and of clients differ. Both are given what they take.
  signTransaction?(transaction: never): Promise<unknown>;
  signTypedData(message: never): Promise<Hex>;
  /** The account of a wallet client. */
  readonly account?: { readonly address: Hex; readonly type: string } | undefined;
}

/**
 * Signs every request that has no signature yet, and attaches the signatures.
 *
 * A wallet that only sends transactions cannot do this; use `countersign/eip1193` for it.
 *
 * @param by - Who signs the gasless message. A long signature is that of a contract wallet, and has a warning.
 */
export async function signWithViem(unsigned: UnsignedOrder, signer: ViemSigner, by: TypedDataSigner = {}): Promise<void> {
  // The local account of a client signs by itself. The client would first ask a node for the chain.
  const local = signer.account?.type === "local" ? (signer.account as typeof signer.account & ViemSigner) : signer;
  const isClient = "request" in local;
  for (const { name, signer: account, payload, native } of unsigned.missingRequests) {
    const options = isClient ? { account, chain: null } : {};
    if (native.kind === "typed_data") {
      const signature = await local.signTypedData({ ...options, ...JSON.parse(native.value) } as never);
      unsigned.attach(name, typedDataSignature(signature, by));
      continue;
    }
    if (!local.signTransaction) throw new TypeError("this signer does not sign transactions; send them with countersign/eip1193");
    // The payload is the transaction that was verified, so nothing can get lost on the way.
    const transaction = parseTransaction(toHex(payload) as TransactionSerialized);
    unsigned.attachTransaction(toBytes((await local.signTransaction({ ...options, ...transaction } as never)) as Hex));
  }
}
