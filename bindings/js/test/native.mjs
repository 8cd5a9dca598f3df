// The program that the package is compared with.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../scripts/paths.mjs";

/** Returns the path of the program: COUNTERSIGN, or it is built. */
export function program() {
  if (process.env.COUNTERSIGN) return process.env.COUNTERSIGN;
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  execFileSync("cargo", ["build", "--quiet", "--locked"], { cwd: ROOT, stdio: "inherit", env: { ...process.env, CARGO_TARGET_DIR: target } });
  return join(target, "debug", "countersign");
}

/** Runs `countersign batch` over cases and returns one output line for each. Cases with the same registry and policy share a run. */
export function batch(countersign, cases) {
  const folder = mkdtempSync(join(tmpdir(), "countersign-"));
  const results = new Map();
  try {
    for (const group of groupBy(cases).values()) {
      const [{ registry, policy }] = group;
      writeFileSync(join(folder, "registry.json"), registry);
      const args = ["batch", "--registry", join(folder, "registry.json")];
      if (policy) {
        writeFileSync(join(folder, "policy.json"), policy);
        args.push("--policy", join(folder, "policy.json"));
      }
      const input = group.map((one) => `${one.input}\n`).join("");
      const { stdout, stderr, status } = spawnSync(countersign, args, { input, encoding: "utf8", maxBuffer: 2 ** 28 });
      if (status !== 0 && status !== 1) throw new Error(`countersign batch: ${stderr}`);
      const lines = stdout.split("\n");
      if (lines.length !== group.length + 1) throw new Error(`${group.length} lines in, ${lines.length - 1} lines out`);
      group.forEach((one, index) => results.set(one, lines[index]));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return results;
}

function keyOf({ registry, policy }) {
  return JSON.stringify([registry, policy]);
}

function groupBy(cases) {
  const groups = new Map();
  for (const one of cases) {
    const key = keyOf(one);
    if (groups.has(key)) groups.get(key).push(one);
    else groups.set(key, [one]);
  }
  return groups;
}
