// What wallets answer to a request for typed data on EVM chains.
import type { HexString, Signature } from "./types.js";

/** Who made a signature of typed data. */
export interface TypedDataSigner {
  /**
   * Whether the owner is a contract wallet, whose signature only the chain can check. By default the length decides: a key's signature has at
   * most 72 bytes. Some contract wallets return as little as a key does.
   */
  readonly contract?: boolean;
  /**
   * Whether the contract wallet is deployed. Then the wrapper of ERC-6492 is taken off. Otherwise it is refused, unless the order was prepared
   * with a connection that shows the account's code.
   */
  readonly deployed?: boolean;
}

const MAX_KEY_SIGNATURE = "0x".length + 2 * 72;

/** Returns a wallet's answer in the form that {@link UnsignedOrder.attach} takes. */
export function typedDataSignature(answer: string, signer: TypedDataSigner = {}): Signature {
  // A wallet that keeps on chain what it signed returns no bytes.
  const isContract = signer.contract ?? (signer.deployed === true || answer === "0x" || answer.length > MAX_KEY_SIGNATURE);
  if (!isContract) return answer;
  return { contract: answer as HexString, ...(signer.deployed === undefined ? {} : { deployed: signer.deployed }) };
}
