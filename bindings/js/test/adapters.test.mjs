// Each adapter with the real library and a local key: what comes out are the fixtures' bytes, which other tools made.
import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { test } from "node:test";
import * as ecc from "@bitcoinerlab/secp256k1";
import { Ed25519Keypair } from "@mysten/sui/keypairs/ed25519";
import { Transaction as SuiTransaction } from "@mysten/sui/transactions";
import { Transaction as ScureTransaction } from "@scure/btc-signer";
import { createKeyPairSignerFromPrivateKeyBytes } from "@solana/signers";
import { Keypair, VersionedTransaction } from "@solana/web3.js";
import * as bitcoin from "bitcoinjs-lib";
import { Account, RpcProvider, shortString } from "starknet";
import { createWalletClient, custom, keccak256, parseTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base58 } from "@scure/base";
import { Order, Recovery, Registry } from "countersign";
import { FateUnknown, atomicity, checkSent, paymentOfCalls, paymentOfReceipt, sendCalls, sendOrder, sendTransactions, signTypedData } from "countersign/eip1193";
import { signWithSolanaWallet } from "countersign/solana-wallet";
import { signWithSuiWallet } from "countersign/sui-wallet";
import { signWithViem } from "countersign/viem";
import * as bitcoinExample from "../examples/bitcoin.mjs";
import * as browserExample from "../examples/evm-browser.mjs";
import * as viemExample from "../examples/evm-viem.mjs";
import * as solanaExample from "../examples/solana.mjs";
import * as starknetExample from "../examples/starknet.mjs";
import * as suiExample from "../examples/sui.mjs";
import { accepted, documents, fixture, walletOf } from "./fixtures.mjs";
import { bundled, failure, inTime, scripted } from "./wallets.mjs";

/** A wallet shows the order before it signs. */
const approve = async (summary) => summary.length > 0;

/** The cases of a family with a key, cut into their parts. */
function keyed(family) {
  const cases = accepted(family).map((one) => ({ ...one, docs: documents(one.input), ...walletOf(one.input), artefacts: one.expect.artefacts }));
  return cases.filter(({ key }) => key !== undefined);
}

const hex = (text) => Buffer.from(text.replace("0x", ""), "hex");

test("viem: a local account signs transactions and messages", async () => {
  for (const { id, docs, registry, wallet, key, artefacts } of keyed("evm")) {
    const account = privateKeyToAccount(`0x${key.replace("0x", "")}`);
    const raw = await viemExample.pay(docs, registry, wallet, account, approve);
    const expected = [artefacts.approval, artefacts.initiate].filter(Boolean);
    assert.deepEqual(raw, expected.map(({ signed }) => signed), id);
    const unsigned = Order.verify(docs, new Registry(registry)).prepare(wallet);
    await signWithViem(unsigned, account);
    assert.deepEqual(JSON.parse(unsigned.artefacts), artefacts, id);
  }
});

