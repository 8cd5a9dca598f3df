// Whole swaps: a loop around the machine of `countersign-swap`, which decides everything and does no I/O.
import * as glue from "countersign-glue";
import { CountersignError, usage } from "./error.js";
import { describe, documentBytes, members, ownMember } from "./input.js";
import { call, init } from "./module.js";
import { contractJson, read } from "./output.js";
import { UnsignedOrder } from "./signing.js";
import { Connections, type HttpNeed } from "./swap-http.js";
import { Inbox } from "./swap-inbox.js";
import { type Met as MetBy, askOnce } from "./swap-signing.js";
import { type OpenStore, checkedStore } from "./swap-store.js";
import type { ChainEndpoints, ConsentRequest, Quote, QuoteRequest, Signer, SigningTask, Stopped, StoredSwap, SwapChange, SwapRequest, SwapsOptions } from "./swap-types.js";
import { asciiUrl } from "./swap-url.js";

export { NothingSent, eip1193Signer } from "./swap-eip1193.js";
export { memoryStore, type DocumentWrite, type OpenStore, type SwapStore } from "./swap-store.js";
export type * from "./swap-types.js";

/** What the builds with the driver have beside the others: `src/swap.rs`. */
interface Machine {
  quote(wish: Uint8Array): bigint;
  create(wish: Uint8Array): bigint;
  follow(order: string): bigint;
  refund(order: string): bigint;
  instantRefund(order: string): bigint;
  list(): bigint;
  phrase(): string | undefined;
  poll(now: number): { need(): Need | undefined; withdrawn(): string; wakeAt(): number | undefined; events(): string; free(): void };
  reply(id: bigint, reply: Uint8Array, body: Uint8Array): boolean;
  takeUnsigned(id: bigint): glue.UnsignedOrder | undefined;
  replySigned(id: bigint, order: glue.UnsignedOrder): boolean;
  free(): void;
}
interface Need {
  id(): bigint;
  call(): bigint;
  detail(): string;
  body(place: number): Uint8Array | undefined;
  free(): void;
}
interface Opening {
  add(name: string, bytes: Uint8Array): void;
  open(now: number): Machine;
}
type NewOpening = new (options: Uint8Array, registry: Uint8Array, policy: Uint8Array, nodes: Uint8Array, place: string) => Opening;

type Detail =
  | HttpNeed
  | { readonly kind: "store"; readonly names: readonly string[] }
  | ({ readonly kind: "consent" } & ConsentRequest)
  | ({ readonly kind: "sign" } & Omit<SigningTask, "signal">);
type Failure = ConstructorParameters<typeof CountersignError>[0];
type MachineEvent =
  | Exclude<SwapChange, Stopped | { readonly event: "created" }>
  | { readonly event: "created"; readonly orderId: string; readonly call: number }
  | (Omit<Stopped, "error"> & { readonly call: number; readonly error: Failure | null })
  | ({ readonly event: "quoted"; readonly call: number } & Quote)
  | { readonly event: "listed"; readonly call: number; readonly orders: readonly StoredSwap[] }
  | { readonly event: "failed"; readonly call: number; readonly error: Failure };
type Restart = (machine: Machine, orderId: string) => bigint;
/** A call of the machine that has not ended. */
interface Call {
  orderId?: string | undefined;
  /** Whether its order is prepared again, because its signer did something else first. */
  again: boolean;
  /**
   * Starts it anew: the same call as before, so that nothing is done that its owner did not ask for. A question has none: it ends with its
   * own answer, and hears nothing else.
   */
  readonly restart?: Restart;
  /** What its owner's consent returned that is no answer. */
  noAnswer: CountersignError | undefined;
  hear(event: MachineEvent): void;
  end(error?: CountersignError): void;
}

const encoder = new TextEncoder();
const encode = (value: unknown) => encoder.encode(JSON.stringify(value));
/** Writes the options. The members of a permission may be of any number type; the names of chains stay as they are. */
function optionsJson(told: object, permissions: SwapsOptions["permissions"]): string {
  const text = JSON.stringify(told);
  if (!permissions) return text;
  const each = Object.entries(permissions).map(([name, permission]) => `${JSON.stringify(name)}:${contractJson(permission)}`);
  return `${text.slice(0, -1)},"permissions":{${each.join(",")}}}`;
}
const NOTHING = new Uint8Array();
/** The longest time of a timer. */
const MAX_WAIT = 2 ** 31 - 1;

