// A machine that follows a script, in place of the WebAssembly module: what the loop around it does with hostile hosts needs no chain.
export const ORDER = "ab".repeat(32);
export const DIGEST = `0x${"07".repeat(32)}`;

/**
 * What the next machine needs, for some calls otherwise; what the last one was opened with; the calls that were started; and what the next
 * poll reports besides: events, and needs that are not needed any more; and the replies, with the numbers of their needs.
 */
export const script = { need: {}, needs: {}, refuses: false, panics: false, opened: undefined, started: [], events: [], withdrawn: [], replies: [] };

class Handle {
  free() {}
}

export class UnsignedOrder extends Handle {
  signed = false;
  usedUp = false;
  #check() {
    if (this.usedUp) throw JSON.stringify({ code: "used_up", message: "the order was used up", at: "", blame: "caller" });
  }
  family = () => "evm";
  orderId = () => ORDER;
  missing() {
    this.#check();
    return JSON.stringify(this.signed ? [] : ["initiate"]);
  }
  requests() {
    this.#check();
    return JSON.stringify([{ name: "initiate", signer: "0x1", digest: DIGEST, payload: DIGEST, native: { kind: "evm_transaction", value: JSON.stringify(script.transaction ?? {}) } }]);
  }
  summary = () => JSON.stringify([{ topic: "pay", text: "1 USDC" }, { topic: "get", text: "1 LTC" }]);
  warnings = () => JSON.stringify([{ code: "unlimited_approval", message: "", severity: "danger" }]);
  sign() {
    this.#check();
    this.signed = true;
  }
  attach() {
    this.sign();
  }
  finish() {
    this.#check();
    this.usedUp = true;
    return new SignedOrder();
  }
}
export class SignedOrder extends Handle {}
export class Order extends Handle {}
export class Record extends Handle {}
export class Reader extends Handle {}
export class Quorum extends Handle {}
export class Registry extends Handle {}
export class Policy extends Handle {}
export class Recovery extends Handle {}
export class Answers extends Handle {}

class Machine extends Handle {
  #calls = 0;
  #events = [];
  #needs = [];
  #orders = new Map();
  #start(name) {
    script.started.push(name);
    const call = (this.#calls += 1);
    this.#events.push({ event: "created", call, order_id: ORDER });
    const detail = JSON.stringify({ order_id: ORDER, ...script.need, ...script.needs[name] });
    this.#needs.push({ id: () => BigInt(call), call: () => BigInt(call), detail: () => detail, body: () => new Uint8Array([123, 125]), free() {} });
    return BigInt(call);
  }
  create = () => this.#start("create");
  follow = () => this.#start("follow");
  refund = () => this.#start("refund");
  instantRefund = () => this.#start("instantRefund");
  quote() {
    const call = (this.#calls += 1);
    this.#events.push({ event: "quoted", call, solver_id: "solver", pay: {}, receive: {} });
    return BigInt(call);
  }
  list() {
    const call = (this.#calls += 1);
    this.#events.push({ event: "listed", call, orders: [] });
    return BigInt(call);
  }
  phrase() {
    return undefined;
  }
  poll() {
    if (script.panics) throw new WebAssembly.RuntimeError("unreachable");
    const [events, needs] = [[...script.events.splice(0), ...this.#events.splice(0)], this.#needs.splice(0)];
    const withdrawn = JSON.stringify(script.withdrawn.splice(0));
    return { need: () => needs.shift(), withdrawn: () => withdrawn, wakeAt: () => undefined, events: () => JSON.stringify(events), free() {} };
  }
  /** Ends the order with the reply as the reason. */
  reply(id, reply) {
    if (script.refuses) {
      script.refuses = false;
      throw JSON.stringify({ code: "usage", message: "refused at the border", at: "/reply", blame: "caller" });
    }
    const reason = JSON.parse(new TextDecoder().decode(reply));
    script.replies.push([Number(id), reason]);
    this.#events.push({ event: "stopped", call: Number(id), order_id: ORDER, reason: JSON.stringify(reason), message: "", error: null });
    return true;
  }
  takeUnsigned(id) {
    const order = new UnsignedOrder();
    this.#orders.set(id, order);
    return order;
  }
  replySigned(id, order) {
    if (this.#orders.get(id) !== order) throw new Error("another order");
    return this.reply(id, new TextEncoder().encode('{"signed":true}'));
  }
}

export class Opening {
  constructor(options) {
    script.opened = JSON.parse(new TextDecoder().decode(options));
  }
  add() {}
  open() {
    return new Machine();
  }
}

export const families = () => "[]";
export default async () => ({});
