// Tests what existing clients of the service rely on beyond its documented interface, on the test networks that local
// clients expect.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";

import * as solana from "@solana/web3.js";
import * as bitcoin from "bitcoinjs-lib";
import { Account, RpcProvider } from "starknet";
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { esploraWallet, networks } from "./esplora.js";
import { client, start } from "./sandbox.js";

const INTERNAL_KEY = Buffer.from("2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0", "hex");

let sandbox;
let service;
before(async () => {
  sandbox = await start("--chains", "local");
  service = client(sandbox);
});
after(() => sandbox?.stop());

const secrets = () => {
  const secret = randomBytes(32);
  return { secret, secret_hash: createHash("sha256").update(secret).digest("hex") };
};
const post = (request) => fetch(`${sandbox.service}/v2/orders`, { method: "POST", body: JSON.stringify(request) });
const bitcoinWallet = () => esploraWallet(sandbox.chains.bitcoin_regtest.url, sandbox.key, networks.bitcoin_regtest);
const evm = (name, id) => {
  const { url } = sandbox.chains[name];
  const chain = defineChain({ id, name, nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
  const account = privateKeyToAccount(`0x${sandbox.key}`);
  const reader = createPublicClient({ chain, transport: http(), pollingInterval: 100 });
  const wallet = createWalletClient({ account, chain, transport: http() });
  const send = async ({ to, data, value }) => {
    const hash = await wallet.sendTransaction({ to, data, value: BigInt(value) });
    assert.equal((await reader.waitForTransactionReceipt({ hash })).status, "success");
    return hash;
  };
  return { reader, wallet, send };
};

test("the test networks of local clients are there", async () => {
  const chains = await service.call("GET", "/chains");
  assert.deepEqual(chains.map(({ chain }) => chain), ["arbitrum_localnet", "bitcoin_regtest", "ethereum_localnet", "solana_localnet", "starknet_devnet"]);
  assert.ok(chains.every(({ assets }) => assets.length > 0 && assets.every(({ id }) => id === id.toLowerCase())));
  for (const [name, id] of [["ethereum_localnet", 31337], ["arbitrum_localnet", 31338]]) {
    assert.equal(await evm(name, id).reader.getChainId(), id);
    assert.equal(chains.find(({ chain }) => chain === name).id, `evm:${id}`);
  }
});

test("every asset that is listed is in assets and in liquidity, and there is a policy", async () => {
  const ids = (await service.call("GET", "/assets")).map(({ id }) => id).sort();
  assert.deepEqual((await service.call("GET", "/chains")).flatMap(({ assets }) => assets.map(({ id }) => id)).sort(), ids);
  assert.deepEqual((await service.call("GET", "/liquidity")).flatMap(({ assets }) => assets.map(({ asset }) => asset)).sort(), ids);
  const policy = await service.call("GET", "/policy");
  assert.equal(policy.default, "open");
  for (const name of ["isolation_groups", "blacklist_pairs", "whitelist_overrides"]) assert.ok(Array.isArray(policy[name]), name);
  for (const path of ["/health", "/fees", "/volume", "/schemas"]) assert.ok(await service.call("GET", path), path);
});

test("a browser may call", async () => {
  const origin = "http://wallet.example";
  for (const method of ["GET", "POST", "PATCH"]) {
    const headers = { origin, "access-control-request-method": method, "access-control-request-headers": "content-type,service-app-id" };
    const response = await fetch(`${sandbox.service}/v2/orders`, { method: "OPTIONS", headers });
    assert.ok(response.ok);
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    assert.ok(response.headers.get("access-control-allow-methods").includes(method));
    assert.equal(response.headers.get("access-control-allow-headers"), "content-type,service-app-id");
  }
  const refused = await fetch(`${sandbox.service}/v2/orders/00`, { headers: { origin } });
  assert.deepEqual([refused.status, refused.headers.get("access-control-allow-origin")], [404, "*"], "errors can be read too");
});

test("kinds are told apart by the members of an answer", async () => {
  const token = (await service.order("ethereum_localnet:usdc", "arbitrum_localnet:eth", 20_000_000)).result;
  assert.deepEqual(Object.keys(token.initiate_transaction).sort(), ["chain_id", "data", "gas_limit", "to", "value"]);
  assert.equal(token.initiate_transaction.chain_id, 31337);
  assert.equal(token.typed_data.primaryType, "Initiate");
  const native = (await service.order("arbitrum_localnet:eth", "ethereum_localnet:usdc", 10n ** 16n)).result;
  assert.ok("typed_data" in native && native.typed_data === null && native.initiate_transaction.chain_id === 31338);
  const starknet = (await service.order("starknet_devnet:strk", "ethereum_localnet:usdc", 10n ** 20n)).result;
  assert.ok("initiate_transaction" in starknet && "typed_data" in starknet);
  const sol = (await service.order("solana_localnet:sol", "ethereum_localnet:usdc", 100_000_000)).result;
  assert.ok(sol.versioned_tx_gasless === null && Buffer.from(sol.versioned_tx, "base64").toString("base64") === sol.versioned_tx);
  const btc = (await service.order("bitcoin_regtest:btc", "ethereum_localnet:usdc", 50_000)).result;
  assert.deepEqual([btc.to.slice(0, 6), btc.amount], ["bcrt1p", "50000"]);
});

test("a request that comes again is the same order, and errors are texts", async () => {
  const { request, result } = await service.order("ethereum_localnet:usdc", "arbitrum_localnet:eth", 20_000_000);
  const again = await Promise.all([1, 2, 3].map(async () => (await post(request)).json()));
  assert.ok(again.every((answer) => answer.result.order_id === result.order_id));
  const odd = { ...request, nonce: request.nonce + 1_000_000, solver_id: "", affiliate_fees: null, secret_hash: null, unknown: { members: [] } };
  assert.equal((await post(odd)).status, 200);
  for (const [body, status] of [[{ ...request, nonce: 1, source: null }, 400], [{ ...odd, nonce: 2, destination: { ...request.destination, asset: "moon:usdc" } }, 400]]) {
    const response = await post(body);
    const answer = await response.json();
    assert.deepEqual([response.status, answer.status, typeof answer.error, answer.result], [status, "Error", "string", undefined]);
  }
  await assert.rejects(service.quote("ethereum_localnet:usdc", "moon:usdc", 1), /unknown/);
  await assert.rejects(service.call("PATCH", `/orders/${result.order_id}?action=redeem`, { secret: "00".repeat(32) }), /secret/);
});

test("a record begins empty, echoes the nonce, and lists find it", async () => {
  const { request, order } = await service.order("ethereum_localnet:usdc", "arbitrum_localnet:eth", 20_000_000);
  const record = await order.read();
  assert.equal(record.nonce, String(request.nonce));
  assert.match(record.created_at, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.ok(Math.abs(Date.parse(record.created_at) - Date.now()) < 60_000);
  assert.equal(record.deadline, Math.floor(Date.parse(record.created_at) / 1_000) + 3_600);
  for (const swap of [record.source_swap, record.destination_swap]) {
    for (const what of ["initiate", "redeem", "refund"]) {
      assert.ok(swap[`${what}_tx_hash`] === "" && Number(swap[`${what}_block_number`]) === 0);
    }
    assert.match(swap.secret_hash, /^[0-9a-f]{64}$/);
  }
  const found = async (query) => {
    const page = await service.call("GET", `/orders?${new URLSearchParams({ per_page: 100, ...query })}`);
    for (const name of ["page", "total_pages", "total_items", "per_page"]) assert.equal(typeof page[name], "number", name);
    return page.data.some(({ order_id: id }) => id === order.id);
  };
  const owner = request.source.owner;
  for (const from_owner of [owner, owner.toLowerCase(), owner.toUpperCase().replace("0X", "0x")]) assert.ok(await found({ from_owner }));
  for (const status of ["all", "pending", "not-initiated", "pending,completed"]) assert.ok(await found({ from_owner: owner, status }), status);
  for (const status of ["completed", "fulfilled", "refunded", "expired", "in-progress"]) assert.ok(!(await found({ from_owner: owner, status })), status);
  assert.ok(!(await found({ from_owner: "0x00000000000000000000000000000000000000aa" })));
});

test("the relayer redeems with the client's secret, and a second call has the same receipt", async () => {
  const { secret, secret_hash } = secrets();
  const { result, order } = await service.order("arbitrum_localnet:eth", "ethereum_localnet:usdc", 10n ** 16n, { secret_hash });
  const { send } = evm("arbitrum_localnet", 31338);
  await send(result.initiate_transaction);
  await order.until(({ destination_swap: swap }) => swap.initiate_tx_hash !== "");
  const page = await service.call("GET", `/orders?from_owner=${sandbox.chains.arbitrum_localnet.account}&status=pending`);
  assert.ok(page.data.some(({ order_id: id }) => id === order.id), "paid, and not redeemed");
  const body = { secret: secret.toString("hex") };
  const hashes = await Promise.all([order.act("redeem", body), order.act("redeem", body)]);
  const { reader } = evm("ethereum_localnet", 31337);
  assert.equal((await reader.getTransactionReceipt({ hash: hashes[0] })).status, "success");
  await order.completed();
  assert.deepEqual([hashes[1], await order.act("redeem", body)], [hashes[0], hashes[0]]);
  assert.equal((await order.read()).destination_swap.secret, body.secret);
});

test("the local networks of starknet and solana take signed messages", async () => {
  const { url, account: address } = sandbox.chains.starknet_devnet;
  const provider = new RpcProvider({ nodeUrl: url });
  const account = new Account({ provider, address, signer: `0x${sandbox.key}` });
  const starknet = await service.order("starknet_devnet:strk", "solana_localnet:sol", 50n * 10n ** 18n);
  if (starknet.result.approval_transaction) {
    const { to, calldata } = starknet.result.approval_transaction;
    const { transaction_hash: hash } = await account.execute({ contractAddress: to, entrypoint: "approve", calldata });
    await provider.waitForTransaction(hash, { retryInterval: 100 });
  }
  const signature = await account.signMessage(starknet.result.typed_data);
  const felts = (Array.isArray(signature) ? signature : [signature.r, signature.s]).map((felt) => BigInt(felt).toString());
  const hash = await starknet.order.act("initiate", { signature: felts.join(",") });
  assert.ok((await provider.getTransactionReceipt(hash)).isSuccess());
  const token = await service.order("solana_localnet:usdc", "starknet_devnet:strk", 20_000_000);
  const transaction = solana.VersionedTransaction.deserialize(Buffer.from(token.result.versioned_tx_gasless, "base64"));
  transaction.sign([solana.Keypair.fromSeed(Buffer.from(sandbox.key, "hex"))]);
  await token.order.act("initiate", { signature: Buffer.from(transaction.serialize()).toString("base64") });
  await starknet.order.completed();
  await token.order.completed();
});

/** Returns the script tree of a swap, built from the record as a client does. */
const htlc = (initiator, redeemer, hash, timelock) => {
  const leaf = (text) => ({ output: bitcoin.script.fromASM(text) });
  const redeem = leaf(`OP_SHA256 ${hash} OP_EQUALVERIFY ${redeemer} OP_CHECKSIG`);
  const refund = leaf(`${Buffer.from(bitcoin.script.number.encode(timelock)).toString("hex")} OP_CHECKSEQUENCEVERIFY OP_DROP ${initiator} OP_CHECKSIG`);
  const instant = leaf(`${initiator} OP_CHECKSIG ${redeemer} OP_CHECKSIGADD OP_2 OP_NUMEQUAL`);
  const tree = [redeem, [refund, instant]];
  return bitcoin.payments.p2tr({ internalPubkey: INTERNAL_KEY, scriptTree: tree, redeem, network: networks.bitcoin_regtest });
};

/** Pays an order to Bitcoin, and signs the redemption as a client does. */
const redemption = async (wallet) => {
  const { secret, secret_hash } = secrets();
  const more = { secret_hash, delegates: { destination: wallet.xOnly } };
  const { result, order } = await service.order("arbitrum_localnet:eth", "bitcoin_regtest:btc", 10n ** 16n, more);
  await evm("arbitrum_localnet", 31338).send(result.initiate_transaction);
  const { destination_swap: swap } = await order.until(({ destination_swap: swap }) => swap.initiate_tx_hash !== "");
  assert.deepEqual([swap.delegate, swap.redeemer], [wallet.xOnly, wallet.address]);
  const address = htlc(swap.initiator, swap.delegate, swap.secret_hash, swap.timelock);
  assert.equal(address.address, swap.swap_id);
  const [coin] = await wallet.get(`/address/${swap.swap_id}/utxo`);
  assert.equal(String(coin.value), swap.amount);
  const transaction = new bitcoin.Transaction();
  transaction.version = 2;
  transaction.addInput(Buffer.from(coin.txid, "hex").reverse(), coin.vout);
  transaction.addOutput(bitcoin.address.toOutputScript(wallet.address, networks.bitcoin_regtest), BigInt(coin.value - 1_000));
  const script = address.redeem.output;
  const leaf = bitcoin.crypto.taggedHash("TapLeaf", Buffer.concat([Buffer.from([0xc0, script.length]), script]));
  const hash = transaction.hashForWitnessV1(0, [address.output], [BigInt(coin.value)], bitcoin.Transaction.SIGHASH_DEFAULT, leaf);
  transaction.setWitness(0, [wallet.signSchnorr(hash), secret, script, address.witness.at(-1)]);
  return { order, bytes: transaction.toHex() };
};

/** Calls the relayer outside `/v2`, as clients do for Bitcoin. */
const relayer = async (action, body) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${sandbox.service}/relayer/bitcoin/${action}`, { method: "POST", headers, body: JSON.stringify(body) });
  const { result, error } = await response.json();
  if (!result) throw new Error(`${response.status} ${error}`);
  return result;
};

test("a client redeems bitcoin with its own key and the parties of the record", async () => {
  const { order, bytes } = await redemption(bitcoinWallet());
  const sent = await fetch(`${sandbox.chains.bitcoin_regtest.url}/tx`, { method: "POST", body: bytes });
  assert.equal(sent.status, 200, await sent.clone().text());
  const record = await order.completed();
  assert.equal(record.destination_swap.redeem_tx_hash, await sent.text());
  await order.until(({ source_swap: source }) => source.redeem_tx_hash !== "");
});

test("the relayer broadcasts a redemption that a client has signed, and may be asked again", async () => {
  const { order, bytes } = await redemption(bitcoinWallet());
  const body = { order_id: order.id, redeem_tx_bytes: bytes };
  await assert.rejects(relayer("redeem", { ...body, redeem_tx_bytes: bytes.slice(0, -2) }), /400/);
  await assert.rejects(relayer("redeem", { ...body, order_id: "0".repeat(64) }), /404/);
  const hash = await relayer("redeem", body);
  const record = await order.completed();
  assert.equal(record.destination_swap.redeem_tx_hash, hash);
  assert.equal(await relayer("redeem", body), hash);
  await order.until(({ source_swap: source }) => source.redeem_tx_hash !== "");
});

test("two slashes after the service's url are one", async () => {
  const response = await fetch(`${sandbox.service}//v2/assets`);
  assert.ok((await response.json()).result.some(({ id }) => id === "ethereum_localnet:usdc"));
});

test("a client reads the domain of the contract, and pays from the record alone", async () => {
  const { result, order } = await service.order("ethereum_localnet:usdc", "arbitrum_localnet:eth", 20_000_000);
  const { reader, wallet, send } = evm("ethereum_localnet", 31337);
  await send(result.approval_transaction);
  const record = await order.read();
  const htlc = (await service.call("GET", "/assets")).find(({ id }) => id === record.source_swap.asset).htlc.address;
  const { domain } = await reader.getEip712Domain({ address: htlc });
  assert.deepEqual({ ...domain, chainId: Number(domain.chainId) }, { ...result.typed_data.domain, chainId: 31337, salt: `0x${"00".repeat(32)}` });
  const { redeemer, timelock, amount, secret_hash: hash } = record.source_swap;
  const message = { redeemer, timelock: BigInt(timelock), amount: BigInt(amount), secretHash: `0x${hash}` };
  const types = { Initiate: result.typed_data.types.Initiate };
  const { salt: _, ...signed } = domain;
  const signature = await wallet.signTypedData({ domain: signed, types, primaryType: "Initiate", message });
  await order.act("initiate", { signature });
  await order.completed();
  // A second payment reverts with the contract's own error, which tells clients that they have already paid.
  const { to, data } = result.initiate_transaction;
  const again = reader.call({ account: wallet.account, to, data });
  await assert.rejects(again, (error) => error.walk(({ data: reason }) => reason)?.data === "0x90c06174");
});

test("wallets find the fee rates of bitcoin", async () => {
  const fees = await bitcoinWallet().get("/v1/fees/recommended");
  const estimates = await bitcoinWallet().get("/fee-estimates");
  assert.deepEqual([fees.fastestFee, fees.halfHourFee, fees.hourFee, fees.economyFee], [1, 3, 6, 144].map((blocks) => estimates[blocks]));
  // Clients count 142 bytes for a payment of 153 bytes. The fee rate for ten blocks has to compensate for that.
  assert.ok(Math.floor(estimates[10] * 1.05) * 142 >= 153);
});

test("a compressed key finds the orders of its x coordinate", async () => {
  const { xOnly } = bitcoinWallet();
  const { order } = await service.order("bitcoin_regtest:btc", "arbitrum_localnet:usdc", 50_000, { delegates: { source: xOnly } });
  const record = await order.read();
  assert.deepEqual([record.source_swap.initiator, record.source_swap.delegate], [sandbox.chains.bitcoin_regtest.account, xOnly]);
  for (const from_owner of [`02${xOnly}`, `03${xOnly.toUpperCase()}`, sandbox.chains.bitcoin_regtest.account]) {
    const { data } = await service.call("GET", `/orders?from_owner=${from_owner}`);
    assert.ok(data.some(({ order_id: id }) => id === order.id), from_owner);
  }
});

/** Signs an instant refund as the service's clients do. */
const presign = async (wallet, order) => {
  const hashes = await service.call("GET", `/orders/${order.id}/instant-refund-hash`);
  assert.ok(Array.isArray(hashes) && hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash)));
  return hashes.map((hash) => Buffer.concat([wallet.signSchnorr(Buffer.from(hash, "hex")), Buffer.from([0x83])]).toString("hex"));
};

