// A Sui order with a wallet of the Wallet Standard.
import { Order, Registry } from "countersign/sui";
import { signWithSuiWallet } from "countersign/sui-wallet";

/** Returns what nodes take: the transaction and its signatures. */
export async function pay(documents, registry, context, wallet, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  const unsigned = order.prepare(context);
  await signWithSuiWallet(unsigned, wallet);
  return unsigned.finish().transactions[0];
}
