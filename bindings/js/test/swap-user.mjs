// The sandbox and its user, for tests of whole swaps.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { memoryStore } from "countersign/swap";
import { program, start } from "../../../sandbox/clients/sandbox.js";

/** Why tests with the sandbox are skipped; false if it is built. They never are where COUNTERSIGN_SANDBOX names it. */
export const skip = (() => {
  try {
    return !process.env.COUNTERSIGN_SANDBOX && !existsSync(program()) && "the sandbox is not built";
  } catch (error) {
    return error.message;
  }
})();

// Each sandbox is stopped with the process.
process.setMaxListeners(0);

/** What a user pays on each chain: about fifty dollars. */
const AMOUNTS = { base: "1.5 usdc", litecoin: "0.3 ltc", solana: "0.4 sol", tron: "40 usdt", starknet: "300 strk", sui: "20 sui" };
const chainOf = (asset) => asset.split(":")[0];

/** Starts a sandbox with the chains of a route, and stops it after the test. */
export async function sandboxFor(context, [from, to], ...lies) {
  const sandbox = await start("--chains", `${chainOf(from)},${chainOf(to)}`, ...lies.flatMap((lie) => ["--lie", lie]));
  context.after(() => sandbox.stop());
  return { sandbox, user: userOf(sandbox.config), wish: wishOf(sandbox.config, [from, to]) };
}

/** What the user asks for. */
export function wishOf(path, [from, to]) {
  const { owners } = JSON.parse(readFileSync(path, "utf8"));
  return { from, to, amount: AMOUNTS[chainOf(from)], receiveAt: owners[chainOf(to)] };
}

/** The options of the sandbox's user, and everything that was sent to the service. */
export function userOf(path) {
  const file = (name) => readFileSync(join(dirname(path), name), "utf8");
  const config = JSON.parse(file("config.json"));
  const keyOf = (chain) => file(config.key_files[chain] ?? config.key_file).trim();
  const sent = [];
  const asked = [];
  const options = {
    service: config.base_url,
    appId: config.app_id,
    registry: file("registry.json"),
    nodes: JSON.parse(file("nodes.json")),
    accounts: config.owners,
    signers: Object.fromEntries(Object.keys(config.owners).map((chain) => [chain, (unsigned) => unsigned.sign(keyOf(chain))])),
    store: memoryStore(),
    consent: (order) => asked.push(order) > 0 && order.warnings.every(({ severity }) => severity !== "danger"),
    relayer: true,
    pollMs: 100,
    fetch: (url, init) => {
      if (url.startsWith(config.base_url)) sent.push(`${url} ${init.body ? Buffer.from(init.body) : ""}`);
      return fetch(url, init);
    },
  };
  return { options, keyOf, sent, asked };
}

/** Reads the changes of a swap until one passes, and returns all of them. */
export async function until(changes, isLast = () => false) {
  const read = [];
  for await (const change of changes) {
    read.push(change);
    if (isLast(change)) break;
  }
  return read;
}

/** Returns how a swap ended: the reason, or the code of the error. */
export async function endOf(changes) {
  try {
    const last = (await until(changes)).at(-1);
    return last.error?.code ?? last.reason;
  } catch (error) {
    if (error.name !== "CountersignError") throw error;
    return error.code;
  }
}
