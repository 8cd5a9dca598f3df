// Public reports about wallets, by the table that the program is tested with: what signers and wallets give, and the answer that is right.
// The inputs are not a part of this project; without them the test is skipped.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Order, Registry } from "countersign";
import { ROOT } from "../scripts/paths.mjs";
import { documents, walletOf } from "./fixtures.mjs";

const TABLE = join(ROOT, "fixtures", "reports.jsonl");
const INPUTS = join(ROOT, "..", "shared", "reports");
const skip = !existsSync(INPUTS) && "the inputs are not there";

/** Runs a line of the table, and returns what the bindings say of it; nothing for what only the program reads. */
function answer({ command, registry, case: name, input }) {
  const line = readFileSync(join(INPUTS, name), "utf8");
  const order = Order.verify(documents(line), new Registry(readFileSync(join(INPUTS, registry), "utf8")));
  if (command === "explain") return { warnings: order.warnings };
  if (command === "match") return match(order, readFileSync(join(INPUTS, input)));
  const unsigned = order.prepare(walletOf(line).wallet);
  if (command === "attach") attach(unsigned, readFileSync(join(INPUTS, input)));
  return { warnings: unsigned.warnings };
}

function attach(unsigned, bytes) {
  const text = bytes.toString();
  if (!text.startsWith("{")) return unsigned.attachTransaction(new Uint8Array(bytes));
  for (const [name, signature] of Object.entries(JSON.parse(text))) unsigned.attach(name, signature);
}

function match(order, bytes) {
  const text = bytes.toString().trim();
  // PSBTs are attached; only the program reads one that a wallet made.
  if (text.startsWith("psbt") || text.startsWith("cHNidP")) return undefined;
  const sent = /^[\x20-\x7e\s]*$/.test(text) ? text : bytes.toString("hex");
  const members = sent.startsWith("{") ? JSON.parse(sent) : {};
  if ("receipts" in members || "logs" in members || ("status" in members && !("nonce" in members))) return { paid: order.findPayment(sent) };
  const { role, warnings } = order.matchWithWarnings(sent);
  // The role alone is given only where nothing has to be read.
  if (warnings.every(({ severity }) => severity === "info")) assert.equal(order.matches(sent), role);
  else assert.throws(() => order.matches(sent), { code: "transaction_mismatch", at: "/transaction", message: /match it with warnings/ });
  return { role, changed: warnings };
}

test("every report gives the answer that the program gives", { skip }, () => {
  const lines = readFileSync(TABLE, "utf8").split("\n").filter(Boolean);
  const wrong = [];
  let count = 0;
  for (const line of lines) {
    const { code, says, role, changed = [], warnings = [], ...report } = JSON.parse(line);
    try {
      const found = answer(report);
      if (!found) continue;
      count += 1;
      assert.equal(undefined, code);
      assert.equal(found.role, role);
      assert.deepEqual((found.changed ?? []).map((one) => one.code), changed);
      const codes = (found.warnings ?? []).map((one) => one.code);
      assert.deepEqual(warnings.filter((one) => !codes.includes(one)), []);
    } catch (error) {
      if (error.name === "CountersignError" && (count += 1) && error.code === code && JSON.stringify(error).includes(says ?? "")) continue;
      wrong.push(`${line}\n  ${error.code} ${error.message}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(count > 75, `${count}`);
});
