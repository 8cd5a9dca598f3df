// A wallet: quotes, explains, signs, follows, redeems and refunds. It keeps its swaps in IndexedDB, and continues them when it is loaded.
import { Swaps, inWholeUnits, indexedDbStore } from "./countersign/web.js";

const element = (id) => document.getElementById(id);
const wallet = await fetch("wallet.json").then((answer) => answer.json());
const chainOf = (asset) => asset.split(":")[0];

/** Shows what went wrong; nothing hides it but the next success. */
function trouble(error) {
  element("trouble").textContent = error?.message ?? "";
  element("trouble").hidden = !error;
}

/** Runs what a button does, and shows its error. */
const button = (id, event, work) =>
  element(id).addEventListener(event, (happened) => {
    happened.preventDefault();
    trouble();
    work().catch(trouble);
  });

function add(list, tag, text, className = "") {
  const item = document.createElement(tag);
  Object.assign(item, { textContent: text, className });
  list.append(item);
}

/** Explains an order and asks its owner. */
async function consent({ summary, warnings }) {
  const dialog = element("consent");
  element("summary").replaceChildren();
  element("warnings").replaceChildren();
  for (const { topic, text, severity } of summary) {
    add(element("summary"), "dt", topic);
    add(element("summary"), "dd", text, severity);
  }
  for (const { message, severity } of warnings) add(element("warnings"), "li", message, severity);
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  return dialog.returnValue === "yes";
}

/** The card of an order. */
function card(orderId, title = "") {
  const found = document.querySelector(`[data-order="${CSS.escape(orderId)}"]`);
  if (found) return found;
  const made = element("one").content.firstElementChild.cloneNode(true);
  made.dataset.order = orderId;
  made.querySelector("h3").textContent = title;
  made.querySelector("code").textContent = orderId;
  made.querySelector(".follow").addEventListener("click", () => show(swaps.follow(orderId)));
  made.querySelector(".refund").addEventListener("click", () => show(swaps.refund(orderId)));
  element("swaps").prepend(made);
  element("none").hidden = true;
  return made;
}

/** How many steps are done. */
const STEPS = { unsigned: 0, paying: 0, waiting: 1, awaiting_refund: 1, refunding: 1, redeeming: 2, redeem_now: 2, complete: 3 };
const FAILURES = ["lost", "refused", "failed", "not_signed", "needs_owner", "unavailable"];

/** Shows what happens to orders until they end. */
async function show(changes, title) {
  trouble();
  try {
    for await (const change of changes) {
      if (change.event === "phrase_created") element("phrase").textContent = swaps.phrase();
      else draw(change, card(change.orderId, title));
    }
  } catch (error) {
    trouble(error);
  }
}

function draw(change, one) {
  const isOver = change.event === "stopped";
  const steps = STEPS[change.outcome ?? change.status ?? change.reason] ?? (change.isPaid ? 1 : undefined);
  if (steps !== undefined) one.querySelectorAll(".steps li").forEach((step, index) => step.classList.toggle("done", index < steps));
  const alert = one.querySelector(".alert");
  alert.hidden = change.event !== "alert";
  if (change.event === "alert") alert.textContent = change.message;
  else one.querySelector(".message").textContent = change.message ?? "created";
  one.classList.toggle("complete", change.reason === "complete");
  one.classList.toggle("refunded", change.reason === "refunded");
  one.classList.toggle("failed", FAILURES.includes(change.reason));
  // An order that expired is open again once its chain shows a payment.
  const isEnded = ["complete", "refunded", "lost"].includes(change.reason);
  one.querySelector(".follow").hidden = !isOver || isEnded;
  if (change.isPaid) one.dataset.paid = "";
  one.querySelector(".refund").hidden = isEnded || !("paid" in one.dataset);
}

function wish() {
  return { from: element("from").value, to: element("to").value, amount: element("amount").value };
}

async function quote() {
  const { receive } = await swaps.quote(wish());
  element("receive").textContent = `${inWholeUnits(receive)} ${element("to").value.split(":")[1].toUpperCase()}`;
  element("create").disabled = false;
}

/** What was quoted is not what is chosen now. */
function forget() {
  element("receive").textContent = "–";
  element("create").disabled = true;
}

function choose(event) {
  if (event?.target.id !== "amount") element("amount").value = wallet.amounts[element("from").value];
  if (event?.target.id !== "receive-at") element("receive-at").value = wallet.accounts[chainOf(element("to").value)];
  forget();
}

for (const asset of Object.keys(wallet.amounts)) {
  add(element("from"), "option", asset);
  add(element("to"), "option", asset);
}
element("to").selectedIndex = 1;
for (const [name, what] of Object.entries({ none: "nobody", ...wallet.lies })) {
  add(element("lie"), "option", what);
  element("lie").lastElementChild.value = name;
}
choose();

const sign = (unsigned, { chain }) => unsigned.sign(wallet.keys[chain]);
const swaps = await Swaps.open({
  ...wallet,
  signers: Object.fromEntries(Object.keys(wallet.accounts).map((chain) => [chain, sign])),
  store: indexedDbStore("wallet"),
  consent,
  relayer: true,
  // The keys are the page's own, so nothing is sent but by `swaps`.
  signOnly: true,
}).catch((error) => {
  trouble(error);
  throw error;
});

for (const id of ["from", "to", "amount"]) element(id).addEventListener("input", choose);
button("quote", "click", quote);
button("swap", "submit", async () => {
  const { from, to, amount } = wish();
  void show(swaps.create({ from, to, amount, receiveAt: element("receive-at").value }), `${amount} on ${chainOf(from)} to ${to}`);
  forget();
});
button("lie", "change", () => fetch(`lie/${element("lie").value}`, { method: "POST" }));
button("later", "click", () => fetch("later", { method: "POST" }));
element("quote").disabled = false;
element("phrase").textContent = swaps.phrase() ?? element("phrase").textContent;

for (const { orderId, from, to, mayBePaid: isPaid, outcome } of await swaps.list()) {
  const one = card(orderId, `${from} to ${to}`);
  draw({ event: "stopped", orderId, isPaid, reason: outcome, message: outcome ?? "stored" }, one);
}
void show(swaps.resume());
