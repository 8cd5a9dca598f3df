// The project's cases, and the published ones where they lie beside the project.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { FAMILIES, ROOT } from "../scripts/paths.mjs";
import { Tree, at, remove, set, write } from "./tree.mjs";

const FIXTURES = join(ROOT, "fixtures");
const VECTORS = join(ROOT, "..", "shared", "vectors");

/** The registry of the fixtures. */
export const REGISTRY = readFileSync(join(FIXTURES, "registry.json"), "utf8");
/** Whether the published cases are there. */
export const HAS_VECTORS = existsSync(VECTORS);

/** Reads lines with a note: the input is the text before it, because another JSON writer could spell it otherwise. */
function read(path, registry) {
  const lines = readFileSync(path, "utf8").split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    const input = `${line.slice(0, line.indexOf(',"note":'))}}`;
    const whole = JSON.parse(line);
    return { id: whole.id, input, expect: whole.expect ?? whole.expected, registry };
  });
}

/** Returns the accepted cases of one family, those of each generation of its contracts included. */
export function accepted(family) {
  const files = readdirSync(join(FIXTURES, "accept")).filter((file) => file.startsWith(`${family}.`));
  return files.flatMap((file) => {
    const generation = file.split(".").at(-2);
    return read(join(FIXTURES, "accept", file), generation === family ? REGISTRY : registryOf(family, generation));
  });
}

/** Returns an accepted case by its id. */
export function fixture(id) {
  const found = accepted(id.split("-")[0]).find((one) => one.id === id);
  if (!found) throw new Error(`no fixture ${id}`);
  return found;
}

/** Returns the published cases: good ones and hostile ones. */
export function published() {
  const registry = readFileSync(join(VECTORS, "registry.json"), "utf8");
  return [...FAMILIES, "hostile-public"].flatMap((name) => read(join(VECTORS, `${name}.jsonl`), registry));
}

/** Returns the registry with a generation pinned for all contracts of a family. */
function registryOf(family, generation) {
  const registry = JSON.parse(REGISTRY);
  const chains = registry.chains.filter((chain) => chain.id.startsWith(`${family}:`)).map((chain) => chain.chain);
  for (const asset of registry.assets) if (chains.includes(asset.chain)) asset.htlc.generation = generation;
  return JSON.stringify(registry);
}

/** Returns the refused cases of a family: accepted ones with one change each, and the refusal that it meets. */
export function refused(family) {
  const bases = new Map(accepted(family).map((one) => [one.id, one]));
  const { cases } = JSON.parse(readFileSync(join(FIXTURES, "reject", `${family}.json`), "utf8"));
  return cases.map((change) => {
    const base = bases.get(change.base);
    const tree = Tree.parse(base.input);
    apply(tree, change);
    let input = write(tree);
    for (const [from, to] of change.raw ?? []) {
      if (!input.includes(from)) throw new Error(`${change.id}: nothing to replace`);
      input = input.replaceAll(from, to);
    }
    const registry = Tree.parse(base.registry);
    apply(registry, change.registry ?? {});
    return { ...change, input, registry: change.registry ? write(registry) : base.registry, policy: change.policy && JSON.stringify(change.policy) };
  });
}

function apply(tree, { remove: gone = [], set: changes = {} }) {
  for (const pointer of gone) remove(tree, pointer);
  for (const [pointer, value] of Object.entries(changes)) set(tree, pointer, Tree.parse(JSON.stringify(value)));
}

/** Cuts a case into the documents that an order is verified by, as text. */
export function documents(input) {
  const tree = Tree.parse(input);
  const part = (name) => {
    const found = at(tree, `/${name}`);
    return found === undefined ? undefined : write(found);
  };
  return { request: part("request"), response: part("response"), record: part("order") };
}

/** Returns the wallet context of a case as text, without its key, and the key. */
export function walletOf(input) {
  const tree = Tree.parse(input);
  const key = at(tree, "/wallet/secret_key");
  remove(tree, "/wallet/secret_key");
  return { wallet: write(at(tree, "/wallet")), key: key === undefined ? undefined : JSON.parse(key) };
}
