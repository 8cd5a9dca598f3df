// Wallets of Tron: TronWeb.
import assert from "node:assert/strict";
import { test } from "node:test";

import { TronWeb } from "tronweb";

import { message, started } from "./sandbox.js";

const { chains, key, order } = await started("arbitrum", "base", "tron");

const web = new TronWeb({ fullHost: chains.tron.url, privateKey: key });

/** Waits until a transaction is in a block. */
const mined = async (id) => {
  for (let tries = 0; tries < 100; tries += 1) {
    const info = await web.trx.getTransactionInfo(id);
    if (info.id) return info;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the transaction does not come into a block");
};

/** Sends one of the service's calls. */
const send = async ({ to, data, value, gas_limit: feeLimit }) => {
  const options = { input: data.slice(2), callValue: Number(value), feeLimit: Number(feeLimit) };
  const { transaction } = await web.transactionBuilder.triggerSmartContract(to, "", options, [], chains.tron.account);
  const sent = await web.trx.sendRawTransaction(await web.trx.sign(transaction));
  assert.ok(sent.result, JSON.stringify(sent));
  assert.equal((await mined(transaction.txID)).receipt.result, "SUCCESS");
  return transaction.txID;
};

test("TronWeb pays on tron", async () => {
  assert.equal(web.defaultAddress.base58, chains.tron.account);
  const to = TronWeb.address.fromHex(`41${"aa".repeat(20)}`);
  const sent = await web.trx.sendTransaction(to, 250_000);
  assert.ok(sent.result);
  await mined(sent.transaction.txID);
  assert.equal(await web.trx.getBalance(to), 250_000);
});

test("TronWeb approves and initiates, and arbitrum pays", async () => {
  const { result, order: made } = await order("tron:usdt", "arbitrum:usdc", 20_000_000);
  await send(result.approval_transaction);
  const hash = await send(result.initiate_transaction);
  const record = await made.completed();
  assert.equal(record.source_swap.initiate_tx_hash, hash);
});

test("TronWeb pays the native coin, and base pays", async () => {
  const { result, order: made } = await order("tron:trx", "base:eth", 200_000_000);
  assert.ok(result.typed_data, "there is a message for native coins too");
  await send(result.initiate_transaction);
  await made.completed();
});

test("TronWeb signs typed data, the relayer initiates, and base pays", async () => {
  const { result, order: made } = await order("tron:usdt", "base:usdc", 20_000_000);
  await send(result.approval_transaction);
  // The contract's message has no `destinationData`, so the service's clients omit it.
  const { domain, types: { Initiate }, message: { destinationData: _, ...signed } } = message(result.typed_data);
  const types = { Initiate: Initiate.filter(({ name }) => name !== "destinationData") };
  const signature = await web.trx.signTypedData(domain, types, signed);
  const hash = await made.act("initiate", { signature });
  assert.equal((await web.trx.getUnconfirmedTransactionInfo(hash)).receipt.result, "SUCCESS");
  await made.completed();
});
