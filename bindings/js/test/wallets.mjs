// Wallets that answer by a script, and an order that they pay.
import { Order, Registry } from "countersign";
import { documents, fixture } from "./fixtures.mjs";

/** An order whose record has the swap id that another tool computed, and the log of its payment as version 3 of the contract emits it. */
export function bundled() {
  const { input, registry } = fixture("evm-record-evm-v3");
  const order = Order.verify(documents(input), new Registry(registry));
  const { source_swap: swap } = JSON.parse(documents(input).record);
  const word = (number) => `0x${BigInt(number).toString(16).padStart(64, "0")}`;
  const log = {
    address: order.walletCalls("evm").at(-1).to,
    topics: ["0x01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65", `0x${swap.swap_id}`, `0x${swap.secret_hash}`, word(order.terms.pay.number)],
    data: "0x",
  };
  const receipt = { transactionHash: `0x${"77".repeat(32)}`, status: "0x1", logs: [log], blockNumber: "0xabcd", gasUsed: "0xdef" };
  return { order, receipt, status: { version: "2.0.0", id: "0x1d", status: 200, atomic: true, receipts: [receipt] } };
}

/** Runs `work` at a time at which the records of the fixtures can be paid. */
export async function inTime(work) {
  const { now } = Date;
  Date.now = () => Date.UTC(2026, 2, 4, 5, 10);
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}

/** A wallet that answers by a script: method to a value, an error to throw, or a function of the parameters. */
export function scripted(answers) {
  const asked = [];
  const request = async ({ method, params }) => {
    asked.push({ method, params });
    const answer = Object.hasOwn(answers, method) ? answers[method] : failure(-32601);
    const found = typeof answer === "function" ? answer(params, asked.length) : answer;
    if (found instanceof Error) throw found;
    return found;
  };
  return { asked, request, named: (method) => asked.filter((one) => one.method === method) };
}

export const failure = (code, message = "refused") => Object.assign(new Error(message), { code });
