// Reading a chain through the caller's own connections.
import * as glue from "countersign-glue";
import { CountersignError, usage } from "./error.js";
import { CREATE, Freeable, Made, bind, handleOf } from "./handle.js";
import { answerBytes, members, text, wholeNumber, wrongType } from "./input.js";
import { call } from "./module.js";
import { fromHex, jsonText } from "./output.js";
import type { BatchResponse, ChainAnswer, ChainRequest } from "./types.js";

/** Most bytes of one answer. */
const MAX_ANSWER = 16 * 1024 * 1024;
/** What a connection may have failed with. */
const FAILURES = ["connect", "timeout", "interrupted", "too_large", "unsupported", "other"];

const encoder = new TextEncoder();

/** A request as the module writes it. */
interface Ask {
  readonly kind: ChainRequest["kind"];
  readonly method: string;
  readonly params: string;
  readonly path: string;
  readonly content_type: string;
  readonly body: string;
}

/**
 * Reads one HTLC from one endpoint: it says what to ask, and takes the answers. It has no connection of its own, so every wallet can use
 * the one that it already has.
 *
 * ```js
 * for (let requests; (requests = reader.next()); ) reader.answer(await Promise.all(requests.map(send)));
 * quorum.hear(reader);
 * ```
 */
export class Reader extends Made {
  /** The endpoint's name in the quorum. */
  readonly endpoint: string;

  /** @internal */
  constructor(key: typeof CREATE, handle: glue.Reader, endpoint: string) {
    super(key, handle, "record.reader");
    this.endpoint = endpoint;
  }

