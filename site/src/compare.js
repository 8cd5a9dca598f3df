// The bytes that countersign signs beside those of the chain's own SDK.
import { code, make } from "./dom.js";

/** Every text of the artefacts by its place. */
function texts(value, at = "") {
  if (typeof value === "string") return [[at.slice(1), value]];
  return Object.entries(value ?? {}).flatMap(([key, member]) => texts(member, `${at}/${key}`));
}

/** Hex digits mean the same in both cases; base58 and base64 do not. */
const HEX = /^0x[0-9a-f]+$/i;
const spelling = (text) => (text !== undefined && HEX.test(text) ? text.toLowerCase() : text);

/** What is signed. Beside it countersign lists what leads there, such as digests, which an SDK keeps to itself. */
const SIGNED = /(?:^|\/)(?:signed|signature)(?:\/\d+)?$/;
const artefact = (place) => place.split("/", 1)[0];

/** Compares artefacts as JSON, ours undefined if refused. Returns a row for each text of the SDK, and for each whole artefact or signed text that countersign alone made. */
export function compare(ours, theirs) {
  const [own, other] = [ours, theirs].map((json) => new Map(json === undefined ? [] : texts(JSON.parse(json))));
  const both = new Set([...other.keys()].map(artefact));
  const places = [...own.keys()].filter((place) => other.has(place) || SIGNED.test(place) || !both.has(artefact(place)));
  return [...new Set([...places, ...other.keys()])].map((place) => ({ place, ours: own.get(place), theirs: other.get(place), isEqual: spelling(own.get(place)) === spelling(other.get(place)) }));
}

/** Says the outcome in one sentence. */
export function outcome(compared, sdk, isRefused) {
  if (!compared.some(({ theirs }) => theirs !== undefined)) return `${sdk} signed nothing.`;
  if (isRefused) return `${sdk} signed what countersign refused.`;
  const equal = compared.filter(({ isEqual }) => isEqual).length;
  return equal === compared.length ? `Equal: all ${equal} artefacts have the same bytes.` : `Not equal: ${compared.length - equal} of ${compared.length} artefacts differ.`;
}
/** Says how one artefact compares. */
export const word = ({ ours, theirs, isEqual }) => (isEqual ? "equal" : ours === undefined ? "signed by the SDK only" : theirs === undefined ? "signed by countersign only" : "not equal");

/** Shows the artefacts below each other. */
export function comparison(compared, sdk) {
  const line = (who, text) => make("p", {}, make("span", { class: "who" }, who), text === undefined ? make("em", {}, "nothing") : code(text));
  return make("div", {}, ...compared.map((one) => {
    const title = make("h3", {}, one.place.replaceAll("/", " "), " ", make("span", { class: one.isEqual ? "equal" : "unequal" }, word(one)));
    return make("div", { class: "artefact" }, title, line("countersign", one.ours), line(sdk, one.theirs));
  }));
}
