// Each SDK sends a payment on its chain's front, waits for it as its users do, and reads the balance of the receiver.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import * as ecc from "@bitcoinerlab/secp256k1";
import { SuiGrpcClient } from "@mysten/sui/grpc";
import { Ed25519Keypair } from "@mysten/sui/keypairs/ed25519";
import { Transaction } from "@mysten/sui/transactions";
import * as solana from "@solana/web3.js";
import * as bitcoin from "bitcoinjs-lib";
import { ECPairFactory } from "ecpair";
import { Account, RpcProvider, cairo } from "starknet";
import { TronWeb } from "tronweb";
import { createPublicClient, createWalletClient, defineChain, http, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { start } from "./sandbox.js";

let sandbox;
before(async () => {
  sandbox = await start();
});
after(() => sandbox?.stop());

test("viem pays on base", async () => {
  const { url, account: payer } = sandbox.chains.base;
  const chain = defineChain({ id: 8453, name: "base", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
  const account = privateKeyToAccount(`0x${sandbox.key}`);
  assert.equal(account.address.toLowerCase(), payer.toLowerCase());
  const wallet = createWalletClient({ account, chain, transport: http() });
  const reader = createPublicClient({ chain, transport: http(), pollingInterval: 100 });
  const to = "0x00000000000000000000000000000000000000AA";
  const hash = await wallet.sendTransaction({ to, value: parseEther("0.25") });
  const receipt = await reader.waitForTransactionReceipt({ hash, confirmations: 2 });
  assert.equal(receipt.status, "success");
  assert.equal(await reader.getBalance({ address: to }), parseEther("0.25"));
});

test("web3.js pays on solana", async () => {
  const { url, account: payer } = sandbox.chains.solana;
  const connection = new solana.Connection(url, "confirmed");
  const from = solana.Keypair.fromSeed(Buffer.from(sandbox.key, "hex"));
  assert.equal(from.publicKey.toBase58(), payer);
  const to = solana.Keypair.generate().publicKey;
  const transaction = new solana.Transaction().add(solana.SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: to, lamports: 250_000_000 }));
  const signature = await solana.sendAndConfirmTransaction(connection, transaction, [from]);
  assert.ok((await connection.getSignatureStatus(signature)).value.confirmationStatus);
  assert.equal(await connection.getBalance(to), 250_000_000);
});

test("starknet.js pays on starknet", async () => {
  const { url, account: address } = sandbox.chains.starknet;
  const provider = new RpcProvider({ nodeUrl: url });
  const account = new Account({ provider, address, signer: `0x${sandbox.key}` });
  const assets = await (await fetch(`${sandbox.service}/v2/assets?chain=starknet`)).json();
  const token = assets.result.find((asset) => asset.id === "starknet:strk").token.address;
  const amount = cairo.uint256(250_000_000n);
  const { transaction_hash } = await account.execute({ contractAddress: token, entrypoint: "transfer", calldata: ["0xaa", amount.low, amount.high] });
  const receipt = await provider.waitForTransaction(transaction_hash, { retryInterval: 100 });
  assert.ok(receipt.isSuccess());
  const [low] = await provider.callContract({ contractAddress: token, entrypoint: "balance_of", calldata: ["0xaa"] });
  assert.equal(BigInt(low), 250_000_000n);
});

test("@mysten/sui pays on sui", async () => {
  const { url, account: payer } = sandbox.chains.sui;
  const client = new SuiGrpcClient({ network: "mainnet", baseUrl: url });
  const keypair = Ed25519Keypair.fromSecretKey(Buffer.from(sandbox.key, "hex"));
  assert.equal(keypair.toSuiAddress(), payer);
  const to = `0x${"aa".repeat(32)}`;
  const transaction = new Transaction();
  const [coin] = transaction.splitCoins(transaction.gas, [250_000_000]);
  transaction.transferObjects([coin], to);
  const result = await client.signAndExecuteTransaction({ transaction, signer: keypair });
  const digest = result.Transaction?.digest ?? result.digest;
  await client.waitForTransaction({ digest });
  assert.equal((await client.getBalance({ owner: to })).balance.balance, "250000000");
});

test("TronWeb pays on tron", async () => {
  const { url, account: payer } = sandbox.chains.tron;
  const tron = new TronWeb({ fullHost: url, privateKey: sandbox.key });
  assert.equal(tron.defaultAddress.base58, payer);
  const to = TronWeb.address.fromHex(`41${"aa".repeat(20)}`);
  const sent = await tron.trx.sendTransaction(to, 250_000);
  assert.ok(sent.result);
  for (let tries = 0; ; tries += 1) {
    const info = await tron.trx.getTransactionInfo(sent.transaction.txID);
    if (info.id) break;
    assert.ok(tries < 100, "the payment does not come into a block");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(await tron.trx.getBalance(to), 250_000);
});

test("bitcoinjs-lib and an Esplora client pay on bitcoin", async () => {
  const { url, account: payer } = sandbox.chains.bitcoin;
  const get = async (path) => (await fetch(`${url}${path}`)).json();
  const pair = ECPairFactory(ecc).fromPrivateKey(Buffer.from(sandbox.key, "hex"));
  const own = bitcoin.payments.p2wpkh({ pubkey: Buffer.from(pair.publicKey) });
  assert.equal(own.address, payer);
  const to = bitcoin.payments.p2wpkh({ hash: Buffer.alloc(20, 0xaa) }).address;
  const [coin] = await get(`/address/${payer}/utxo`);
  const fee = Math.ceil(Number((await get("/fee-estimates"))[2]) * 150);
  const psbt = new bitcoin.Psbt();
  psbt.addInput({ hash: coin.txid, index: coin.vout, witnessUtxo: { script: own.output, value: BigInt(coin.value) } });
  psbt.addOutput({ address: to, value: 250_000n });
  psbt.addOutput({ address: payer, value: BigInt(coin.value - 250_000 - fee) });
  psbt.signAllInputs({ publicKey: Buffer.from(pair.publicKey), sign: (hash) => Buffer.from(pair.sign(hash)) }).finalizeAllInputs();
  const response = await fetch(`${url}/tx`, { method: "POST", body: psbt.extractTransaction().toHex() });
  const txid = await response.text();
  assert.equal(response.status, 200, txid);
  for (let tries = 0; !(await get(`/tx/${txid}/status`)).confirmed; tries += 1) {
    assert.ok(tries < 100, "the payment does not come into a block");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal((await get(`/address/${to}`)).chain_stats.funded_txo_sum, 250_000);
});
