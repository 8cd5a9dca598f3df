// Whatever is given, the answer is an error with a code, never a trap.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import * as countersign from "countersign";
import { REGISTRY, documents, fixture, walletOf } from "./fixtures.mjs";

const { CountersignError, Order, Policy, Reader, Recovery, Registry, SignedOrder, SwapRecord, UnsignedOrder, init, verifyLine } = countersign;
const one = fixture("evm-token-approval-unlimited");
const registry = new Registry(REGISTRY);
const docs = documents(one.input);
const { wallet, key } = walletOf(one.input);

/** Checks that a call fails with this code, and that the caller is to blame. */
function refused(work, code, blame = "caller") {
  assert.throws(work, (error) => {
    assert.ok(error instanceof CountersignError && error instanceof Error, `${error?.stack}`);
    assert.deepEqual([error.name, error.code, error.blame], ["CountersignError", code, blame], error.message);
    assert.equal(typeof error.at, "string");
    assert.ok(error.message.length > 0);
    return true;
  });
}

const WRONG = [undefined, null, 1, 1n, true, Symbol("s"), {}, [], () => 1, new Date(), new ArrayBuffer(8), new Uint16Array(4), new DataView(new ArrayBuffer(8))];

test("arguments of another type", () => {
  for (const wrong of WRONG) {
    if (wrong !== undefined) refused(() => new Policy(wrong), "usage");
    refused(() => new Registry(wrong), "usage");
    refused(() => Order.verify(wrong, registry), "usage");
    refused(() => Order.verify({ ...docs, request: wrong }, registry), "usage");
    refused(() => Order.verify({ ...docs, response: wrong }, registry), "usage");
    if (wrong !== undefined && wrong !== null) {
      refused(() => Order.verify({ ...docs, record: wrong }, registry), "usage");
      refused(() => Order.verify(docs, registry, wrong), "usage");
    }
    refused(() => Order.verify(docs, wrong), "usage");
    refused(() => verifyLine(wrong, registry), "usage");
    refused(() => verifyLine("{}", wrong), "usage");
    refused(() => Recovery.refund(wrong, "source", registry), "usage");
    refused(() => Recovery.refund("{}", wrong, registry), "usage");
    refused(() => Recovery.redeem("{}", "source", wrong, registry), "usage");
    refused(() => SwapRecord.verify({ ...docs, record: wrong }, registry), "usage");
    const order = Order.verify(docs, registry);
    // Objects are taken, and then refused for what they lack.
    const isObject = Object.prototype.toString.call(wrong) === "[object Object]";
    refused(() => order.prepare(wrong), isObject ? "missing_field" : "usage");
    if (!isObject) refused(() => order.matches(wrong), "usage");
    if (wrong !== 1) refused(() => order.checkDeadline(wrong), "usage");
    const unsigned = order.prepare(wallet);
    refused(() => unsigned.attach(wrong, "0x"), "usage");
    if (!isObject && !Array.isArray(wrong)) refused(() => unsigned.attach("initiate", wrong), "usage");
    refused(() => unsigned.sign(wrong), "usage");
  }
  const order = Order.verify(docs, registry);
  for (const wrong of [-1, 0.5, Number.NaN, Infinity, 2 ** 60, "1"]) refused(() => order.checkDeadline(wrong), "usage");
  refused(() => Order.verify(docs, new Policy()), "usage");
  refused(() => Order.verify(docs, registry, registry), "usage");
});

test("constructors that are not for callers", () => {
  for (const Kind of [Order, UnsignedOrder, SignedOrder, Recovery, SwapRecord, Reader]) assert.throws(() => new Kind(), TypeError);
  const fake = Object.create(Order.prototype);
  assert.throws(() => fake.terms, TypeError);
  assert.throws(() => Order.prototype.prepare.call({}, wallet), TypeError);
});

test("missing and malformed members", () => {
  refused(() => Order.verify({}, registry), "usage");
  refused(() => Order.verify({ request: "{}", response: "{}" }, registry), "missing_field");
  refused(() => Order.verify({ ...docs, response: "{}" }, registry), "missing_field", "service");
  refused(() => new Registry("{}"), "missing_field");
  refused(() => new Registry(""), "json_syntax");
  refused(() => new Policy('{"evm_timelok":1}'), "unexpected_field");
  const order = Order.verify(docs, registry);
  refused(() => order.prepare("{}"), "missing_field");
  refused(() => order.prepare("null"), "wrong_type");
});

