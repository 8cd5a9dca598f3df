// The playground: one order at a time, whose documents can be changed, and the verdict about it.
import * as cases from "./cases.js";
import { compare, comparison, outcome } from "./compare.js";
import { DocumentView } from "./document.js";
import { by, make } from "./dom.js";
import { Engine, frameMarkup } from "./engine.js";
import * as link from "./link.js";
import * as show from "./verdict.js";

const radios = [...document.querySelectorAll("input[name=family]")];
const FAMILIES = Object.fromEntries(radios.map((input) => [input.value, input.nextElementSibling.textContent]));
const DEFAULT = radios[0].value;
/** Milliseconds of silence after which a change is verified. */
const PAUSE = 80;
const OWN = "own";
/** The order that is shown. `one` is its row of the index, `origin` the documents before any change; both are empty for one's own. */
const state = { family: undefined, index: undefined, one: undefined, origin: undefined, line: undefined, result: undefined, position: -1, isLineOnly: false };
/** What is said about the documents, and taken back as soon as they change. */
const JUDGED = ["verdict", "summary", "requests"];
let common, engine, pages, sdk, timer;
/** Counts what was asked for, so that late answers are not shown. */
let asked = 0;

const about = { response: ["Response", "from the service"], order: ["Order record", "from the service"], request: ["Request", "the wallet's own"], wallet: ["Wallet context", "nonce, fees, coins and the published key"], registry: ["Registry", "what the wallet has pinned"], policy: ["Policy", "the wallet's limits"] };
const views = Object.fromEntries(cases.DOCUMENTS.map((name) => [name, new DocumentView(name, ...about[name], ["response", "order", "request"].includes(name), { changed, say })]));
const texts = () => Object.fromEntries(cases.DOCUMENTS.map((name) => [name, views[name].text]));
const edits = () => Object.fromEntries(cases.DOCUMENTS.filter((name) => views[name].text !== (state.origin?.[name] ?? "")).map((name) => [name, views[name].text]));

/** Says something that is not a verdict. */
function say(text) {
  Object.assign(by("notice"), { textContent: text, hidden: text === "" });
}

/** Takes back the verdict, and what follows from it: it was about other documents. What is left keeps its place until the next verdict. */
function pending() {
  asked += 1;
  clearTimeout(timer);
  state.result = undefined;
  Object.assign(by("bar"), { textContent: "Checking…", className: "partly" });
  for (const id of JUDGED) {
    by(id).style.minHeight = `${by(id).offsetHeight}px`;
    by(id).replaceChildren(id === "verdict" ? show.noVerdict("No verdict yet", "Checking…") : "");
  }
  for (const id of ["compared", "frame", "page-state", "sdk-state"]) by(id).replaceChildren();
  for (const name of cases.DOCUMENTS) views[name].refuse();
  return asked;
}

/** Loads a family and one of its orders. Beside it are the order from which it was made, and the pinned registry. */
async function find(family, id) {
  const index = family === state.family ? state.index : await cases.index(family);
  const one = id === OWN ? undefined : index.byId.get(id || index.start);
  if (id !== OWN && !one) throw new link.BrokenLink("it names a case that this page does not have");
  const opened = [one, one?.base && index.byId.get(one.base)].map((row) => row && cases.open(family, row));
  return [index, one, ...(await Promise.all([...opened, cases.load("registry.json")]))];
}

/** Shows a family, and one of its orders. */
async function open(family, id, changed = {}) {
  const turn = pending();
  if (family !== state.family) by("bar").textContent = `Loading ${FAMILIES[family]}…`;
  const found = await find(family, id).catch((error) => error);
  if (turn !== asked) return;
  if (found instanceof Error) {
    // What was shown before is still there, and so is its verdict.
    if (state.family) fillControls();
    if (state.family) await verify(turn);
    throw found;
  }
  const [index, one, opened, base, pinned] = found;
  if (family !== state.family) {
    for (const worker of [engine, sdk]) worker?.stop();
    [engine, sdk] = [new Engine("worker.js"), new Engine(`sdk/${family}.js`)];
  }
  const origin = opened?.documents ?? { response: "", order: "", request: "", wallet: "", registry: pinned, policy: "" };
  Object.assign(state, { family, index, one, origin, pinned, line: opened?.line, isLineOnly: false, isWhole: opened?.isWhole ?? true });
  // The author of an order chooses neither the registry nor the policy of the wallet, so that these are never compared with the author's own.
  const honest = { ...(base?.documents ?? (one ? origin : {})), registry: pinned, policy: "" };
  for (const name of cases.DOCUMENTS) views[name].show(changed[name] ?? origin[name], honest[name]);
  fillControls();
  // What the bytes of a tampered order are, its honest order says: the tampered one is refused.
  if (base) coverBy(await engine.ask({ build: family, task: "judge", documents: base.documents }).catch(() => undefined));
  await verify(turn);
}

