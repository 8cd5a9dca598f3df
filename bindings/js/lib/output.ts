// What the module returns, as JavaScript values: members in camel case, amounts as bigint, bytes as Uint8Array.
import type { Value } from "./types.js";

/** Members that are decimal text, because they can exceed what a number holds. */
const BIG = new Set(["number", "amount"]);
/** Members that are bytes in hex. */
const BYTES = new Set(["payload", "digest"]);

/** Reads what the module wrote. Transactions keep their payload as the text that nodes take. @internal */
export function read<T>(text: string, bytes = false): T {
  return JSON.parse(text, function (this: Record<string, unknown>, key: string, value: unknown) {
    if (typeof value === "string" && BIG.has(key)) return BigInt(value);
    if (bytes && typeof value === "string" && BYTES.has(key)) return fromHex(value);
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)) return camelCase(value);
    return value;
  }) as T;
}

function camelCase(value: object): object {
  return Object.freeze(
    Object.fromEntries(Object.entries(value).map(([key, inner]) => [key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), inner])),
  );
}

/** Decodes hex with `0x`. */
export function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array((text.length - 2) / 2);
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = Number.parseInt(text.slice(2 + 2 * index, 4 + 2 * index), 16);
  return bytes;
}

/** Returns an amount in whole units, such as `1.5`, exactly. Any other value as its text. */
export function inWholeUnits(value: Value): string {
  if (value.kind !== "amount" || value.number === null || value.decimals === null) return value.text;
  const digits = value.number.toString().padStart(value.decimals + 1, "0");
  const whole = digits.slice(0, digits.length - value.decimals);
  const fraction = digits.slice(whole.length).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/**
 * Writes a value that a connection has parsed as JSON again. Throws if it cannot be, or is nested too deeply.
 *
 * An integer above 2^53 that is not a bigint has lost digits, and is written with an exponent: no reader takes that for an amount.
 */
export function jsonText(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) return value.toExponential();
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).filter(([, inner]) => inner !== undefined);
    return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${jsonText(inner)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}
