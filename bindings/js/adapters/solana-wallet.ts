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
 * transaction, for example adds a priority fee, it is refused as `transaction_mismatch`.
 *
 * @param chain - The wallet's name of the network.
 */
export async function signWithSolanaWallet<Account extends { readonly address: string }>(
  unsigned: UnsignedOrder,
  wallet: SolanaWallet<Account>,
  chain: `${string}:${string}` = "solana:mainnet",
): Promise<void> {
  const missing = unsigned.missing;
  for (const { signer, native } of unsigned.requests.filter((request) => missing.includes(request.name))) {
    const account = wallet.accounts.find(({ address }) => address === signer);
    if (!account) throw new TypeError(`the wallet does not have the account ${signer}`);
    const feature = wallet.features["solana:signTransaction"];
    const [output] = await feature.signTransaction({ account, transaction: fromBase64(native.value), chain });
    if (!output) throw new TypeError("the wallet returned no transaction");
    unsigned.attachTransaction(output.signedTransaction);
  }
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
