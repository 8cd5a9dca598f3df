// The corpus: an index for each family, and the cases in parts that are loaded when they are shown.
import { find, read } from "./json.js";

/** Documents of an order, in the order in which they are shown. */
export const DOCUMENTS = ["response", "order", "request", "wallet", "registry", "policy"];
const files = new Map();

/** Fetches a data file once. */
export function load(path) {
  if (!files.has(path)) files.set(path, fetchText(path));
  return files.get(path);
}

async function fetchText(path) {
  try {
    const response = await fetch(new URL(`data/${path}`, document.baseURI));
    if (!response.ok) throw new Error(`status ${response.status}`);
    return await response.text();
  } catch (error) {
    files.delete(path);
    throw new Error(`${path} cannot be loaded from the server of this page (${error.message})`);
  }
}
const loadJson = async (path) => JSON.parse(await load(path));
/** Returns what is the same for all families: codes, losses, libraries. */
export const common = () => loadJson("common.json");
/** Returns the published keys of the corpus, which are worth nothing. */
export const keys = () => loadJson("keys.json");

/** Returns the index of a family, with each case's attack in words. */
export async function index(family) {
  const { attacks, cases, start } = await loadJson(`${family}/index.json`);
  const all = cases.map((one) => ({ ...one, ...(one.attack === undefined ? {} : attacks[one.attack]) }));
  return { start, byId: new Map(all.map((one) => [one.id, one])), honest: all.filter(({ id }) => id.startsWith("accept/")), attacks: attacksOf(all) };
}
const LOSSES = ["funds", "fees", "time", "privacy", "display", "nothing"];

/** Returns the tampered cases, those of the service first that can cost most, and kinds in turn: twenty cases of one kind in a row show one thing only. */
function attacksOf(all) {
  const seen = new Map();
  const ranked = all.filter(({ result }) => result === "invalid").map((one) => {
    const kind = `${one.loss} ${one.words}`;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    const own = one.changed === "response" || one.changed === "record" ? 0 : 1;
    return { one, own, keyless: one.keyless ? 1 : 0, loss: LOSSES.indexOf(one.loss), round: seen.get(kind), lies: one.section === "The response lies" ? 0 : 1 };
  });
  return ranked.sort((a, b) => a.own - b.own || a.keyless - b.keyless || a.loss - b.loss || a.round - b.round || a.lies - b.lies).map(({ one }) => one);
}

/** Returns the documents of a case, and its line, which counts as long as nothing in it was edited. */
export async function open(family, one) {
  const [lines, registry] = await Promise.all([loadJson(`${family}/${one.part}.json`), load(one.registry ?? "registry.json")]);
  const line = lines[one.place];
  return { line, documents: cut(line, registry, one.policy), isWhole: read(line).value !== undefined };
}

/** Cuts a line into its documents, each as it is spelled there; what is missing is empty. */
export function cut(line, registry, policy) {
  const whole = read(line).value;
  const parts = ["response", "order", "request", "wallet"].map((name) => [name, whole && find(whole, `/${name}`)]);
  const documents = Object.fromEntries(parts.map(([name, value]) => [name, value ? line.slice(value.start, value.end) : ""]));
  return { ...documents, registry, policy: policy === undefined ? "" : JSON.stringify(policy) };
}
