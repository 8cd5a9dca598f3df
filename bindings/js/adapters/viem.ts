/** Signs with viem: a local account, or a wallet client whose wallet signs without sending. */
import { type Hex, type TransactionSerializable, type TransactionSerialized, parseTransaction, toBytes, toHex } from "viem";
import type { UnsignedOrder } from "../lib/index.js";

/** What signs: `privateKeyToAccount(..)`, `toAccount(..)`, or any other object of viem with these two methods. */
export interface ViemSigner {
  // Methods, not properties: viem's own parameters are narrower, and this package never gives them anything else.
  signTransaction?(transaction: TransactionSerializable): Promise<Hex>;
  signTypedData(message: never): Promise<Hex>;
}

/**
 * Signs every request that has no signature yet, and attaches the signatures.
 *
 * A wallet that only sends transactions cannot do this; use `countersign/eip1193` for it.
 */
export async function signWithViem(unsigned: UnsignedOrder, signer: ViemSigner): Promise<void> {
  const missing = unsigned.missing;
  for (const { name, payload, native } of unsigned.requests.filter((request) => missing.includes(request.name))) {
    if (native.kind === "typed_data") {
      unsigned.attach(name, await signer.signTypedData(JSON.parse(native.value) as never));
      continue;
    }
    if (!signer.signTransaction) throw new TypeError("this signer does not sign transactions; send them with countersign/eip1193");
    // The payload is the transaction that was verified, so nothing can get lost on the way.
    const transaction = parseTransaction(toHex(payload) as TransactionSerialized);
    unsigned.attachTransaction(toBytes(await signer.signTransaction(transaction as TransactionSerializable)));
  }
}
