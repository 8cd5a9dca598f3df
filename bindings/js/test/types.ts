// Compiled, never run: the package's types fit the libraries' own, and keep what must not be mixed up apart.
import type { SuiWallet } from "countersign/sui-wallet";
import type { SolanaWallet } from "countersign/solana-wallet";
import type { WalletWithFeatures } from "@wallet-standard/base";
import type { SolanaSignTransactionFeature } from "@solana/wallet-standard-features";
import type { SuiSignTransactionFeature } from "@mysten/wallet-standard";
import type { Keypair as SuiKeypair, Signer as SuiSigner } from "@mysten/sui/cryptography";
import type { KeyPairSigner, TransactionPartialSigner } from "@solana/signers";
import type { Keypair as SolanaKeypair, Connection as SolanaWeb3Connection } from "@solana/web3.js";
import type { Account, RpcProvider } from "starknet";
import type { Chain, EIP1193Provider, LocalAccount, PrivateKeyAccount, PublicClient, Account as ViemAccount, Transport, WalletClient } from "viem";
import type { BundlerClient, SmartAccount, ToCoinbaseSmartAccountReturnType } from "viem/account-abstraction";
import { type ChainAnswer, type CountersignError, Order, Policy, Quorum, Registry, type SwapRecord, type UnsignedOrder } from "countersign";
import { paymentOfUserOperation, safeCalls, sendUserOperation, signByContract, throughProvider } from "countersign/contract-wallet";
import { type Connection, eip1193, readAll, solanaConnection, starknetProvider } from "countersign/connections";
import { checkSent, paymentOfCalls, paymentOfReceipt, sendCalls, sendOrder, sendTransactions, signTypedData } from "countersign/eip1193";
import { signWithSolanaWallet } from "countersign/solana-wallet";
import { signWithStarknetAccount } from "countersign/starknet-account";
import { signWithSuiWallet } from "countersign/sui-wallet";
import { signWithViem } from "countersign/viem";

export async function adapters(
  order: Order,
  unsigned: UnsignedOrder,
  local: LocalAccount,
  key: PrivateKeyAccount,
  client: WalletClient<Transport, Chain, ViemAccount>,
  anyClient: WalletClient,
  node: PublicClient,
  provider: EIP1193Provider,
  kit: KeyPairSigner,
  partial: TransactionPartialSigner,
  keypair: SolanaKeypair,
  suiSigner: SuiSigner,
  suiKeypair: SuiKeypair,
  solana: WalletWithFeatures<SolanaSignTransactionFeature>,
  sui: WalletWithFeatures<SuiSignTransactionFeature>,
  account: Account,
): Promise<void> {
  for (const signer of [local, key, client, anyClient]) await signWithViem(unsigned, signer);
  await signTypedData(unsigned, provider);
  const hashes = await sendTransactions(order, provider, (hash) => node.waitForTransactionReceipt({ hash }));
  for (const hash of hashes) await checkSent(order, node, hash);
  const sent = await sendOrder(order, provider, (hash) => node.waitForTransactionReceipt({ hash }));
  if (sent.kind === "batch") await paymentOfCalls(order, provider, sent.id, { signal: AbortSignal.timeout(60_000) });
  else await paymentOfReceipt(order, node, sent.hashes[0] ?? "0x");
  await paymentOfCalls(order, client, await sendCalls(order, client));
  order.findPayment(await client.getCallsStatus({ id: "0x1d" }));
  order.findPayment(await node.getTransactionReceipt({ hash: "0x1d" }));
  for (const { to, data, value } of order.walletCalls("evm")) await client.sendTransaction({ to, data, value: BigInt(value) });
  for (const transaction of unsigned.finish().transactions) {
    if (transaction.family === "evm") await node.sendRawTransaction({ serializedTransaction: transaction.payload });
  }
  await account.execute([...order.walletCalls("starknet")].map((call) => ({ ...call, calldata: [...call.calldata] })));
  await signWithSolanaWallet(unsigned, solana);
  for (const signer of [kit, partial, keypair]) await signWithSolanaWallet(unsigned, signer);
  await signWithSuiWallet(unsigned, sui);
  for (const signer of [suiSigner, suiKeypair]) await signWithSuiWallet(unsigned, signer);
  await signWithStarknetAccount(unsigned, account);
  const wallets: [SolanaWallet<(typeof solana.accounts)[number]>, SuiWallet<(typeof sui.accounts)[number]>] = [solana, sui];
  void wallets;
}

export async function contractWallets(
  order: Order,
  account: ToCoinbaseSmartAccountReturnType,
  any: SmartAccount,
  provider: EIP1193Provider,
  node: PublicClient,
  bundler: BundlerClient<Transport, Chain, SmartAccount>,
  coinbase: BundlerClient<Transport, Chain, ToCoinbaseSmartAccountReturnType>,
): Promise<void> {
  for (const signer of [account, any]) await signByContract(order, (message) => signer.signTypedData(message), node);
  await signByContract(order, throughProvider(provider), provider);
  for (const client of [bundler, coinbase]) await paymentOfUserOperation(order, client, await sendUserOperation(order, client));
  for (const { to, data, value } of safeCalls(order)) void [to.length, data.length, BigInt(value)];
}

export async function connections(
  record: SwapRecord,
  client: PublicClient,
  provider: EIP1193Provider,
  solana: SolanaWeb3Connection,
  starknet: RpcProvider,
): Promise<Quorum> {
  const own: Connection = async (requests) => requests.map((): ChainAnswer => ({ failed: "other" }));
  const endpoints = {
    client: eip1193(client),
    provider: eip1193(provider),
    solana: solanaConnection(solana),
    starknet: starknetProvider(starknet),
    own,
  };
  // @ts-expect-error What the caller has put together is not what readers have read.
  record.judge({ state: "locked" }, 5);
  // @ts-expect-error A failure is one of these words.
  const unknown: ChainAnswer = { failed: "somehow" };
  void unknown;
  return readAll(record, "destination", { endpoints, needed: 3 });
}

export function mistakes(registry: Registry, policy: Policy, error: CountersignError): void {
  // @ts-expect-error A policy is not a registry.
  Order.verify({ request: "", response: "" }, policy);
  // @ts-expect-error A parsed document has lost what is verified.
  Order.verify({ request: {}, response: {} }, registry);
  // @ts-expect-error A signed transaction is bytes: hex and base64 are decoded by the caller.
  Order.verify({ request: "", response: "" }, registry).prepare("{}").attachTransaction("0x02");
  // @ts-expect-error Orders come from verify alone.
  void new Order();
  // @ts-expect-error Nobody else is to blame.
  void (error.blame === "nobody");
  const amount: bigint | null = Order.verify({ request: "", response: new Uint8Array() }, registry, policy).terms.pay.number;
  void amount;
}
