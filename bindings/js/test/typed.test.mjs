// Typed values in and out: wallet contexts, signatures, transactions, terms, and errors that cross to another thread.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MessageChannel, Worker } from "node:worker_threads";
import { CountersignError, Order, Recovery, Registry, SwapRecord } from "countersign";
import { DIST, FAMILIES } from "../scripts/paths.mjs";
import { REGISTRY, accepted, documents, fixture, walletOf } from "./fixtures.mjs";

/** Members whose decimal text a wallet has as a bigint. */
const BIG = new Set(["max_fee_per_gas", "max_priority_fee_per_gas", "gas_price", "gas_budget", "value", "version", "max_amount", "max_price_per_unit", "nonce", "timestamp", "block_height"]);

/** Writes a wallet context as a wallet in JavaScript has it. */
function typed(value, name = "") {
  if (Array.isArray(value)) return value.map((item) => typed(item));
  if (typeof value === "object" && value !== null) {
    const camel = (key) => key.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [camel(key), typed(inner, key)]));
  }
  return BIG.has(name) && /^\d+$/.test(value) ? BigInt(value) : value;
}

for (const family of FAMILIES) {
  test(`typed wallet contexts of ${family} mean what their JSON means`, () => {
    let bigints = 0;
    for (const one of accepted(family)) {
      const order = Order.verify(documents(one.input), new Registry(one.registry));
      const { wallet, key } = walletOf(one.input);
      const context = typed(JSON.parse(wallet));
      bigints += JSON.stringify(context, (_, value) => (typeof value === "bigint" ? "a bigint" : value)).split("a bigint").length - 1;
      const [unsigned, expected] = [order.prepare({ ...context, ignored: undefined }), order.prepare(wallet)];
      assert.equal(unsigned.artefacts, expected.artefacts, one.id);
      if (key !== undefined) unsigned.sign(key);
      if (key !== undefined) assert.deepEqual(JSON.parse(unsigned.artefacts), one.expect.artefacts, one.id);
    }
    assert.ok(bigints > 0 || family === "solana");
  });
}

const one = fixture("evm-token-approval-exact");
const docs = documents(one.input);
const registry = new Registry(REGISTRY);
const { wallet, key } = walletOf(one.input);
const context = typed(JSON.parse(wallet));

test("a typed context that is wrong is refused at its member", () => {
  const order = Order.verify(docs, registry);
  const refused = (change, code, at) => assert.throws(() => order.prepare({ ...context, ...change }), { name: "CountersignError", code, at, blame: "caller" });
  refused({ nonce: undefined }, "missing_field", "/wallet/nonce");
  refused({ nonce: 1.5 }, "integer_not_exact", "/wallet/nonce");
  refused({ nonce: 2 ** 60 }, "integer_not_exact", "/wallet/nonce");
  refused({ maxFeePerGas: 2 ** 60 }, "decimal_fraction", "/wallet/max_fee_per_gas");
  refused({ maxFeePerGas: 1.5 }, "decimal_fraction", "/wallet/max_fee_per_gas");
  refused({ maxFeePerGas: 1e30 }, "decimal_exponent", "/wallet/max_fee_per_gas");
  refused({ maxFeePerGas: -1n }, "decimal_sign", "/wallet/max_fee_per_gas");
  refused({ chainID: 1 }, "misspelt_field", "/wallet/chain_i_d");
  // JSON cannot hold it.
  for (const member of ["nonce", "maxFeePerGas"]) assert.throws(() => order.prepare({ ...context, [member]: Number.NaN }), { code: "usage" });
  const cycle = { ...context };
  cycle.self = cycle;
  const throws = { get nonce() { throw new TypeError("no"); } };
  for (const wrong of [cycle, throws, new Map(), new Date(), []]) assert.throws(() => order.prepare(wrong), { code: "usage" });
});

test("a recovery takes a typed context", () => {
  const record = documents(fixture("evm-record-bitcoin-v1").input).record;
  const refund = Recovery.refund(record, "source", registry);
  const sender = "0x6BEe096D56DCfa2a38e9F21FcaecbaB8D21D5aa5";
  const unsigned = refund.prepare({ ...context, sender, gasLimit: 90_000n });
  assert.equal(unsigned.artefacts, refund.prepare(JSON.stringify({ ...JSON.parse(wallet), sender, gas_limit: 90000 })).artefacts);
  assert.deepEqual([refund.role, unsigned.missing], ["refund", ["refund"]]);
  assert.throws(() => refund.prepare({ ...context, resetAproval: true }), { code: "unexpected_field", at: "/wallet/reset_aproval" });
});

