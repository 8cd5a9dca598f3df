// Wallets of EVM chains: viem and ethers.
import assert from "node:assert/strict";
import { test } from "node:test";

import { JsonRpcProvider, Wallet, parseEther as etherOf } from "ethers";
import { createPublicClient, createWalletClient, defineChain, http, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { message, started } from "./sandbox.js";

const { chains, key, order } = await started("arbitrum", "base", "solana", "tron");

/** Returns a pair of viem clients for a chain. */
const evm = async (name) => {
  const { url } = chains[name];
  const id = Number(await createPublicClient({ transport: http(url) }).getChainId());
  const chain = defineChain({ id, name, nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
  const account = privateKeyToAccount(`0x${key}`);
  const wallet = createWalletClient({ account, chain, transport: http() });
  const reader = createPublicClient({ chain, transport: http(), pollingInterval: 100 });
  const send = async ({ to, data, value, gas_limit: gas }) => {
    const hash = await wallet.sendTransaction({ to, data, value: BigInt(value), gas: BigInt(gas) });
    const receipt = await reader.waitForTransactionReceipt({ hash });
    assert.equal(receipt.status, "success");
    return hash;
  };
  return { wallet, reader, send };
};

test("viem pays on base", async () => {
  const { wallet, reader } = await evm("base");
  assert.equal(wallet.account.address.toLowerCase(), chains.base.account.toLowerCase());
  const to = "0x00000000000000000000000000000000000000AA";
  const hash = await wallet.sendTransaction({ to, value: parseEther("0.25") });
  const receipt = await reader.waitForTransactionReceipt({ hash, confirmations: 2 });
  assert.equal(receipt.status, "success");
  assert.equal(await reader.getBalance({ address: to }), parseEther("0.25"));
});

test("ethers pays on arbitrum", async () => {
  const { url, account: payer } = chains.arbitrum;
  const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 100 });
  const wallet = new Wallet(key, provider);
  assert.equal(wallet.address, payer);
  const to = "0x00000000000000000000000000000000000000aa";
  const receipt = await (await wallet.sendTransaction({ to, value: etherOf("0.25") })).wait(2);
  assert.equal(receipt.status, 1);
  assert.equal(await provider.getBalance(to), etherOf("0.25"));
  provider.destroy();
});

test("viem approves and initiates on base, and solana pays", async () => {
  const { result, order: made } = await order("base:usdc", "solana:sol", 20_000_000);
  const { send } = await evm("base");
  await send(result.approval_transaction);
  const hash = await send(result.initiate_transaction);
  const record = await made.completed();
  assert.equal(record.source_swap.initiate_tx_hash, hash);
});

test("viem signs typed data for base, the relayer initiates, and arbitrum pays", async () => {
  const { result, order: made } = await order("base:usdc", "arbitrum:eth", 20_000_000);
  const { wallet, reader, send } = await evm("base");
  await send(result.approval_transaction);
  const { domain, types, primaryType, message: signed } = message(result.typed_data);
  const signature = await wallet.signTypedData({ domain: { ...domain, chainId: Number(domain.chainId) }, types, primaryType, message: signed });
  const hash = await made.act("initiate", { signature });
  // Clients wait for this receipt. Without it they would pay again on their own.
  assert.equal((await reader.getTransactionReceipt({ hash })).status, "success");
  assert.equal(await made.act("initiate", { signature }), hash, "a call that comes again sends nothing");
  const record = await made.completed();
  assert.equal(record.source_swap.initiate_tx_hash, hash);
  const { reader: payee } = await evm("arbitrum");
  assert.equal((await payee.getTransactionReceipt({ hash: record.destination_swap.redeem_tx_hash })).status, "success");
});

test("ethers pays ether on arbitrum, and tron pays", async () => {
  const { result, order: made } = await order("arbitrum:eth", "tron:usdt", 10n ** 16n);
  assert.ok("typed_data" in result && result.typed_data === null && !result.approval_transaction);
  const provider = new JsonRpcProvider(chains.arbitrum.url, undefined, { pollingInterval: 100 });
  const { to, data, value, gas_limit: gasLimit } = result.initiate_transaction;
  const sent = await new Wallet(key, provider).sendTransaction({ to, data, value, gasLimit });
  assert.equal((await sent.wait()).status, 1);
  provider.destroy();
  await made.completed();
});
