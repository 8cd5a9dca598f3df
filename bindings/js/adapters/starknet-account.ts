/** Accounts of starknet.js from version 7 on, with local or hardware signers. */
import { hash } from "starknet";
import type { UnsignedOrder } from "../lib/index.js";

/** The functions that orders call. starknet.js hashes names, and would hash a selector a second time. */
const FUNCTIONS = [
  "approve",
  "initiate",
  "initiate_on_behalf",
  "initiate_with_destination_data",
  "initiate_on_behalf_with_destination_data",
  "redeem",
  "refund",
];

/** The members of an invoke transaction of version 3, as nodes take them. */
interface Invoke {
  readonly sender_address: string;
  readonly calldata: readonly string[];
  readonly nonce: string;
  readonly resource_bounds: Readonly<Record<"l1_gas" | "l2_gas" | "l1_data_gas", { max_amount: string; max_price_per_unit: string }>>;
  readonly tip: string;
  readonly paymaster_data: readonly string[];
  readonly account_deployment_data: readonly string[];
  readonly nonce_data_availability_mode: "L1" | "L2";
  readonly fee_data_availability_mode: "L1" | "L2";
}

/** An `Account` of starknet.js. */
export interface StarknetAccount {
  readonly address: string;
  readonly signer: {
    // The types of calls and details change with the version.
    signMessage(message: never, address: string): Promise<unknown>;
    signTransaction(calls: never, details: never): Promise<unknown>;
  };
  /** Version 8 and later. */
  readonly provider?: { getChainId(): Promise<string> };
  /** Version 7. */
  getChainId?(): Promise<string>;
}

/**
 * Signs every request that has no signature yet with the account's signer, and attaches the signatures.
 *
 * @param chainId - The account's chain as starknet.js has it, in hex; by default the account asks its provider.
 */
export async function signWithStarknetAccount(unsigned: UnsignedOrder, account: StarknetAccount, chainId?: string): Promise<void> {
  for (const { name, native } of unsigned.missingRequests) {
    if (native.kind === "typed_data") {
      unsigned.attach(name, signature(await account.signer.signMessage(JSON.parse(native.value) as never, account.address)));
      continue;
    }
    const invoke = JSON.parse(native.value) as Invoke;
    const chain = chainId ?? (await (account.provider?.getChainId() ?? account.getChainId?.()));
    unsigned.attach(name, signature(await account.signer.signTransaction(calls(invoke) as never, details(invoke, chain) as never)));
  }
}

function details(invoke: Invoke, chainId: string | undefined): object {
  const bound = (resource: keyof Invoke["resource_bounds"]) => ({
    max_amount: BigInt(invoke.resource_bounds[resource].max_amount),
    max_price_per_unit: BigInt(invoke.resource_bounds[resource].max_price_per_unit),
  });
  return {
    walletAddress: invoke.sender_address,
    cairoVersion: "1",
    chainId,
    version: "0x3",
    nonce: invoke.nonce,
    resourceBounds: { l1_gas: bound("l1_gas"), l2_gas: bound("l2_gas"), l1_data_gas: bound("l1_data_gas") },
    tip: invoke.tip,
    paymasterData: [...invoke.paymaster_data],
    accountDeploymentData: [...invoke.account_deployment_data],
    nonceDataAvailabilityMode: invoke.nonce_data_availability_mode,
    feeDataAvailabilityMode: invoke.fee_data_availability_mode,
  };
}

/** Splits the calldata of `__execute__`: the number of calls, then of each the contract, selector, length and arguments. */
function calls({ calldata }: Invoke): object[] {
  const names = new Map(FUNCTIONS.map((name) => [BigInt(hash.getSelectorFromName(name)), name]));
  const words = calldata.map(BigInt);
  const found: object[] = [];
  let at = 1;
  for (let left = words[0] ?? 0n; left > 0n; left -= 1n) {
    const [to, selector, length] = words.slice(at, at + 3);
    const entrypoint = selector === undefined ? undefined : names.get(selector);
    // Accounts of Cairo 0 lay out several calls in another way.
    if (to === undefined || length === undefined || entrypoint === undefined) throw new TypeError("not the calls of an order by a Cairo 1 account");
    at += 3;
    found.push({ contractAddress: hex(to), entrypoint, calldata: words.slice(at, at + Number(length)).map(hex) });
    at += Number(length);
  }
  return found;
}

/** Returns what {@link UnsignedOrder.attach} takes: signers return an array of felts, or an object with more members than r and s. */
function signature(made: unknown): { r: bigint; s: bigint } | bigint[] {
  if (Array.isArray(made)) return made.map(BigInt);
  const { r, s } = made as { r: bigint; s: bigint };
  return { r, s };
}

function hex(number: bigint): string {
  return `0x${number.toString(16)}`;
}
