/** Solana: wallets by the Wallet Standard (`solana:signTransaction`), signers of @solana/kit, and keypairs of @solana/web3.js. */
import type { UnsignedOrder } from "../lib/index.js";

/** The parts of a standard wallet that this needs. */
export interface SolanaWallet<Account extends { readonly address: string }> {
  readonly accounts: readonly Account[];
  readonly features: {
    readonly "solana:signTransaction": {
      /** The versions of messages that it signs; only legacy ones where it says nothing. */
      readonly supportedTransactionVersions?: readonly ("legacy" | number)[] | null;
      signTransaction(
        ...inputs: readonly { readonly account: Account; readonly transaction: Uint8Array; readonly chain?: `${string}:${string}` }[]
      ): Promise<readonly { readonly signedTransaction: Uint8Array }[]>;
    };
  };
}

/** A signer of @solana/kit that changes nothing: a `KeyPairSigner`, or any other `TransactionPartialSigner`. */
export interface SolanaKitSigner {
  readonly address: string;
  signTransactions(transactions: never): Promise<readonly { readonly [address: string]: Uint8Array }[]>;
}

/** A `Keypair` of @solana/web3.js. */
export interface SolanaKeypair {
  readonly secretKey: Uint8Array;
}

/**
 * Has the wallet sign every transaction that has no signature yet, and attaches the owner's signatures. If the wallet changes the
 * transaction, for example adds a priority fee, it is refused as `transaction_mismatch`.
 *
 * A wallet is asked which versions of messages it signs, before it gets any transaction: one that does not know a version may fail late, or
 * show something else.
 *
 * @param chain - The wallet's name of the network. Local signers do not need it.
 * @throws TypeError if the wallet does not have the account, the feature or the version.
 */
export async function signWithSolanaWallet<Account extends { readonly address: string }>(
  unsigned: UnsignedOrder,
  wallet: SolanaWallet<Account> | SolanaKitSigner | SolanaKeypair,
  chain: `${string}:${string}` = "solana:mainnet",
): Promise<void> {
  if ("secretKey" in wallet) return unsigned.sign(wallet.secretKey);
  const requests = unsigned.missingRequests;
  if ("accounts" in wallet) for (const { payload } of requests) checkVersion(wallet, payload);
  for (const { name, signer, payload, native } of requests) {
    const accounts = "accounts" in wallet ? wallet.accounts : [wallet];
    const account = accounts.find(({ address }) => address === signer);
    if (!account) throw new TypeError(`the wallet does not have the account ${signer}`);
    if ("signTransactions" in wallet) {
      const [signatures] = await wallet.signTransactions([{ messageBytes: payload, signatures: { [signer]: null } }] as never);
      const signature = signatures?.[signer];
      if (!signature) throw new TypeError("the signer returned no signature");
      unsigned.attach(name, signature);
      continue;
    }
    const transaction = Uint8Array.from(atob(native.value), (letter) => letter.charCodeAt(0));
    const feature = wallet.features["solana:signTransaction"];
    const [output] = await feature.signTransaction({ account: account as Account, transaction, chain });
    if (!output) throw new TypeError("the wallet returned no transaction");
    unsigned.attachTransaction(output.signedTransaction);
  }
}

/** Checks that the wallet signs messages of this version. */
function checkVersion(wallet: SolanaWallet<{ readonly address: string }>, message: Uint8Array): void {
  const feature = wallet.features["solana:signTransaction"];
  if (!feature) throw new TypeError("the wallet does not sign transactions without sending them: it has no feature solana:signTransaction");
  // A legacy message begins with the number of its signatures, which is below 128.
  const [first = 0] = message;
  const version = first < 0x80 ? "legacy" : first & 0x7f;
  const supported = feature.supportedTransactionVersions ?? ["legacy"];
  if (supported.includes(version)) return;
  const named = version === "legacy" ? "a legacy message" : `a message of version ${version}`;
  throw new TypeError(`the transaction has ${named}, and solana:signTransaction of the wallet signs only: ${supported.join(", ") || "none"}`);
}