/** Takes what the bytes are from an order that could be read; a refused one leaves what was known. */
function coverBy(result) {
  if (result?.coverage.length > 0) for (const name of cases.DOCUMENTS) views[name].cover(result.coverage);
}

/** Verifies what is shown. */
async function verify(turn = (asked += 1)) {
  const documents = texts();
  const isEdited = Object.keys(edits()).length > 0;
  if (!state.one && documents.request === "" && documents.response === "") return present(undefined, "paste a request and a response");
  const question = { build: state.family, task: "judge", documents, line: isEdited ? undefined : state.line };
  const answer = await engine.ask(question).then((result) => [result], (error) => [undefined, error.message]);
  if (turn === asked) present(...answer);
}

/** Shows a verdict, and everything that follows from it. */
function present(result, failure) {
  const { one, index } = state;
  const isEdited = Object.keys(edits()).length > 0;
  const under = show.terms(texts(), state.pinned);
  state.result = result;
  if (!isEdited) state.isLineOnly = result?.isLineOnly ?? false;
  by("bar").className = show.tone(result, under);
  by("bar").replaceChildren(...(result === undefined ? [`No verdict: ${failure}`] : show.headline(result, under)));
  const cost = result && !result.ok && (!isEdited && one?.loss ? { isCase: true, losses: [one.loss] } : show.costOf(result.refusal, index.attacks));
  const sentence = result?.ok && !isEdited ? one?.sentence : undefined;
  by("verdict").replaceChildren(result ? show.verdict(result, common, { sentence, cost, under, reveal: () => reveal() }) : show.noVerdict("No verdict", failure));
  by("case").replaceChildren(caseCard(isEdited));
  by("summary").replaceChildren(show.summary(result ?? { summary: [] }));
  by("requests").replaceChildren(show.requests(result ?? { ok: false }));
  for (const id of JUDGED) by(id).style.minHeight = "";
  coverBy(result);
  const isMarked = cases.DOCUMENTS.map((name) => views[name].refuse(result?.refusal?.at)).some(Boolean);
  by("work").hidden = false;
  by("verdict").querySelector("button")?.toggleAttribute("hidden", !isMarked);
  for (const id of ["next", "reset", "link", "order"]) by(id).disabled = false;
  by("reset").disabled = !isEdited;
}

function caseCard(isEdited) {
  const { one, index, family } = state;
  if (!one) return "";
  const lineOnly = state.isLineOnly ? show.lineOnly() : "";
  if (isEdited) return make("div", { class: "card case" }, make("p", { class: "kicker" }, "Your own change"), make("p", {}, `You started from: ${one.note}.`), lineOnly);
  if (one.result !== "invalid") return show.honestCard(one);
  const card = show.attackCard(one, index.byId.get(one.base), common, family, `${state.position + 1} of ${index.attacks.length}`);
  card.append(lineOnly);
  if (!state.isWhole) card.append(make("p", { class: "quiet" }, "This line is not valid JSON, so it has no documents to show. It was judged as a whole:"), make("pre", { tabindex: 0 }, make("code", {}, state.line)));
  return card;
}

function fillControls() {
  const { family, index, one } = state;
  document.querySelector(`input[name=family][value=${family}]`).checked = true;
  const option = ({ id, note }) => make("option", { value: id }, `${note.charAt(0).toUpperCase()}${note.slice(1)}`);
  const select = by("order");
  if (select.dataset.family !== family) {
    select.replaceChildren(make("optgroup", { label: "Honest orders" }, ...index.honest.map(option)), make("optgroup", { label: "Yours" }, make("option", { value: OWN }, "Paste your own documents")), make("optgroup", { label: "Attack", id: "attack" }));
    select.dataset.family = family;
  }
  state.position = one ? index.attacks.indexOf(one) : state.position;
  by("attack").replaceChildren(...(state.position < 0 || one?.result !== "invalid" ? [] : [option(one)]));
  select.value = one?.id ?? OWN;
  by("sdk-about").textContent = `Signs this order with ${common.sdks[family]}, which verifies nothing, and compares the bytes. The key is the published one in the wallet context.`;
}

/** A document was changed by hand. */
function changed() {
  say("");
  pending();
  timer = setTimeout(run(() => verify()), PAUSE);
}