test("text that is not UTF-8", () => {
  const bad = new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]);
  refused(() => new Registry(bad), "json_not_utf8");
  refused(() => Order.verify({ ...docs, response: bad }, registry), "json_not_utf8", "service");
  refused(() => Order.verify({ ...docs, response: '{"\ud800":1}' }, registry), "json_not_utf8");
  refused(() => Order.verify(docs, registry).prepare('"\udc00"'), "json_not_utf8");
  refused(() => Order.verify(docs, registry).prepare(wallet).sign(bad), "usage");
});

test("huge inputs", () => {
  const huge = " ".repeat(16 * 1024 * 1024 + 1);
  refused(() => new Registry(huge), "json_too_large");
  refused(() => Order.verify({ ...docs, response: Buffer.from(huge) }, registry), "json_too_large", "service");
  refused(() => Order.verify({ ...docs, response: huge.repeat(3) }, registry), "json_too_large", "service");
  // Three bytes for each of these.
  refused(() => Order.verify({ ...docs, response: "\u20ac".repeat(6 * 1024 * 1024) }, registry), "json_too_large", "service");
  // White space is no reason to refuse what fits.
  assert.equal(Order.verify({ ...docs, response: docs.response + huge.slice(0, 5 * 1024 * 1024) }, registry).family, "evm");
  assert.equal(JSON.parse(verifyLine("[".repeat(16 * 1024 * 1024 + 1), registry)).error.code, "json_too_large");
  refused(() => Order.verify(docs, registry).prepare(wallet).sign("1".repeat(5000)), "json_too_large");
  // Just below the limit, and deep.
  refused(() => Order.verify({ ...docs, response: "[".repeat(4 * 1024 * 1024) }, registry), "json_too_deep", "service");
  assert.equal(JSON.parse(verifyLine(`{"id":${"[".repeat(1_000_000)}`, registry)).ok, false);
});

test("arrays that are not what they say", () => {
  const response = new TextEncoder().encode(docs.response);
  class Short extends Uint8Array {
    get length() {
      return 1;
    }
    get byteLength() {
      return 1;
    }
  }
  assert.equal(Order.verify({ ...docs, response: new Short(response) }, registry).family, "evm");
  assert.equal(Order.verify({ ...docs, response: runInNewContext("Uint8Array.from(bytes)", { bytes: [...response] }) }, registry).family, "evm");
  const detached = response.slice();
  structuredClone(detached, { transfer: [detached.buffer] });
  const throws = { get constructor() { throw new TypeError("no"); } };
  for (const value of [detached, new Proxy(response, {}), throws, new DataView(response.buffer), { length: 1, 0: 1 }, null, 7]) {
    refused(() => Order.verify({ ...docs, response: value }, registry), "usage");
  }
});

test("objects that are used up", () => {
  const order = Order.verify(docs, registry);
  const unsigned = order.prepare(wallet);
  refused(() => unsigned.finish(), "signature_missing");
  assert.deepEqual(unsigned.missing, ["approval", "initiate", "typed_data"]);
  refused(() => unsigned.attach("refund", `0x${"11".repeat(64)}1b`), "nothing_to_sign");
  refused(() => unsigned.attach("initiate", "0x00"), "signature_malformed");
  refused(() => unsigned.sign("0x01"), "key_malformed");
  refused(() => unsigned.sign(new Uint8Array(32).fill(7)), "key_mismatch");
  unsigned.sign(key);
  const signed = unsigned.finish();
  assert.equal(signed.transactions.length, 2);
  for (const use of [() => unsigned.finish(), () => unsigned.requests, () => unsigned.sign(key), () => unsigned.artefacts, () => unsigned.summary]) {
    refused(use, "used_up");
  }
  // The order and what came of it live on.
  assert.equal(order.prepare(wallet).missing.length, 3);
  signed.free();
  refused(() => signed.transactions, "used_up");
  signed.free();
  order.free();
  refused(() => order.prepare(wallet), "used_up");
  const pinned = new Registry(REGISTRY);
  pinned.free();
  refused(() => Order.verify(docs, pinned), "used_up");
});

test("no error shows a key", () => {
  const unsigned = Order.verify(docs, registry).prepare(wallet);
  const other = `0x${"5b".repeat(32)}`;
  for (const wrong of [`${key}00`, other, `${key} ${key}`, Buffer.from(other.slice(2), "hex")]) {
    assert.throws(
      () => unsigned.sign(wrong),
      (error) => !JSON.stringify(Object.getOwnPropertyNames(error).map((name) => String(error[name]))).includes(String(wrong).slice(2, 20)),
    );
  }
});

test("both module systems share their objects", async () => {
  const required = createRequire(import.meta.url)("countersign");
  assert.equal(required.Order, Order);
  assert.deepEqual(Object.keys(required).sort(), Object.keys(countersign).sort());
  assert.ok(required.Order.verify(docs, registry));
  await init();
});
