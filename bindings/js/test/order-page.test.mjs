// The page of an order is the program's, byte for byte.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Order, Registry, UnsignedOrder, orderPage } from "countersign/page";
import { FAMILIES, ROOT } from "../scripts/paths.mjs";
import { program } from "./native.mjs";

const registryFile = join(ROOT, "fixtures", "registry.json");
const registry = new Registry(readFileSync(registryFile));

/** The first case of a family, with its documents as text. */
const first = (family) => {
  const [line] = readFileSync(join(ROOT, "fixtures", "accept", `${family}.jsonl`), "utf8").split("\n");
  const input = `${line.slice(0, line.indexOf(',"note":'))}}`;
  const { request, response, order, wallet } = JSON.parse(input);
  const text = (value) => (value === undefined || value === null ? undefined : JSON.stringify(value));
  return { wallet, documents: { request: text(request), response: text(response), record: text(order) } };
};

/** What the program writes for the same documents. */
const native = ({ request, response, record }, ...flags) => {
  const folder = mkdtempSync(join(tmpdir(), "countersign-page-"));
  try {
    const file = (name, text) => (writeFileSync(join(folder, name), text), join(folder, name));
    const args = ["explain", "--json", "--registry", registryFile, "--request", file("request.json", request), "--response", file("response.json", response)];
    if (record !== undefined) args.push("--order", file("record.json", record));
    try {
      execFileSync(program(), [...args, "--html", join(folder, "page.html"), ...flags], { stdio: "pipe" });
    } catch (error) {
      if (error.status !== 1) throw error;
    }
    return readFileSync(join(folder, "page.html"), "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
};

for (const family of FAMILIES) {
  test(`${family}: accepted, in two languages, and refused`, () => {
    const { documents } = first(family);
    const page = orderPage(documents, registry);
    assert.equal(page.ok, true);
    assert.equal(page.html, native(documents));
    assert.match(page.sentence.text, /^Lock .*; (receive|the service promises) at least .*; (refund|only the service can refund,) after about /);
    assert.ok(page.html.includes(page.sentence.values.payout));
    const german = orderPage(documents, registry, { language: "de" });
    assert.match(german.sentence.text, /sperren/);
    assert.equal(german.html, native(documents, "--language", "de"));
    const changed = { ...documents, request: documents.request.replace(/"amount":"(\d+)"/, (_, digits) => `"amount":"${digits}1"`) };
    const refused = orderPage(changed, registry);
    assert.deepEqual([refused.ok, refused.sentence], [false, null]);
    assert.match(refused.html, /Do not sign/);
    assert.equal(refused.html, native(changed));
  });
}

test("a prepared order's page has its digests", () => {
  const { documents } = first("evm");
  const unsigned = Order.verify(documents, registry).prepareGasless();
  assert.ok(unsigned instanceof UnsignedOrder);
  const { html } = orderPage(documents, registry, { prepared: unsigned });
  for (const { digest } of unsigned.requests) assert.ok(html.includes(Buffer.from(digest).toString("hex")));
});

test("a page shows the digests of its own documents only", () => {
  const { documents } = first("evm");
  // The service chooses the id of an order, so another order can have the same one.
  const other = { ...documents, response: documents.response.replace(/"gas_limit":"0x[0-9a-f]+"/, '"gas_limit":"0x123456"') };
  assert.notEqual(other.response, documents.response);
  const prepared = Order.verify(other, registry).prepareGasless();
  assert.throws(() => orderPage(documents, registry, { prepared }), { code: "usage", at: "/prepared" });
});

test("wrong arguments are refused", () => {
  const { documents } = first("evm");
  assert.throws(() => orderPage(documents, registry, { language: "fr" }), { code: "usage" });
  assert.throws(() => orderPage(documents, registry, { prepared: {} }), { code: "usage" });
  assert.throws(() => orderPage({ ...documents, response: "{" }, registry), { code: "json_syntax", at: /^\/response/ });
});
