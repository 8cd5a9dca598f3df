/** Accounts of starknet.js, with local or hardware signers. */
import { type Account, type Call, type InvocationsSignerDetails, type Signature, type TypedData, hash } from "starknet";
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

/**
 * Signs every request that has no signature yet with the account's signer, and attaches the signatures.
 *
 * @param chainId - The account's chain; by default the account asks its provider.
 */
export async function signWithStarknetAccount(
  unsigned: UnsignedOrder,
  account: Pick<Account, "address" | "provider" | "signer">,
  chainId?: InvocationsSignerDetails["chainId"],
): Promise<void> {
  const missing = unsigned.missing;
  for (const { name, native } of unsigned.requests.filter((request) => missing.includes(request.name))) {
    if (native.kind === "typed_data") {
      const message = JSON.parse(native.value) as TypedData;
      unsigned.attach(name, felts(await account.signer.signMessage(message, account.address)));
      continue;
    }
    const invoke = JSON.parse(native.value) as Invoke;
    const chain = chainId ?? (await account.provider.getChainId());
    unsigned.attach(name, felts(await account.signer.signTransaction(calls(invoke), details(invoke, chain))));
  }
}

function details(invoke: Invoke, chainId: InvocationsSignerDetails["chainId"]): InvocationsSignerDetails {
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
function calls({ calldata }: Invoke): Call[] {
  const names = new Map(FUNCTIONS.map((name) => [BigInt(hash.getSelectorFromName(name)), name]));
  const words = calldata.map(BigInt);
  const found: Call[] = [];
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

/** Joins the felts of a signature. */
function felts(signature: Signature): string {
  const list = Array.isArray(signature) ? signature : [signature.r, signature.s];
  return list.map((felt) => hex(BigInt(felt))).join(",");
}

function hex(number: bigint): string {
  return `0x${number.toString(16)}`;
}
