// Wallets of Bitcoin and Litecoin: bitcoinjs-lib with an Esplora client.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as bitcoin from "bitcoinjs-lib";

import { esploraWallet, networks } from "./esplora.js";
import { started } from "./sandbox.js";

const { chains, key, order } = await started("arbitrum", "base", "bitcoin", "bitcoin_testnet", "litecoin");

for (const name of ["bitcoin", "litecoin"]) {
  test(`bitcoinjs-lib and an Esplora client pay on ${name}`, async () => {
    const { url, account: payer } = chains[name];
    const network = networks[name];
    const wallet = esploraWallet(url, key, network);
    assert.equal(wallet.address, payer);
    const to = bitcoin.payments.p2wpkh({ hash: Buffer.alloc(20, 0xaa), network }).address;
    const txid = await wallet.pay(to, 250_000);
    await wallet.confirmed(txid);
    assert.equal((await wallet.get(`/address/${to}`)).chain_stats.funded_txo_sum, 250_000);
  });
}

for (const [source, destination] of [["bitcoin_testnet:btc", "arbitrum:usdc"], ["litecoin:ltc", "base:usdc"]]) {
  test(`bitcoinjs-lib pays the address of an order on ${source}`, async () => {
    const [name] = source.split(":");
    const { result, order: made } = await order(source, destination, source.endsWith("btc") ? 50_000 : 50_000_000);
    assert.deepEqual([typeof result.to, typeof result.amount], ["string", "string"]);
    const wallet = esploraWallet(chains[name].url, key, networks[name]);
    const txid = await wallet.pay(result.to, Number(result.amount));
    const record = await made.completed();
    assert.equal(record.source_swap.swap_id, result.to);
    assert.equal(record.source_swap.initiate_tx_hash.split(":")[0], txid);
  });
}