/**
 * Runs whole swaps: creates orders, has them signed, pays, watches the chains, redeems or refunds. It continues whatever the store has, and
 * it stores what it is about to do before it does it.
 */
export class Swaps {
  readonly #machine: Machine;
  readonly #options: Readonly<Partial<SwapsOptions>>;
  readonly #connections: Connections;
  readonly #store: OpenStore;
  readonly #calls = new Map<number, Call>();
  readonly #running = new Map<bigint, AbortController>();
  #writing: Promise<unknown> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isDue = false;
  #end: CountersignError | undefined;

  private constructor(machine: Machine, options: Readonly<Partial<SwapsOptions>>, connections: Connections, store: OpenStore) {
    this.#machine = machine;
    this.#options = options;
    this.#connections = connections;
    this.#store = store;
  }

  /**
   * Opens the store. Nothing is sent before the first call.
   *
   * @throws {@link CountersignError} at an option that cannot be used, or if the store is open elsewhere.
   */
  static async open(options: SwapsOptions): Promise<Swaps> {
    // The options themselves: none that anything in the page has put on `Object.prototype`.
    const own = Object.freeze(members<SwapsOptions>(options, "options"));
    await init(own.module);
    const { service, appId, accounts, permissions, ownTransactions, signers, relayer, trustTheService, speed, signOnly, pollMs, registry, policy } = own;
    const connections = new Connections(members<Record<string, ChainEndpoints>>(own.nodes, "nodes") as Record<string, ChainEndpoints>, own.fetch);
    const told = { service: asciiUrl(service instanceof URL ? service.href : service), app_id: appId, accounts, own_transactions: ownTransactions, signers: Object.keys(signers ?? {}), relayer, trust_the_service: trustTheService, speed, sign_only: signOnly, poll_ms: pollMs };
    const pinned = documentBytes(registry, "registry");
    const limits = policy === undefined ? NOTHING : documentBytes(policy, "policy");
    const store = await checkedStore(own.store);
    try {
      const { Opening } = glue as unknown as { Opening: NewOpening };
      const opening = call(() => new Opening(encoder.encode(optionsJson(told, permissions)), pinned, limits, encode(connections.document), store.place));
      for (const [name, bytes] of store.documents) opening.add(name, bytes);
      return new Swaps(call(() => opening.open(now())), own, connections, store);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** Asks for the best quote. */
  async quote(wish: QuoteRequest): Promise<Quote> {
    const { solverId, pay, receive } = await this.#ask<"quoted">((machine) => machine.quote(wishBytes(wish)));
    return { solverId, pay, receive };
  }

  /** Lists the stored orders. */
  async list(): Promise<readonly StoredSwap[]> {
    return (await this.#ask<"listed">((machine) => machine.list())).orders;
  }

  /**
   * Creates an order for the best quote, and follows it to its end. Leaving the loop does not stop the swap.
   *
   * @returns The changes; the last one is {@link Stopped}. Throws if no order was created.
   * @throws {@link CountersignError} at once if the request cannot be used.
   */
  create(wish: SwapRequest): AsyncGenerator<SwapChange, void, undefined> {
    const { receiveAt, fromOwner, affiliateFees, accept } = members<SwapRequest>(wish, "wish");
    const start = (machine: Machine) => machine.create(wishBytes(wish, { receive_at: receiveAt, from_owner: fromOwner, affiliate_fees: affiliateFees, accept }));
    // A second order is no continuation of the first.
    return this.#follow(undefined, start, (machine, orderId) => machine.follow(orderId));
  }

  /** Continues a stored order, from wherever it is. */
  follow(orderId: string): AsyncGenerator<SwapChange, void, undefined> {
    return this.#follow(orderId, (machine) => machine.follow(orderId));
  }

  /** Refunds a stored order if its timelock has expired, whatever else could be done. */
  refund(orderId: string): AsyncGenerator<SwapChange, void, undefined> {
    return this.#follow(orderId, (machine) => machine.refund(orderId));
  }

  /**
   * Asks for the refund of a stored order on a Bitcoin-like chain before its timelock ends. The solver has to sign it too, and does so if it
   * has not paid. It ends with `refunding` once the service has the owner's signatures: {@link follow} shows the refund. It ends with
   * `not_refunded` while neither the service nor the endpoints show the payment: ask again once it is in a block.
   */
  instantRefund(orderId: string): AsyncGenerator<SwapChange, void, undefined> {
    return this.#follow(orderId, (machine) => machine.instantRefund(orderId));
  }

  /** Continues every stored order that has not ended. The changes come in one sequence, and each order's last one is {@link Stopped}. */
  resume(): AsyncGenerator<SwapChange, void, undefined> {
    if (this.#end) throw this.#end;
    const inbox = new Inbox<SwapChange>();
    // At once, as every call, and not with the first look at the changes.
    const stored = this.list();
    const follow = async ({ orderId }: StoredSwap) => {
      try {
        for await (const change of this.follow(orderId)) inbox.push(change);
      } catch (error) {
        if (!(error instanceof CountersignError) || this.#end) throw error;
        inbox.push({ event: "stopped", orderId, reason: "failed", message: error.message, error });
      }
    };
    const followed = stored.then((orders) => Promise.all(orders.filter(({ outcome }) => outcome === null).map(follow)));
    followed.then(() => inbox.end(), (error: unknown) => inbox.end(error));
    return inbox.read();
  }

  /** Returns the words of the rescue phrase; undefined before the first order. Whoever has them has the funds of every open order. */
  phrase(): string | undefined {
    return this.#call((machine) => machine.phrase());
  }

  /** Stops, and lets others open the store. Swaps go on when they are resumed; until then nobody watches them. */
  async close(): Promise<void> {
    this.#stop(usage("used_up", "the swaps were closed"));
    await this.#writing;
    await this.#store.close();
  }

  /** The same as {@link close}: `await using swaps = await Swaps.open(..)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #call<T>(work: (machine: Machine) => T): T {
    if (this.#end) throw this.#end;
    return call(() => work(this.#machine));
  }

  /** Calls the machine, and returns the one event that it replies with. */
  #ask<Name extends string>(start: (machine: Machine) => bigint): Promise<Extract<MachineEvent, { readonly event: Name }>> {
    return new Promise((resolve, end) => {
      this.#calls.set(Number(this.#call(start)), { again: false, noAnswer: undefined, hear: (event) => resolve(event as never), end });
      this.#wake();
    });
  }

  #follow(orderId: string | undefined, start: (machine: Machine) => bigint, restart: Restart = start): AsyncGenerator<SwapChange, void, undefined> {
    const inbox = new Inbox<SwapChange>();
    const hear = (event: MachineEvent) => inbox.push(publicChange(event));
    this.#calls.set(Number(this.#call(start)), { orderId, again: false, restart, noAnswer: undefined, hear, end: (error) => inbox.end(error) });
    this.#wake();
    return inbox.read();
  }

  /** Polls the machine soon, once for everything that happened until then. */
  #wake(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      try {
        if (!this.#end) this.#poll();
      } catch (error) {
        this.#stop(error as CountersignError);
      }
    });
  }

