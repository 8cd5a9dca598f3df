// Each SDK sends a payment through the interface of its chain, waits for it in the usual way, and reads the
// receiver's balance.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { SuiGrpcClient } from "@mysten/sui/grpc";
import { Ed25519Keypair } from "@mysten/sui/keypairs/ed25519";
import { Transaction } from "@mysten/sui/transactions";
import * as solana from "@solana/web3.js";
import * as bitcoin from "bitcoinjs-lib";
import { JsonRpcProvider, Wallet, parseEther as etherOf } from "ethers";
import { Account, RpcProvider, cairo } from "starknet";
import { TronWeb } from "tronweb";
import { createPublicClient, createWalletClient, defineChain, http, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { esploraWallet, networks } from "./esplora.js";
import { start } from "./sandbox.js";

let sandbox;
before(async () => {
  // All main networks, under their usual names.
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

test("ethers pays on arbitrum", async () => {
  const { url, account: payer } = sandbox.chains.arbitrum;
  const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 100 });
  const wallet = new Wallet(sandbox.key, provider);
  assert.equal(wallet.address, payer);
  const to = "0x00000000000000000000000000000000000000aa";
  const receipt = await (await wallet.sendTransaction({ to, value: etherOf("0.25") })).wait(2);
  assert.equal(receipt.status, 1);
  assert.equal(await provider.getBalance(to), etherOf("0.25"));
  provider.destroy();
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

for (const name of ["bitcoin", "litecoin"]) {
  test(`bitcoinjs-lib and an Esplora client pay on ${name}`, async () => {
    const { url, account: payer } = sandbox.chains[name];
    const network = networks[name];
    const wallet = esploraWallet(url, sandbox.key, network);
    assert.equal(wallet.address, payer);
    const to = bitcoin.payments.p2wpkh({ hash: Buffer.alloc(20, 0xaa), network }).address;
    const txid = await wallet.pay(to, 250_000);
    await wallet.confirmed(txid);
    assert.equal((await wallet.get(`/address/${to}`)).chain_stats.funded_txo_sum, 250_000);
  });
}
