// A Starknet order with an account of starknet.js.
import { Order, Registry } from "countersign/starknet";
import { signWithStarknetAccount } from "countersign/starknet-account";

/** Returns the transaction as `starknet_addInvokeTransaction` takes it, and the gasless signature where the order has one. */
export async function pay(documents, registry, wallet, account, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  const unsigned = order.prepare(wallet);
  await signWithStarknetAccount(unsigned, account);
  const { transactions, gasless } = unsigned.finish();
  return { transactions: transactions.map(({ payload }) => payload), gasless };
}
