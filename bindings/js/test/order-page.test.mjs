// The page of an order is the program's, byte for byte.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Order, Policy, Registry, UnsignedOrder, checkReceipt, descriptors, orderPage, registryDiff, writeReceipt } from "countersign/page";
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

test("a page in a language of one's own shows every value", () => {
  const { documents } = first("evm");
  const messages = readFileSync(join(ROOT, "crates", "view", "locales", "en.ftl"), "utf8").replaceAll("Lock ", "Zet vast: ");
  const page = orderPage(documents, registry, { language: "nl", messages });
  assert.match(page.sentence.text, /^Zet vast: /);
  assert.match(page.html, /lang="nl"/);
  const loses = "decimal-sign = ,\nlock = Zet { $pay } vast.";
  assert.throws(() => orderPage(documents, registry, { language: "nl", messages: loses }), { code: "usage", at: "/messages" });
});

// The key of test 1 of RFC 8032.
const SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

test("a receipt is written, signed and checked, also by the program", () => {
  const { documents } = first("evm");
  const receipt = writeReceipt(documents, registry, { key: SEED });
  assert.deepEqual(writeReceipt(documents, registry, { key: Uint8Array.from(Buffer.from(SEED, "hex")) }), receipt);
  const { isProven, signer, verdict, ownLimits, differences } = checkReceipt(receipt, registry, { signer: PUBLIC });
  assert.deepEqual([isProven, signer, verdict.ok, ownLimits.length, differences.length], [true, PUBLIC, true, 0, 0]);
  const own = new Policy('{"refused_warnings": ["unlimited_approval"]}');
  const underOwn = writeReceipt(documents, registry, { policy: own });
  const checked = checkReceipt(underOwn, registry);
  assert.equal(checked.isProven, true);
  assert.match(JSON.stringify(checked.ownLimits), /unlimited_approval/);
  assert.equal(checkReceipt(underOwn, registry, { policy: own }).isProven, true);
  const strict = checkReceipt(underOwn, registry, { policy: new Policy() });
  assert.ok(!strict.isProven && strict.verdict === null && strict.differences.every(({ at }) => at.startsWith("/policy")));
  const folder = mkdtempSync(join(tmpdir(), "countersign-receipt-"));
  try {
    writeFileSync(join(folder, "receipt.json"), receipt);
    const output = execFileSync(program(), ["check-receipt", "--json", "--registry", registryFile, join(folder, "receipt.json"), "--signer", PUBLIC], { encoding: "utf8" });
    assert.equal(JSON.parse(output).receipt, "proven");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("free text of a receipt is quoted", () => {
  const forged = JSON.parse(new TextDecoder().decode(writeReceipt(first("evm").documents, registry)));
  forged.program = "<img onerror=x>  \u202esigner";
  forged.request.sha256 = "a\nb";
  const { program, differences } = checkReceipt(JSON.stringify(forged), registry);
  assert.equal(program, '"<img onerror=x> \\u{0020}\\u{202e}signer"');
  assert.equal(differences.find(({ at }) => at === "/request/sha256").receipt, '"a\\u{000a}b"');
});

test("a key or a receipt that cannot be used is refused without a part of the key", () => {
  const { documents } = first("evm");
  const isSilent = (error) => error.code === "key_malformed" && error.at === "/key" && !JSON.stringify(error).includes(SEED.slice(0, 16));
  assert.throws(() => writeReceipt(documents, registry, { key: SEED.slice(2) }), isSilent);
  assert.throws(() => checkReceipt("{}", registry), { code: "missing_field" });
  assert.throws(() => checkReceipt(writeReceipt(documents, registry), registry, { signer: "d7" }), { at: "/signer" });
});

test("descriptors are those of the pinned contracts, and a newer registry is compared", () => {
  const { files, leftOut } = descriptors(registry);
  assert.ok(files.length > 2 && Array.isArray(leftOut));
  for (const { name, assets, json } of files) assert.ok(name.endsWith(".json") && assets.length > 0 && JSON.parse(json).context, name);
  const newer = JSON.parse(readFileSync(registryFile, "utf8"));
  newer.assets[0].min_amount = "12345";
  assert.deepEqual(registryDiff(registry, registry), []);
  const [change, ...others] = registryDiff(registry, new Registry(JSON.stringify(newer)));
  assert.deepEqual([change.entry, change.field, change.new, others.length], [`asset ${newer.assets[0].id}`, "smallest amount", "12345", 0]);
  assert.throws(() => registryDiff(registry, {}), { code: "usage" });
});

test("wrong arguments are refused", () => {
  const { documents } = first("evm");
  assert.throws(() => orderPage(documents, registry, { language: "fr" }), { code: "usage" });
  assert.throws(() => orderPage(documents, registry, { prepared: {} }), { code: "usage" });
  assert.throws(() => orderPage({ ...documents, response: "{" }, registry), { code: "json_syntax", at: /^\/response/ });
});
