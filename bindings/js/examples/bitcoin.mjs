// A Bitcoin or Litecoin order with any wallet that signs PSBTs.
import { Order, Registry } from "countersign/bitcoin";
import { signPsbt } from "countersign/psbt";

/** Returns the raw transaction in hex. */
export async function pay(documents, registry, wallet, sign, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  const unsigned = order.prepare(wallet);
  await signPsbt(unsigned, sign);
  return unsigned.finish().transactions[0].payload;
}
