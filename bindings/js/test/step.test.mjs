// A build says what it is doing while a program runs, and passes on what the program says beside its progress.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { HERE } from "../scripts/paths.mjs";

const script = join(HERE, "scripts", "step.mjs");

/** Runs a step whose program is this JavaScript, with a line of progress every 50 ms. */
function run(program) {
  const main = `import { step } from ${JSON.stringify(script)};
    await step("evm: cargo build", process.execPath, ["-e", ${JSON.stringify(program)}]).catch((error) => { console.error(error.name, error.message); process.exit(3); });`;
  const env = { ...process.env, COUNTERSIGN_PROGRESS_MS: "50" };
  return spawnSync(process.execPath, ["--input-type=module", "-e", main], { encoding: "utf8", env });
}

test("a long step has lines of progress, with the crate that is compiled", () => {
  const { status, stdout, stderr } = run('console.error("   Compiling one v1.0.0\\n   Compiling two v2.0.0\\nwarning: unused"); setTimeout(() => {}, 1500)');
  assert.equal(status, 0);
  const lines = stdout.trim().split("\n");
  assert.equal(lines[0], "evm: cargo build ..");
  assert.match(lines.at(-1), /^evm: cargo build \(\d+ s\)$/);
  assert.ok(lines.some((line) => /^evm: cargo build: \d+ s, 2 crates so far, now two$/.test(line)), stdout);
  assert.equal(stderr, "warning: unused\n");
});

test("a step that fails is named, with what it said", () => {
  const { status, stderr } = run('console.error("error: no linker"); process.exitCode = 7');
  assert.equal(status, 3);
  assert.match(stderr, /^error: no linker\nError evm: cargo build failed: it ended with 7\n$/);
});
