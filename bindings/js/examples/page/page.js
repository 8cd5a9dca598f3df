// The wallet's page. Untrusted text is set as text, never as HTML.
import { CountersignError, Order, Registry, init } from "./countersign/web.js";

const element = (id) => document.getElementById(id);
const show = (id, visible) => (element(id).hidden = !visible);

function add(parent, tag, text, severity) {
  const child = document.createElement(tag);
  child.textContent = text;
  if (severity) child.className = severity;
  element(parent).append(child);
}

/** Runs a step, and shows why it was refused. */
function attempt(step) {
  show("refusal", false);
  element("refusal").replaceChildren();
  try {
    step();
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    for (const part of ["code", "message", "at", "expected", "actual", "blame"]) {
      if (error[part]) add("refusal", "p", `${part}: ${error[part]}`);
    }
    show("refusal", true);
  }
}

let order;

function verify(registry) {
  show("order", false);
  show("signed", false);
  order?.free();
  order = undefined;
  attempt(() => {
    const record = element("record").value;
    order = Order.verify({ request: element("request").value, response: element("response").value, record: record || null }, registry);
    for (const id of ["summary", "warnings"]) element(id).replaceChildren();
    for (const { topic, text, severity } of order.summary) {
      add("summary", "dt", topic);
      add("summary", "dd", text, severity);
    }
    for (const { message, severity } of order.warnings) add("warnings", "li", message, severity);
    show("order", true);
  });
}

function sign() {
  show("signed", false);
  attempt(() => {
    const unsigned = order.prepare(element("wallet").value);
    try {
      unsigned.sign(element("key").value);
      const signed = unsigned.finish();
      element("transactions").replaceChildren();
      for (const { payload } of signed.transactions) add("transactions", "li", payload);
      signed.free();
      show("signed", true);
    } finally {
      unsigned.free();
      element("key").value = "";
    }
  });
}

const [demo] = await Promise.all([fetch("demo.json").then((answer) => answer.json()), init()]);
const registry = new Registry(demo.registry);
for (const { id } of demo.cases) add("cases", "option", id);

function choose() {
  const chosen = demo.cases.find(({ id }) => id === element("cases").value);
  for (const member of ["request", "response", "record", "wallet", "key"]) element(member).value = chosen[member] ?? "";
  show("order", false);
  show("signed", false);
  show("refusal", false);
}

element("cases").addEventListener("change", choose);
element("verify").addEventListener("click", () => verify(registry));
element("sign").addEventListener("click", sign);
choose();
element("verify").disabled = false;
