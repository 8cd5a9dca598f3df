// An EVM order of a contract wallet: a smart account of viem, or a Safe App's provider.
import { Order, Registry } from "countersign/evm";
import { paymentOfUserOperation, sendUserOperation, signByContract, throughProvider } from "countersign/contract-wallet";

/** The gasless path: returns the signature to submit. `wallet` is a smart account of viem, or a provider by EIP-1193. */
export async function sign(documents, registry, wallet, node, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  const signs = wallet.signTypedData ? (message) => wallet.signTypedData(message) : throughProvider(wallet);
  return (await signByContract(order, signs, node)).gasless;
}

/** The account pays, with approval and payment in one user operation: returns the hash of the transaction that paid. */
export async function pay(documents, registry, bundler, approve) {
  const order = Order.verify(documents, new Registry(registry));
  if (!(await approve(order.summary, order.warnings))) return undefined;
  return paymentOfUserOperation(order, bundler, await sendUserOperation(order, bundler));
}
