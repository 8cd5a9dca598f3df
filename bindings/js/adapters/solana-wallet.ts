/** Solana wallets by the Wallet Standard: `solana:signTransaction`. */
import type { UnsignedOrder } from "../lib/index.js";

/** The parts of a standard wallet that this needs. */
export interface SolanaWallet<Account extends { readonly address: string }> {
  readonly accounts: readonly Account[];
  readonly features: {
    readonly "solana:signTransaction": {
      signTransaction(
        ...inputs: readonly { readonly account: Account; readonly transaction: Uint8Array; readonly chain?: `${string}:${string}` }[]
      ): Promise<readonly { readonly signedTransaction: Uint8Array }[]>;
    };
  };
}

/**
 * Has the wallet sign every transaction that has no signature yet, and attaches the owner's signatures. If the wallet changes the
 * transaction, for example adds a priority fee, the signature is refused as `signature_mismatch`.
 *
 * @param chain - The wallet's name of the network.
 */
export async function signWithSolanaWallet<Account extends { readonly address: string }>(
  unsigned: UnsignedOrder,
  wallet: SolanaWallet<Account>,
  chain: `${string}:${string}` = "solana:mainnet",
): Promise<void> {
  const missing = unsigned.missing;
  for (const { name, signer, native } of unsigned.requests.filter((request) => missing.includes(request.name))) {
    const account = wallet.accounts.find(({ address }) => address === signer);
    if (!account) throw new TypeError(`the wallet does not have the account ${signer}`);
    const feature = wallet.features["solana:signTransaction"];
    const [output] = await feature.signTransaction({ account, transaction: fromBase64(native.value), chain });
    if (!output) throw new TypeError("the wallet returned no transaction");
    unsigned.attach(name, toHex(signatureOf(output.signedTransaction, signer)));
  }
}

/** Returns the signature of an account out of a signed transaction: signatures, then a message that begins with its signers. */
function signatureOf(transaction: Uint8Array, signer: string): Uint8Array {
  const [count, first] = shortLength(transaction, 0);
  const message = first + 64 * count;
  // A first byte with the top bit is the version. Three counts follow, then the accounts, signers first.
  const header = message + ((transaction[message] ?? 0) >= 0x80 ? 1 : 0);
  const [, accounts] = shortLength(transaction, header + 3);
  for (let index = 0; index < count; index += 1) {
    const account = transaction.slice(accounts + 32 * index, accounts + 32 * index + 32);
    if (account.length === 32 && toBase58(account) === signer) return transaction.slice(first + 64 * index, first + 64 * index + 64);
  }
  throw new TypeError("the wallet returned a transaction of other signers");
}

/** Reads a length of up to three bytes, seven bits each, and returns it with the position behind it. */
function shortLength(bytes: Uint8Array, start: number): [number, number] {
  let value = 0;
  for (let index = 0; index < 3; index += 1) {
    const byte = bytes[start + index] ?? 0;
    value |= (byte & 0x7f) << (7 * index);
    if (byte < 0x80) return [value, start + index + 1];
  }
  throw new TypeError("the wallet did not return a transaction");
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function toBase58(bytes: Uint8Array): string {
  const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  let text = "";
  for (let number = BigInt(`0x${toHex(bytes)}`); number > 0n; number /= 58n) text = `${alphabet[Number(number % 58n)]}${text}`;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(zeros < 0 ? bytes.length : zeros) + text;
}
