// Wallets of Starknet: starknet.js.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Account, RpcProvider, cairo } from "starknet";

import { started } from "./sandbox.js";

const { chains, key, order, service } = await started("litecoin", "starknet", "sui");

/** Returns an account of starknet.js. */
const starknet = () => {
  const { url, account: address } = chains.starknet;
  const provider = new RpcProvider({ nodeUrl: url });
  return { provider, account: new Account({ provider, address, signer: `0x${key}` }) };
};

test("starknet.js pays on starknet", async () => {
  const { provider, account } = starknet();
  const assets = await (await fetch(`${service}/v2/assets?chain=starknet`)).json();
  const token = assets.result.find((asset) => asset.id === "starknet:strk").token.address;
  const amount = cairo.uint256(250_000_000n);
  const { transaction_hash } = await account.execute({ contractAddress: token, entrypoint: "transfer", calldata: ["0xaa", amount.low, amount.high] });
  const receipt = await provider.waitForTransaction(transaction_hash, { retryInterval: 100 });
  assert.ok(receipt.isSuccess());
  const [low] = await provider.callContract({ contractAddress: token, entrypoint: "balance_of", calldata: ["0xaa"] });
  assert.equal(BigInt(low), 250_000_000n);
});

test("starknet.js calls twice in one transaction, and sui pays", async () => {
  const { result, order: made } = await order("starknet:strk", "sui:sui", 50n * 10n ** 18n);
  const { provider, account } = starknet();
  const call = ({ to, calldata }, entrypoint) => ({ contractAddress: to, entrypoint, calldata });
  const calls = [call(result.approval_transaction, "approve"), call(result.initiate_transaction, "initiate")];
  const { transaction_hash: hash } = await account.execute(calls);
  assert.ok((await provider.waitForTransaction(hash, { retryInterval: 100 })).isSuccess());
  await made.completed();
});

test("starknet.js signs typed data, the relayer initiates, and litecoin pays", async () => {
  const { result, order: made } = await order("starknet:strk", "litecoin:ltc", 50n * 10n ** 18n);
  const { provider, account } = starknet();
  if (result.approval_transaction) {
    const { to, calldata } = result.approval_transaction;
    const { transaction_hash: approval } = await account.execute({ contractAddress: to, entrypoint: "approve", calldata });
    await provider.waitForTransaction(approval, { retryInterval: 100 });
  }
  const signature = await account.signMessage(result.typed_data);
  const felts = Array.isArray(signature) ? signature : [signature.r, signature.s];
  const hash = await made.act("initiate", { signature: felts.map((felt) => BigInt(felt).toString()).join(",") });
  assert.ok((await provider.getTransactionReceipt(hash)).isSuccess());
  await made.completed();
});
