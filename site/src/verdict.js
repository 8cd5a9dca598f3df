// What was decided, in words: the verdict, the case, the summary, the payloads.
import { hex } from "./bytes.js";
import { code, make, rows } from "./dom.js";
import { place } from "./json.js";

const BLAME = {
  service: "the service: what it sent is wrong", caller: "the wallet: what it wrote or pinned itself is wrong",
  unsupported: "nobody: this build cannot judge it, so it is not signed", chain: "the chain", bug: "this software",
};
const DOCUMENT = { response: "the response", order: "the order record", record: "the order record", request: "the request", wallet: "the wallet context", registry: "the registry", policy: "the policy", line: "the whole line" };

/** Says under what a verdict was reached, if the author of the order may have chosen it: a registry or a policy that is not the wallet's. */
export function terms({ registry, policy }, pinned) {
  const own = [registry !== pinned && "a registry that is not the pinned one", policy !== "" && "a policy that is not the default one"].filter(Boolean);
  return own.length > 0 ? ` under ${own.join(" and ")}` : "";
}

/** Returns what a verdict is in one line, for the bar and for screen readers. A narrow bar leaves out the place. */
export function headline(result, under) {
  if (result.ok) return [`Accepted${under}${result.warnings.length > 0 ? ` with ${count(result.warnings.length, "warning")}` : ""}`];
  const { code: name, at } = result.refusal;
  return [`Refused: ${name}`, at === "" ? "" : make("span", { class: "place" }, ` at ${at}`)];
}

/** Shows a verdict, which `judge` returned; `reveal` moves to the refused place. */
export function verdict(result, common, { sentence, cost, reveal, under }) {
  if (result.ok) {
    return make("div", { class: `verdict ${tone(result, under)}` }, make("p", { class: "kicker" }, `Accepted${under}`), make("h3", {}, sentence ?? "Every byte is what the order needs, or is shown below."), warnings(result));
  }
  const { code: name, message, at, expected, actual, blame } = result.refusal;
  const [says, remedy] = common.codes[name] ?? [];
  const what = remedy && message.endsWith(`; ${remedy}`) ? message.slice(0, -remedy.length - 2) : message;
  const show = at !== "" && reveal ? make("button", { type: "button", class: "small", click: reveal }, "Show") : undefined;
  const details = rows([
    ["rule", make("span", {}, code(name), says && says !== what ? `: ${says}` : "")],
    ["where", at === "" ? "the order as a whole" : make("span", {}, code(at), " ", show ?? "")],
    ["expected", expected && code(expected)],
    ["received", actual && code(actual)],
    ["what to do", what === message ? undefined : remedy],
    ["whose fault", BLAME[blame]],
    ["cost, if signed", cost && costText(cost, common)],
  ]);
  return make("div", { class: "verdict bad" }, make("p", { class: "kicker" }, `Refused${under}: nothing is signed`), make("h3", {}, capital(what)), details);
}
/** Shows that there is no verdict, and why. */
export const noVerdict = (kicker, text) => make("div", { class: "verdict partly" }, make("p", { class: "kicker" }, kicker), make("h3", {}, capital(text)));
/** The colour of a verdict: only what holds under the wallet's own registry and policy is good. */
export const tone = (result, under) => (!result?.ok ? (result ? "bad" : "partly") : under === "" ? "good" : "partly");

function warnings({ warnings: list }) {
  if (list.length === 0) return undefined;
  return make("ul", { class: "warnings" }, ...list.map(({ message, code: name }) => make("li", {}, `${capital(message)} `, code(name))));
}

/** Says what signing would have cost: for a case of the corpus as it is listed, for an edit by the cases that are refused in the same way. */
function costText(cost, { losses }) {
  if (cost.isCase) return make("span", {}, make("strong", {}, cost.losses[0]), `. ${losses[cost.losses[0]]}`);
  if (cost.losses.length === 0) return "unknown: no case of the corpus is refused with this code here";
  const place = cost.isSamePlace ? "at this place" : "with this code";
  const names = cost.losses.map((loss, place) => [place > 0 ? " or " : "", make("strong", {}, loss)]).flat();
  return make("span", {}, ...names, `. Changes that are refused ${place} in the corpus: ${cost.examples.join("; ")}.`);
}

/** Derives the cost of an edit from the cases with the same refusal: at the same place if there are such, else anywhere in the family. */
export function costOf({ code: name, at }, attacks) {
  const same = attacks.filter((one) => one.code === name);
  const here = same.filter((one) => place(one.at).pointer === place(at).pointer);
  const found = here.length > 0 ? here : same;
  return { losses: [...new Set(found.map(({ loss }) => loss))], examples: [...new Set(found.map(({ words }) => words))].slice(0, 3), isSamePlace: here.length > 0 };
}

/** Shows a tampered case: the attack, and what common libraries do with its kind. */
export function attackCard(one, base, common, family, position) {
  const libraries = (common.libraries[family] ?? []).flatMap(({ name, sections, records }) => {
    const counts = one.changed === "record" ? records : one.changed === "response" ? sections[one.section] : undefined;
    return counts ? [`${name} signs ${counts[0]} of ${counts[1]}`] : [];
  });
  const kind = one.changed === "record" ? "false order records" : `tampered responses under “${one.section}”`;
  const list = libraries.length > 0 ? make("span", {}, `Of ${kind}: ${libraries.join(", ")}.`) : "not counted: what is wrong is the wallet's own, or it costs nothing by itself";
  return make("div", { class: "card case" }, make("p", { class: "kicker" }, `Attack ${position}`), make("h3", {}, capital(one.words)), rows([
    ["what is done", capital(one.note)],
    ["changed", DOCUMENT[one.changed]],
    ["it can cost", make("span", {}, make("strong", {}, one.loss), `. ${common.losses[one.loss]}`)],
    ["common libraries", list],
    ["derived from", base && capital(base.note)],
    ["case", code(one.id)],
  ]));
}
/** Says why an edit of a case whose documents have no fault changes the verdict. */
export const lineOnly = () => make("p", { class: "quiet" }, "The fault is in the line around the documents, not in them: after any edit they are judged without that line.");
/** Shows an honest case. */
export const honestCard = (one) => make("div", { class: "card case" }, make("p", { class: "kicker" }, one.result === "valid" ? "Honest order" : "Honest order, with a choice for the wallet"), make("h3", {}, capital(one.note)), rows([["case", code(one.id)]]));

/** Shows what the owner reads before signing. */
export function summary(result) {
  if (result.summary.length === 0) return make("p", { class: "quiet" }, "Only an accepted order has a summary: what a refused one says cannot be relied on.");
  return make("dl", { class: "facts" }, ...result.summary.map(({ topic, text, severity }) => make("div", { class: `fact t-${topic.replaceAll(" ", "-")}${severity === "info" ? "" : " look"}` }, make("dt", {}, topic), make("dd", {}, text))));
}

/** Shows what is to be signed. */
export function requests(result) {
  if (!result.ok) return make("p", { class: "quiet" }, "Nothing: only an accepted order is signed.");
  return make("div", { class: "requests" }, ...result.requests.map(({ name, signer, scheme, payload, digest }) => make("div", { class: "card" }, make("header", {}, make("h3", {}, name), code(scheme)), rows([
    ["signer", code(signer)],
    ["digest", code(shorten(hex(digest)))],
    [`payload, ${payload.length} bytes`, code(shorten(hex(payload)))],
  ]))));
}

const shorten = (text) => (text.length > 4000 ? `${text.slice(0, 4000)}…` : text);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