/** A signed transaction as `eth_getTransactionByHash` returns it: quantities in hex, without leading zeros. */
function asNodesWrite(raw) {
  const { type, data: input, ...parsed } = parseTransaction(raw);
  const quantity = (part) => `0x${BigInt(part).toString(16)}`;
  const parts = Object.entries(parsed).map(([name, part]) => [name, ["bigint", "number"].includes(typeof part) || ["r", "s"].includes(name) ? quantity(part) : part]);
  // viem leaves out what is zero.
  const zeros = Object.fromEntries(["value", "nonce", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"].map((name) => [name, "0x0"]));
  return { ...zeros, ...Object.fromEntries(parts), input, type: type === "legacy" ? "0x0" : "0x2", hash: keccak256(raw), blockNumber: "0x1" };
}

test("viem: what a wallet sent with its own nonce and fees is compared with the order", async () => {
  for (const { id, docs, registry, key } of keyed("evm")) {
    const account = privateKeyToAccount(`0x${key.replace("0x", "")}`);
    const order = Order.verify(docs, new Registry(registry));
    for (const { to, data, value, chainId } of order.walletCalls()) {
      const call = { to, data, value: BigInt(value), chainId: Number(chainId), nonce: 77, gas: 999_999n };
      const signed = [
        await account.signTransaction({ ...call, type: "eip1559", maxFeePerGas: 9n, maxPriorityFeePerGas: 1n }),
        await account.signTransaction({ ...call, type: "legacy", gasPrice: 9n }),
      ];
      for (const raw of signed) {
        const { role, warnings } = order.matchWithWarnings(raw);
        assert.ok(["approval", "initiate"].includes(role), `${id}: ${role}`);
        assert.deepEqual(order.matchWithWarnings(JSON.stringify(asNodesWrite(raw))), { role, warnings }, id);
        if (warnings.length === 0) assert.equal(order.matches(raw), role, id);
        else assert.throws(() => order.matches(raw), { code: "transaction_mismatch", at: "/transaction" }, id);
      }
      const digit = data[40] === "0" ? "1" : "0";
      const other = await account.signTransaction({ ...call, data: data.slice(0, 40) + digit + data.slice(41), type: "legacy", gasPrice: 9n });
      assert.throws(() => order.matches(other), { code: "transaction_mismatch", at: "/transaction/input#19-20", blame: "caller" }, id);
    }
  }
  const [{ docs, registry }] = keyed("evm");
  const order = Order.verify(docs, new Registry(registry));
  for (const malformed of ["", "0x", "{}", "{", new Uint8Array([0xff])]) assert.throws(() => order.matches(malformed), { name: "CountersignError" });
});

test("viem: a wallet client signs, with a local account or by its wallet", async () => {
  const { docs, registry, wallet, key, artefacts } = keyed("evm").find(({ id }) => id === "evm-token-approval-exact");
  const account = privateKeyToAccount(key);
  const request = async ({ method, params }) => {
    if (method === "eth_chainId") return "0x2105";
    if (method === "eth_signTypedData_v4") return account.signTypedData(JSON.parse(params[1]));
    assert.equal(method, "eth_signTransaction");
    const { from, nonce, gas, value = "0x0", chainId, maxFeePerGas, maxPriorityFeePerGas, to, data } = params[0];
    assert.equal(from.toLowerCase(), account.address.toLowerCase());
    const [fee, tip, wei, limit] = [maxFeePerGas, maxPriorityFeePerGas, value, gas].map(BigInt);
    return account.signTransaction({ to, data, nonce: Number(nonce), chainId: Number(chainId), gas: limit, value: wei, maxFeePerGas: fee, maxPriorityFeePerGas: tip });
  };
  const offline = { request: async () => assert.fail("no network") };
  const clients = [
    createWalletClient({ account, transport: custom(offline) }),
    createWalletClient({ account: account.address, transport: custom({ request }) }),
    createWalletClient({ transport: custom({ request }) }),
  ];
  for (const client of clients) {
    const unsigned = Order.verify(docs, new Registry(registry)).prepare(wallet);
    await signWithViem(unsigned, client);
    assert.deepEqual(JSON.parse(unsigned.artefacts), artefacts);
  }
});

test("EIP-1193 and viem: a contract wallet's signature is recognized by its length, or named", async () => {
  const { docs, registry, key } = keyed("evm").find(({ id }) => id === "evm-token-approval-exact");
  const own = await privateKeyToAccount(key).signTypedData(JSON.parse(Order.verify(docs, new Registry(registry)).prepareGasless().missingRequests[0].native.value));
  const word = (number) => number.toString(16).padStart(64, "0");
  const wrapped = `0x${word(0x1111)}${word(96)}${word(128)}${word(0)}${word(65)}${own.slice(2)}${"00".repeat(31)}${"6492".repeat(16)}`;
  const sign = async (answer, by) => {
    const answers = { request: async () => answer, signTypedData: async () => answer };
    const signatures = [];
    for (const adapter of [signTypedData, signWithViem]) {
      const unsigned = Order.verify(docs, new Registry(registry)).prepareGasless();
      await adapter(unsigned, answers, by);
      const isContract = unsigned.warnings.some(({ code }) => code === "contract_signature_unverified");
      signatures.push(`${isContract ? "contract" : "key"} ${unsigned.finish().gasless}`);
    }
    assert.equal(signatures[0], signatures[1]);
    return signatures[0];
  };
  assert.equal(await sign(own), `key ${own}`);
  assert.equal(await sign("0x"), "contract 0x");
  assert.equal(await sign(`0x${"ab".repeat(192)}`), `contract 0x${"ab".repeat(192)}`);
  assert.equal(await sign(own, { contract: true }), `contract ${own}`);
  assert.equal(await sign(wrapped, { deployed: true }), `contract ${own}`);
  await assert.rejects(sign(wrapped), { code: "account_not_deployed" });
  await assert.rejects(sign(`0x${"ab".repeat(65)}`), { code: "signature_malformed" });
});

/** A browser wallet that takes the fees of the fixture, as its user might. */
function browserWallet(account, wallet, gas) {
  const { nonce, max_fee_per_gas, max_priority_fee_per_gas } = JSON.parse(wallet);
  const sent = [];
  const request = async ({ method, params }) => {
    if (method === "eth_signTypedData_v4") {
      assert.equal(params[0].toLowerCase(), account.address.toLowerCase());
      return account.signTypedData(JSON.parse(params[1]));
    }
    if (method === "eth_getTransactionByHash") {
      const found = sent.find((raw) => keccak256(raw) === params[0]);
      return found ? asNodesWrite(found) : null;
    }
    const calls = method === "wallet_sendCalls" ? params[0].calls : params;
    assert.ok(method === "wallet_sendCalls" || method === "eth_sendTransaction");
    if (method === "wallet_sendCalls") {
      assert.deepEqual([params[0].version, params[0].atomicRequired], ["2.0.0", true]);
    }
    for (const { to, data, value, chainId = params[0].chainId } of calls) {
      const transaction = {
        type: "eip1559",
        chainId: Number(chainId),
        nonce: nonce + sent.length,
        to,
        data,
        value: BigInt(value ?? 0),
        gas: gas[sent.length],
        maxFeePerGas: BigInt(max_fee_per_gas),
        maxPriorityFeePerGas: BigInt(max_priority_fee_per_gas),
      };
      sent.push(await account.signTransaction(transaction));
    }
    return method === "wallet_sendCalls" ? { id: "0x1d" } : keccak256(sent.at(-1));
  };
  return { provider: { request }, sent };
}

test("EIP-1193: a browser wallet signs, sends, and batches", async (context) => {
  const { now } = Date;
  context.after(() => (Date.now = now));
  // The records of the fixtures have an hour from 05:06:07 on.
  Date.now = () => Date.UTC(2026, 2, 4, 5, 10);
  const hasDeadline = ({ record }) => !record || String(record).includes('"deadline"');
  const cases = keyed("evm").filter(({ docs, wallet, artefacts }) => hasDeadline(docs) && !wallet.includes("gas_price") && !docs.request.includes("delegate") && artefacts.typed_data);
  assert.ok(cases.length > 20);
  for (const { id, docs, registry, wallet, key, artefacts } of cases) {
    const { result } = JSON.parse(docs.response);
    const initiate = result.initiate_transaction ?? result.transaction;
    const gas = [result.approval_transaction, initiate].filter(Boolean).map(({ gas_limit }) => BigInt(gas_limit));
    const expected = [artefacts.approval, artefacts.initiate].filter(Boolean);
    const account = privateKeyToAccount(`0x${key.replace("0x", "")}`);

    const gasless = browserWallet(account, wallet, gas);
    assert.equal(await browserExample.pay(docs, registry, gasless.provider, approve, { gasless: true }), artefacts.typed_data.signature, id);

    const single = browserWallet(account, wallet, gas);
    const waited = [];
    const hashes = await browserExample.pay(docs, registry, single.provider, approve, { waitForReceipt: async (hash) => waited.push(hash) });
    assert.deepEqual(hashes, expected.map(({ tx_hash }) => tx_hash), id);
    assert.deepEqual(waited, hashes.slice(0, -1), id);
    const order = Order.verify(docs, new Registry(registry));
    const roles = await Promise.all(hashes.map((hash) => checkSent(order, single.provider, hash)));
    assert.deepEqual(roles, hashes.length === 2 ? ["approval", "initiate"] : ["initiate"], id);
    // Another transaction than the one that was asked for is noticed, and so is one that is not there yet.
    const lying = { request: async () => asNodesWrite(single.sent.at(-1)) };
    await assert.rejects(checkSent(order, lying, `0x${"00".repeat(32)}`), { code: "transaction_mismatch", at: "/transaction/hash" });
    await assert.rejects(checkSent(order, { request: async () => null }, hashes[0]), TypeError);

    const batched = browserWallet(account, wallet, gas);
    assert.equal(await browserExample.pay(docs, registry, batched.provider, approve, { batch: true }), "0x1d", id);
    assert.deepEqual(batched.sent, expected.map(({ signed }) => signed), id);
  }

  // The deadline is looked at again between the approval and the payment.
  const late = cases.find(({ docs, artefacts }) => docs.record && artefacts.approval);
  const { provider, sent } = browserWallet(privateKeyToAccount(`0x${late.key.replace("0x", "")}`), late.wallet, [100_000n, 100_000n]);
  const waitForReceipt = async () => (Date.now = () => Date.UTC(2026, 2, 4, 9));
  await assert.rejects(browserExample.pay(late.docs, late.registry, provider, approve, { waitForReceipt }), { code: "order_expired" });
  assert.equal(sent.length, 1);
});

test("browser wallets: a Safe gets no gas limit, and a suffix behind the calldata is information", async () => {
  const { input, registry } = fixture("evm-token-approval-exact");
  const { docs, key, wallet } = keyed("evm").find(({ id }) => id === "evm-token-approval-exact");
  const order = Order.verify(documents(input), new Registry(registry));
  for (const [options, expected] of [[undefined, true], [{ gas: true }, true], [{ gas: false }, false]]) {
    const asked = [];
    const provider = { request: async ({ params }) => `0x${"00".repeat(asked.push(params[0]))}` };
    await sendTransactions(order, provider, async () => undefined, options);
    assert.deepEqual(asked.map((call) => Object.hasOwn(call, "gas")), [expected, expected]);
  }
  const unsigned = Order.verify(docs, new Registry(registry)).prepare(wallet);
  unsigned.sign(key);
  const account = privateKeyToAccount(`0x${key.replace("0x", "")}`);
  const [first, last] = unsigned.finish().transactions.map(({ payload }) => parseTransaction(`0x${Buffer.from(hex(payload)).toString("hex")}`));
  const { type, ...sent } = last;
  const asPrepared = await account.signTransaction({ type, ...sent, r: undefined, s: undefined, v: undefined, yParity: undefined });
  assert.deepEqual(order.matchWithWarnings(asPrepared), { role: "initiate", warnings: [] });
  const suffixed = { type, ...sent, data: `${sent.data}8021`, r: undefined, s: undefined, v: undefined, yParity: undefined };
  const raw = await account.signTransaction(suffixed);
  const { role, warnings } = order.matchWithWarnings(raw);
  assert.deepEqual([role, warnings.map(({ code, severity }) => [code, severity])], ["initiate", [["calldata_suffix", "info"]]]);
  assert.match(warnings[0].message, /2 bytes behind the initiate: 8021/);
  const node = (raw) => ({ request: async () => asNodesWrite(raw) });
  assert.equal(order.matches(raw), "initiate");
  assert.equal(await checkSent(order, node(raw), asNodesWrite(raw).hash), "initiate");
  // An approval that the wallet enlarged has to be read.
  const enlarged = { ...first, data: `${first.data.slice(0, -64)}${"f".repeat(64)}`, r: undefined, s: undefined, v: undefined, yParity: undefined };
  const unlimited = await account.signTransaction(enlarged);
  assert.deepEqual(order.matchWithWarnings(unlimited).warnings.map(({ code }) => code), ["unlimited_approval"]);
  const refused = { code: "transaction_mismatch", at: "/transaction", message: /match it with warnings/ };
  assert.throws(() => order.matches(unlimited), refused);
  await assert.rejects(checkSent(order, node(unlimited), asNodesWrite(unlimited).hash), refused);
});

test("the payment of bundled calls is found in the wallet's status, or in a receipt", () => {
  const { order, receipt, status } = bundled();
  for (const found of [status, JSON.stringify(status), new TextEncoder().encode(JSON.stringify(status)), receipt, { ...status, status: "CONFIRMED" }]) {
    assert.equal(order.findPayment(found), receipt.transactionHash);
  }
  // As viem returns it: words, and quantities as bigint.
  assert.equal(order.findPayment({ ...status, status: "success", chainId: undefined, receipts: [{ ...receipt, status: "success", blockNumber: 43981n }] }), receipt.transactionHash);
  const refusals = [
    [{ ...status, status: 100 }, "/calls/status", /not confirmed yet/],
    [{ ...status, status: "PENDING" }, "/calls/status", /not confirmed yet/],
    [{ ...status, status: 400 }, "/calls/status", /did not send/],
    [{ ...status, status: "0x1f4" }, "/calls/status", /reverted/],
    [{ ...status, chainId: "0x1" }, "/calls/chainId", /./],
    [{ ...status, receipts: undefined }, "/calls/receipts", /gives no receipts/],
    [{ ...status, receipts: [{ ...receipt, logs: [] }] }, "/calls/receipts", /no event/],
    [{ ...status, receipts: [receipt, { ...receipt, transactionHash: `0x${"88".repeat(32)}` }] }, "/calls/receipts/1/logs/0", /twice/],
  ];
  for (const [found, at, message] of refusals) assert.throws(() => order.findPayment(found), { code: "transaction_mismatch", at, message });
  for (const wrong of [undefined, null, 1, [], "", "{"]) assert.throws(() => order.findPayment(wrong), { name: "CountersignError" });
  const other = fixture("sui-native");
  assert.throws(() => Order.verify(documents(other.input), new Registry(other.registry)).findPayment(status), { code: "unsupported_family" });
});

test("the payment of another account is found in what a node of Solana says that the transaction did", () => {
  const { docs, registry, artefacts } = keyed("solana").find(({ id }) => id === "solana-native-legacy");
  const order = Order.verify(docs, new Registry(registry));
  const { signed, signature } = artefacts.transaction;
  const shown = { slot: 1, transaction: [signed, "base64"], meta: { err: null, innerInstructions: [] }, version: "legacy" };
  for (const effect of [shown, JSON.stringify(shown), { ...shown, slot: 1n }]) assert.equal(order.findPayment(effect), signature);
  const failed = { ...shown, meta: { err: { InstructionError: [0, { Custom: 1 }] } } };
  assert.throws(() => order.findPayment(failed), { code: "transaction_mismatch", at: "/calls/meta/err", message: /the transaction failed/ });
  assert.throws(() => order.findPayment({ ...shown, meta: {} }), { code: "missing_field", at: "/calls/meta/err" });
});

test("EIP-5792: what wallets say of batches, in the shapes of all versions", async () => {
  const { order } = bundled();
  const { from, chainId } = order.walletCalls("evm")[0];
  const say = (chain, capabilities) => ({ wallet_getCapabilities: { [chain]: capabilities } });
  const cases = [
    [say(chainId, { atomic: { status: "supported" } }), "supported"],
    [say(chainId, { atomic: { status: "ready" }, paymasterService: { supported: true } }), "ready"],
    [say(chainId, { atomic: { status: "unsupported" } }), "unsupported"],
    [say("0x0", { atomic: { status: "supported" } }), "supported"],
    [{ wallet_getCapabilities: { "0x0": { atomic: { status: "supported" } }, [chainId]: { atomic: { status: "unsupported" } } } }, "unsupported"],
    [{ wallet_getCapabilities: { "0x0": { atomic: { status: "ready" } }, [chainId]: { paymasterService: { supported: true } } } }, "ready"],
    [say(chainId, { atomicBatch: { supported: true } }), "supported"],
    [say(chainId, { atomicBatch: { supported: false } }), "unsupported"],
    [say(String(Number(chainId)), { atomic: { status: "supported" } }), "supported"],
    [say("0x1", { atomic: { status: "supported" } }), "unsupported"],
    [say(chainId, { atomic: { status: "perhaps" } }), "unsupported"],
    [{ wallet_getCapabilities: {} }, "unsupported"],
    [{ wallet_getCapabilities: null }, "unsupported"],
    [{ wallet_getCapabilities: "yes" }, "unsupported"],
    [{}, "unknown"],
    [{ wallet_getCapabilities: failure(4100) }, "unknown"],
    [{ wallet_getCapabilities: ([, chains]) => (chains ? failure(-32602) : { [chainId]: { atomicBatch: { supported: true } } }) }, "supported"],
    [{ wallet_getCapabilities: failure(-32602) }, "unknown"],
  ];
  for (const [answers, expected] of cases) {
    const wallet = scripted(answers);
    assert.equal(await atomicity(order, wallet), expected, JSON.stringify(answers));
    assert.deepEqual(wallet.asked[0].params, [from, [chainId]]);
  }
});

test("EIP-5792: an order is sent as a batch where the wallet can, and never twice", () =>
  inTime(async () => {
    const { order, receipt, status } = bundled();
    const calls = order.walletCalls("evm");
    const { chainId } = calls[0];
    const wait = async () => undefined;
    const hash = `0x${"55".repeat(32)}`;
    const can = (state) => ({ wallet_getCapabilities: { [chainId]: { atomic: { status: state } } }, eth_sendTransaction: hash });

    for (const answer of [{ id: "0x1d" }, "0x1d"]) {
      const wallet = scripted({ ...can("ready"), wallet_sendCalls: answer, wallet_getCallsStatus: status });
      const sent = await sendOrder(order, wallet, wait);
      assert.deepEqual(sent, { kind: "batch", id: "0x1d" });
      const [{ params }] = wallet.named("wallet_sendCalls");
      assert.deepEqual([params[0].version, params[0].atomicRequired, params[0].chainId], ["2.0.0", true, chainId]);
      assert.equal(params[0].calls.length, calls.length);
      for (const id of [sent.id, answer]) assert.equal(await paymentOfCalls(order, wallet, id), receipt.transactionHash);
      assert.deepEqual(wallet.named("wallet_getCallsStatus").map((one) => one.params), [["0x1d"], ["0x1d"]]);
      assert.equal(wallet.named("eth_sendTransaction").length, 0);
    }

    // Wallets without batches, and refusals that say that nothing was sent.
    const singly = [can("unsupported"), { eth_sendTransaction: hash }];
    for (const code of [-32601, -32004, 4200, 5700, 5710, 5740, 5750, 5760]) {
      singly.push({ ...can("ready"), wallet_sendCalls: failure(code) });
    }
    for (const answers of singly) {
      for (const wrap of [(wallet) => wallet, (wallet) => createWalletClient({ transport: custom(wallet) })]) {
        const wallet = scripted(answers);
        assert.deepEqual(await sendOrder(order, wrap(wallet), wait), { kind: "transactions", hashes: calls.map(() => hash) });
        assert.equal(wallet.named("eth_sendTransaction").length, calls.length);
      }
    }

    // The owner declines: nothing else is asked for.
    for (const code of [4001, 4100]) {
      const wallet = scripted({ ...can("supported"), wallet_sendCalls: failure(code) });
      await assert.rejects(sendOrder(order, wallet, wait), { code });
      assert.equal(wallet.named("eth_sendTransaction").length, 0);
    }

    // The batch may have been sent. 5720 says that there already is one.
    const wrapped = Object.assign(new Error("no receipt"), { code: -32603, cause: failure(-32601) });
    const lost = [wrapped, Object.assign(new Error("no receipt"), { cause: failure(-32601) }), failure(-32603), failure(-32000), failure(-32602), failure(4900), failure(5000), failure(5720), new Error("timeout"), failure("5760"), null, {}, { id: 7 }, ""];
    for (const answer of lost) {
      const wallet = scripted({ ...can("supported"), wallet_sendCalls: answer });
      await assert.rejects(sendOrder(order, wallet, wait), FateUnknown);
      await assert.rejects(sendCalls(order, wallet), { name: "FateUnknown", message: /may have been sent/ });
      assert.deepEqual([wallet.named("wallet_sendCalls").length, wallet.named("eth_sendTransaction").length], [2, 0]);
    }

    // A client of viem does not ask the wallet again by itself.
    for (const send of [sendCalls, (...both) => sendTransactions(...both, wait)]) {
      const wallet = scripted({ wallet_sendCalls: failure(-32603), eth_sendTransaction: failure(-32603) });
      await assert.rejects(send(order, createWalletClient({ transport: custom(wallet) })));
      assert.equal(wallet.asked.length, 1);
    }
  }));

test("EIP-5792: the status of a batch is asked for until the calls are confirmed or failed", async () => {
  const { order, receipt, status } = bundled();
  const pending = [{ ...status, status: 100, receipts: undefined }, { ...status, status: "PENDING", receipts: [] }, status];
  const wallet = scripted({ wallet_getCallsStatus: (_, count) => pending[count - 1] });
  assert.equal(await paymentOfCalls(order, wallet, { id: "0x1d" }, { every: 1 }), receipt.transactionHash);
  assert.equal(wallet.asked.length, 3);
  const always = scripted({ wallet_getCallsStatus: pending[0] });
  await assert.rejects(paymentOfCalls(order, always, "0x1d", { every: 1, signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  for (const [answer, expected] of [
    [{ ...status, status: 400 }, { code: "transaction_mismatch", at: "/calls/status" }],
    [{ ...status, receipts: null }, { code: "transaction_mismatch", at: "/calls/receipts" }],
    [null, { name: "TypeError", message: /does not know the batch 0x1d/ }],
    [failure(5730), { code: 5730 }],
  ]) {
    const one = scripted({ wallet_getCallsStatus: answer });
    await assert.rejects(paymentOfCalls(order, one, "0x1d"), expected);
    assert.equal(one.asked.length, 1);
  }
  await assert.rejects(paymentOfCalls(order, wallet, {}), TypeError);
});

test("EIP-1193: what another account sent is proven by its receipt", async () => {
  const { order, receipt } = bundled();
  const node = scripted({ eth_getTransactionReceipt: ([hash]) => (hash === `0x${"66".repeat(32)}` ? null : receipt) });
  assert.equal(await paymentOfReceipt(order, node, receipt.transactionHash), receipt.transactionHash);
  await assert.rejects(paymentOfReceipt(order, node, `0x${"66".repeat(32)}`), /no receipt of 0x66/);
  await assert.rejects(paymentOfReceipt(order, node, `0x${"55".repeat(32)}`), /returned the receipt of 0x77/);
});

/** Signs a transaction of version 1 by the cryptography of Node. The accounts begin behind 42 bytes, and the signatures are in their order. */
function signVersion1(keypair, transaction) {
  const start = transaction.length - 64 * transaction[1];
  const place = Array.from({ length: transaction[1] }, (_, index) => Buffer.from(transaction.subarray(42 + 32 * index, 74 + 32 * index)))
    .findIndex((account) => account.equals(keypair.publicKey.toBytes()));
  const key = createPrivateKey({ key: Buffer.concat([hex("302e020100300506032b657004220420"), keypair.secretKey.subarray(0, 32)]), format: "der", type: "pkcs8" });
  const signed = Uint8Array.from(transaction);
  signed.set(sign(null, transaction.subarray(0, start), key), start + 64 * place);
  return signed;
}

/** A wallet of the Wallet Standard with one account of @solana/web3.js. */
function solanaWallet(keypair, change = () => {}) {
  const signTransaction = async (...inputs) =>
    inputs.map(({ transaction }) => {
      // @solana/web3.js 1 does not know version 1, whose signatures stand at the end.
      if (transaction[0] === 129) return { signedTransaction: signVersion1(keypair, transaction) };
      const parsed = VersionedTransaction.deserialize(transaction);
      change(parsed);
      parsed.sign([keypair]);
      return { signedTransaction: parsed.serialize() };
    });
  return {
    accounts: [{ address: keypair.publicKey.toBase58() }],
    features: { "solana:signTransaction": { version: "1.0.0", supportedTransactionVersions: ["legacy", 0, 1], signTransaction } },
  };
}

const solanaKeypair = (key) => {
  const bytes = base58.decode(key);
  return bytes.length === 64 ? Keypair.fromSecretKey(bytes) : Keypair.fromSeed(bytes);
};

test("Solana: a standard wallet signs", async () => {
  for (const { id, docs, registry, wallet, key, artefacts } of keyed("solana")) {
    const { transactions, gasless } = await solanaExample.pay(docs, registry, wallet, solanaWallet(solanaKeypair(key)), approve);
    assert.ok(transactions.includes(Buffer.from(artefacts.transaction.signed, "base64").toString("hex")), id);
    assert.equal(gasless, artefacts.gasless?.submission, id);
  }
});

test("Solana: local signers of kit and web3.js sign", async () => {
  for (const { id, docs, registry, wallet, key, artefacts } of keyed("solana")) {
    const keypair = solanaKeypair(key);
    for (const signer of [await createKeyPairSignerFromPrivateKeyBytes(keypair.secretKey.slice(0, 32)), keypair]) {
      const unsigned = Order.verify(docs, new Registry(registry)).prepare(wallet);
      await signWithSolanaWallet(unsigned, signer);
      assert.deepEqual(JSON.parse(unsigned.artefacts), artefacts, id);
    }
    const unsigned = Order.verify(docs, new Registry(registry)).prepare(wallet);
    await assert.rejects(signWithSolanaWallet(unsigned, Keypair.generate()), { code: "key_mismatch" });
    await assert.rejects(signWithSolanaWallet(unsigned, await createKeyPairSignerFromPrivateKeyBytes(new Uint8Array(32).fill(7))), /does not have the account/);
  }
});

test("Solana: a wallet that changes the transaction is refused", async () => {
  const { docs, registry, wallet, key } = keyed("solana").find(({ id }) => id === "solana-native-v0");
  const dearer = solanaWallet(solanaKeypair(key), (transaction) => {
    transaction.message.recentBlockhash = base58.encode(new Uint8Array(32).fill(9));
  });
  await assert.rejects(solanaExample.pay(docs, registry, wallet, dearer, approve), { code: "transaction_mismatch" });
  await assert.rejects(solanaExample.pay(docs, registry, wallet, solanaWallet(Keypair.generate()), approve), /does not have the account/);
});

test("Solana: a wallet gets only the versions of messages that it says it signs", async () => {
  const cases = keyed("solana").filter(({ docs }) => !docs.request.includes("delegate"));
  const seen = new Set();
  for (const { id, docs, registry, wallet, key } of cases) {
    const order = Order.verify(docs, new Registry(registry));
    const first = order.prepare(wallet).missingRequests[0]?.payload[0];
    const version = first < 128 ? "legacy" : first - 128;
    const ask = async (versions) => {
      const standard = solanaWallet(solanaKeypair(key));
      const feature = standard.features["solana:signTransaction"];
      let asked = 0;
      const signTransaction = async (...inputs) => (asked += 1) && feature.signTransaction(...inputs);
      const wallets = { ...standard, features: { "solana:signTransaction": { ...feature, supportedTransactionVersions: versions, signTransaction } } };
      await signWithSolanaWallet(order.prepare(wallet), wallets).catch((error) => assert.fail(asked === 0 ? error : `asked: ${error}`));
    };
    const named = version === "legacy" ? /a legacy message/ : new RegExp(`a message of version ${version}, .* only: legacy`);
    const others = ["legacy", 0, 1].filter((one) => one !== version);
    await ask([version]);
    await assert.rejects(ask(others), version === "legacy" ? named : /solana:signTransaction of the wallet signs only/, id);
    for (const none of [null, undefined]) {
      if (version === "legacy") await ask(none);
      else await assert.rejects(ask(none), named, id);
    }
    seen.add(version);
  }
  assert.equal(seen.size, 3, [...seen].join());
  const { docs, registry, wallet, key } = cases[0];
  const noFeature = { ...solanaWallet(solanaKeypair(key)), features: {} };
  await assert.rejects(signWithSolanaWallet(Order.verify(docs, new Registry(registry)).prepare(wallet), noFeature), /no feature solana:signTransaction/);
});

test("Solana: a recovery may have a message of version 1, for wallets that sign it", async () => {
  const { input, registry } = fixture("solana-record-testnet");
  const refund = Recovery.refund(documents(input).record, "source", new Registry(registry));
  const keypair = Keypair.fromSeed(new Uint8Array(32).fill(9));
  const context = { recentBlockhash: base58.encode(new Uint8Array(32).fill(5)), sender: keypair.publicKey.toBase58() };
  const config = { computeUnitLimit: 100_000, loadedAccountsDataSizeLimit: 65_536n, priorityFee: 5n, heapSize: 32_768 };
  const wallet = solanaWallet(keypair);
  for (const [chosen, first] of [[undefined, 1], [config, 129]]) {
    const unsigned = refund.prepare({ ...context, config: chosen });
    assert.equal(unsigned.missingRequests[0].payload[0], first);
    await signWithSolanaWallet(unsigned, wallet);
    assert.deepEqual(unsigned.missing, []);
  }
  wallet.features["solana:signTransaction"].supportedTransactionVersions = ["legacy", 0];
  await assert.rejects(signWithSolanaWallet(refund.prepare({ ...context, config }), wallet), /a message of version 1, .* only: legacy, 0/);
  assert.throws(() => refund.prepare({ ...context, config: { ...config, computeUnitLimit: 0 } }), { code: "gas_limit_too_low", at: "/wallet/config/compute_unit_limit" });
  assert.throws(() => refund.prepare({ ...context, config: { ...config, units: 1 } }), { code: "unexpected_field", at: "/wallet/config/units" });
});

test("starknet.js: an account signs", async () => {
  let signed = 0;
  for (const { id, docs, registry, wallet, key, artefacts } of keyed("starknet")) {
    const { source } = JSON.parse(docs.request);
    // Accounts of Cairo 0 take their calls in another form.
    if (BigInt(JSON.parse(wallet).cairo_version ?? 1) !== 1n) continue;
    const network = JSON.parse(registry).chains.find(({ chain }) => chain === source.asset.split(":")[0]).id.split(":")[1];
    // With the chain's id given, the provider never asks a node.
    const provider = new RpcProvider({ nodeUrl: "http://127.0.0.1:1", chainId: shortString.encodeShortString(network) });
    const [address, signer, cairoVersion] = [source.delegate ?? source.owner, `0x${key.replace("0x", "")}`, "1"];
    // Version 7 has no object of options.
    const account = Account.length > 1 ? new Account(provider, address, signer, cairoVersion) : new Account({ provider, address, signer, cairoVersion });
    const { transactions, gasless } = await starknetExample.pay(docs, registry, wallet, account, approve);
    assert.equal(transactions.length, 1, id);
    assert.deepEqual(JSON.parse(transactions[0]).signature, artefacts.invoke.signature, id);
    assert.equal(gasless, artefacts.typed_data?.signature.map((felt) => BigInt(felt)).join(","), id);
    signed += 1;
  }
  assert.ok(signed > 20);
});

/** A wallet of the Wallet Standard with one account of @mysten/sui. */
function suiWallet(keypair, change = () => {}) {
  const signTransaction = async ({ transaction }) => {
    const parsed = SuiTransaction.from(await transaction.toJSON());
    change(parsed);
    return keypair.signTransaction(await parsed.build());
  };
  return { accounts: [{ address: keypair.toSuiAddress() }], features: { "sui:signTransaction": { version: "2.0.0", signTransaction } } };
}

test("Sui: a standard wallet and a local signer sign", async () => {
  let signed = 0;
  for (const { id, docs, registry, wallet, key, artefacts } of keyed("sui")) {
    // The other curves and sponsors have signers of their own.
    if (!/^(0x)?[0-9a-f]{64}$|^suiprivkey1qz/.test(key) || wallet.includes("sponsor")) continue;
    const keypair = key.startsWith("suiprivkey") ? Ed25519Keypair.fromSecretKey(key) : Ed25519Keypair.fromSecretKey(hex(key));
    const paid = suiExample.pay(docs, registry, wallet, suiWallet(keypair), approve);
    if (id.startsWith("sui-balance")) {
      // The version of the library that Node 20 has does not know address balances. Its signers do not read what they sign.
      await assert.rejects(paid, { name: "TypeError", message: /this version of @mysten\/sui cannot read the transaction/ }, id);
    } else {
      const transaction = await paid;
      assert.ok(transaction.payload.includes(artefacts.transaction.signature), id);
      assert.equal(transaction.id, artefacts.transaction.tx_digest, id);
    }
    const unsigned = Order.verify(docs, new Registry(registry)).prepare(wallet);
    await signWithSuiWallet(unsigned, Ed25519Keypair.generate());
    assert.equal(unsigned.missing.length, 1, id);
    await signWithSuiWallet(unsigned, keypair);
    assert.deepEqual(JSON.parse(unsigned.artefacts), artefacts, id);
    signed += 1;
  }
  assert.ok(signed > 10);
});

test("Sui: a wallet that changes the gas is refused", async () => {
  const { docs, registry, wallet, key } = keyed("sui").find(({ id }) => id === "sui-key-hex");
  const dearer = suiWallet(Ed25519Keypair.fromSecretKey(hex(key)), (transaction) => transaction.setGasBudget(99_000_000));
  await assert.rejects(suiExample.pay(docs, registry, wallet, dearer, approve), { code: "signature_mismatch" });
});

/** Signs each input of a PSBT by bitcoinjs-lib. */
function bitcoinJs(key) {
  bitcoin.initEccLib(ecc);
  const secret = hex(key);
  const signer = {
    publicKey: ecc.pointFromScalar(secret, true),
    sign: (digest) => ecc.sign(digest, secret),
  };
  const inner = signer.publicKey.subarray(1);
  const even = signer.publicKey[0] === 2 ? secret : ecc.privateNegate(secret);
  const tweaked = ecc.privateAdd(even, bitcoin.crypto.taggedHash("TapTweak", inner));
  const taproot = {
    publicKey: ecc.pointFromScalar(tweaked, true),
    signSchnorr: (digest) => ecc.signSchnorr(digest, tweaked, new Uint8Array(32)),
  };
  return (text) => {
    const psbt = bitcoin.Psbt.fromBase64(text);
    psbt.data.inputs.forEach((input, index) => {
      const script = input.witnessUtxo?.script;
      if (script?.length === 34 && script[0] === 0x51) {
        // bitcoinjs-lib takes a key-path spend only with the internal key.
        psbt.updateInput(index, { tapInternalKey: inner });
        psbt.signInput(index, taproot);
      } else {
        psbt.signInput(index, signer);
      }
    });
    return psbt.toBase64();
  };
}

const oneKey = ({ key, docs }) => /^(0x)?[0-9a-f]{64}$/.test(key) && !docs.request.includes("litecoin");

test("PSBT: bitcoinjs-lib signs", async () => {
  const cases = keyed("bitcoin").filter(oneKey);
  assert.ok(cases.length > 10);
  for (const one of cases) {
    assert.equal(await bitcoinExample.pay(one.docs, one.registry, one.wallet, bitcoinJs(one.key), approve), one.artefacts.deposit.signed, one.id);
  }
});

test("PSBT: @scure/btc-signer signs", async () => {
  const cases = keyed("bitcoin").filter((one) => oneKey(one) && ["bitcoin-p2wpkh", "bitcoin-mainnet-coins"].includes(one.id));
  assert.ok(cases.length > 0);
  for (const one of cases) {
    const sign = (text) => {
      const transaction = ScureTransaction.fromPSBT(Buffer.from(text, "base64"));
      transaction.sign(hex(one.key), undefined, new Uint8Array(32));
      return Buffer.from(transaction.toPSBT(0)).toString("base64");
    };
    assert.equal(await bitcoinExample.pay(one.docs, one.registry, one.wallet, sign, approve), one.artefacts.deposit.signed, one.id);
  }
});

test("PSBT: a wallet that changes the transaction is refused", async () => {
  const one = keyed("bitcoin").find(({ id }) => id === "bitcoin-p2wpkh");
  const other = (text) => {
    const psbt = bitcoin.Psbt.fromBase64(text);
    psbt.setLocktime(7);
    return psbt.toBase64();
  };
  await assert.rejects(bitcoinExample.pay(one.docs, one.registry, one.wallet, other, approve), { code: "psbt_mismatch" });
  const address = fixture("bitcoin-address");
  await assert.rejects(bitcoinExample.pay(documents(address.input), address.registry, "{}", other, approve), /no transaction to sign/);
});
