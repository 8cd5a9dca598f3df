// What a record says that both HTLCs must hold.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry, SwapRecord } from "countersign";
import { REGISTRY, documents, fixture } from "./fixtures.mjs";

function open(id) {
  const docs = documents(fixture(id).input);
  const record = JSON.parse(docs.record);
  return { docs, htlc: (record.result ?? record).destination_swap, record: SwapRecord.verify(docs, new Registry(REGISTRY)) };
}

test("a record says what its HTLCs must hold, and where they are", () => {
  const { htlc, record } = open("evm-record-evm-v1");
  const { token } = JSON.parse(REGISTRY).assets.find(({ id }) => id === htlc.asset);
  const terms = record.terms("destination");
  assert.deepEqual([terms.chain, terms.family, terms.amount, terms.timelock, terms.unit], ["base", "evm", BigInt(htlc.amount), htlc.timelock, "blocks"]);
  assert.deepEqual([terms.swapId, terms.secretHash, terms.token, terms.account], [htlc.swap_id, htlc.secret_hash, token.address, null]);
  assert.equal(record.terms("source").chain, "ethereum");
  // An hour at the nominal pace of Base, and minutes at the one that counts.
  assert.deepEqual([typeof record.orderId, record.warnings.map(({ code }) => code)], ["string", ["destination_timelock_short"]]);
  assert.throws(() => record.terms("nowhere"), { code: "usage" });
});

test("a record that says something else is refused", () => {
  const { docs, htlc } = open("evm-record-evm-v1");
  const changed = { ...docs, record: docs.record.replaceAll(htlc.redeemer, htlc.initiator) };
  assert.throws(() => SwapRecord.verify(changed, new Registry(REGISTRY)), { name: "CountersignError", blame: "service" });
  assert.throws(() => SwapRecord.verify({ ...docs, record: undefined }, new Registry(REGISTRY)), { code: "usage" });
});