  #poll(): void {
    const output = this.#call((machine) => machine.poll(now()));
    for (const id of JSON.parse(output.withdrawn()) as number[]) this.#running.get(BigInt(id))?.abort();
    for (let need = output.need(); need; need = output.need()) void this.#do(need);
    const [wakeAt, events] = [output.wakeAt(), read<MachineEvent[]>(output.events())];
    output.free();
    clearTimeout(this.#timer);
    if (wakeAt !== undefined) this.#timer = setTimeout(() => this.#wake(), Math.min(Math.max(wakeAt - now(), 0), MAX_WAIT));
    for (const event of events) {
      if ("call" in event && Object.hasOwn(event, "call")) {
        const one = this.#calls.get(event.call);
        if (one) this.#answer(one, event);
        continue;
      }
      for (const each of this.#calls.values()) if (each.restart && (!("orderId" in event) || each.orderId === event.orderId)) each.hear(event);
    }
  }

  /** Reports an event to the call that it belongs to, and ends the call with its last one. */
  #answer(one: Call, event: Extract<MachineEvent, { readonly call: number }>): void {
    if (event.event === "created") one.orderId = event.orderId;
    else this.#calls.delete(event.call);
    const { restart } = one;
    if (event.event === "stopped" && one.again && restart) {
      one.again = false;
      this.#calls.set(Number(this.#call((machine) => restart(machine, event.orderId))), one);
      return this.#wake();
    }
    if (event.event === "failed") return one.end(new CountersignError(event.error));
    if (event.event === "stopped" && one.noAnswer) return one.end(one.noAnswer);
    one.hear(event);
    if (event.event !== "created") one.end();
  }

