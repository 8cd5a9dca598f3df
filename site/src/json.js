// Reads JSON without losing anything: each value knows where it is in the text, so that one value is changed and the rest stays as it is.
// JSON.parse would lose duplicate keys and the spelling of numbers, and both matter to what is verified.

/** Most levels and values that are shown as members. Text beyond this is still verified. */
export const MAX_DEPTH = 64;
export const MAX_VALUES = 20_000;
const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/**
 * A value of a document: where it is in the text, its JSON pointer, and its members; or the text of a string without its escapes, or the
 * spelling of a scalar.
 *
 * @typedef {{kind: "object" | "array" | "string" | "scalar", start: number, end: number, pointer: string, text?: string, members?: {key: string, value: Value}[]}} Value
 */

/**
 * Reads a document.
 *
 * @param {string} text
 * @returns {{value: Value} | {problem: string}} the problem in words if this is not JSON, or too much to be shown as members
 */
export function read(text) {
  let position = 0;
  let values = 0;
  const skip = (pattern) => {
    pattern.lastIndex = position;
    const found = pattern.exec(text);
    if (found) position = pattern.lastIndex;
    return found?.[0];
  };
  const fail = () => {
    throw new Problem(`the text is not JSON from character ${position + 1} on`);
  };
  const expect = (character) => (text[position] === character ? (position += 1) : fail());
  const string = () => JSON.parse(skip(STRING) ?? fail());
  const value = (pointer, depth) => {
    if (depth > MAX_DEPTH) throw new Problem(`the text is nested deeper than ${MAX_DEPTH} levels`);
    values += 1;
    if (values > MAX_VALUES) throw new Problem(`the text has more than ${MAX_VALUES} values`);
    skip(SPACE);
    const start = position;
    const open = text[position];
    // The members of a literal are computed in their order, so that the position is the one behind the text.
    if (open === '"') return { kind: "string", start, pointer, text: string(), end: position };
    if (open !== "{" && open !== "[") return { kind: "scalar", start, pointer, text: skip(SCALAR) ?? fail(), end: position };
    position += 1;
    const [kind, close] = open === "{" ? ["object", "}"] : ["array", "]"];
    const members = [];
    for (skip(SPACE); text[position] !== close; skip(SPACE)) {
      if (members.length > 0) {
        expect(",");
        skip(SPACE);
      }
      let key = String(members.length);
      if (kind === "object") {
        key = string();
        skip(SPACE);
        expect(":");
      }
      members.push({ key, value: value(`${pointer}/${escape(key)}`, depth + 1) });
    }
    position += 1;
    return { kind, start, end: position, pointer, members };
  };
  try {
    const whole = value("", 0);
    skip(SPACE);
    if (position < text.length) throw new Problem(`there is more text behind the document, from character ${position + 1} on`);
    return { value: whole };
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message };
    throw error;
  }
}

/** Returns the values without members of their own, in the order of the text. */
export function leaves(value) {
  return value.members ? value.members.flatMap((member) => leaves(member.value)) : [value];
}

/** Returns the value at a JSON pointer, the first one if a key occurs twice. */
export function find(value, pointer) {
  let found = value;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    found = found?.members?.find((member) => member.key === key)?.value;
  }
  return found;
}

/** Splits a location into its pointer, whose keys may have any character, and its range of bytes, which is undefined if it has none. */
export function place(at) {
  const [, pointer, start, end] = /^(.*?)(?:#(\d+)-(\d+))?$/s.exec(at);
  return { pointer, range: start === undefined ? undefined : [Number(start), Number(end)] };
}

/** Returns the JSON of what somebody typed in place of a value: a scalar stays one as long as it reads as one. */
export function spell(typed, kind) {
  const whole = new RegExp(`^(?:${SCALAR.source})$`);
  return kind === "scalar" && whole.test(typed) ? typed : JSON.stringify(typed);
}

class Problem extends Error {}
const escape = (key) => key.replaceAll("~", "~0").replaceAll("/", "~1");