test("an instant refund that is signed ahead does not end an order that the solver answers", async () => {
  const wallet = bitcoinWallet();
  const more = { delegates: { source: wallet.xOnly } };
  const { result, order } = await service.order("bitcoin_regtest:btc", "arbitrum_localnet:usdc", 50_000, more);
  await wallet.pay(result.to, 50_000);
  await order.act("instant-refund", { signatures: await presign(wallet, order) });
  const record = await order.completed();
  assert.equal(record.source_swap.refund_tx_hash, "");
});

test("the relayer gives instant refunds too", async () => {
  const wallet = bitcoinWallet();
  const more = { delegates: { source: wallet.xOnly } };
  await sandbox.post("lies", { name: "solver-never-pays", on: true });
  try {
    const { result, order } = await service.order("bitcoin_regtest:btc", "arbitrum_localnet:usdc", 70_000, more);
    await wallet.confirmed(await wallet.pay(result.to, 70_000));
    const hashes = await relayer("instant-refund-hash", { order_id: order.id });
    assert.deepEqual(hashes, await service.call("GET", `/orders/${order.id}/instant-refund-hash`));
    const hash = await relayer("instant-refund", { order_id: order.id, signatures: await presign(wallet, order) });
    const record = await order.until(({ source_swap: swap }) => swap.refund_tx_hash !== "");
    assert.equal(record.source_swap.refund_tx_hash, hash);
  } finally {
    await sandbox.post("lies", { name: "none", on: true });
  }
});

test("an instant refund gives back what the solver does not answer, and may be sent again", async () => {
  const wallet = bitcoinWallet();
  const more = { delegates: { source: wallet.xOnly } };
  await sandbox.post("lies", { name: "solver-never-pays", on: true });
  try {
    const { result, order } = await service.order("bitcoin_regtest:btc", "arbitrum_localnet:usdc", 60_000, more);
    await wallet.confirmed(await wallet.pay(result.to, 60_000));
    const signatures = await presign(wallet, order);
    const short = signatures.map((signature) => signature.slice(2));
    await assert.rejects(order.act("instant-refund", { signatures: short }), /65 bytes/);
    const hash = await order.act("instant-refund", { signatures });
    assert.equal(await order.act("instant-refund", { signatures: await presign(wallet, order) }), hash);
    const record = await order.until(({ source_swap: swap }) => swap.refund_tx_hash !== "");
    assert.equal(record.source_swap.refund_tx_hash, hash);
    assert.equal(await order.act("instant-refund", { signatures: await presign(wallet, order) }), hash);
    await assert.rejects(service.call("GET", `/orders/${"0".repeat(64)}/instant-refund-hash`), /404/);
  } finally {
    await sandbox.post("lies", { name: "none", on: true });
  }
});