  /** Does what the machine needs, and replies. Whatever goes wrong fails this need alone, unless the module itself has stopped. */
  async #do(need: Need): Promise<void> {
    const id = need.id();
    const abort = new AbortController();
    this.#running.set(id, abort);
    try {
      const detail = read<Detail>(need.detail());
      const met = await this.#meet(id, need, detail, abort.signal).catch((error: unknown) => (isOver(error) ? Promise.reject(error) : didNot(detail.kind, error)));
      if (met && !this.#end) this.#reply(id, detail.kind, met);
    } catch (error) {
      this.#stop(asError(error) as CountersignError);
    } finally {
      need.free();
      this.#running.delete(id);
      this.#wake();
    }
  }

  /** Does what the machine needs. Returns the reply; undefined if nobody waits for it any more. */
  async #meet(id: bigint, need: Need, detail: Detail, signal: AbortSignal): Promise<Met | undefined> {
    if (detail.kind === "http") {
      const { json, body } = await this.#connections.send(detail, need.body(0), signal);
      return { reply: json, body };
    }
    if (detail.kind === "store") return { reply: await this.#keep(detail.names.map((name, place) => ({ name, bytes: need.body(place) }))) };
    const one = this.#calls.get(Number(need.call()));
    if (detail.kind === "consent") {
      const { kind, ...order } = detail;
      return { reply: { consent: await this.#askOwner(order, one) } };
    }
    const order = this.#call((machine) => machine.takeUnsigned(id));
    if (!order) return undefined;
    const { kind, ...task } = detail;
    return this.#sign(order, { ...task, signal }, one);
  }

  /** Hands the machine a reply. One that it refuses fails the need. */
  #reply(id: bigint, kind: Detail["kind"], { reply, body, signed }: Met): void {
    try {
      this.#call((machine) => (signed ? machine.replySigned(id, signed) : machine.reply(id, encode(reply), body ?? NOTHING)));
    } catch (error) {
      if (isOver(error)) throw error;
      const { reply: failed } = didNot(kind, error);
      this.#call((machine) => machine.reply(id, encode(failed), NOTHING));
    }
  }

  async #keep(writes: Parameters<OpenStore["write"]>[0]): Promise<object> {
    const writing: Promise<unknown> = settle(() => this.#store.write(writes));
    this.#writing = writing;
    const result = await writing;
    if (result === undefined) return { stored: true };
    const why = result instanceof Error ? result.message : `the store's write returned ${describe(result)}, and not undefined`;
    return { stored: false, detail: plain(why) };
  }

  /** Asks the owner. Only `true` is a yes; whatever is neither `true` nor `false` is an error of the loop over the order's changes. */
  async #askOwner(order: ConsentRequest, one: Call | undefined): Promise<boolean> {
    const { consent } = this.#options;
    const answer: unknown = await settle(() => (consent === undefined ? false : consent(Object.freeze(order))));
    if (answer === true) return true;
    if (one && answer !== false && !(answer instanceof Error)) {
      one.noAnswer = usage("usage", "consent must return true or false; nothing was paid", "true or false", describe(answer));
    }
    return false;
  }

