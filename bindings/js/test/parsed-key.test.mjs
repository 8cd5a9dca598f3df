// Keys that are parsed once. One family's build is enough.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { Key, Order, Registry } from "countersign/evm";
import { DIST } from "../scripts/paths.mjs";
import { REGISTRY, documents, fixture, walletOf } from "./fixtures.mjs";

const { input } = fixture("evm-token-approval-exact");
const { wallet, key: secret } = walletOf(input);
const registry = new Registry(REGISTRY);
const prepare = () => Order.verify(documents(input), registry).prepare(wallet);

test("a key signs as its text does, as often as wanted", () => {
  const byText = prepare();
  byText.sign(secret);
  const expected = byText.finish().transactions;
  const raw = Uint8Array.from(Buffer.from(secret.replace(/^0x/, ""), "hex"));
  for (const given of [secret, new TextEncoder().encode(secret), raw]) {
    const key = Key.parse("evm", given);
    for (const unsigned of [prepare(), prepare()]) {
      unsigned.sign(key);
      assert.deepEqual(unsigned.finish().transactions, expected);
    }
    key.free();
    assert.throws(() => prepare().sign(key), { code: "used_up" });
    assert.throws(() => key.account, { code: "used_up" });
  }
  assert.equal(raw.some((byte) => byte !== 0), true, "the caller's bytes are the caller's");
});

test("a key shows its family and its account alone", () => {
  const key = Key.parse("evm", secret);
  const { owner } = JSON.parse(input).request.source;
  assert.equal(key.family, "evm");
  assert.equal(key.account.toLowerCase(), owner.toLowerCase());
  assert.equal(JSON.stringify(key), `{"family":"evm","account":"${key.account}"}`);
  const shown = inspect(key, { showHidden: true, depth: 10, getters: true }) + String(key) + JSON.stringify({ ...key });
  assert.ok(!shown.includes(secret.slice(2)) && !shown.includes(secret.slice(2, 20)), shown);
});

test("a key that does not fit is refused without a part of it", () => {
  const part = secret.slice(2, 20);
  assert.throws(() => Key.parse("evm", secret.slice(0, -2)), (error) => error.code === "key_malformed" && error.at === "/key" && !JSON.stringify(error).includes(part));
  assert.throws(() => Key.parse("ethereum", secret), { code: "usage", at: "/family" });
  // This build has no code for it.
  assert.throws(() => Key.parse("sui", secret), { code: "unsupported_family" });
  assert.throws(() => Key.parse("evm", 7), { code: "usage" });
  assert.throws(() => new Key(), TypeError);
  const other = Key.parse("evm", secret.replace(/[1a]/g, "2"));
  const unsigned = prepare();
  assert.throws(() => unsigned.sign(other), { code: "key_mismatch" });
  assert.throws(() => unsigned.sign({ family: "evm" }), { code: "usage" });
  assert.throws(() => unsigned.sign(registry), { code: "usage" });
  assert.notEqual(unsigned.missing.length, 0);
});

test("a key of another copy of the package is named as such", async () => {
  const web = await import(join(DIST, "evm", "web.js"));
  await web.init(readFileSync(join(DIST, "evm", "countersign_bg.wasm")));
  assert.throws(() => prepare().sign(web.Key.parse("evm", secret)), { code: "usage", message: /of another build/ });
});
