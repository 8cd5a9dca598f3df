// The bytes that countersign signs beside those of the chain's own SDK.
import { code, make } from "./dom.js";

/** Every text of the artefacts by its place. */
function texts(value, at = "") {
  if (typeof value === "string") return [[at.slice(1), value]];
  return Object.entries(value ?? {}).flatMap(([key, member]) => texts(member, `${at}/${key}`));
}

/** Compares the artefacts, as JSON; ours are undefined if countersign refused. Returns a row for each text that the SDK made. */
export function compare(ours, theirs) {
  const own = new Map(ours === undefined ? [] : texts(JSON.parse(ours)));
  return texts(JSON.parse(theirs)).map(([place, text]) => ({ place, ours: own.get(place), theirs: text, isEqual: own.get(place)?.toLowerCase() === text.toLowerCase() }));
}

/** Says the outcome in one sentence. */
export function outcome(compared, sdk, isRefused) {
  if (isRefused) return `${sdk} signed what countersign refused.`;
  const equal = compared.filter(({ isEqual }) => isEqual).length;
  return equal === compared.length ? `Equal: all ${equal} artefacts have the same bytes.` : `Not equal: ${compared.length - equal} of ${compared.length} artefacts differ.`;
}

/** Shows the artefacts below each other. */
export function comparison(compared, sdk, isRefused) {
  const line = (who, text) => make("p", {}, make("span", { class: "who" }, who), text === undefined ? make("em", {}, "nothing") : code(text));
  const word = (isEqual) => (isEqual ? "equal" : isRefused ? "signed by the SDK only" : "not equal");
  return make("div", {}, ...compared.map(({ place, ours, theirs, isEqual }) => {
    const title = make("h3", {}, place.replaceAll("/", " "), " ", make("span", { class: isEqual ? "equal" : "unequal" }, word(isEqual)));
    return make("div", { class: "artefact" }, title, line("countersign", ours), line(sdk, theirs));
  }));
}
