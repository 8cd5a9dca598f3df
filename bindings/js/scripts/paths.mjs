// Where things are, and what is built.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of this package. */
export const HERE = fileURLToPath(new URL("..", import.meta.url));
/** The root of the project. */
export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** The folder of what is published. */
export const DIST = join(HERE, "dist");
/** The chain families, the default features of the crate; each has a build of its own, beside the one with all of them. */
export const FAMILIES = JSON.parse(readFileSync(join(HERE, "Cargo.toml"), "utf8").match(/^default = (\[.*\])$/m)[1]);
/** The builds with more than verification: all families with the driver of whole swaps, and with the page of an order. */
export const LARGER = ["swap", "page"];
/** The builds: all families, each family, and the larger ones. */
export const BUILDS = ["all", ...FAMILIES, ...LARGER];
/** The adapters to wallet libraries. */
export const ADAPTERS = readdirSync(join(HERE, "adapters")).map((file) => file.replace(".ts", "")).sort();

/** Returns the folder for tools that are built once, the same as `.ci/wasm` has. */
export function cacheFolder() {
  const { COUNTERSIGN_CACHE, XDG_CACHE_HOME } = process.env;
  return COUNTERSIGN_CACHE ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "countersign");
}

/** Returns the folder of cargo's output: always the package's own, because tsconfig.json names it. */
export function targetFolder() {
  return join(HERE, "target");
}

/** Returns the version of a package in this crate's lock file. */
export function lockedVersion(name) {
  const lock = readFileSync(join(HERE, "Cargo.lock"), "utf8");
  const version = lock.match(new RegExp(`name = "${name}"\nversion = "([^"]+)"`))?.[1];
  if (!version) throw new Error(`${name} is not in Cargo.lock`);
  return version;
}

/** Returns a program of node_modules. */
export function localProgram(name) {
  const path = join(HERE, "node_modules", ".bin", name);
  if (!existsSync(path)) throw new Error(`${name} is not installed; run npm ci`);
  return path;
}
