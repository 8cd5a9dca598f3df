// The orders of the fixtures, and their pages, which the program writes.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const fixtures = here("../../../fixtures/");
const folder = mkdtempSync(join(tmpdir(), "countersign-pages-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const families = ["evm", "tron", "starknet", "solana", "sui", "bitcoin"];

/** The program: COUNTERSIGN_PROGRAM, or what the checkout has built. */
const program = () => {
  const built = ["release", "debug"].map((profile) => here(`../../../target/${profile}/countersign`));
  const path = process.env.COUNTERSIGN_PROGRAM ?? built.find(existsSync);
  if (!path) throw new Error("build the program first: cargo build -p countersign-cli");
  return path;
};

/** The accepted orders by id: the text of the input, which is not parsed, the family, and the generation that is pinned, if any. */
export const accepted = new Map();
for (const name of readdirSync(join(fixtures, "accept"))) {
  const [family, generation] = name.slice(0, -".jsonl".length).split(".");
  for (const line of readFileSync(join(fixtures, "accept", name), "utf8").split("\n").filter(Boolean)) {
    const text = `${line.slice(0, line.indexOf(',"note":'))}}`;
    accepted.set(JSON.parse(text).id, { family, generation, text });
  }
}

/** An accepted order as an object, to be changed. Orders with numbers or spellings that this would lose cannot be used. */
export const parsed = (id) => {
  const { text } = accepted.get(id) ?? {};
  const order = JSON.parse(text);
  if (JSON.stringify(order) !== text) throw new Error(`${id} is another text when it is written again`);
  return order;
};

/** The value at a JSON pointer. */
export const at = (value, pointer) => keys(pointer).reduce((inner, key) => inner[key], value);
const keys = (pointer) => pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));

const change = (order, { remove = [], set = {} }) => {
  const parent = (pointer) => [keys(pointer).slice(0, -1).reduce((inner, key) => inner[key], order), keys(pointer).at(-1)];
  for (const pointer of remove) {
    const [inner, key] = parent(pointer);
    delete inner[key];
  }
  for (const [pointer, value] of Object.entries(set)) {
    const [inner, key] = parent(pointer);
    if (key === "-") inner.push(value);
    // Not by assignment, which would not make a member `__proto__`.
    else Object.defineProperty(inner, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return order;
};

/** The refused cases that change only the response, whose base this language can write again. */
export const refused = new Map();
for (const family of families) {
  const { cases } = JSON.parse(readFileSync(join(fixtures, "reject", `${family}.json`), "utf8"));
  for (const { id, base, set, remove, raw, registry, policy, code, at } of cases) {
    const changed = [...Object.keys(set ?? {}), ...(remove ?? [])];
    const { text, generation } = accepted.get(base);
    if (!code || !set || raw || registry || policy || generation || !changed.every((pointer) => pointer.startsWith("/response/result/"))) continue;
    if (JSON.stringify(JSON.parse(text)) !== text) continue;
    refused.set(id, { family, base, at, set, order: () => change(parsed(base), { set, remove }) });
  }
}

/** The registry of a generation: every asset of the family pins it. Written once, because programs that run side by side read it. */
const registry = (family, generation) => {
  const usual = join(fixtures, "registry.json");
  if (!generation) return usual;
  const path = join(folder, `registry.${family}.${generation}.json`);
  if (existsSync(path)) return path;
  const { assets, ...rest } = JSON.parse(readFileSync(usual, "utf8"));
  const pinned = assets.map((asset) => (asset.htlc?.schema.startsWith(`${family}:`) ? { ...asset, htlc: { ...asset.htlc, generation } } : asset));
  writeFileSync(path, JSON.stringify({ ...rest, assets: pinned }));
  return path;
};

// The user's own configuration has no say.
const config = join(folder, "config.json");
writeFileSync(config, "{}");
let written = 0;

/** Writes the page of an order, text or object, and returns its path and whether the program accepts the order. */
export const write = ({ family, generation, order, key, language = "en" }) =>
  new Promise((resolve, reject) => {
    const [input, html, keyFile] = ["case.json", "html", "key"].map((end) => join(folder, `${++written}.${end}`));
    writeFileSync(input, typeof order === "string" ? order : JSON.stringify(order));
    const flags = ["--registry", registry(family, generation), "--case", input, "--html", html, "--language", language];
    if (key) {
      writeFileSync(keyFile, key, { mode: 0o600 });
      flags.push("--key-file", keyFile);
    }
    const env = { PATH: process.env.PATH, COUNTERSIGN_CONFIG: config };
    execFile(program(), [key ? "sign" : "explain", ...flags], { env }, (error, _, said) => {
      if (!existsSync(html)) reject(new Error(`${input}: ${said}`));
      else resolve({ path: html, isAccepted: !error });
    });
  });

/** The pages that are looked at: of each family one that is accepted and one whose payload was changed, and a signed one. */
const chosen = {
  evm: ["evm-record-bitcoin-v1", "spender-stranger"],
  tron: ["tron-record-evm-v2", "tron-amount-one-more"],
  starknet: ["starknet-record-bitcoin-v1", "starknet-redeemer-stranger"],
  solana: ["solana-record-token", "solana-redeemer-unknown"],
  sui: ["sui-record-bitcoin", "sui-redeemer-stranger"],
  bitcoin: ["bitcoin-address", "bitcoin-to-other-htlc"],
};

/** Writes them. Returns for each its name, file, family, and whether it must be accepted. */
export const writeChosen = () => {
  const pages = families.flatMap((family) => {
    const [good, bad] = chosen[family];
    return [
      { name: family, family, id: good, order: accepted.get(good).text, isGood: true },
      { name: `${family}-refused`, family, id: bad, order: refused.get(bad).order(), isGood: false },
    ];
  });
  const { order, id } = pages[0];
  pages.push({ name: "evm-signed", family: "evm", id, order, isGood: true, key: JSON.parse(order).wallet.secret_key });
  return Promise.all(
    pages.map(async (page) => {
      const { path, isAccepted } = await write(page);
      if (isAccepted !== page.isGood) throw new Error(`${page.id} is ${isAccepted ? "accepted" : "refused"}`);
      return { ...page, path };
    }),
  );
};
