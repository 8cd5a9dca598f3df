// Starts and stops the sandbox for a test. A wallet's own tests can do the same.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Returns the sandbox's program: COUNTERSIGN_SANDBOX, or the one built in this checkout. */
export const program = () => {
  const built = ["release", "debug"].map((profile) => join(here, "..", "target", profile, "countersign-sandbox"));
  const path = process.env.COUNTERSIGN_SANDBOX ?? built.find(existsSync);
  if (!path) throw new Error("build the sandbox first: cargo build --manifest-path sandbox/Cargo.toml");
  return path;
};

/** Starts a sandbox on free ports. Returns `{ service, chains: { base: { url, account } }, key, config, post, stop
   }`. */
export const start = async (...flags) => {
  const directory = mkdtempSync(join(tmpdir(), "countersign-sandbox-"));
  const child = spawn(program(), ["--port", "0", "--json", "--dir", directory, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const stop = () => {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  // Stops the sandbox even if a test fails first.
  process.once("exit", stop);
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the sandbox ended with ${code}`)));
  });
  const { service, chains, key, config } = JSON.parse(line);
  return {
    service,
    key,
    config,
    chains: Object.fromEntries(chains.map(({ chain, url, account }) => [chain, { url, account }])),
    /** Controls the sandbox, for example `post("mine", { chain: "base", blocks: 10 })`. */
    post: async (what, parameters) => {
      const response = await fetch(`${service}/sandbox/${what}?${new URLSearchParams(parameters)}`, { method: "POST" });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    },
    stop,
  };
};

/** Returns the service's calls as existing clients make them: `{ call, quote, order }`. */
export const client = ({ service, chains }) => {
  const call = async (method, path, body) => {
    const headers = { "content-type": "application/json", "service-app-id": "test" };
    const response = await fetch(`${service}/v2${path}`, { method, headers, body: body && JSON.stringify(body) });
    const { status, result, error } = await response.json();
    if (!response.ok || status !== "Ok") throw new Error(`${path}: ${response.status} ${error}`);
    if (!result) throw new Error(`${path}: the answer has no result`);
    return result;
  };
  const quote = async (from, to, amount) => (await call("GET", `/quote?${new URLSearchParams({ from, to, from_amount: amount })}`))[0];
  let nonce = Date.now();
  /** Creates an order for a quoted amount, without a secret hash. `more` adds members to the request. */
  const order = async (from, to, amount, more = {}) => {
    const offer = await quote(from, to, amount);
    const leg = ({ asset, amount }, delegate = null) => ({ asset, amount, owner: chains[asset.split(":")[0]].account, delegate });
    const { delegates = {}, ...members } = more;
    const request = {
      source: leg(offer.source, delegates.source), destination: leg(offer.destination, delegates.destination), solver_id: offer.solver_id,
      slippage: 0, nonce: (nonce += 1), affiliate_fees: [], ...members,
    };
    const result = await call("POST", "/orders", request);
    return { request, result, order: follow(result.order_id) };
  };
  const follow = (id) => {
    const read = () => call("GET", `/orders/${id}`);
    /** Reads the record until a condition holds. */
    const until = async (test, seconds = 20) => {
      for (const end = Date.now() + seconds * 1_000; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
        const record = await read();
        if (test(record)) return record;
        if (Date.now() > end) throw new Error(`the order does not go on: ${JSON.stringify(record, null, 1)}`);
      }
    };
    const act = (action, body) => call("PATCH", `/orders/${id}?action=${action}`, body);
    /** Waits until the solver has paid, then until the destination is redeemed. */
    const completed = async () => {
      await until(({ destination_swap: swap }) => swap.initiate_tx_hash !== "");
      return until(({ destination_swap: swap }) => swap.redeem_tx_hash !== "" && Number(swap.redeem_block_number) > 0);
    };
    return { id, read, until, act, completed };
  };
  return { call, quote, order };
};

/** Starts a sandbox of these chains for the tests of a file, and stops it after them. Returns what `start` and `client`
   do. The chains' wallets trust the service: they create an order with plain calls, sign the payloads with their SDK, and
   wait for the record. None has a secret, so the service holds it and the order completes by itself. */
export const started = async (...names) => {
  const sandbox = await start("--chains", names.join(","));
  after(() => sandbox.stop());
  return { ...sandbox, ...client(sandbox) };
};

/** Returns the message of `typed_data` without the domain's type, which libraries derive. */
export const message = ({ domain, types: { EIP712Domain: _, ...types }, primaryType, message }) => ({ domain, types, primaryType, message });
