// What the module returns, as JavaScript values: members in camel case, amounts as bigint, bytes as Uint8Array.
import { usage } from "./error.js";
import { BIGINT_MEMBERS, BYTE_MEMBERS, DECIMAL_MEMBERS, INTEGER_MEMBERS, type TypedValue } from "./shapes.js";

/** Reads what the module wrote. Transactions keep their payload as the text that nodes take. @internal */
export function read<T>(text: string, bytes = false): T {
  return JSON.parse(text, function (this: Record<string, unknown>, key: string, value: unknown) {
    if (typeof value === "string" && BIGINT_MEMBERS.has(key)) return BigInt(value);
    if (bytes && typeof value === "string" && BYTE_MEMBERS.has(key)) return fromHex(value);
    if (Array.isArray(value)) return Object.freeze(value);
    if (typeof value === "object" && value !== null && !(value instanceof Uint8Array)) return camelCase(value);
    return value;
  }) as T;
}

function camelCase(value: object): object {
  const entries = Object.entries(value).map(([key, inner]) => [key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), inner]);
  const object = Object.fromEntries(entries) as object;
  // Bytes cannot be frozen, and values are shared: each look at them gets a copy, which may be wiped or reversed.
  for (const [key, inner] of entries) {
    if (inner instanceof Uint8Array) Object.defineProperty(object, key, { enumerable: true, get: () => inner.slice() });
  }
  // JSON has no bigint. Not enumerable, so that it is no part of the value for anything else.
  if (entries.some(([, inner]) => typeof inner === "bigint")) Object.defineProperty(object, "toJSON", { value: withDecimals });
  return Object.freeze(object);
}

/** Writes each bigint as decimal text. */
function withDecimals(this: object): object {
  return Object.fromEntries(Object.entries(this).map(([key, inner]) => [key, typeof inner === "bigint" ? inner.toString() : inner]));
}

/** Decodes hex with `0x`. */
export function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array((text.length - 2) / 2);
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = Number.parseInt(text.slice(2 + 2 * index, 4 + 2 * index), 16);
  return bytes;
}

/** Returns an amount in whole units, such as `1.5`, exactly. Any other value as its text. */
export function inWholeUnits(value: TypedValue): string {
  if (typeof value?.text !== "string") throw usage("usage", "the value is not one that this package made", "a typed value");
  if (value.kind !== "amount" || value.number === null || value.decimals === null) return value.text;
  const digits = value.number.toString().padStart(value.decimals + 1, "0");
  const whole = digits.slice(0, digits.length - value.decimals);
  const fraction = digits.slice(whole.length).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/**
 * Writes a typed value as the JSON of `docs/spec/batch.md`: members in snake case, and numbers in the form of each member. Throws if it
 * cannot be written. A number of another form, such as an inexact one, is written as it is, so that the module refuses it.
 */
export function contractJson(value: unknown, name = ""): string {
  if (typeof value === "bigint") return INTEGER_MEMBERS.has(name) ? value.toString() : `"${value}"`;
  if (typeof value === "number") return DECIMAL_MEMBERS.has(name) ? `"${numberText(value)}"` : numberText(value);
  if (typeof value === "string" && INTEGER_MEMBERS.has(name) && /^\d+$/.test(value)) return value;
  return structure(value, contractJson, (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

/** Writes a number. An integer above 2^53 has lost digits, and gets an exponent, which nothing takes for an integer or an amount. */
function numberText(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError("not a number");
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}

/** Writes a value that a connection has parsed as JSON again. Throws if it cannot be, or is nested too deeply. */
export function jsonText(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number" && Number.isFinite(value)) return numberText(value);
  return structure(value, jsonText, (key) => key);
}

function structure(value: unknown, write: (value: unknown, name?: string) => string, rename: (key: string) => string): string {
  if (Array.isArray(value)) return `[${value.map((item) => write(item)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return `{${members.map(([key, inner]) => `${JSON.stringify(rename(key))}:${write(inner, rename(key))}`).join(",")}}`;
}