test("signatures are text, bytes, felts or objects", () => {
  const unsigned = Order.verify(docs, registry).prepare(wallet);
  const bytes = Buffer.from(one.expect.artefacts.typed_data.signature.slice(2), "hex");
  unsigned.attach("typed_data", Uint8Array.from(bytes));
  assert.equal(JSON.parse(unsigned.artefacts).typed_data.signature, one.expect.artefacts.typed_data.signature);
  const contract = Order.verify(docs, registry).prepareGasless();
  contract.attach("typed_data", { contract: "0x1234" });
  assert.ok(contract.warnings.some(({ code }) => code === "contract_signature_unverified"));

  const starknet = fixture("starknet-approval-exact");
  const [r, s] = starknet.expect.artefacts.invoke.signature;
  for (const signature of [[r, s], [BigInt(r), BigInt(s)], { r: BigInt(r), s: BigInt(s) }]) {
    const invoke = Order.verify(documents(starknet.input), new Registry(starknet.registry)).prepare(walletOf(starknet.input).wallet);
    invoke.attach("invoke", signature);
    assert.deepEqual(JSON.parse(invoke.artefacts).invoke.signature, [r, s]);
  }
  for (const wrong of [7, null, undefined, [7], new Date(), new Uint16Array(65)]) assert.throws(() => unsigned.attach("initiate", wrong), { code: "usage" });
});

test("values are read once, until the object changes", () => {
  const order = Order.verify(docs, registry);
  for (const name of ["terms", "summary", "warnings", "coverage"]) assert.equal(order[name], order[name], name);
  const unsigned = order.prepare(wallet);
  const { missing, summary, requests } = unsigned;
  assert.ok(missing === unsigned.missing && summary === unsigned.summary && requests === unsigned.requests);
  unsigned.sign(key);
  assert.deepEqual([unsigned.missing, unsigned.missingRequests], [[], []]);
  assert.notEqual(unsigned.summary, summary);
  const signed = unsigned.finish();
  assert.equal(signed.transactions, signed.transactions);
  assert.deepEqual([signed.family, ...signed.transactions.map(({ family }) => family)], ["evm", "evm", "evm"]);
  assert.throws(() => unsigned.missing, { code: "used_up" });
  order.free();
  assert.throws(() => order.terms, { code: "used_up" });
});

test("terms become JSON with decimal text, and are cloned as they are", () => {
  const order = Order.verify(docs, registry);
  const written = JSON.parse(JSON.stringify(order.terms));
  assert.deepEqual([written.pay.number, written.pay.decimals, written.orderId], ["1250000", 8, order.orderId]);
  assert.deepEqual(structuredClone(order.terms), order.terms);
  assert.equal(typeof structuredClone(order.terms).pay.number, "bigint");
  const record = SwapRecord.verify(documents(fixture("evm-record-bitcoin-v1").input), registry);
  assert.equal(record.terms("source"), record.terms("source"));
  assert.equal(JSON.parse(JSON.stringify(record.terms("source"))).amount, "2500000000");
});

/** Returns the error that a call throws. */
function caught(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}

test("an error crosses a message channel whole", async () => {
  const error = caught(() => Order.verify({ ...docs, response: docs.response.replace('"0x1312d0"', '"0x1312d1"') }, registry));
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(error.toJSON());
  const [data] = await once(port2, "message");
  port1.close();
  const received = CountersignError.from(data);
  assert.ok(received instanceof CountersignError);
  for (const part of ["name", "code", "message", "at", "expected", "actual", "blame"]) assert.equal(received[part], error[part], part);
  assert.ok(error.expected !== undefined && error.at !== "");
  assert.deepEqual(JSON.parse(JSON.stringify({ error })).error, JSON.parse(JSON.stringify(received)));
  for (const wrong of [undefined, null, "x", {}, new Error("x")]) assert.throws(() => CountersignError.from(wrong), { code: "usage" });
});

test("an error comes out of a worker whole", async () => {
  const source = `
    const { parentPort } = require("node:worker_threads");
    const { Registry } = require(${JSON.stringify(join(DIST, "all", "node.cjs"))});
    try { new Registry("{}"); } catch (error) { parentPort.postMessage(error.toJSON()); }`;
  const [data] = await once(new Worker(source, { eval: true }), "message");
  const here = caught(() => new Registry("{}"));
  assert.deepEqual({ ...CountersignError.from(data).toJSON() }, { ...here.toJSON() });
});

test("a module that cannot be loaded is an error of this package", async () => {
  const web = await import(`${join(DIST, "all", "web.js")}?failing`);
  const fails = (build, source) =>
    assert.rejects(build.init(source), (error) => {
      assert.deepEqual([error instanceof build.CountersignError, error.code, error.blame], [true, "init_failed", "caller"]);
      assert.ok(error.cause !== undefined && error.message.includes("init"));
      return true;
    });
  for (const source of [new Uint8Array(4), 7, "http://127.0.0.1:1/none.wasm", new Response("no", { status: 404 })]) await fails(web, source);
  assert.throws(() => new web.Registry(REGISTRY), { code: "not_initialized" });
  await web.init(readFileSync(join(DIST, "all", "countersign_bg.wasm")));
  assert.equal(web.Order.verify(docs, new web.Registry(REGISTRY)).orderId, one.expect.order_id);
  // Another module is not taken for this one, not even by a second call.
  const other = await import(`${join(DIST, "all", "web.js")}?other`);
  const empty = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  await fails(other, empty);
  await fails(other, empty);
});
