// Arguments, checked before they are copied into the module, whose memory never becomes smaller.
import { usage } from "./error.js";
import { contractJson, jsonText } from "./output.js";

/**
 * A JSON document: its text, or its bytes in UTF-8, exactly as received. Never a parsed object: parsing loses duplicate keys and
 * the spelling of numbers, and both matter to what is verified.
 */
export type JsonText = string | Uint8Array;

/**
 * Most bytes of a document, or of a line of `countersign batch`, in every language. The module refuses more; only one byte more is
 * copied into it.
 */
const MAX_DOCUMENT = 16 * 1024 * 1024;
/** Most bytes of a signature or a signed transaction: a signed PSBT with the transactions that it spends. */
const MAX_SIGNATURE = 16 * 1024 * 1024;
/** Most bytes of a key or a name. */
const MAX_WORD = 4096;

const encoder = new TextEncoder();

// What an array itself says about its length, type and memory can be anything; these read it as it is, from any realm.
const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const getter = (name: PropertyKey) => Object.getOwnPropertyDescriptor(typedArray, name)!.get!;
const readTag = getter(Symbol.toStringTag);
const [readBuffer, readOffset, readLength] = [getter("buffer"), getter("byteOffset"), getter("length")];

/** Returns a copy of the bytes of a document. One that is too large is cut one byte behind the limit, so that the module refuses it. */
export function documentBytes(value: unknown, what: string): Uint8Array {
  if (typeof value !== "string") return arrayBytes(value, what, "a string or a Uint8Array", (length) => Math.min(length, MAX_DOCUMENT + 1));
  // UTF-8 takes at least one byte for each unit of a string.
  if (value.length > MAX_DOCUMENT) return encoder.encode(value.slice(0, MAX_DOCUMENT + 1)).slice(0, MAX_DOCUMENT + 1);
  checkWellFormed(value, what);
  const encoded = encoder.encode(value);
  return encoded.length > MAX_DOCUMENT ? encoded.slice(0, MAX_DOCUMENT + 1) : encoded;
}

/** Returns the bytes of the JSON contract for a typed value; or of a document, as {@link documentBytes} does. */
export function contractBytes(value: unknown, what: string): Uint8Array {
  return typedBytes(value, what, contractJson);
}

/** Returns the bytes of what a node or a wallet has returned as an object, with its own members; or of a document. */
export function foreignBytes(value: unknown, what: string): Uint8Array {
  return typedBytes(value, what, jsonText);
}

function typedBytes(value: unknown, what: string, write: (value: unknown) => string): Uint8Array {
  if (typeof value === "string" || readTag.call(value) === "Uint8Array") return documentBytes(value, what);
  // Neither arrays nor dates, maps and the like.
  if (Object.prototype.toString.call(value) !== "[object Object]") throw wrongType(what, "an object, a string or a Uint8Array", value);
  let json: string;
  try {
    json = write(value);
  } catch {
    throw usage("usage", `${what} cannot be written as JSON`);
  }
  return documentBytes(json, what);
}

/** Returns a copy of the bytes of a node's answer. One that is too large is cut one byte behind the limit. */
export function answerBytes(value: unknown, what: string): Uint8Array {
  return arrayBytes(value, what, "a Uint8Array", (length) => Math.min(length, MAX_DOCUMENT + 1));
}

/** Returns a short text. */
export function text(value: unknown, what: string): string {
  if (typeof value !== "string") throw wrongType(what, "a string", value);
  checkLength(value.length, what, MAX_WORD);
  checkWellFormed(value, what);
  return value;
}

/** Returns the text of a signature: bytes as hex, felts joined by commas, and other objects as JSON. */
export function signatureText(value: unknown): string {
  let written = value;
  if (readTag.call(value) === "Uint8Array") {
    written = toHex(arrayBytes(value, "signature", "a Uint8Array", atMost("signature", MAX_SIGNATURE)));
  } else if (Array.isArray(value)) {
    written = value.map((felt: unknown) => (typeof felt === "bigint" ? `0x${felt.toString(16)}` : text(felt, "felt"))).join(",");
  } else if (Object.prototype.toString.call(value) === "[object Object]") {
    written = new TextDecoder().decode(contractBytes(value, "signature"));
  }
  if (typeof written !== "string") throw wrongType("signature", "a string, an object, an array or a Uint8Array", value);
  checkLength(written.length, "signature", MAX_SIGNATURE);
  checkWellFormed(written, "signature");
  return written;
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the bytes of a signed transaction. */
export function transactionBytes(value: unknown): Uint8Array {
  // Not text either: a caller who passes hex or base64 learns that bytes are expected.
  return arrayBytes(value, "transaction", "a Uint8Array", atMost("transaction", MAX_SIGNATURE));
}

/** Returns a copy of the bytes of a key or secret, which the caller wipes without touching the original. */
export function keyBytes(value: unknown, what = "key"): Uint8Array {
  if (typeof value !== "string") return arrayBytes(value, what, "a string or a Uint8Array", atMost(what, MAX_WORD));
  checkLength(value.length, what, MAX_WORD);
  checkWellFormed(value, what);
  return encoder.encode(value);
}

/** Returns a whole number of seconds or the like. */
export function wholeNumber(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw wrongType(what, "a whole number from 0", value);
  return value;
}

/**
 * Returns a copy of an object's own members, each read once. What it inherits is nobody's word: a page in which anything has written to
 * `Object.prototype` would otherwise have chosen an option.
 */
export function members<T extends object = Record<string, unknown>>(value: unknown, what: string): Partial<T> {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) throw wrongType(what, "an object", value);
  try {
    return Object.assign(Object.create(null) as object, value) as Partial<T>;
  } catch {
    throw usage("usage", `the members of ${what} cannot be read`);
  }
}

/** Returns an object's own member, as {@link members} does. */
export function ownMember<T>(value: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Creates the error for an argument of another type. */
export function wrongType(what: string, expected: string, value: unknown): Error {
  return usage("usage", `${what} is not ${expected}`, expected, describe(value));
}

/** Copies a `Uint8Array` of any realm. `take` returns how many bytes of its length are copied. */
function arrayBytes(value: unknown, what: string, expected: string, take: (length: number) => number): Uint8Array {
  // Neither proxies nor objects that only look like arrays have a tag.
  if (readTag.call(value) !== "Uint8Array") throw wrongType(what, expected, value);
  const length = take(readLength.call(value));
  try {
    return new Uint8Array(new Uint8Array(readBuffer.call(value), readOffset.call(value), length));
  } catch {
    throw usage("usage", `the memory of ${what} was transferred`, expected, "a detached Uint8Array");
  }
}

function atMost(what: string, max: number): (length: number) => number {
  return (length) => {
    checkLength(length, what, max);
    return length;
  };
}

function checkLength(length: number, what: string, max: number): void {
  if (length > max) throw usage("json_too_large", `${what} is too large`, `at most ${max} bytes`, `${length}`);
}

/** Refuses half a surrogate pair, which would silently become another character. */
function checkWellFormed(value: string, what: string): void {
  if (/\p{Surrogate}/u.test(value)) throw usage("json_not_utf8", `${what} has half a surrogate pair and is not text`);
}

/** Names a type, never a value: it may be a key. */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "object") return typeof value;
  try {
    const name: unknown = value.constructor?.name;
    return typeof name === "string" ? name : "object";
  } catch {
    // A getter or a proxy threw.
    return "object";
  }
}
