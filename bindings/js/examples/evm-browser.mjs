// An EVM order with the wallet of the browser: gasless if the order allows it, else one batch, else one call after another.
import { Order, Registry } from "countersign/evm";
import { sendCalls, sendTransactions, signTypedData } from "countersign/eip1193";

/** Returns the signature for the service, the id of a batch, or the hashes of the transactions. */
export async function pay(documents, registry, provider, approve, { gasless, batch, waitForReceipt }) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  if (gasless) {
    const unsigned = order.prepareGasless();
    await signTypedData(unsigned, provider);
    return unsigned.finish().gasless;
  }
  return batch ? sendCalls(order, provider) : sendTransactions(order, provider, waitForReceipt);
}
