// URLs for the module, which has no tables of names that are not ASCII: the platform has them, and they are large.

/** A prefix for a node's own RPC, and the host of a URL, behind its scheme and its user. */
const PARTS = /^(rpc\+)?[^/\\?#]*[/\\]*(?:[^/\\?#]*@)?([^/\\?#@]*)/;
/** A host that only those tables can convert or check: not ASCII, percent-encoded, or in Punycode already. */
const INTERNATIONAL = /[^\0-\x7f]|%|xn--/i;

/** Returns a URL with a host that is ASCII: the same text, unless it has an international name. What is no text, the module refuses. */
export function asciiUrl(given: unknown): unknown {
  if (typeof given !== "string") return given;
  const [, prefix = "", host = ""] = PARTS.exec(given) ?? [];
  if (!INTERNATIONAL.test(host)) return given;
  try {
    return `${prefix}${new URL(given.slice(prefix.length)).href}`;
  } catch {
    // The module, which cannot check the name, refuses this as no URL.
    return "";
  }
}
