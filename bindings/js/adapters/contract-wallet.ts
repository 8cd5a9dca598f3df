/** Contract wallets on EVM chains: a Safe, or a smart account of viem. The account's code decides what counts as its signature. */
import type { EvmCall, HexString, Order, SignedOrder } from "../lib/index.js";
import { type Eip1193Provider, FateUnknown } from "./eip1193.js";

/** The class of the errors here. Each adapter is a file of its own, so it is another one than that of `countersign/eip1193`. */
export { FateUnknown };

/** Typed data in the form that libraries take (EIP-712). */
export interface TypedData {
  readonly domain: { readonly chainId: number; readonly verifyingContract: HexString };
  readonly types: Record<string, readonly { readonly name: string; readonly type: string }[]>;
  readonly primaryType: string;
  readonly message: Record<string, unknown>;
}

/** Signs typed data in the name of the account `owner`. It may return the wrapper of ERC-6492, and `0x` for what is signed on chain. */
export type SignsTypedData = (typedData: TypedData, owner: HexString) => Promise<string>;

/** Thrown when the swap contract would not take the account's signature. Nothing is signed then: pay with a transaction of the account. */
export class AccountRefused extends Error {
  override readonly name = "AccountRefused";
  constructor(
    /** Whether the account has no code yet, or has code that refuses the signature: the codes of `docs/codes.md`. */
    readonly code: "account_not_deployed" | "contract_signature_refused",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What `isValidSignature` returns for a signature that it accepts (ERC-1271). */
const ACCEPTED = `0x1626ba7e${"0".repeat(56)}`;

/**
 * Has a contract wallet sign the gasless message, and asks the account whether it accepts the answer, in the name of the swap contract, as
 * that will. An order comes back only if it does. The account may have other owners tomorrow, so submit it at once.
 *
 * @param sign - A smart account of viem: `(message) => account.signTypedData(message)`. A Safe through its provider: {@link throughProvider}.
 *   A Safe through its Protocol Kit: `async (message) => (await safe.signMessage(safe.createMessage(message))).encodedSignatures()`.
 * @param node - Reads the chain. A node of your own is better than the wallet that signs.
 * @throws AccountRefused if the account is not deployed, or refuses the signature.
 * @throws what the node failed with, also where that is a revert of the account.
 */
export async function signByContract(order: Order, sign: SignsTypedData, node: Eip1193Provider): Promise<SignedOrder> {
  const unsigned = order.prepareGasless();
  const [request] = unsigned.requests;
  if (order.family !== "evm" || request?.native.kind !== "typed_data") throw new TypeError("the order has no message for an EVM account");
  const { name, digest } = request;
  const owner = request.signer as HexString;
  const message = JSON.parse(request.native.value) as TypedData;
  const { chainId, verifyingContract } = message.domain;
  const found = (await ask(node, "eth_chainId", [])) as string;
  if (BigInt(found) !== BigInt(chainId)) throw new TypeError(`the node is of the chain ${found}, not ${chainId}`);
  // Whoever has no code signs by key: the swap contract would not ask it, and cannot deploy it.
  if (isEmpty(await ask(node, "eth_getCode", [owner, "latest"]))) {
    throw new AccountRefused("account_not_deployed", `${owner} has no code on this chain; send any transaction from it first`);
  }
  unsigned.attach(name, { contract: (await sign(message, owner)) as HexString, deployed: true });
  const signed = unsigned.finish();
  const data = isValidSignature(digest, signed.gasless as string);
  const answer = await ask(node, "eth_call", [{ from: verifyingContract, to: owner, data }, "latest"]);
  if (typeof answer !== "string" || !answer.toLowerCase().startsWith(ACCEPTED)) {
    throw new AccountRefused("contract_signature_refused", `${owner} does not accept the signature: it answers ${String(answer)}`);
  }
  return signed;
}

/** Signs through a provider by EIP-1193, such as that of a Safe App: `eth_signTypedData_v4`. */
export function throughProvider(provider: Eip1193Provider): SignsTypedData {
  return async (message, owner) => (await ask(provider, "eth_signTypedData_v4", [owner, JSON.stringify(message)])) as string;
}

/** A call in the form of a Safe's libraries: `safe.createTransaction({ transactions })`, `sdk.txs.send({ txs })`. */
export interface SafeCall {
  readonly to: HexString;
  readonly data: HexString;
  /** In wei, decimal. */
  readonly value: string;
}

/**
 * Returns the calls of an order for one transaction of a Safe. {@link paymentOfReceipt} of `countersign/eip1193` finds the payment, once an
 * owner has executed it.
 *
 * @throws CountersignError `order_expired` or `deadline_too_close`. The other owners may take their time: look again before the execution.
 */
export function safeCalls(order: Order): SafeCall[] {
  order.checkDeadline(Math.floor(Date.now() / 1000));
  return order.walletCalls("evm").map(({ to, data, value }: EvmCall) => ({ to, data, value: BigInt(value).toString() }));
}

/** A bundler client of viem, which has the account: `createBundlerClient({ account, client, transport })`. */
export interface Bundler {
  // Methods with `never`, because the types of viem's depend on the account.
  getChainId(): Promise<number>;
  prepareUserOperation(parameters: never): Promise<unknown>;
  sendUserOperation(parameters: never): Promise<HexString>;
  waitForUserOperationReceipt(parameters: never): Promise<unknown>;
}

/**
 * Sends all calls of an order as one user operation (ERC-4337).
 *
 * @returns The hash of the operation, for {@link paymentOfUserOperation}.
 * @throws FateUnknown if the operation may have been sent; anything else if nothing was.
 */
export async function sendUserOperation(order: Order, bundler: Bundler): Promise<HexString> {
  order.checkDeadline(Math.floor(Date.now() / 1000));
  const calls = order.walletCalls("evm").map(({ to, data, value }) => ({ to, data, value: BigInt(value) }));
  const { from, chainId } = order.walletCalls("evm")[0] as EvmCall;
  const found = await bundler.getChainId();
  if (BigInt(found) !== BigInt(chainId)) throw new TypeError(`the bundler is of the chain ${found}, not ${BigInt(chainId)}`);
  const prepared = (await bundler.prepareUserOperation({ calls } as never)) as { readonly sender: string };
  // The contract takes the funds of whoever calls it, and the swap is another one then.
  if (prepared.sender.toLowerCase() !== from.toLowerCase()) throw new TypeError(`the account is ${prepared.sender}, and the order's owner ${from}`);
  try {
    return await bundler.sendUserOperation(prepared as never);
  } catch (cause) {
    throw new FateUnknown("the bundler failed, so the operation may have been sent; look into the account before anything is sent again", { cause });
  }
}

/**
 * Waits for a user operation, and finds the payment in the receipt of its transaction. The bundler states all this; whether the payment is
 * final, the chain says.
 *
 * @returns The hash of the transaction that paid.
 * @throws CountersignError `transaction_mismatch` if the transaction does not show the payment.
 */
export async function paymentOfUserOperation(order: Order, bundler: Bundler, hash: HexString): Promise<HexString> {
  const { receipt } = (await bundler.waitForUserOperationReceipt({ hash } as never)) as { readonly receipt: object };
  return order.findPayment(receipt) as HexString;
}

/** Encodes the question of ERC-1271: `isValidSignature(bytes32,bytes)`. */
function isValidSignature(digest: Uint8Array, signature: string): HexString {
  const hash = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const bytes = signature.slice("0x".length);
  const word = (number: number) => number.toString(16).padStart(64, "0");
  return `0x1626ba7e${hash}${word(64)}${word(bytes.length / 2)}${bytes.padEnd(Math.ceil(bytes.length / 64) * 64, "0")}`;
}

function isEmpty(code: unknown): boolean {
  if (typeof code !== "string") throw new TypeError("the node did not answer with code");
  return code === "0x";
}

function ask(provider: Eip1193Provider, method: string, params: readonly unknown[]): Promise<unknown> {
  // Clients of viem send a request that failed again, and the owner would be asked again. Providers ignore the option.
  return (provider as unknown as { request(request: object, options: object): Promise<unknown> }).request({ method, params }, { retryCount: 0 });
}
