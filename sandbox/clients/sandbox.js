// Starts the sandbox for a test, and stops it. A wallet's own tests can do the same.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";

const here = fileURLToPath(new URL(".", import.meta.url));

/** The sandbox's program: COUNTERSIGN_SANDBOX, or what the checkout has built. */
export const program = () => {
  const built = ["release", "debug"].map((profile) => join(here, "..", "target", profile, "countersign-sandbox"));
  const path = process.env.COUNTERSIGN_SANDBOX ?? built.find(existsSync);
  if (!path) throw new Error("build the sandbox first: cargo build --manifest-path sandbox/Cargo.toml");
  return path;
};

/** Starts a sandbox on free ports. `{ service, chains: { base: { url, account } }, key, config, post, stop }` */
export const start = async (...flags) => {
  const directory = mkdtempSync(join(tmpdir(), "countersign-sandbox-"));
  const child = spawn(program(), ["--port", "0", "--json", "--dir", directory, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
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
    /** Turns the sandbox: `post("mine", { chain: "base", blocks: 10 })`. */
    post: async (what, parameters) => {
      const response = await fetch(`${service}/sandbox/${what}?${new URLSearchParams(parameters)}`, { method: "POST" });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    },
    stop: () => {
      child.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
};
