// Clients that trust the service. Each creates an order with plain calls, signs the payloads with its chain's SDK,
// and waits for the record. No client has a secret, so the service holds it and the order must complete by itself. (A
// wallet that verifies does not sign this way.)
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { SuiGrpcClient } from "@mysten/sui/grpc";
import { SuiJsonRpcClient } from "@mysten/sui/jsonRpc";
import { Ed25519Keypair } from "@mysten/sui/keypairs/ed25519";
import { Transaction } from "@mysten/sui/transactions";
import * as solana from "@solana/web3.js";
import { JsonRpcProvider, Wallet } from "ethers";
import { Account, RpcProvider } from "starknet";
import { TronWeb } from "tronweb";
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { esploraWallet, networks } from "./esplora.js";
import { client, start } from "./sandbox.js";

let sandbox;
let service;
before(async () => {
  sandbox = await start("--chains", "arbitrum,base,bitcoin_testnet,litecoin,solana,starknet,sui,tron");
  service = client(sandbox);
});
after(() => sandbox?.stop());

/** Returns a pair of viem clients for a chain. */
const evm = async (name) => {
  const { url } = sandbox.chains[name];
  const id = Number(await createPublicClient({ transport: http(url) }).getChainId());
  const chain = defineChain({ id, name, nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
  const account = privateKeyToAccount(`0x${sandbox.key}`);
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

/** Returns the message of `typed_data` without the domain's type, which libraries derive. */
const message = ({ domain, types: { EIP712Domain: _, ...types }, primaryType, message }) => ({ domain, types, primaryType, message });

test("viem approves and initiates on base, and solana pays", async () => {
  const { result, order } = await service.order("base:usdc", "solana:sol", 20_000_000);
  const { send } = await evm("base");
  await send(result.approval_transaction);
  const hash = await send(result.initiate_transaction);
  const record = await order.completed();
  assert.equal(record.source_swap.initiate_tx_hash, hash);
});

test("viem signs typed data for base, the relayer initiates, and arbitrum pays", async () => {
  const { result, order } = await service.order("base:usdc", "arbitrum:eth", 20_000_000);
  const { wallet, reader, send } = await evm("base");
  await send(result.approval_transaction);
  const { domain, types, primaryType, message: signed } = message(result.typed_data);
  const signature = await wallet.signTypedData({ domain: { ...domain, chainId: Number(domain.chainId) }, types, primaryType, message: signed });
  const hash = await order.act("initiate", { signature });
  // Clients wait for this receipt. Without it they would pay again on their own.
  assert.equal((await reader.getTransactionReceipt({ hash })).status, "success");
  assert.equal(await order.act("initiate", { signature }), hash, "a call that comes again sends nothing");
  const record = await order.completed();
  assert.equal(record.source_swap.initiate_tx_hash, hash);
  const { reader: payee } = await evm("arbitrum");
  assert.equal((await payee.getTransactionReceipt({ hash: record.destination_swap.redeem_tx_hash })).status, "success");
});

test("ethers pays ether on arbitrum, and tron pays", async () => {
  const { result, order } = await service.order("arbitrum:eth", "tron:usdt", 10n ** 16n);
  assert.ok("typed_data" in result && result.typed_data === null && !result.approval_transaction);
  const provider = new JsonRpcProvider(sandbox.chains.arbitrum.url, undefined, { pollingInterval: 100 });
  const { to, data, value, gas_limit: gasLimit } = result.initiate_transaction;
  const sent = await new Wallet(sandbox.key, provider).sendTransaction({ to, data, value, gasLimit });
  assert.equal((await sent.wait()).status, 1);
  provider.destroy();
  await order.completed();
});

test("web3.js sends a versioned transaction on solana, and starknet pays", async () => {
  const { result, order } = await service.order("solana:sol", "starknet:strk", 100_000_000);
  assert.equal(result.versioned_tx_gasless, null);
  const connection = new solana.Connection(sandbox.chains.solana.url, "confirmed");
  const transaction = solana.VersionedTransaction.deserialize(Buffer.from(result.versioned_tx, "base64"));
  const { lastValidBlockHeight } = await connection.getLatestBlockhash();
  transaction.sign([solana.Keypair.fromSeed(Buffer.from(sandbox.key, "hex"))]);
  const signature = await connection.sendTransaction(transaction);
  const { value } = await connection.confirmTransaction({ signature, blockhash: transaction.message.recentBlockhash, lastValidBlockHeight }, "confirmed");
  assert.equal(value.err, null);
  const record = await order.completed();
  assert.equal(record.source_swap.initiate_tx_hash, signature);
});

test("web3.js signs a gasless transaction for solana, and base pays", async () => {
  const { result, order } = await service.order("solana:usdc", "base:usdc", 20_000_000);
  const transaction = solana.VersionedTransaction.deserialize(Buffer.from(result.versioned_tx_gasless, "base64"));
  transaction.sign([solana.Keypair.fromSeed(Buffer.from(sandbox.key, "hex"))]);
  const hash = await order.act("initiate", { signature: Buffer.from(transaction.serialize()).toString("base64") });
  const connection = new solana.Connection(sandbox.chains.solana.url, "confirmed");
  assert.equal((await connection.getSignatureStatus(hash)).value.err, null);
  await order.completed();
});

/** Returns an account of starknet.js. */
const starknet = () => {
  const { url, account: address } = sandbox.chains.starknet;
  const provider = new RpcProvider({ nodeUrl: url });
  return { provider, account: new Account({ provider, address, signer: `0x${sandbox.key}` }) };
};

test("starknet.js calls twice in one transaction, and sui pays", async () => {
  const { result, order } = await service.order("starknet:strk", "sui:sui", 50n * 10n ** 18n);
  const { provider, account } = starknet();
  const call = ({ to, calldata }, entrypoint) => ({ contractAddress: to, entrypoint, calldata });
  const calls = [call(result.approval_transaction, "approve"), call(result.initiate_transaction, "initiate")];
  const { transaction_hash: hash } = await account.execute(calls);
  assert.ok((await provider.waitForTransaction(hash, { retryInterval: 100 })).isSuccess());
  await order.completed();
});

test("starknet.js signs typed data, the relayer initiates, and litecoin pays", async () => {
  const { result, order } = await service.order("starknet:strk", "litecoin:ltc", 50n * 10n ** 18n);
  const { provider, account } = starknet();
  if (result.approval_transaction) {
    const { to, calldata } = result.approval_transaction;
    const { transaction_hash: approval } = await account.execute({ contractAddress: to, entrypoint: "approve", calldata });
    await provider.waitForTransaction(approval, { retryInterval: 100 });
  }
  const signature = await account.signMessage(result.typed_data);
  const felts = Array.isArray(signature) ? signature : [signature.r, signature.s];
  const hash = await order.act("initiate", { signature: felts.map((felt) => BigInt(felt).toString()).join(",") });
  assert.ok((await provider.getTransactionReceipt(hash)).isSuccess());
  await order.completed();
});

test("@mysten/sui completes and sends a transaction kind, and bitcoin_testnet pays", async () => {
  const { result, order } = await service.order("sui:sui", "bitcoin_testnet:btc", 20n * 10n ** 9n);
  const client = new SuiGrpcClient({ network: "mainnet", baseUrl: sandbox.chains.sui.url });
  const signer = Ed25519Keypair.fromSecretKey(Buffer.from(sandbox.key, "hex"));
  const transaction = Transaction.fromKind(Uint8Array.from(result.ptb_bytes));
  transaction.setSender(signer.toSuiAddress());
  const sent = await client.signAndExecuteTransaction({ transaction, signer });
  const digest = sent.Transaction?.digest ?? sent.digest;
  await client.waitForTransaction({ digest });
  const record = await order.completed();
  assert.equal(record.source_swap.initiate_tx_hash, digest);
});

test("a JSON-RPC client of sui sends a transaction kind with a price and a budget of its own, and base pays", async () => {
  const { result, order } = await service.order("sui:sui", "base:usdc", 20n * 10n ** 9n);
  const client = new SuiJsonRpcClient({ network: "mainnet", url: sandbox.chains.sui.url });
  const signer = Ed25519Keypair.fromSecretKey(Buffer.from(sandbox.key, "hex"));
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
  const record = await order.completed();
  assert.equal(record.source_swap.initiate_tx_hash, digest);
  await assert.rejects(client.getTransactionBlock({ digest: "11111111111111111111111111111111" }), /Could not find/);
  await assert.rejects(client.call("sui_getObject", []), /Method not found/);
});

/** Returns TronWeb, and a function that sends one of the service's calls with it. */
const tron = () => {
  const { url, account } = sandbox.chains.tron;
  const web = new TronWeb({ fullHost: url, privateKey: sandbox.key });
  const send = async ({ to, data, value, gas_limit: feeLimit }) => {
    const options = { input: data.slice(2), callValue: Number(value), feeLimit: Number(feeLimit) };
    const { transaction } = await web.transactionBuilder.triggerSmartContract(to, "", options, [], account);
    const sent = await web.trx.sendRawTransaction(await web.trx.sign(transaction));
    assert.ok(sent.result, JSON.stringify(sent));
    for (let tries = 0; tries < 100; tries += 1) {
      const info = await web.trx.getTransactionInfo(transaction.txID);
      if (info.id) {
        assert.equal(info.receipt.result, "SUCCESS");
        return transaction.txID;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("the call does not come into a block");
  };
  return { web, send };
};

test("TronWeb approves and initiates, and arbitrum pays", async () => {
  const { result, order } = await service.order("tron:usdt", "arbitrum:usdc", 20_000_000);
  const { send } = tron();
  await send(result.approval_transaction);
  const hash = await send(result.initiate_transaction);
  const record = await order.completed();
  assert.equal(record.source_swap.initiate_tx_hash, hash);
});

test("TronWeb pays the native coin, and base pays", async () => {
  const { result, order } = await service.order("tron:trx", "base:eth", 200_000_000);
  assert.ok(result.typed_data, "there is a message for native coins too");
  await tron().send(result.initiate_transaction);
  await order.completed();
});

test("TronWeb signs typed data, the relayer initiates, and base pays", async () => {
  const { result, order } = await service.order("tron:usdt", "base:usdc", 20_000_000);
  const { web, send } = tron();
  await send(result.approval_transaction);
  // The contract's message has no `destinationData`, so the service's clients omit it.
  const { domain, types: { Initiate }, message: { destinationData: _, ...signed } } = message(result.typed_data);
  const types = { Initiate: Initiate.filter(({ name }) => name !== "destinationData") };
  const signature = await web.trx.signTypedData(domain, types, signed);
  const hash = await order.act("initiate", { signature });
  assert.equal((await web.trx.getUnconfirmedTransactionInfo(hash)).receipt.result, "SUCCESS");
  await order.completed();
});

for (const [source, destination] of [["bitcoin_testnet:btc", "arbitrum:usdc"], ["litecoin:ltc", "base:usdc"]]) {
  test(`bitcoinjs-lib pays the address of an order on ${source}`, async () => {
    const [name] = source.split(":");
    const { result, order } = await service.order(source, destination, source.endsWith("btc") ? 50_000 : 50_000_000);
    assert.deepEqual([typeof result.to, typeof result.amount], ["string", "string"]);
    const wallet = esploraWallet(sandbox.chains[name].url, sandbox.key, networks[name]);
    const txid = await wallet.pay(result.to, Number(result.amount));
    const record = await order.completed();
    assert.equal(record.source_swap.swap_id, result.to);
    assert.equal(record.source_swap.initiate_tx_hash.split(":")[0], txid);
  });
}
