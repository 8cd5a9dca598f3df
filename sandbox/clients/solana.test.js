// Wallets of Solana: @solana/web3.js.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as solana from "@solana/web3.js";

import { started } from "./sandbox.js";

const { chains, key, order } = await started("base", "solana", "starknet");

test("web3.js pays on solana", async () => {
  const { url, account: payer } = chains.solana;
  const connection = new solana.Connection(url, "confirmed");
  const from = solana.Keypair.fromSeed(Buffer.from(key, "hex"));
  assert.equal(from.publicKey.toBase58(), payer);
  const to = solana.Keypair.generate().publicKey;
  const transaction = new solana.Transaction().add(solana.SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: to, lamports: 250_000_000 }));
  const signature = await solana.sendAndConfirmTransaction(connection, transaction, [from]);
  assert.ok((await connection.getSignatureStatus(signature)).value.confirmationStatus);
  assert.equal(await connection.getBalance(to), 250_000_000);
});

test("web3.js sends a versioned transaction on solana, and starknet pays", async () => {
  const { result, order: made } = await order("solana:sol", "starknet:strk", 100_000_000);
  assert.equal(result.versioned_tx_gasless, null);
  const connection = new solana.Connection(chains.solana.url, "confirmed");
  const transaction = solana.VersionedTransaction.deserialize(Buffer.from(result.versioned_tx, "base64"));
  const { lastValidBlockHeight } = await connection.getLatestBlockhash();
  transaction.sign([solana.Keypair.fromSeed(Buffer.from(key, "hex"))]);
  const signature = await connection.sendTransaction(transaction);
  const { value } = await connection.confirmTransaction({ signature, blockhash: transaction.message.recentBlockhash, lastValidBlockHeight }, "confirmed");
  assert.equal(value.err, null);
  const record = await made.completed();
  assert.equal(record.source_swap.initiate_tx_hash, signature);
});

test("web3.js signs a gasless transaction for solana, and base pays", async () => {
  const { result, order: made } = await order("solana:usdc", "base:usdc", 20_000_000);
  const transaction = solana.VersionedTransaction.deserialize(Buffer.from(result.versioned_tx_gasless, "base64"));
  transaction.sign([solana.Keypair.fromSeed(Buffer.from(key, "hex"))]);
  const hash = await made.act("initiate", { signature: Buffer.from(transaction.serialize()).toString("base64") });
  const connection = new solana.Connection(chains.solana.url, "confirmed");
  assert.equal((await connection.getSignatureStatus(hash)).value.err, null);
  await made.completed();
});
