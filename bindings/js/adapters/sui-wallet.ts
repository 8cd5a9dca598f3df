/** Sui: wallets by the Wallet Standard (`sui:signTransaction`), and local signers of @mysten/sui. */
import { Transaction } from "@mysten/sui/transactions";
import type { UnsignedOrder } from "../lib/index.js";

/** The parts of a standard wallet that this needs. */
export interface SuiWallet<Account extends { readonly address: string }> {
  readonly accounts: readonly Account[];
  readonly features: {
    readonly "sui:signTransaction": {
      signTransaction(input: {
        transaction: { toJSON: () => Promise<string> };
        account: Account;
        chain: `${string}:${string}`;
      }): Promise<{ bytes: string; signature: string }>;
    };
  };
}

/** A `Signer` of @mysten/sui, such as a `Keypair`. */
export interface SuiSigner {
  toSuiAddress(): string;
  signTransaction(bytes: never): Promise<{ readonly signature: string }>;
}

/**
 * Has the wallet sign every request of its accounts that has no signature yet, and attaches the signatures. If the wallet changes the
 * transaction, for example its gas, the signature is refused as `signature_mismatch`. The request of a sponsor stays open.
 *
 * @param chain - The wallet's name of the network. Local signers do not need it.
 * @throws TypeError if the installed version of @mysten/sui cannot read the transaction for a wallet.
 */
export async function signWithSuiWallet<Account extends { readonly address: string }>(
  unsigned: UnsignedOrder,
  wallet: SuiWallet<Account> | SuiSigner,
  chain: `${string}:${string}` = "sui:mainnet",
): Promise<void> {
  for (const { name, signer, native } of unsigned.missingRequests) {
    if ("toSuiAddress" in wallet) {
      if (wallet.toSuiAddress() !== signer) continue;
      const bytes = Uint8Array.from(atob(native.value), (letter) => letter.charCodeAt(0));
      unsigned.attach(name, (await wallet.signTransaction(bytes as never)).signature);
      continue;
    }
    const account = wallet.accounts.find(({ address }) => address === signer);
    if (!account) continue;
    const transaction = read(native.value);
    const { signature } = await wallet.features["sui:signTransaction"].signTransaction({ transaction, account, chain });
    unsigned.attach(name, signature);
  }
}

/** Reads a transaction by the caller's version of the library. */
function read(base64: string): Transaction {
  try {
    return Transaction.from(base64);
  } catch (cause) {
    const remedy = "update @mysten/sui, of which 2.33 reads address balances and 1.45 does not, or pass a local signer";
    throw new TypeError(`this version of @mysten/sui cannot read the transaction; ${remedy}`, { cause });
  }
}
