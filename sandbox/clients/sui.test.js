// Wallets of Sui: @mysten/sui over gRPC-web and JSON-RPC.
import assert from "node:assert/strict";
import { test } from "node:test";

import { SuiGrpcClient } from "@mysten/sui/grpc";
import { SuiJsonRpcClient } from "@mysten/sui/jsonRpc";
import { Ed25519Keypair } from "@mysten/sui/keypairs/ed25519";
import { Transaction } from "@mysten/sui/transactions";

import { started } from "./sandbox.js";

const { chains, key, order } = await started("base", "bitcoin_testnet", "sui");

test("@mysten/sui pays on sui", async () => {
  const { url, account: payer } = chains.sui;
  const client = new SuiGrpcClient({ network: "mainnet", baseUrl: url });
  const keypair = Ed25519Keypair.fromSecretKey(Buffer.from(key, "hex"));
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

test("@mysten/sui completes and sends a transaction kind, and bitcoin_testnet pays", async () => {
  const { result, order: made } = await order("sui:sui", "bitcoin_testnet:btc", 20n * 10n ** 9n);
  const client = new SuiGrpcClient({ network: "mainnet", baseUrl: chains.sui.url });
  const signer = Ed25519Keypair.fromSecretKey(Buffer.from(key, "hex"));
  const transaction = Transaction.fromKind(Uint8Array.from(result.ptb_bytes));
  transaction.setSender(signer.toSuiAddress());
  const sent = await client.signAndExecuteTransaction({ transaction, signer });
  const digest = sent.Transaction?.digest ?? sent.digest;
  await client.waitForTransaction({ digest });
  const record = await made.completed();
  assert.equal(record.source_swap.initiate_tx_hash, digest);
});

test("a JSON-RPC client of sui sends a transaction kind with a price and a budget of its own, and base pays", async () => {
  const { result, order: made } = await order("sui:sui", "base:usdc", 20n * 10n ** 9n);
  const client = new SuiJsonRpcClient({ network: "mainnet", url: chains.sui.url });
  const signer = Ed25519Keypair.fromSecretKey(Buffer.from(key, "hex"));
  const transaction = Transaction.fromKind(Uint8Array.from(result.ptb_bytes));
  transaction.setSender(signer.toSuiAddress());
  transaction.setGasPrice(await client.getReferenceGasPrice());
  transaction.setGasBudget(10_000_000);
  const { data: coins } = await client.getCoins({ owner: signer.toSuiAddress() });
  transaction.setGasPayment(coins.map(({ coinObjectId: objectId, version, digest }) => ({ objectId, version, digest })));
  const { bytes, signature } = await signer.signTransaction(await transaction.build());
  const rehearsed = await client.dryRunTransactionBlock({ transactionBlock: bytes });
  assert.equal(rehearsed.effects.status.status, "success");
  const options = { showEffects: true };
  const { digest } = await client.executeTransactionBlock({ transactionBlock: bytes, signature, options });
  const { effects, checkpoint } = await client.waitForTransaction({ digest, options, pollInterval: 100 });
  assert.deepEqual([effects.status.status, effects.transactionDigest, Number(checkpoint) > 0], ["success", digest, true]);
  const record = await made.completed();
  assert.equal(record.source_swap.initiate_tx_hash, digest);
  await assert.rejects(client.getTransactionBlock({ digest: "11111111111111111111111111111111" }), /Could not find/);
  await assert.rejects(client.call("sui_getObject", []), /Method not found/);
});