  /** Returns the requests to send now, all at once; undefined once the reading has ended. Calling it again changes nothing. */
  next(): readonly ChainRequest[] | undefined {
    const asks = JSON.parse(call(() => this.#handle.requests())) as Ask[];
    return asks.length === 0 ? undefined : Object.freeze(asks.map(toRequest));
  }

  /**
   * Takes the answers to these requests, one for each, in their order. What the endpoint did wrong is not an error here: {@link fault}
   * has it.
   *
   * @throws {@link CountersignError} `usage` for another number of answers, or for what is not an answer. Nothing is changed then.
   */
  answer(answers: readonly ChainAnswer[]): void {
    const reader = this.#handle;
    const list = collect(answers);
    // Frees the list, also if it throws.
    call(() => reader.answer(list));
  }

  /** Why the endpoint's answers cannot be used. Undefined while the reading goes on, and if it is complete. */
  get fault(): CountersignError | undefined {
    const fault = call(() => this.#handle.fault());
    return fault === undefined ? undefined : new CountersignError(JSON.parse(fault));
  }

  /** The height of the newest block that the endpoint shows; undefined before the end. */
  get height(): number | undefined {
    const height = call(() => this.#handle.height());
    return height === undefined ? undefined : Number(height);
  }

  /** What is known about the endpoint now, for the option `known` of its next reader. Keep it if the quorum agrees with the endpoint. */
  get known(): string {
    return call(() => this.#handle.known());
  }

  get #handle(): glue.Reader {
    return handleOf(this, Reader, "reader");
  }
}

/** What several endpoints show of one HTLC. */
export class Quorum extends Freeable {
  /** Keeps a quorum from being taken for something else. */
  declare private readonly kind: "Quorum";

  /**
   * Creates a quorum.
   *
   * @param endpoints - The names of the endpoints. A name that is there twice counts once.
   * @param needed - How many of them must agree: more than half, and at most all.
   */
  constructor(endpoints: readonly string[], needed: number) {
    super();
    if (!Array.isArray(endpoints)) throw wrongType("endpoints", "an array of strings", endpoints);
    const [names, count] = [endpoints.map((name) => text(name, "endpoint")), place(needed, "needed")];
    bind(this, call(() => new glue.Quorum(names, count)));
  }

  /** Takes what the endpoint of a reader shows. A reader that has not ended says nothing. The first word of each endpoint counts. */
  hear(reader: Reader): void {
    const heard = handleOf<glue.Reader>(reader, Reader, "reader");
    call(() => this.#handle.hear(heard));
  }

  /** Whether enough endpoints agree, or every endpoint has spoken. */
  get isSettled(): boolean {
    return call(() => this.#handle.isSettled());
  }

  get #handle(): glue.Quorum {
    return quorumHandle(this);
  }
}

/** Returns the handle of a quorum. @internal */
export function quorumHandle(quorum: unknown): glue.Quorum {
  return handleOf(quorum, Quorum, "quorum");
}

/**
 * Splits the response to a JSON-RPC batch into the answers to its calls. The ids of the calls must have been 0, 1, and so on, in the order
 * of the requests.
 *
 * @param body - The body of the response, as it came.
 * @param calls - The number of calls.
 * @param status - The HTTP status.
 */
export function splitBatch(body: Uint8Array, calls: number, status = 200): ChainAnswer[] {
  const response: BatchResponse = { status, body, calls };
  return Array.from({ length: calls }, (_, place) => ({ response, place }));
}

function toRequest(ask: Ask): ChainRequest {
  const { kind, method, params, path, content_type: contentType, body } = ask;
  if (kind === "json_rpc") return Object.freeze({ kind, method, params: JSON.parse(params), paramsText: params });
  return kind === "get" ? Object.freeze({ kind, path }) : Object.freeze({ kind, path, contentType, body: fromHex(body) });
}

/** Copies the answers into the module. */
function collect(answers: unknown): glue.Answers {
  if (!Array.isArray(answers)) throw wrongType("answers", "an array", answers);
  const list = call(() => new glue.Answers());
  const batches = new Map<unknown, number>();
  try {
    for (const answer of answers as unknown[]) call(() => add(list, members(answer, "answer"), batches));
    return list;
  } catch (error) {
    list.free();
    throw error;
  }
}

function add(list: glue.Answers, answer: Record<string, unknown>, batches: Map<unknown, number>): void {
  const has = (name: string) => Object.hasOwn(answer, name);
  if (has("result")) {
    // What a host has parsed is untrusted too: it may be nested too deeply.
    const written = attempt(() => encoder.encode(jsonText(answer["result"])));
    return written ? addResult(list, written) : list.failed("other", "the result cannot be written as JSON");
  }
  if (has("resultText")) {
    const { resultText } = answer;
    return addResult(list, typeof resultText === "string" ? encoder.encode(resultText) : answerBytes(resultText, "answer.resultText"));
  }
  if (has("error")) {
    const written = attempt(() => encoder.encode(jsonText(answer["error"])));
    return list.error(written ?? NO_TEXT);
  }
  if (has("status")) {
    const body = answerBytes(answer["body"], "answer.body");
    const grpcStatus = answer["grpcStatus"] ?? undefined;
    if (grpcStatus !== undefined && typeof grpcStatus !== "string") throw wrongType("answer.grpcStatus", "a string", grpcStatus);
    if (body.length > MAX_ANSWER) return list.failed("too_large", "");
    return list.http(httpStatus(answer["status"], "answer.status"), body, grpcStatus);
  }
  if (has("failed")) {
    const { failed, detail = "" } = answer;
    if (typeof failed !== "string" || !FAILURES.includes(failed)) throw wrongType("answer.failed", FAILURES.join(", "), failed);
    if (typeof detail !== "string") throw wrongType("answer.detail", "a string", detail);
    return list.failed(failed, detail.slice(0, 1024));
  }
  if (has("response")) {
    const { status, body, calls } = members(answer["response"], "answer.response");
    const split = () => {
      const whole = answerBytes(body, "answer.response.body");
      const [code, count] = [httpStatus(status, "answer.response.status"), place(calls, "answer.response.calls")];
      return list.split(code, whole.length > MAX_ANSWER ? NO_TEXT : whole, count);
    };
    const batch = batches.get(answer["response"]) ?? split();
    batches.set(answer["response"], batch);
    return list.fromBatch(batch, place(answer["place"], "answer.place"));
  }
  throw usage("usage", "an answer has neither result, resultText, error, status, failed nor response", "one of these members");
}

const NO_TEXT = new Uint8Array();

function addResult(list: glue.Answers, written: Uint8Array): void {
  if (written.length > MAX_ANSWER) list.failed("too_large", "");
  else list.result(written);
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Returns an HTTP status. */
function httpStatus(value: unknown, what: string): number {
  const status = wholeNumber(value, what);
  return Math.min(status, 65535);
}

/** Returns a small whole number. */
function place(value: unknown, what: string): number {
  return Math.min(wholeNumber(value, what), 65535);
}
