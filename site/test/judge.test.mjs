// What the page decides, for every case of the corpus, beside what the corpus expects; and the parts that need no browser.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { decode, replace } from "../src/bytes.js";
import { cut as cutLine } from "../src/cases.js";
import { compare, outcome, word } from "../src/compare.js";
import { judge } from "../src/judge.js";
import { find, leaves, place, read, spell } from "../src/json.js";
import * as link from "../src/link.js";
import { costOf, terms } from "../src/verdict.js";
import { DIST, FAMILIES, ROOT, json, zipped } from "./browser.mjs";

const corpus = (family) => readFileSync(join(ROOT, "fixtures", "corpus", `${family}.jsonl`), "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
const module = (family) => import(pathToFileURL(join(ROOT, "bindings", "js", "dist", family, "node.js")).href);

const cut = ({ input, registry, policy }) => cutLine(input, readFileSync(join(ROOT, "fixtures", "corpus", registry ?? "registry.json"), "utf8"), policy);
/** The cases that are refused for what is around their documents. */
const LINE_ONLY = { evm: ["duplicate-id", "duplicate-request", "duplicate-response", "line-id-empty-object", "line-id-null", "line-id-number", "line-without-id", "misspelt-order"] };

for (const family of FAMILIES) {
  test(`${family}: every case of the corpus is in the site's data, and has its verdict`, async () => {
    const built = await module(family);
    const { cases, attacks } = json(`${family}/index.json`);
    const byId = new Map(cases.map((one) => [one.id, one]));
    const parts = new Map();
    const [expected, lineOnly] = [corpus(family), []];
    assert.equal(cases.length, expected.length);
    for (const one of expected) {
      const row = byId.get(one.id);
      if (!parts.has(row.part)) parts.set(row.part, json(`${family}/${row.part}.json`));
      const input = parts.get(row.part)[row.place];
      assert.equal(input, one.input, one.id);
      if (one.attack) assert.deepEqual({ ...attacks[row.attack], loss: row.loss }, { section: one.section, words: one.attack, loss: one.loss }, one.id);
      const result = judge(built, cut(one), input);
      if (result.isLineOnly && judge(built, cut(one)).ok) lineOnly.push(one.id.replace("reject/", ""));
      if (one.result === "invalid") {
        assert.deepEqual(result.ok ? "accepted" : [result.refusal.code, result.refusal.at], [one.expect.code, one.expect.at], one.id);
        assert.equal(result.artefacts, undefined, one.id);
      } else {
        assert.ok(result.ok, one.id);
        if (one.expect.artefacts) assert.deepEqual(JSON.parse(result.artefacts), one.expect.artefacts, one.id);
      }
    }
    assert.deepEqual(lineOnly.sort(), LINE_ONLY[family] ?? []);
  });

  test(`${family}: a document that was edited has the verdict that the program gives the same line`, async () => {
    const built = await module(family);
    for (const one of corpus(family).filter(({ id, result }) => id.startsWith("accept/") && result === "valid").slice(0, 5)) {
      const documents = cut(one);
      const all = leaves(read(documents.response).value).filter(({ kind }) => kind === "string");
      for (const value of all) {
        const response = documents.response.slice(0, value.start) + JSON.stringify(`${value.text}0`) + documents.response.slice(value.end);
        const registry = new built.Registry(documents.registry);
        const line = one.input.replace(documents.response, () => response);
        const program = JSON.parse(built.verifyLine(line, registry));
        const result = judge(built, { ...documents, response });
        assert.deepEqual(result.ok || [result.refusal.code, result.refusal.at], program.ok || [program.error.code, program.error.at], `${one.id} ${value.pointer}`);
        registry.free();
      }
    }
  });
}

test("documents are read without loss, and changed in one place", () => {
  const text = '{ "a": [1, 2.50, 1e3], "a": "x\\u0041", "b/~": {"c": null} }';
  const { value } = read(text);
  assert.deepEqual(leaves(value).map(({ pointer, text: own }) => [pointer, own]), [["/a/0", "1"], ["/a/1", "2.50"], ["/a/2", "1e3"], ["/a", "xA"], ["/b~1~0/c", "null"]]);
  assert.equal(find(value, "/b~1~0/c").text, "null");
  assert.deepEqual([spell("12", "scalar"), spell("1 2", "scalar"), spell('"', "string"), spell("12", "string")], ["12", '"1 2"', '"\\""', '"12"']);
  for (const bad of ["", "{", '{"a":1,}', "[1] 2", '{"a" 1}', "nul", '"\n"', "01", `${"[".repeat(100_000)}`]) assert.match(read(bad).problem, /^the(re is| text)/, bad.slice(0, 20));
});

test("payloads are bytes, and one byte is changed without the rest", () => {
  const of = (text) => read(text).value;
  assert.deepEqual([...decode(of('"0x00FFab12"'))], [0, 255, 171, 18]);
  assert.equal(replace(of('"0x00FFab12"'), 2, 1).text, '"0x00FF0112"');
  const base64 = Buffer.from("a payload of a transaction").toString("base64");
  assert.equal(Buffer.from(decode(of(JSON.stringify(base64)))).toString(), "a payload of a transaction");
  assert.equal(Buffer.from(JSON.parse(replace(of(JSON.stringify(base64)), 0, 65).text), "base64").toString(), "A payload of a transaction");
  const array = of(`[ ${Array.from({ length: 20 }, (_, index) => index).join(" , ")} ]`);
  assert.equal(decode(array).length, 20);
  assert.deepEqual(replace(array, 3, 200).text, "200");
  for (const none of ['"2500000000"', '"0x1"', '"bitcoin:btc"', "[1,2,3]", '"TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"']) assert.equal(decode(of(none)), undefined, none);
});

test("a link carries changed documents, and a broken one says why", async () => {
  const changed = { response: '{"a":"ä\u0007"}', wallet: "" };
  assert.deepEqual(await link.read(await link.write("evm", "accept/evm-native", changed), FAMILIES), { family: "evm", id: "accept/evm-native", changed });
  assert.deepEqual(await link.read(await link.write("sui", "", {}), FAMILIES), { family: "sui", id: "", changed: {} });
  const bomb = await link.write("evm", "", { response: "0".repeat(2 * link.MAX_DOCUMENTS) });
  assert.ok(bomb.length < link.MAX_FRAGMENT);
  const broken = { [bomb]: /larger than/, "#evm": /form/, "#<script>:": /form/, "#cosmos:accept/a": /family/, "#evm:accept/a:AAAA": /damaged/, [`#evm::${"A".repeat(70_000)}`]: /longer/ };
  broken[(await link.write("evm", "", { script: "x" }))] = /other documents/;
  for (const [fragment, why] of Object.entries(broken)) await assert.rejects(link.read(fragment, FAMILIES), (error) => error instanceof link.BrokenLink && why.test(error.message), fragment.slice(0, 40));
});

test("the cost of an edit is that of the cases with the same refusal, or unknown", () => {
  const attacks = [{ code: "a", at: "/x#1-2", loss: "funds", words: "one" }, { code: "a", at: "/y", loss: "time", words: "two" }];
  assert.deepEqual(costOf({ code: "a", at: "/x#5-6" }, attacks), { losses: ["funds"], examples: ["one"], isSamePlace: true });
  assert.deepEqual(costOf({ code: "a", at: "/z" }, attacks).losses, ["funds", "time"]);
  assert.deepEqual(costOf({ code: "b", at: "/x" }, attacks).losses, []);
  assert.equal(costOf({ code: "a", at: "/x#y" }, attacks).isSamePlace, false);
});

test("artefacts are equal only if every byte is", () => {
  const [both, sdkOnly, ownOnly] = ["not equal", "signed by the SDK only", "signed by countersign only"];
  for (const [ours, theirs, words, said] of [
    [{ a: { b: "0xAB" }, c: null }, { a: { b: "0xab" }, d: null }, ["equal"], /^Equal: all 1 artefacts/],
    [{ a: "0xab" }, { a: "0xac", b: "1" }, [both, sdkOnly], /^Not equal: 2 of 2/],
    [{ a: "1", b: "2" }, { a: "1" }, ["equal", ownOnly], /^Not equal: 1 of 2/],
    [{ a: "5Kd", b: "qrAB" }, { a: "5kd", b: "qrab" }, [both, both], /^Not equal: 2 of 2/],
    [{ a: { signed: "1", tx_hash: "2" } }, { a: { signed: "1" } }, ["equal"], /^Equal: all 1/],
    [{ a: { signature: ["1", "2"] } }, { a: { signature: ["1"] } }, ["equal", ownOnly], /^Not equal: 1 of 2/],
    [undefined, { a: "0xab" }, [sdkOnly], /^sdk signed what countersign refused/],
    [undefined, { a: null }, [], /^sdk signed nothing/],
    [{ a: "1" }, {}, [ownOnly], /^sdk signed nothing/],
  ]) {
    const compared = compare(ours && JSON.stringify(ours), JSON.stringify(theirs));
    assert.deepEqual(compared.map(word), words);
    assert.match(outcome(compared, "sdk", ours === undefined), said);
  }
});

test("a location is a pointer, whatever its keys are, and a range", () => {
  for (const [at, pointer, range] of [["", "", undefined], ["/a/b#1-20", "/a/b", [1, 20]], ["/policy/a#b", "/policy/a#b", undefined], ["/a#b\n#c#3-4", "/a#b\n#c", [3, 4]], ["/a#1-2/b", "/a#1-2/b", undefined]]) {
    assert.deepEqual(place(at), { pointer, range }, at);
  }
});

test("a verdict is under the pinned registry and the default policy, or says under what", () => {
  assert.equal(terms({ registry: "r", policy: "" }, "r"), "");
  assert.equal(terms({ registry: "s", policy: "" }, "r"), " under a registry that is not the pinned one");
  assert.equal(terms({ registry: "s", policy: "{}" }, "r"), " under a registry that is not the pinned one and a policy that is not the default one");
});

test("a link has no key but the published ones", () => {
  const keys = json("keys.json");
  assert.ok(keys.length > 300 && FAMILIES.every((family) => corpus(family).some(({ input }) => keys.some((key) => key.length > 40 && input.includes(key)))));
  const [published, own] = [keys[0], `${keys[0].slice(0, -1)}${keys[0].endsWith("0") ? 1 : 0}`];
  const of = (key) => JSON.stringify({ nonce: 1, secret_key: key });
  for (const fine of [{}, { wallet: "" }, { wallet: of(published) }, { wallet: of(null) }, { wallet: "{}" }, { request: '{"secret_hash":"0xab"}' }, { response: "no JSON" }]) assert.equal(link.secretIn(fine, keys), undefined, JSON.stringify(fine));
  const twice = of(published).replace("{", `{"secret_key":"${own}",`);
  for (const wallet of [of(own), of([1, 2]), of(7), of({ a: own }), twice, `{"secretKey":"${own}"}`, `{"secret\\u005fkey":"${own}"}`, `{"a":[{"Private-Key":"${own}"}]}`, own, `"${own}"`, of(own).slice(0, -1), "[]"]) {
    assert.match(link.secretIn({ wallet }, keys) ?? "none", /secret key/, wallet);
  }
  for (const other of [{ request: of(own) }, { response: `${of(own)},` }]) assert.match(link.secretIn(other, keys) ?? "none", /secret key/);
});

test("every code of the corpus has its words, every family its libraries, and the data is small", () => {
  const { codes, losses, libraries, sdks } = json("common.json");
  for (const family of FAMILIES) {
    const { cases, start } = json(`${family}/index.json`);
    assert.ok(cases.some(({ id, sentence }) => id === start && sentence), family);
    for (const { code, loss } of cases) assert.ok((!code || codes[code]?.length === 2) && (!loss || losses[loss]), code);
    assert.ok(libraries[family].every(({ name, sections }) => name && Object.keys(sections).length > 0 || name.startsWith("BitGoJS")), family);
    assert.match(sdks[family], / \d+\.\d+\.\d+$/);
    for (const part of readdirSync(join(DIST, "data", family)).filter((name) => name !== "index.json")) assert.ok(zipped(`data/${family}/${part}`) < 100_000, part);
  }
});
