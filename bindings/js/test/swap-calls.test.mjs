// When calls of swaps begin, and what they do after the end. Nothing here needs the sandbox.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Swaps, memoryStore } from "countersign/swap";
import { REGISTRY } from "./fixtures.mjs";

const fetch = () => Promise.reject(new Error("nothing is sent here"));
const wish = { from: "base:usdc", to: "bitcoin:btc", amount: "1.5 usdc", receiveAt: "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4" };
const open = () =>
  Swaps.open({
    service: "https://service.example",
    registry: REGISTRY,
    nodes: { base: "https://base.example", bitcoin: "https://bitcoin.example" },
    accounts: { base: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" },
    signers: { base: () => undefined },
    store: memoryStore(),
    fetch,
  });

test("a call begins when it is called, and not with the first look at its changes", async () => {
  const swaps = await open();
  assert.throws(() => swaps.create({ ...wish, amount: "many" }), { name: "CountersignError" });
  assert.throws(() => swaps.follow("?"), { name: "CountersignError" });
  const changes = [swaps.create(wish), swaps.resume()];
  await swaps.close();
  // Both had begun.
  for (const each of changes) await assert.rejects(each.next(), { code: "used_up" });
});

test("after close, every call throws at once", async () => {
  const swaps = await open();
  await swaps.close();
  await swaps.close();
  for (const call of [() => swaps.create(wish), () => swaps.follow("a".repeat(64)), () => swaps.refund("a".repeat(64)), () => swaps.instantRefund("a".repeat(64)), () => swaps.resume(), () => swaps.phrase()]) {
    assert.throws(call, { code: "used_up" });
  }
  await assert.rejects(swaps.list(), { code: "used_up" });
  await assert.rejects(swaps.quote(wish), { code: "used_up" });
});
