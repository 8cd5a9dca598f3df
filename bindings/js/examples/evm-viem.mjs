// An EVM order with a local account of viem, or a wallet client whose wallet signs without sending.
import { Order, Registry } from "countersign/evm";
import { signWithViem } from "countersign/viem";

/** Returns the raw transactions to broadcast, in their order. */
export async function pay(documents, registry, wallet, account, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return [];
  const unsigned = order.prepare(wallet);
  await signWithViem(unsigned, account);
  return unsigned.finish().transactions.map(({ payload }) => payload);
}
