// `verifyLine` gives what the program gives, byte for byte.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Policy, Registry, verifyLine } from "countersign";
import { FAMILIES } from "../scripts/paths.mjs";
import { HAS_VECTORS, REGISTRY, accepted, published, refused } from "./fixtures.mjs";
import { batch, program } from "./native.mjs";

const registries = new Map();
const policies = new Map();

function once(made, text, make) {
  if (!made.has(text)) made.set(text, make(text));
  return made.get(text);
}

function here({ input, registry, policy }) {
  return verifyLine(
    input,
    once(registries, registry, (text) => new Registry(text)),
    policy && once(policies, policy, (text) => new Policy(text)),
  );
}

function compare(all) {
  // The program would take a line feed inside a case for its end.
  const cases = all.filter(({ input }) => !input.includes("\n"));
  const there = batch(countersign, cases);
  for (const one of cases) assert.equal(here(one), there.get(one), one.id);
}

const countersign = program();

for (const family of FAMILIES) {
  test(`accepted fixtures of ${family}`, () => {
    const cases = accepted(family);
    assert.ok(cases.length > 0);
    compare(cases);
    for (const one of cases) {
      const { ok, family: signs, order_id, artefacts } = JSON.parse(here(one));
      assert.deepEqual({ ok, family: signs, order_id, artefacts }, { ok: true, family, order_id: one.expect.order_id, artefacts: one.expect.artefacts }, one.id);
    }
  });

  test(`refused fixtures of ${family}`, () => {
    const cases = refused(family);
    assert.ok(cases.length > 0);
    compare(cases);
    for (const one of cases) {
      const result = JSON.parse(here(one));
      if (one.warning) assert.ok(result.warnings.some(({ code }) => code === one.warning), one.id);
      else assert.deepEqual([result.error.code, result.error.at], [one.code, one.at], one.id);
    }
  });
}

test("published cases", { skip: HAS_VECTORS ? false : "../shared/vectors is not beside the project" }, () => {
  const cases = published();
  assert.ok(cases.length > 0);
  compare(cases);
  for (const one of cases) assert.equal(JSON.parse(here(one)).ok, one.expect.ok, one.id);
});

test("lines that are no case", () => {
  const lines = ["{", "[]", "null", '{"id":1}', '{"id":"a"}', '{"id":"a","id":"b"}', '{"id":"a\\u0000","request":{}}', `{"id":"deep","request":${"[".repeat(100)}`, "\u{feff}{}"];
  compare(lines.map((input) => ({ id: input, input, registry: REGISTRY })));
});

test("a line may be bytes, and need not be UTF-8", () => {
  const registry = new Registry(REGISTRY);
  const [one] = accepted("sui");
  assert.equal(verifyLine(Buffer.from(one.input), registry), here(one));
  assert.equal(JSON.parse(verifyLine(new Uint8Array([0x7b, 0xff, 0x7d]), registry)).error.code, "json_not_utf8");
});
