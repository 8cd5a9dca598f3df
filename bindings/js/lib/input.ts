// Arguments, checked before they are copied into the module, whose memory never becomes smaller.
import { usage } from "./error.js";

/**
 * A JSON document: its text, or its bytes in UTF-8, exactly as received. Never a parsed object: parsing loses duplicate keys and
 * the spelling of numbers, and both matter to what is verified.
 */
export type Document = string | Uint8Array;

/** Most bytes of a document. */
const MAX_DOCUMENT = 4 * 1024 * 1024;
/** Most bytes of a line of `countersign batch`. */
const MAX_LINE = 16 * 1024 * 1024;
/** Most bytes of a signature or a signed transaction: a signed PSBT with the transactions that it spends. */
const MAX_SIGNATURE = 16 * 1024 * 1024;
/** Most bytes of a key or a name. */
const MAX_WORD = 4096;

const encoder = new TextEncoder();

/** Returns the bytes of a document. */
export function documentBytes(value: unknown, what: string): Uint8Array {
  return bytes(value, what, MAX_DOCUMENT);
}

/** Returns the bytes of a line. */
export function lineBytes(value: unknown): Uint8Array {
  return bytes(value, "line", MAX_LINE);
}

/** Returns a short text. */
export function text(value: unknown, what: string): string {
  if (typeof value !== "string") throw wrongType(what, "a string", value);
  checkLength(value.length, what, MAX_WORD);
  checkWellFormed(value, what);
  return value;
}

/** Returns a signature. */
export function signatureText(value: unknown): string {
  if (typeof value !== "string") throw wrongType("signature", "a string", value);
  checkLength(value.length, "signature", MAX_SIGNATURE);
  checkWellFormed(value, "signature");
  return value;
}

/** Returns the bytes of a signed transaction. */
export function transactionBytes(value: unknown): Uint8Array {
  // Not text either: a caller who passes hex or base64 learns that bytes are expected.
  if (!(value instanceof Uint8Array)) throw wrongType("transaction", "a Uint8Array", value);
  checkLength(value.length, "transaction", MAX_SIGNATURE);
  return value;
}

/** Returns a copy of the bytes of a key or secret, which the caller wipes without touching the original. */
export function keyBytes(value: unknown, what = "key"): Uint8Array {
  const found = bytes(value, what, MAX_WORD);
  // Not `slice`: that of Node's Buffer shares the memory.
  return typeof value === "string" ? found : new Uint8Array(found);
}

/** Returns a whole number of seconds or the like. */
export function wholeNumber(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw wrongType(what, "a whole number from 0", value);
  return value;
}

/** Returns an object whose members are read. */
export function members(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) throw wrongType(what, "an object", value);
  return value as Record<string, unknown>;
}

/** Creates the error for an argument of another type. */
export function wrongType(what: string, expected: string, value: unknown): Error {
  return usage("usage", `${what} is not ${expected}`, expected, describe(value));
}

function bytes(value: unknown, what: string, max: number): Uint8Array {
  if (typeof value === "string") {
    // UTF-8 takes at least one byte for each unit of a string.
    checkLength(value.length, what, max);
    checkWellFormed(value, what);
    const encoded = encoder.encode(value);
    checkLength(encoded.length, what, max);
    return encoded;
  }
  if (!(value instanceof Uint8Array)) throw wrongType(what, "a string or a Uint8Array", value);
  checkLength(value.length, what, max);
  return value;
}

function checkLength(length: number, what: string, max: number): void {
  if (length > max) throw usage("json_too_large", `${what} is too large`, `at most ${max} bytes`, `${length}`);
}

/** Refuses half a surrogate pair, which would silently become another character. */
function checkWellFormed(value: string, what: string): void {
  if (/\p{Surrogate}/u.test(value)) throw usage("json_not_utf8", `${what} has half a surrogate pair and is not text`);
}

/** Names a type, never a value: it may be a key. */
function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "object") return value.constructor?.name ?? "object";
  return typeof value;
}
