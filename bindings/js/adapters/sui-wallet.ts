/** Sui wallets by the Wallet Standard: `sui:signTransaction`. */
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

/**
 * Has the wallet sign every request that has no signature yet, and attaches the signatures. If the wallet changes the
 * transaction, for example its gas, the signature is refused as `signature_mismatch`.
 *
 * @param chain - The wallet's name of the network.
 */
export async function signWithSuiWallet<Account extends { readonly address: string }>(
  unsigned: UnsignedOrder,
  wallet: SuiWallet<Account>,
  chain: `${string}:${string}` = "sui:mainnet",
): Promise<void> {
  const missing = unsigned.missing;
  for (const { name, signer, native } of unsigned.requests.filter((request) => missing.includes(request.name))) {
    const account = wallet.accounts.find(({ address }) => address === signer);
    // Sponsors sign elsewhere; their request stays open.
    if (!account) continue;
    const transaction = Transaction.from(native.value);
    const { signature } = await wallet.features["sui:signTransaction"].signTransaction({ transaction, account, chain });
    unsigned.attach(name, signature);
  }
}
