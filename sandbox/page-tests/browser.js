// The browser for the page's tests, and the swaps that the page shows.
import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Returns the path of Chromium: CHROMIUM, an installed one, or the one from `npx playwright-core install chromium`. */
const executable = () => {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // Try the next candidate.
    }
  }
  const own = chromium.executablePath();
  if (existsSync(own)) return own;
  throw new Error("no Chromium: apt-get install chromium, npx playwright-core install chromium, or set CHROMIUM");
};

/** Starts the browser. Chromium's own sandbox does not work as root, which is the user in most containers. */
export const launch = () => chromium.launch({ executablePath: executable(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });

/** Returns the program that swaps: COUNTERSIGN_PROGRAM, or the one built in this checkout. */
const program = () => {
  const built = ["release", "debug"].map((profile) => here(`../../target/${profile}/countersign`));
  const path = process.env.COUNTERSIGN_PROGRAM ?? built.find(existsSync);
  if (!path) throw new Error("build the program first: cargo build -p countersign-cli");
  return path;
};

/** Swaps with the program, for at most `seconds`. Returns its exit code, or null if it was still waiting. */
export const swap = (sandbox, from, amount, to, seconds = 60) =>
  new Promise((resolve) => {
    const env = { ...process.env, COUNTERSIGN_CONFIG: sandbox.config };
    const flags = ["swap", "--from", from, "--amount", amount, "--to", to, "--yes", "--at-least", "1"];
    execFile(program(), flags, { env, timeout: seconds * 1000 }, (error) => resolve(error ? (error.killed ? null : error.code) : 0));
  });

/** Creates an order that nobody pays. `changes` apply to the request. `application` is sent as the application id. */
export const order = async (sandbox, changes = {}, application = "page-tests") => {
  const body = {
    source: { asset: "base:usdc", owner: sandbox.chains.base.account, amount: "25000000" },
    destination: { asset: "base:eth", owner: sandbox.chains.base.account, amount: "6000000000000000" },
    secret_hash: randomBytes(32).toString("hex"),
    nonce: "1",
    ...changes,
  };
  const headers = { "content-type": "application/json", "service-app-id": application };
  const response = await fetch(`${sandbox.service}/v2/orders`, { method: "POST", headers, body: JSON.stringify(body) });
  const { result, error } = await response.json();
  if (!result) throw new Error(error);
  return result.order_id;
};

/** Creates two completed swaps, one whose solver pays too little, and one that waits for its payment. */
export const scene = async (sandbox) => {
  const ends = [await swap(sandbox, "solana:sol", "0.5 sol", "base:usdc"), await swap(sandbox, "base:usdc", "1.5 usdc", "litecoin:ltc")];
  if (ends.some((end) => end !== 0)) throw new Error(`the swaps ended with ${ends}`);
  await sandbox.post("lies", { name: "solver-pays-less", on: true });
  await swap(sandbox, "base:usdc", "20 usdc", "litecoin:ltc", 4);
  await order(sandbox);
};
