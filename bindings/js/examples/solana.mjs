// A Solana order with a wallet of the Wallet Standard.
import { Order, Registry } from "countersign/solana";
import { signWithSolanaWallet } from "countersign/solana-wallet";

/** Returns the signed transactions in hex, and the gasless submission where the order has one. Use only one of them. */
export async function pay(documents, registry, context, wallet, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  const unsigned = order.prepare(context);
  await signWithSolanaWallet(unsigned, wallet);
  const { transactions, gasless } = unsigned.finish();
  return { transactions: transactions.map(({ payload }) => payload), gasless };
}
