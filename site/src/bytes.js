// Payloads as bytes: hex, base64, or an array of numbers. One byte is changed, and everything else keeps its spelling.

/** Digits without `0x` may be a decimal number, unless they are as many as those of an address. */
const HEX = /^(?:0x(?:[0-9a-f]{2}){4,}|(?:[0-9a-f]{2}){20,})$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Shorter texts without `+`, `/` or `=` are names, addresses and ids in base58. */
const LEAST_BASE64 = 100;
const LEAST_ARRAY = 16;

/** Returns the bytes of a value of a document; undefined if it is not a payload. */
export function decode(value) {
  if (value.kind === "array") {
    const isByte = ({ value: item }) => item.kind === "scalar" && /^\d{1,3}$/.test(item.text) && Number(item.text) < 256;
    const isBytes = value.members.length >= LEAST_ARRAY && value.members.every(isByte);
    return isBytes ? Uint8Array.from(value.members, ({ value: item }) => Number(item.text)) : undefined;
  }
  if (value.kind !== "string") return undefined;
  const { text } = value;
  if (HEX.test(text)) return Uint8Array.from(text.replace(/^0x/i, "").match(/../g), (digits) => parseInt(digits, 16));
  if (text.length >= 4 && BASE64.test(text) && (text.length >= LEAST_BASE64 || /[+/=]/.test(text))) {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  }
  return undefined;
}

/** Replaces one byte of a payload that `decode` can read: returns which part of the document, from `start` to `end`, becomes which text. */
export function replace(value, index, byte) {
  if (value.kind === "array") {
    const { start, end } = value.members[index].value;
    return { start, end, text: String(byte) };
  }
  let text;
  if (HEX.test(value.text)) {
    const at = 2 * index + (/^0x/i.test(value.text) ? 2 : 0);
    text = value.text.slice(0, at) + byte.toString(16).padStart(2, "0") + value.text.slice(at + 2);
  } else {
    const bytes = decode(value);
    bytes[index] = byte;
    text = btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
  }
  return { start: value.start, end: value.end, text: JSON.stringify(text) };
}

/** Returns bytes as hex digits. */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
