// From the documents of an order to its signed transactions, with a local key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Order, Policy, Recovery, Registry, inWholeUnits } from "countersign";
import { FAMILIES } from "../scripts/paths.mjs";
import { REGISTRY, accepted, documents, fixture, refused, walletOf } from "./fixtures.mjs";

const registries = new Map();
const registryOf = ({ registry }) => registries.get(registry) ?? registries.set(registry, new Registry(registry)).get(registry);

for (const family of FAMILIES) {
  test(`objects give the artefacts of the fixtures of ${family}`, () => {
    let signed = 0;
    for (const one of accepted(family)) {
      const order = Order.verify(documents(one.input), registryOf(one));
      assert.equal(order.family, family);
      assert.equal(order.orderId, one.expect.order_id);
      assert.ok(order.summary.length > 5, one.id);
      assert.equal(order.terms.orderId, one.expect.order_id);
      const { wallet, key } = walletOf(one.input);
      const unsigned = order.prepare(wallet);
      if (key !== undefined) {
        unsigned.sign(key);
        signed += 1;
      }
      assert.deepEqual(JSON.parse(unsigned.artefacts), one.expect.artefacts, one.id);
      // In some cases a second signer is missing on purpose, and in some there is nothing to sign.
      if (key !== undefined && unsigned.missing.length === 0) {
        const { transactions, gasless } = unsigned.finish();
        assert.ok(transactions.length > 0 || gasless, one.id);
        const text = JSON.stringify(one.expect.artefacts);
        if (family === "evm") for (const { payload, id } of transactions) assert.ok(text.includes(payload) && text.includes(id), one.id);
      }
    }
    assert.ok(signed > 0);
  });

  test(`objects refuse what is refused on ${family}`, () => {
    for (const one of refused(family).filter(({ code, raw, at }) => code && !raw && /^\/(response|order)\//.test(at))) {
      const policy = one.policy && new Policy(one.policy);
      assert.throws(
        () => Order.verify(documents(one.input), registryOf(one), policy),
        (error) => {
          assert.ok(error instanceof Error);
          assert.equal(error.name, "CountersignError");
          assert.deepEqual([error.code, error.at], [one.code, one.at], one.id);
          assert.ok(["service", "caller", "unsupported"].includes(error.blame), one.id);
          return true;
        },
      );
    }
  });
}

test("a transaction that states that it failed is no payment", () => {
  const { input, expect } = fixture("tron-token-approval-exact");
  const order = Order.verify(documents(input), new Registry(REGISTRY));
  const { raw_data, signature } = expect.artefacts.initiate;
  const sent = (outcome) => JSON.stringify({ raw_data_hex: raw_data, signature: [signature], ret: [{ contractRet: outcome }] });
  assert.equal(order.matches(sent("SUCCESS")), "initiate");
  for (const match of [() => order.matches(sent("OUT_OF_ENERGY")), () => order.matchWithWarnings(sent("OUT_OF_ENERGY"))]) {
    assert.throws(match, { code: "transaction_mismatch", at: "/transaction/ret/0/contractRet", message: /the transaction failed/ });
  }
});

test("values are typed", () => {
  const order = Order.verify(documents(fixture("evm-token-approval-unlimited").input), new Registry(REGISTRY));
  const { pay, receive, timelock } = order.terms;
  assert.deepEqual([pay.kind, pay.number, pay.unit, pay.decimals], ["amount", 2500000000n, "usdc", 6]);
  assert.equal(inWholeUnits(pay), "2500");
  assert.equal(inWholeUnits(receive), "0.0259");
  assert.deepEqual([timelock.kind, timelock.number, timelock.unit], ["timelock", 7200n, "blocks"]);
  assert.ok(order.warnings.some(({ code, severity }) => code === "unlimited_approval" && severity === "danger"));
  const covered = order.coverage.find(({ at }) => at === "/response/result/initiate_transaction/data");
  assert.ok(covered && covered.topic.length > 0);
  assert.ok(order.coverage.some(({ start, end }) => start !== null && end > start));
});

test("an order can be prepared again, and gasless", () => {
  const one = fixture("evm-token-approval-unlimited");
  const order = Order.verify(documents(one.input), new Registry(REGISTRY));
  const { wallet, key } = walletOf(one.input);
  const first = order.prepare(wallet);
  const dearer = order.prepare(wallet.replace('"30000000000"', '"31000000000"'));
  assert.notDeepEqual(first.requests[0].digest, dearer.requests[0].digest);
  const gasless = order.prepareGasless();
  assert.deepEqual(gasless.missing, ["typed_data"]);
  gasless.sign(key);
  const signed = gasless.finish();
  assert.equal(signed.gasless, one.expect.artefacts.typed_data.signature);
  assert.deepEqual(signed.transactions, []);
});

/** Cases, a change of the wallet context that gives another transaction, the code of its refusal, and the names of the requests. */
const RETURNED = [
  ["evm-token-approval-exact", ['"nonce":22', '"nonce":23'], "transaction_mismatch", ["approval", "initiate"]],
  ["solana-native-v0", ["null", '"SysvarC1ock11111111111111111111111111111111"'], "transaction_mismatch", ["transaction"]],
  ["bitcoin-p2wpkh", ['"fee_rate":"2"', '"fee_rate":"3"'], "psbt_mismatch", ["input_0"]],
];

/** Signs, and returns the bytes that signers of the family return. */
function signedBytes(order, wallet, key) {
  const unsigned = order.prepare(wallet);
  unsigned.sign(key);
  const { deposit } = JSON.parse(unsigned.artefacts);
  if (deposit) return [Buffer.from(deposit.signed_psbt, "base64")];
  return unsigned.finish().transactions.map(({ payload }) => Buffer.from(payload.replace("0x", ""), "hex"));
}

test("a signer may return the signed transaction", () => {
  for (const [id, [from, to], code, names] of RETURNED) {
    const one = fixture(id);
    const order = Order.verify(documents(one.input), registryOf(one));
    const { wallet, key } = walletOf(one.input);
    assert.ok(wallet.includes(from), wallet);
    const unsigned = order.prepare(wallet);
    const before = unsigned.artefacts;
    for (const other of signedBytes(order, wallet.replace(from, to), key)) {
      assert.throws(() => unsigned.attachTransaction(other), { name: "CountersignError", code, at: "/transaction" }, id);
    }
    assert.throws(() => unsigned.attachTransaction(new Uint8Array()), { name: "CountersignError" }, id);
    assert.equal(unsigned.artefacts, before, `${id}: a refused transaction changes nothing`);
    const attached = signedBytes(order, wallet, key).flatMap((transaction) => unsigned.attachTransaction(transaction));
    assert.deepEqual([attached, unsigned.missing.includes("initiate")], [names, false], id);
    assert.throws(() => unsigned.attachTransaction("0x02"), { code: "usage", expected: "a Uint8Array", actual: "string" });
  }
});

test("keys are text, bytes of text, or bytes", () => {
  for (const id of ["evm-token-approval-unlimited", "solana-native", "sui-native"]) {
    const one = accepted(id.split("-")[0]).find((found) => found.id === id) ?? accepted(id.split("-")[0])[0];
    const { wallet, key } = walletOf(one.input);
    const order = Order.verify(documents(one.input), registryOf(one));
    const bytes = rawKey(order.family, key);
    for (const form of [key, Buffer.from(key), ...(bytes ? [bytes] : [])]) {
      const copy = typeof form === "string" ? form : Uint8Array.from(form);
      const unsigned = order.prepare(wallet);
      unsigned.sign(form);
      assert.deepEqual(JSON.parse(unsigned.artefacts), one.expect.artefacts, one.id);
      if (typeof form !== "string") assert.deepEqual(Uint8Array.from(form), copy, "the caller's key is not touched");
    }
  }
});

function rawKey(family, key) {
  if (family === "evm") return Buffer.from(key.replace("0x", ""), "hex");
  if (family === "solana") return base58(key);
  return /^[0-9a-f]{64}$/.test(key) ? Buffer.from(key, "hex") : undefined;
}

function base58(text) {
  const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  const number = [...text].reduce((sum, letter) => sum * 58n + BigInt(alphabet.indexOf(letter)), 0n);
  const digits = number.toString(16);
  return Buffer.from(digits.padStart(digits.length > 64 ? 128 : 64, "0"), "hex");
}

test("a refund and a redemption from the record alone", () => {
  const one = accepted("evm").find(({ input }) => input.includes('"order":{') && !input.includes('"delegate"'));
  const registry = new Registry(REGISTRY);
  const { record } = documents(one.input);
  const { wallet, key } = walletOf(one.input);
  const refund = Recovery.refund(record, "source", registry);
  assert.equal(refund.family, "evm");
  assert.equal(refund.amount, BigInt(JSON.parse(one.input).request.source.amount));
  const unsigned = refund.prepare(wallet);
  assert.deepEqual(unsigned.missing, ["refund"]);
  unsigned.sign(key);
  const [transaction] = unsigned.finish().transactions;
  assert.equal(transaction.role, "refund");
  assert.match(transaction.payload, /^0x02/);
  assert.throws(() => Recovery.redeem(record, "source", new Uint8Array(32), registry), { code: "secret_wrong" });
  assert.throws(() => Recovery.refund(record, "middle", registry), { code: "usage", blame: "caller" });
});
