/** Signs with viem: a local account, or a wallet client whose wallet signs without sending. */
import { type Hex, type TransactionSerializable, type TransactionSerialized, parseTransaction, serializeSignature, toHex } from "viem";
import type { SigningRequest, UnsignedOrder } from "../lib/index.js";

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
  for (const request of unsigned.requests.filter(({ name }) => missing.includes(name))) {
    unsigned.attach(request.name, await signature(request, signer));
  }
}

async function signature(request: SigningRequest, signer: ViemSigner): Promise<Hex> {
  if (request.native.kind === "typed_data") return signer.signTypedData(JSON.parse(request.native.value) as never);
  if (!signer.signTransaction) throw new TypeError("this signer does not sign transactions; send them with countersign/eip1193");
  // The payload is the transaction that was verified, so nothing can get lost on the way.
  const transaction = parseTransaction(toHex(request.payload) as TransactionSerialized);
  const signed = parseTransaction((await signer.signTransaction(transaction as TransactionSerializable)) as TransactionSerialized);
  const { r, s, yParity, v } = signed;
  if (r === undefined || s === undefined) throw new TypeError("the signer returned a transaction without a signature");
  // Legacy transactions have v alone: 35 or 36 plus twice the chain id, or 27 or 28.
  const parity = yParity ?? Number(v === undefined || v >= 35n ? ((v ?? 35n) - 35n) % 2n : v - 27n);
  return serializeSignature({ r, s, yParity: parity });
}
