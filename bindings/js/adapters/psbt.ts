/** Bitcoin and Litecoin wallets that sign PSBTs: browser wallets, hardware wallets, bitcoinjs-lib, @scure/btc-signer. */
import type { UnsignedOrder } from "../lib/index.js";

/**
 * Signs a PSBT in base64: `(psbt) => wallet.signPsbt(psbt)`. Returns the signed PSBT, finalized or not, or the signed transaction: in base64 or
 * hex, or in bytes.
 */
export type PsbtSigner = (psbt: string) => Signed | Promise<Signed>;
type Signed = string | Uint8Array;

/**
 * Has a wallet sign the transaction of an order, and attaches the signatures. If the wallet changes the transaction, the PSBT is
 * refused as `psbt_mismatch`.
 */
export async function signPsbt(unsigned: UnsignedOrder, sign: PsbtSigner): Promise<void> {
  // Every input's request holds the PSBT of the whole transaction.
  const psbt = unsigned.requests.find(({ native }) => native.kind === "psbt");
  if (!psbt) throw new TypeError("there is no transaction to sign: prepare the order with the wallet's outputs");
  const signed = await sign(psbt.native.value);
  if (typeof signed === "string") unsigned.attach("psbt", signed);
  else unsigned.attachTransaction(signed);
}
