// Every subpath, in both module systems: the same names, its own family, and no other.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as all from "countersign";
import { ADAPTERS, BUILDS, DIST, FAMILIES, HERE } from "../scripts/paths.mjs";
import { REGISTRY, accepted, documents } from "./fixtures.mjs";

const require = createRequire(import.meta.url);

test("the build with all families has them", () => {
  assert.deepEqual([...all.families()].sort(), FAMILIES);
});

for (const family of FAMILIES) {
  test(`countersign/${family} verifies its family alone`, async () => {
    const own = await import(`countersign/${family}`);
    assert.deepEqual(Object.keys(own).sort(), Object.keys(all).sort());
    assert.equal(require(`countersign/${family}`).Order, own.Order);
    assert.deepEqual(own.families(), [family]);
    const registry = new own.Registry(REGISTRY);
    for (const other of FAMILIES) {
      const one = accepted(other).find((found) => found.registry === REGISTRY);
      const verify = () => own.Order.verify(documents(one.input), registry);
      if (other === family) assert.equal(own.verifyLine(one.input, registry), all.verifyLine(one.input, new all.Registry(REGISTRY)));
      else assert.throws(verify, { name: "CountersignError", code: "unsupported_family", blame: "unsupported" });
    }
  });
}

test("objects of another build are refused", async () => {
  const { Order } = await import("countersign/evm");
  const one = accepted("evm")[0];
  assert.throws(() => Order.verify(documents(one.input), new all.Registry(REGISTRY)), { code: "usage", message: /of another build/ });
});

test("browsers' files import nothing, and the module asks for nothing but strings and a way to throw", async () => {
  for (const build of BUILDS) {
    const script = readFileSync(join(DIST, build, "web.js"), "utf8");
    assert.doesNotMatch(script, /\b(require|eval|Function)\(|(^|;)import[\s{*"]/m, build);
    const module = new WebAssembly.Module(readFileSync(join(DIST, build, "countersign_bg.wasm")));
    const imports = WebAssembly.Module.imports(module).map(({ name }) => name.replace(/_[0-9a-f]{16}$/, ""));
    // A list of endpoints' names is read string by string.
    const expected = /^(__wbg___wbindgen_throw|__wbg___wbindgen_string_get|__wbindgen_init_externref_table|__wbindgen_generic)$/;
    // The rescue phrase takes random numbers.
    const asked = build === "swap" ? imports.filter((name) => name !== "__wbg_getRandomValues") : imports;
    for (const name of asked) assert.match(name, expected, build);
  }
});

test("browsers' build: an error before init, and init from bytes", async () => {
  const web = await import(join(DIST, "evm", "web.js"));
  assert.throws(() => new web.Registry(REGISTRY), { code: "not_initialized" });
  await assert.rejects(web.init(new Uint8Array(4)), { name: "CountersignError", code: "init_failed" });
  const bytes = readFileSync(join(DIST, "evm", "countersign_bg.wasm"));
  await Promise.all([web.init(bytes), web.init(bytes)]);
  const one = accepted("evm")[0];
  assert.equal(web.verifyLine(one.input, new web.Registry(REGISTRY)), all.verifyLine(one.input, new all.Registry(REGISTRY)));
});

test("the README's example runs", () => {
  const readme = readFileSync(join(HERE, "README.md"), "utf8");
  const [, example] = readme.match(/```js\n([^]*?)```/);
  const one = accepted("evm").find(({ id }) => id === "evm-token-approval-exact");
  const { request, response } = documents(one.input);
  const { secret_key: key, nonce, max_fee_per_gas, max_priority_fee_per_gas } = JSON.parse(one.input).wallet;
  const given = { registry: REGISTRY, request, response, nonce, key };
  const fees = `const [maxFeePerGas, maxPriorityFeePerGas] = [${max_fee_per_gas}n, ${max_priority_fee_per_gas}n];`;
  const program = `const { registry, request, response, nonce, key } = ${JSON.stringify(given)};\n${fees}\nconst broadcast = (payload) => console.log(payload);\n`;
  const imports = example.match(/^import .*$/gm).join("\n");
  const body = example.replace(/^import .*$/gm, "");
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", `${imports}\n${program}${body}`], { cwd: HERE, encoding: "utf8" });
  const { approval, initiate } = one.expect.artefacts;
  assert.ok(output.includes(approval.signed) && output.includes(initiate.signed), output);
});

test("every adapter loads by require", () => {
  for (const name of ADAPTERS) assert.ok(Object.values(require(`countersign/${name}`)).every((value) => typeof value === "function"));
});
