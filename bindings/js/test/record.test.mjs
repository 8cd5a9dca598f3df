// Whether the solver has paid: a record, what its chain returned, and the verdict.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeEventTopics, parseAbi } from "viem";
import { Record, Registry } from "countersign";
import { REGISTRY, documents, fixture } from "./fixtures.mjs";

const word = (value) => BigInt(value).toString(16).padStart(64, "0");
const SEEN = JSON.stringify({ height: 1000, hash: "aa", head_time: 5000, depth: 100, is_safe: true, is_finalized: true });

function open(id) {
  const docs = documents(fixture(id).input);
  const record = JSON.parse(docs.record);
  return { docs, htlc: (record.result ?? record).destination_swap, record: Record.verify(docs, new Registry(REGISTRY)) };
}

test("an HTLC of an EVM chain is read and judged", () => {
  const { htlc, record } = open("evm-record-evm-v1");
  const { token } = JSON.parse(REGISTRY).assets.find(({ id }) => id === htlc.asset);
  // The words of `orders(bytes32)`: initiator, redeemer, block, timelock, amount, block of the end.
  const orders = (redeemer, block, end) => `0x${[htlc.initiator, redeemer, block, htlc.timelock, htlc.amount, end].map(word).join("")}`;
  const honest = { orders: orders(htlc.redeemer, 900, 0), token: `0x${word(token.address)}`, holds: htlc.amount, head: 1000 };

  const terms = record.terms("destination");
  assert.deepEqual([terms.chain, terms.family, terms.amount, terms.timelock, terms.unit], ["base", "evm", BigInt(htlc.amount), htlc.timelock, "blocks"]);
  assert.deepEqual([terms.swapId, terms.secretHash, terms.token, terms.account], [htlc.swap_id, htlc.secret_hash, token.address, null]);
  assert.equal(record.terms("source").chain, "ethereum");
  assert.deepEqual([typeof record.orderId, record.warnings], ["string", []]);

  const state = record.readHtlc("destination", JSON.stringify(honest));
  assert.deepEqual([state.state, state.amount, state.timelock, state.elapsed, state.covered], ["locked", BigInt(htlc.amount), htlc.timelock, 100, true]);
  assert.equal(state.redeemer.toLowerCase(), htlc.redeemer.toLowerCase());
  const funded = record.judge(JSON.stringify(honest), SEEN, 5000);
  assert.deepEqual(funded, { orderId: funded.orderId, left: htlc.timelock - 100, unit: "blocks" });

  const cases = [
    [{ orders: `0x${"00".repeat(192)}` }, "destination_not_funded", "chain"],
    [{ orders: orders(htlc.initiator, 900, 0) }, "destination_differs", "chain"],
    [{ orders: orders(htlc.redeemer, 900, 950) }, "destination_unclear", "chain"],
    [{ holds: "1" }, "destination_not_covered", "chain"],
    [{ head: htlc.timelock + 900 }, "destination_no_time", "chain"],
    [{ head: "1000" }, "wrong_type", "caller"],
    [{ heads: 1 }, "unexpected_field", "caller"],
  ];
  for (const [change, code, blame] of cases) {
    const judge = () => record.judge(JSON.stringify({ ...honest, ...change }), SEEN, 5000);
    assert.throws(judge, (error) => {
      assert.deepEqual([error.name, error.code, error.blame], ["CountersignError", code, blame], error.message);
      return true;
    });
  }
  // viem encodes the log of the refund.
  const abi = parseAbi(["event Refunded(bytes32 indexed orderId)"]);
  const topics = encodeEventTopics({ abi, eventName: "Refunded", args: { orderId: `0x${terms.swapId}` } });
  const event = { address: terms.htlc, topics, data: "0x", transactionHash: `0x${"31".repeat(32)}`, removed: false, logIndex: "0x1" };
  const ended = record.readHtlc("destination", JSON.stringify({ ...honest, orders: orders(htlc.redeemer, 900, 950), event }));
  assert.deepEqual([ended.state, ended.transaction], ["refunded", event.transactionHash]);

  assert.throws(() => record.readHtlc("nowhere", "{}"), { code: "usage" });
  assert.throws(() => record.terms("nowhere"), { code: "usage" });
  assert.throws(() => record.judge(JSON.stringify(honest), "{}", 5000), { code: "missing_field", at: "/seen/height" });
});

test("a Bitcoin payment that is not there is not funded", () => {
  const { record } = open("evm-record-bitcoin-v1");
  assert.equal(record.readHtlc("destination", '{"txid":null}').state, "absent");
  assert.throws(() => record.judge('{"txid":null}', SEEN, 5000), { code: "destination_not_funded", blame: "chain" });
});

test("a record that says something else is refused", () => {
  const { docs, htlc } = open("evm-record-evm-v1");
  const changed = { ...docs, record: docs.record.replaceAll(htlc.redeemer, htlc.initiator) };
  assert.throws(() => Record.verify(changed, new Registry(REGISTRY)), { name: "CountersignError", blame: "service" });
  assert.throws(() => Record.verify({ ...docs, record: undefined }, new Registry(REGISTRY)), { code: "usage" });
});
