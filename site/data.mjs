// Makes the site's data from the corpus, the table of codes and the table of scores. Nothing of them is kept twice in the project.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { find, read } from "./src/json.js";

/** Largest part of a family's cases, in characters before compression. */
const PART = 120_000;
const ROOT = new URL("../", import.meta.url);
/** The families of the corpus. */
export const FAMILIES = Object.keys(JSON.parse(readFileSync(new URL("fixtures/corpus/manifest.json", ROOT), "utf8")).cases).filter((family) => family !== "total");
/** The families, as people write them: the first word of each specification. */
export const NAMES = Object.fromEntries(FAMILIES.map((family) => [family, /^# (\w+)/.exec(readFileSync(new URL(`docs/spec/${family}.md`, ROOT), "utf8"))[1]]));

/**
 * Writes `data/` into the output folder.
 *
 * @param {string} root the project's folder
 * @param {string} out
 */
export async function writeData(root, out) {
  const corpus = join(root, "fixtures", "corpus");
  const text = (...path) => readFileSync(join(root, ...path), "utf8");
  const write = (path, value) => {
    mkdirSync(dirname(join(out, "data", path)), { recursive: true });
    writeFileSync(join(out, "data", path), typeof value === "string" ? value : JSON.stringify(value));
  };
  const { losses, version } = JSON.parse(text("fixtures", "corpus", "manifest.json"));
  const codes = codesOf(text("docs", "codes.md"));
  const sdks = sdksOf(join(root, "benches", "js"));
  write("common.json", { version, losses, codes, libraries: librariesOf(text("docs", "corpus.md")), sdks });
  write("registry.json", text("fixtures", "corpus", "registry.json"));
  const sentence = await sentences(root, corpus);
  const keys = new Set();
  for (const family of FAMILIES) {
    const cases = text("fixtures", "corpus", `${family}.jsonl`).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const { index, parts, registries } = split(cases, sentence);
    for (const { input } of cases) keys.add(find(read(input).value, "/wallet/secret_key")?.text);
    write(`${family}/index.json`, index);
    parts.forEach((lines, part) => write(`${family}/${part}.json`, lines));
    for (const registry of registries) write(registry, text("fixtures", "corpus", registry));
  }
  // Links may carry these.
  write("keys.json", [...keys].filter(Boolean));
}

/** Reads the table of codes: what each says, and what to do. */
function codesOf(markdown) {
  const found = [...markdown.matchAll(/^\| `(\w+)` \| (.+) \| (.+) \|$/gm)];
  if (found.length < 100) throw new Error("docs/codes.md has another form");
  return Object.fromEntries(found.map(([, code, says, remedy]) => [code, [plain(says), plain(remedy)]]));
}

/** Reads how many tampered orders each library signed: by the section of the attack, and false records. */
function librariesOf(markdown) {
  const libraries = {};
  for (const [, family, names, body] of markdown.matchAll(/^\| (\w+) \|(.+)\|\n\|[-|]+\n((?:\|.+\n)+)/gm)) {
    if (!FAMILIES.includes(family)) continue;
    const columns = names.split("|").map(plain);
    const rows = body.trim().split("\n").map((row) => row.split("|").slice(1, -1).map(plain));
    libraries[family] = columns.map((name, column) => {
      const total = markdown.split("\n").find((line) => plain(line.split("|")[1] ?? "") === name);
      const [, signed, of] = /(\d+) of (\d+) \|$/.exec(total ?? "") ?? [];
      const sections = rows.map(([section, ...cells]) => [section, /(\d+) of (\d+)/.exec(cells[column] ?? "")?.slice(1).map(Number)]);
      return { name, sections: Object.fromEntries(sections.filter(([, counts]) => counts)), records: of && [Number(signed), Number(of)] };
    });
  }
  if (Object.keys(libraries).length !== FAMILIES.length) throw new Error("docs/corpus.md has another form");
  return libraries;
}

/** Names the SDK of each family with its pinned version. */
function sdksOf(folder) {
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return Object.fromEntries(FAMILIES.map((family) => {
    // Read and not imported: the SDKs need not be installed for the site.
    const [, sdk] = /^export const SDK = '([^']+)';$/m.exec(readFileSync(join(folder, "families", `${family}.mjs`), "utf8"));
    return [family, `${sdk} ${dependencies[sdk]}`];
  }));
}

/** Splits the cases of a family into an index and parts, so that an order and its tampered copies are in one part if they fit. */
function split(cases, sentence) {
  const attacks = new Map();
  const [parts, registries, index] = [[[]], new Set(), []];
  let size = 0;
  const order = new Map(cases.map(({ id }, place) => [id, place]));
  const sorted = [...cases].sort((a, b) => order.get(a.base ?? a.id) - order.get(b.base ?? b.id));
  for (const one of sorted) {
    if (size > 0 && size + one.input.length > PART) {
      parts.push([]);
      size = 0;
    }
    size += one.input.length;
    const place = parts.at(-1).push(one.input) - 1;
    const { id, result, flags, note, base, changed, loss, registry, policy, expect } = one;
    if (registry) registries.add(registry);
    const key = JSON.stringify({ section: one.section, words: one.attack });
    const attack = one.section === undefined ? undefined : (attacks.get(key) ?? attacks.set(key, attacks.size).get(key));
    index.push({ id, result, note, base, changed, attack, loss, registry, policy, code: expect.code, at: expect.at, keyless: flags.includes("NoKey") || undefined, sentence: sentence(one), part: parts.length - 1, place });
  }
  const found = index.find(({ id }) => id === startOf(cases));
  return { index: { start: found.id, attacks: [...attacks.keys()].map((key) => JSON.parse(key)), cases: index }, parts, registries };
}

/** The order that is shown first: one with a record and both payloads, if there is such a one. */
function startOf(cases) {
  const fits = ({ id, flags, registry, policy }) => id.startsWith("accept/") && !registry && !policy && !flags.includes("NoKey");
  const wanted = [
    ({ id, result, flags }) => result === "valid" && /-record-(bitcoin|evm|token)/.test(id) && flags.includes("Gasless") && !flags.includes("NoRecord"),
    ({ id, result, flags }) => result === "valid" && /-record-(bitcoin|evm|token)/.test(id) && !flags.includes("NoRecord"),
    ({ result, flags }) => result === "valid" && !flags.includes("NoRecord"),
    ({ result }) => result === "valid",
  ];
  const found = wanted.map((wish) => cases.find((one) => fits(one) && wish(one))).find(Boolean);
  if (!found) throw new Error("no honest order");
  return found.id;
}

/** Returns what says in one sentence what an honest order does: the larger build has the words, and the site needs not load it for them. */
async function sentences(root, corpus) {
  const { orderPage, Registry } = await import(pathToFileURL(join(root, "bindings", "js", "dist", "page", "node.js")).href);
  return ({ id, input, registry }) => {
    if (!id.startsWith("accept/")) return undefined;
    const { request, response, order } = JSON.parse(input);
    const pinned = new Registry(readFileSync(join(corpus, registry ?? "registry.json"), "utf8"));
    const record = order ? JSON.stringify(order) : undefined;
    try {
      return orderPage({ request: JSON.stringify(request), response: JSON.stringify(response), record }, pinned).sentence?.text;
    } finally {
      pinned.free();
    }
  };
}

const plain = (text) => text.replaceAll(/[`*]/g, "").trim();