/** Shows the refused place, or the first change. */
function reveal(isFocus = true) {
  const names = [...cases.DOCUMENTS].sort((a, b) => views[b].element.classList.contains("has-refusal") - views[a].element.classList.contains("has-refusal"));
  return names.some((name) => views[name].reveal(isFocus));
}

async function next() {
  const { index, family } = state;
  let position = state.one?.result === "invalid" ? index.attacks.indexOf(state.one) : state.attacked?.[family] ?? -1;
  position = (position + 1) % index.attacks.length;
  state.attacked = { ...state.attacked, [family]: position };
  await open(family, index.attacks[position].id);
  // Beside each other, the verdict stays where it is while the documents move.
  if (matchMedia("(min-width: 66.01rem)").matches) reveal(false);
}

async function copyLink() {
  const [family, id, changed] = [state.family, state.one?.id ?? "", edits()];
  const secret = link.secretIn(changed, await cases.keys());
  if (secret) throw new link.BrokenLink(secret);
  const fragment = await link.write(family, id, changed);
  history.replaceState(null, "", fragment);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied. Its part behind # carries the order.");
  } catch {
    say("The link is in the address bar. Its part behind # carries the order.");
  }
}

async function signBoth() {
  const [turn, name, { result }] = [asked, common.sdks[state.family], state];
  by("compared").replaceChildren();
  const hasKey = /"secret_key"\s*:\s*"/.test(views.wallet.text);
  by("sdk-state").textContent = !result ? "There is nothing to compare: there is no verdict about these documents."
    : !hasKey ? "Neither signs: this wallet context has no key. Choose an order with one." : `Loading ${name}…`;
  if (!result || !hasKey) return;
  try {
    const compared = compare(result.artefacts, await sdk.ask({ documents: texts() }));
    if (turn !== asked) return;
    by("sdk-state").textContent = outcome(compared, name, !result.ok);
    by("compared").replaceChildren(comparison(compared, name));
  } catch (error) {
    if (turn === asked) by("sdk-state").textContent = `${name} signed nothing: ${error.message}`;
  }
}

async function fullPage() {
  const turn = asked;
  by("page-state").textContent = "Loading the larger module…";
  pages ??= new Engine("worker.js");
  try {
    const { html, sentence } = await pages.ask({ build: "page", task: "page", documents: texts() });
    if (turn !== asked) return;
    const frame = make("iframe", { sandbox: "", title: "Full page of this order", class: "order-page" });
    frame.srcdoc = frameMarkup(html);
    const under = show.terms(texts(), state.pinned);
    by("page-state").textContent = `${sentence ?? "Refused: the page shows the received values beside the expected ones."}${under && ` Judged${under}.`}`;
    by("frame").replaceChildren(frame);
  } catch (error) {
    if (turn === asked) by("page-state").textContent = `There is no page: ${error.message}`;
  }
}

/** Opens what the address says, and the first order if that cannot be used. */
async function openLink() {
  const { hash } = location;
  if (hash === "") return open(DEFAULT, "");
  try {
    const { family, id, changed: documents } = await link.read(hash, Object.keys(FAMILIES));
    say("");
    await open(family, id === "" ? OWN : id, documents);
  } catch (error) {
    if (!(error instanceof link.BrokenLink)) throw error;
    say(`The link cannot be used: ${error.message}. This is the first order instead.`);
    await open(DEFAULT, "");
  }
}

/** Runs what a control asks for, and says what went wrong. */
const run = (work) => async (event) => {
  try {
    await work(event);
  } catch (error) {
    say(error instanceof link.BrokenLink ? `There is no link: ${error.message}.` : error.message);
  }
};

/** What is chosen is no longer what the address says. */
const choose = (work) => run((event) => {
  say("");
  history.replaceState(null, "", location.pathname + location.search);
  return work(event);
});
by("documents").append(...cases.DOCUMENTS.map((name) => views[name].element));
for (const input of radios) input.addEventListener("change", choose(() => open(input.value, "")));
by("order").addEventListener("change", choose(({ target }) => open(state.family, target.value)));
by("next").addEventListener("click", choose(next));
by("reset").addEventListener("click", run(() => open(state.family, state.one?.id ?? OWN)));
by("link").addEventListener("click", run(copyLink));
by("sdk").addEventListener("click", run(signBoth));
by("page").addEventListener("click", run(fullPage));
by("controls").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", run(openLink));
await run(async () => {
  common = await cases.common();
  await openLink();
})();
