// How long one order takes: `npm run bench`. With COUNTERSIGN set to a release build of the program, also natively.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Order, Registry, verifyLine } from "../dist/all/node.js";
import { BUILDS, DIST, FAMILIES } from "./paths.mjs";
import { REGISTRY, accepted, documents, walletOf } from "../test/fixtures.mjs";

/** What is timed: the first of these orders that a family has. */
const KINDS = ["token-approval-exact", "approval-exact", "token-v0", "p2wpkh", "native"];

/** Returns the order of a family that is timed. */
function timed(family) {
  const cases = accepted(family);
  return KINDS.map((kind) => cases.find(({ id }) => id === `${family}-${kind}`)).find(Boolean);
}

/** Returns the median of the microseconds of the processor that a call takes: other work on the machine does not count. */
function microseconds(work, rounds = 15) {
  work();
  const times = [];
  for (let round = 0; round < rounds; round += 1) {
    const start = process.cpuUsage();
    let calls = 0;
    let spent = 0;
    // As many calls as are far above what the clock can tell apart.
    do {
      work();
      calls += 1;
      const { user, system } = process.cpuUsage(start);
      spent = user + system;
    } while (spent < 20_000);
    times.push(spent / calls);
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}

/** Returns the microseconds that the program takes for a line: the slope, so that starting it does not count. */
function natively(program, line) {
  const folder = mkdtempSync(join(tmpdir(), "countersign-"));
  writeFileSync(join(folder, "registry.json"), REGISTRY);
  const run = (lines) => {
    const start = process.hrtime.bigint();
    const { status } = spawnSync(program, ["batch", "--registry", join(folder, "registry.json")], { input: `${line}\n`.repeat(lines), maxBuffer: 2 ** 30 });
    if (status !== 0) throw new Error("countersign batch failed");
    return Number(process.hrtime.bigint() - start) / 1000;
  };
  const slopes = Array.from({ length: 5 }, () => (run(2200) - run(200)) / 2000).sort((a, b) => a - b);
  rmSync(folder, { recursive: true });
  return slopes[2];
}

/** Returns the table of the README. */
export function speedTable() {
  const native = process.env.COUNTERSIGN;
  const registry = new Registry(REGISTRY);
  // Warm up every family first. V8 optimizes the module in background threads, and their time counts as this process's.
  const cases = FAMILIES.map((family) => [family, timed(family)]);
  for (const [, { input }] of cases) microseconds(() => verifyLine(input, registry));
  const rows = cases.map(([family, { input }]) => {
    const docs = documents(input);
    const { wallet } = walletOf(input);
    const verify = microseconds(() => Order.verify(docs, registry).free());
    const order = Order.verify(docs, registry);
    const prepare = microseconds(() => order.prepare(wallet).free());
    const whole = microseconds(() => verifyLine(input, registry));
    const columns = [family, verify, prepare, whole, ...(native ? [natively(native, input)] : [])];
    return `| ${columns.map((value) => (typeof value === "number" ? Math.round(value) : value)).join(" | ")} |`;
  });
  const heads = ["family", "verify", "prepare", "verify, prepare and sign", ...(native ? ["the same natively"] : [])];
  return [`| ${heads.join(" | ")} |`, `|${heads.map(() => "---").join("|")}|`, ...rows].join("\n");
}

/** Starts a build in a new process, and prints the milliseconds of loading it, of the first registry, and of the next. */
const START = `
const [build, registry] = process.argv.slice(1);
const times = [performance.now()];
const { Registry } = await import(build);
times.push(performance.now());
for (let round = 0; round < 2; round += 1) times.push((new Registry(registry), performance.now()));
console.log(JSON.stringify(times.slice(1).map((time, index) => time - times[index])));`;

/** Returns the table of the README about the start: medians of elapsed milliseconds. */
export function startTable() {
  const rows = BUILDS.map((build) => {
    const argv = ["--input-type=module", "-e", START, pathToFileURL(join(DIST, build, "node.js")).href, REGISTRY];
    const runs = Array.from({ length: 9 }, () => JSON.parse(execFileSync(process.execPath, argv, { encoding: "utf8" })));
    const medians = [0, 1, 2].map((column) => runs.map((run) => run[column]).sort((a, b) => a - b)[4].toFixed(1));
    return `| \`${build === "all" ? "countersign" : `countersign/${build}`}\` | ${medians.join(" | ")} |`;
  });
  return ["| build | load | first `Registry` | next |", "|---|---|---|---|", ...rows].join("\n");
}

/** Names what it was measured with. */
export const machine = () => `Node ${process.versions.node}, ${cpus().length} threads of ${cpus()[0]?.model ?? "an unknown processor"}`;

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  console.log(`Microseconds for one order, ${machine()}\n\n${speedTable()}\n\nMilliseconds of the start\n\n${startTable()}`);
}