  /** Has an order signed. Returns what came of it; undefined if nobody waits for it any more. */
  async #sign(order: glue.UnsignedOrder, task: SigningTask, one: Call | undefined): Promise<Met | undefined> {
    const { chain } = task;
    const unsigned = UnsignedOrder.from(order);
    const { signers } = this.#options;
    const signer = ownMember(signers, chain) ?? ownMember(signers, unsigned.family);
    if (!signer) return { reply: { not_signed: `there is no signer for ${chain}` } };
    const met = await askOnce(signer, task, async (): Promise<Met> => {
      const reply = await this.#askSigner(signer, unsigned, task);
      return reply ? { reply } : { reply: {}, signed: order };
    });
    // Without this need, the order is prepared again anyway.
    if (met?.reply === AGAIN && one && !task.signal.aborted) one.again = true;
    return met;
  }

  /** Asks a signer. Returns the reply; undefined if the order has its signatures. */
  async #askSigner(signer: Signer, unsigned: UnsignedOrder, task: SigningTask): Promise<object | undefined> {
    const result: unknown = await settle(() => signer(unsigned, task));
    if (result === "sent") return { sent: true };
    if (result === "again") return AGAIN;
    if (result instanceof Error) return didNot("sign", result).reply;
    // A signer that used the order up has the signed transactions, and may have sent them.
    const { missing } = unsigned;
    if (missing.length === 0) return undefined;
    if (result !== undefined) return { signer_failed: `the signer returned ${describe(result)}, and not undefined, "sent" or "again"` };
    return { not_signed: `the signer left out ${missing.join(", ")}` };
  }

  /** Ends everything, once. */
  #stop(error: CountersignError): void {
    if (this.#end) return;
    this.#end = error;
    clearTimeout(this.#timer);
    for (const abort of this.#running.values()) abort.abort();
    for (const one of this.#calls.values()) one.end(error);
    // A module that has stopped cannot free anything.
    if (error.code !== "internal") this.#machine.free();
  }
}

type Met = MetBy & { readonly signed?: glue.UnsignedOrder };

/** The reply for a signer that did something else first. */
const AGAIN = { not_signed: "something else was done first" };

/** The time in Unix milliseconds. A clock that has none is no clock. */
function now(): number {
  const time = Date.now();
  if (!Number.isSafeInteger(time) || time < 0) throw usage("usage", "the clock shows no time");
  return time;
}

/** Whether the module has stopped, so that nothing can go on. */
function isOver(error: unknown): boolean {
  return error instanceof CountersignError && error.code === "internal";
}

/** Returns the reply to a need of this kind that was not met. */
function didNot(kind: Detail["kind"], thrown: unknown): Met {
  const error = asError(thrown);
  const why = plain(error.message);
  if (kind === "http") return { reply: { failed: "interrupted", detail: plain(error.name) } };
  if (kind === "store") return { reply: { stored: false, detail: why } };
  if (kind === "consent") return { reply: { consent: false } };
  if (error.name === "NothingSent") return { reply: { not_signed: why } };
  const code = codeOf(error);
  return { reply: { signer_failed: why, ...(code === undefined ? {} : { code: String(code) }) } };
}

/** Returns the code of a wallet's error (EIP-1193), which libraries wrap into errors of their own. */
function codeOf(error: unknown): number | undefined {
  let inner = error as { code?: unknown; cause?: unknown } | null | undefined;
  for (let depth = 0; depth < 8 && typeof inner === "object" && inner !== null; depth += 1) {
    if (Number.isSafeInteger(inner.code)) return inner.code as number;
    inner = inner.cause as typeof inner;
  }
  return undefined;
}

/** Text of foreign code, as JSON may have it. */
function plain(text: unknown): string {
  return String(text).slice(0, 1024).replace(/\p{Surrogate}/gu, "?");
}

/** Calls what the wallet gave. Returns what it throws. */
async function settle<T>(work: () => T | Promise<T>): Promise<T | Error> {
  try {
    return await work();
  } catch (error) {
    return asError(error);
  }
}

/** Returns what was thrown as an error, whatever it is. Its message is text. */
function asError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error && typeof thrown.message === "string" && typeof thrown.name === "string") return thrown;
    const { message, code, cause } = Object(thrown) as { message?: unknown; code?: unknown; cause?: unknown };
    return Object.assign(new Error(typeof thrown === "object" ? String(message) : String(thrown), { cause }), { code });
  } catch {
    return new Error("something was thrown that is no error");
  }
}

function wishBytes(wish: QuoteRequest, more: object = {}): Uint8Array {
  const { from, to, amount, atLeast, slippage, solver } = members<QuoteRequest>(wish, "wish");
  const units = (value: unknown) => (typeof value === "bigint" ? value.toString() : value);
  return encode({ from, to, amount: units(amount), at_least: units(atLeast), slippage, solver, ...more });
}

/** Returns an event without what only the loop needs, and with its error as one. */
function publicChange(event: MachineEvent): SwapChange {
  const { call: _, ...change } = event as MachineEvent & { call?: number };
  if (change.event !== "stopped") return Object.freeze(change) as SwapChange;
  return Object.freeze({ ...change, error: change.error && new CountersignError(change.error) });
}
