// Memory stays flat: COUNTERSIGN_LEAK_ORDERS=100000 for the long run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Order, Registry, memoryBytes } from "countersign";
import { REGISTRY, documents, fixture, walletOf } from "./fixtures.mjs";

const ORDERS = Number(process.env.COUNTERSIGN_LEAK_ORDERS ?? 3000);
const one = fixture("evm-token-approval-unlimited");
const docs = documents(one.input);
const { wallet, key } = walletOf(one.input);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

/** Runs orders to their end, a refused one beside each, and returns the size of the module's memory. */
async function run(orders, free) {
  const registry = new Registry(REGISTRY);
  for (let index = 0; index < orders; index += 1) {
    const order = Order.verify(docs, registry);
    const unsigned = order.prepare(wallet);
    assert.throws(() => unsigned.finish());
    assert.throws(() => Order.verify({ ...docs, response: "{}" }, registry));
    // Signing takes most of the time and is not what leaks.
    if (index % 100 === 0) {
      unsigned.sign(key);
      const signed = unsigned.finish();
      assert.equal(signed.transactions.length, 2);
      if (free) signed.free();
    }
    if (free) {
      unsigned.free();
      order.free();
    } else if (index % 50 === 0) {
      collect();
      // Finalizers run between tasks.
      await setImmediate();
    }
  }
  if (free) registry.free();
  return memoryBytes();
}

for (const free of [true, false]) {
  test(`memory is flat over ${ORDERS} orders, ${free ? "freed by the caller" : "left to the garbage collector"}`, async () => {
    // The second registry may not fit where the first one was; a leak grows with every order.
    await run(300, free);
    const before = await run(300, free);
    const after = await run(ORDERS, free);
    // The collector may lag behind by some orders, however many there are. Leaked orders would be tens of megabytes.
    assert.ok(after - before <= (free ? 0 : 1024 * 1024), `grew from ${before} to ${after} bytes`);
  });
}
