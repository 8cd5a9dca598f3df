// No copy of a key or a secret stays in the module's memory, neither its bytes nor its text.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { base58 } from "@scure/base";
import { decodeSuiPrivateKey } from "@mysten/sui/cryptography";
import { DIST, FAMILIES } from "../scripts/paths.mjs";
import { REGISTRY, accepted, documents, fixture, walletOf } from "./fixtures.mjs";

const bytes = readFileSync(join(DIST, "all", "countersign_bg.wasm"));
const { instantiate } = WebAssembly;
let memory;
// The package does not show its memory, so it is taken from the module as it is made.
WebAssembly.instantiate = async (...given) => {
  const made = await instantiate(...given);
  memory = (made.instance ?? made).exports.memory;
  return made;
};
const { Key, Order, Recovery, Registry, init, verifyLine } = await import(join(DIST, "all", "web.js"));
await init(bytes);
WebAssembly.instantiate = instantiate;
const registries = new Map();
const registryOf = (text) => registries.get(text) ?? registries.set(text, new Registry(text)).get(text);

/** Returns the raw bytes of the keys in a text, where they are known. */
function rawKeys(family, key) {
  if (family === "solana") return [base58.decode(key).subarray(0, 32)];
  if (key.startsWith("suiprivkey")) return [decodeSuiPrivateKey(key).secretKey];
  const parts = key.split(/\s+/).map((part) => part.replace(/^0x/, ""));
  return parts.filter((part) => /^[0-9a-f]+$/i.test(part)).map((part) => Buffer.from(part.padStart(64, "0"), "hex"));
}

/** Where the module's memory has a key: as text, as bytes, or as bytes from the last to the first, as curves keep numbers. */
function found(family, key) {
  const whole = Buffer.from(memory.buffer);
  const forms = rawKeys(family, key).flatMap((raw) => [raw, Uint8Array.from(raw).reverse(), Buffer.from(Buffer.from(raw).toString("hex"))]);
  return [Buffer.from(key), ...forms].map((form) => whole.indexOf(form)).filter((at) => at >= 0);
}

test("the search finds what is there", () => {
  const unsigned = Order.verify(documents(fixture("evm-token-approval-exact").input), registryOf(REGISTRY)).prepare(walletOf(fixture("evm-token-approval-exact").input).wallet);
  const [{ digest }] = unsigned.requests;
  assert.equal(found("evm", Buffer.from(digest).toString("hex")).length > 0, true);
  unsigned.free();
});

for (const family of FAMILIES) {
  test(`no copy of a key of ${family} stays behind`, () => {
    const cases = accepted(family).map((one) => ({ ...one, ...walletOf(one.input) })).filter(({ key }) => key !== undefined);
    assert.ok(cases.length > 10);
    for (const { id, input, registry, wallet, key } of cases.filter((_, index) => index % 4 === 0)) {
      const pinned = registryOf(registry);
      const check = (what) => assert.deepEqual(found(family, key), [], `${id} after ${what}`);
      assert.equal(JSON.parse(verifyLine(input, pinned)).ok, true, id);
      check("verifyLine");
      const order = Order.verify(documents(input), pinned);
      const withKey = order.prepare(JSON.stringify({ ...JSON.parse(wallet), secret_key: key }));
      check("prepare");
      order.prepare({ ...JSON.parse(wallet), secretKey: key }).free();
      check("prepare with an object");
      withKey.sign(key);
      check("sign");
      withKey.free();
      const unsigned = order.prepare(wallet);
      for (const raw of rawKeys(family, key)) if (/^(evm|tron|starknet|solana)$/.test(family)) unsigned.sign(raw);
      check("sign with bytes");
      const parsed = Key.parse(family, key);
      order.prepare(wallet).sign(parsed);
      parsed.free();
      check("sign with a key that was parsed and freed");
      unsigned.free();
      order.free();
    }
  });
}

/** Returns a record of the fixtures whose source is locked with the hash of this secret. */
function lockedWith(secret) {
  const text = documents(fixture("evm-record-bitcoin-v1").input).record;
  const { source_swap } = JSON.parse(text).result ?? JSON.parse(text);
  const record = text.replaceAll(source_swap.secret_hash, createHash("sha256").update(secret).digest("hex"));
  try {
    Recovery.refund(record, "source", registryOf(REGISTRY)).free();
    return record;
  } catch ({ expected }) {
    // The swap's id contains the hash.
    return record.replaceAll(source_swap.swap_id, expected);
  }
}

test("no copy of a key stays behind after a redemption", () => {
  const secret = randomBytes(32);
  const record = lockedWith(secret);
  const { wallet, key } = walletOf(fixture("evm-record-bitcoin-v1").input);
  for (const form of [secret.toString("hex"), secret]) {
    const redemption = Recovery.redeem(record, "source", form, registryOf(REGISTRY));
    // Whoever pays for the transaction signs it.
    const sender = JSON.parse(fixture("evm-record-bitcoin-v1").input).request.source.owner;
    const unsigned = redemption.prepare({ ...JSON.parse(wallet), sender, secret_key: key });
    unsigned.sign(key);
    assert.deepEqual(found("evm", key), []);
    const [{ role, payload }] = unsigned.finish().transactions;
    // The transaction makes the secret public, so that is not searched for.
    assert.ok(role === "redeem" && payload.includes(secret.toString("hex")));
  }
});
