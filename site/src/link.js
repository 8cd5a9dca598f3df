// Links that carry a case in the fragment: `#evm:accept/evm-native`, with changed documents compressed behind a second colon.
import { DOCUMENTS } from "./cases.js";
import * as json from "./json.js";

/** Longest fragment, and most characters of the documents that it may unfold to. */
export const MAX_FRAGMENT = 64 * 1024;
export const MAX_DOCUMENTS = 1024 * 1024;

/** Why a link cannot be used, in words for people. */
export class BrokenLink extends Error {}

/** Says why documents must not be in a link: they have, or may have, a key that is not `published`. Undefined if they may. */
export function secretIn(documents, published) {
  const isKey = ({ key, value }) => /^(secret|private)key$/i.test(key.replace(/[^a-z]/gi, "")) && value.text !== "null" && !published.includes(value.text);
  const hasKey = (value) => value?.members?.some((member) => isKey(member) || hasKey(member.value)) ?? false;
  const parsed = Object.entries(documents).map(([name, text]) => [name, text, json.read(text).value]);
  if (parsed.some(([, , value]) => hasKey(value))) return "the documents have a secret key that is none of the published ones, and whoever reads the link could use it";
  const isOpaque = ([name, text, value]) => name === "wallet" ? text !== "" && value?.kind !== "object" : !value && /(secret|private).{0,8}key/is.test(text);
  return parsed.some(isOpaque) ? "a document that is not a JSON object may have a secret key, and whoever reads the link could use it" : undefined;
}

/** Writes a fragment. `id` is the case, empty for documents of one's own; `changed` has the documents that differ from it. */
export async function write(family, id, changed) {
  if (Object.keys(changed).length === 0) return `#${family}:${id}`;
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(changed)), Infinity);
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const fragment = `#${family}:${id}:${text}`;
  if (fragment.length > MAX_FRAGMENT) throw new BrokenLink(`the changed documents are too large for a link: ${fragment.length} characters, at most ${MAX_FRAGMENT}`);
  return fragment;
}

/** Reads a fragment: what `write` was given. Throws {@link BrokenLink}. */
export async function read(fragment, families) {
  if (fragment.length > MAX_FRAGMENT) throw new BrokenLink(`it is longer than ${MAX_FRAGMENT} characters`);
  const [, family, id, packed] = /^#([a-z]+):((?:accept|reject)\/[a-z0-9-]+|)(?::([A-Za-z0-9_-]+))?$/.exec(fragment) ?? [];
  if (family === undefined) throw new BrokenLink("it is not of the form that this page writes");
  if (!families.includes(family)) throw new BrokenLink("it names a family that this page does not know");
  return { family, id, changed: packed === undefined ? {} : await unpack(packed) };
}

async function unpack(packed) {
  let changed;
  try {
    const bytes = Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
    const unfolded = await through(new DecompressionStream("deflate-raw"), bytes, MAX_DOCUMENTS);
    changed = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(unfolded));
  } catch (error) {
    throw error instanceof BrokenLink ? error : new BrokenLink("its compressed documents are damaged");
  }
  const isKnown = typeof changed === "object" && changed !== null && !Array.isArray(changed)
    && Object.entries(changed).every(([name, text]) => DOCUMENTS.includes(name) && typeof text === "string");
  if (!isKnown) throw new BrokenLink("it has other documents than those of an order");
  return changed;
}

/** Passes bytes through a stream, and stops as soon as there are more than `most`. */
async function through(stream, bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > most) {
      await reader.cancel();
      throw new BrokenLink(`its documents are larger than ${most} bytes`);
    }
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
