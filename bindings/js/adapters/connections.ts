/** Reads chains through connections that a wallet already has, and through plain HTTP. */
import type { ChainAnswer, ChainRequest, Leg, Quorum, Reader, SwapRecord } from "../lib/index.js";

/**
 * A connection to one endpoint: sends requests and returns one answer for each, in their order. It interprets nothing. What it throws
 * counts as no answer.
 */
export type Connection = (requests: readonly ChainRequest[], signal: AbortSignal) => Promise<readonly ChainAnswer[]>;

/** What {@link jsonRpc}, {@link esplora} and {@link http} can be told. */
export interface HttpOptions {
  /** More headers, such as an API key. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends the requests; by default the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** The limits of {@link readFrom}. */
export interface ReadLimits {
  /** Milliseconds for all rounds together: 20,000 by default. */
  readonly timeout?: number | undefined;
  /** Ends the reading early. */
  readonly signal?: AbortSignal | undefined;
}

/** What {@link readAll} reads with. */
export interface ReadOptions extends ReadLimits {
  /** The connections by the endpoints' names. */
  readonly endpoints: Readonly<Record<string, Connection>>;
  /** How many endpoints must agree: more than half. */
  readonly needed: number;
  /** Bitcoin-like chains: the endpoints that are a node's own RPC and not an Esplora server. */
  readonly rpc?: readonly string[] | undefined;
  /** What is known about each endpoint, by its name. Keep the map between readings: this function updates it. */
  readonly known?: Map<string, string> | undefined;
  /** Whether what was heard is enough. By default, enough endpoints must agree (`quorum.isSettled`). */
  readonly isEnough?: ((quorum: Quorum) => boolean) | undefined;
}

/** Most calls in one HTTP request. */
const MAX_BATCH = 100;
/** Most bytes of a response. */
const MAX_RESPONSE = 16 * 1024 * 1024;

/**
 * Drives a reader to its end through a connection. Never throws for what the endpoint does; `reader.fault` tells that afterwards.
 *
 * @returns The reader.
 */
export async function readFrom(reader: Reader, connection: Connection, limits: ReadLimits = {}): Promise<Reader> {
  const { timeout = 20_000, signal } = limits;
  const stop = new AbortController();
  const end = () => stop.abort();
  const stopped = new Promise<undefined>((resolve) => stop.signal.addEventListener("abort", () => resolve(undefined)));
  const timer = setTimeout(end, timeout);
  signal?.addEventListener("abort", end);
  if (signal?.aborted) end();
  try {
    for (let requests = reader.next(); requests; requests = reader.next()) {
      const sent = requests;
      const answers = await Promise.race([send(connection, sent, stop.signal), stopped]);
      reader.answer(answers ?? sent.map(() => ({ failed: "timeout" })));
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
    end();
  }
  return reader;
}

async function send(connection: Connection, requests: readonly ChainRequest[], signal: AbortSignal): Promise<readonly ChainAnswer[]> {
  if (signal.aborted) return requests.map(() => ({ failed: "timeout" }));
  try {
    return await connection(requests, signal);
  } catch (error) {
    return requests.map(() => ({ failed: "other", detail: messageOf(error) }));
  }
}

/**
 * Reads the HTLC of a leg from several endpoints at once. Ends as soon as enough of them agree, or when each of them has answered or used
 * up its time. Give the quorum to `record.judge` or `record.state`.
 *
 * Endpoints agree on the state, but one may be a block behind, where the state is not final yet. If `record.judge` refuses, read again
 * later; or set `isEnough`, which waits for the others at once.
 */
export async function readAll(record: SwapRecord, leg: Leg, options: ReadOptions): Promise<Quorum> {
  const { endpoints, needed, rpc = [], known, isEnough = ({ isSettled }) => isSettled, timeout, signal } = options;
  const names = Object.keys(endpoints);
  const quorum = record.quorum(names, needed);
  const readers = names.map((name) =>
    record.reader(leg, name, { known: known?.get(name), protocol: rpc.includes(name) ? "rpc" : "esplora" }),
  );
  const stop = new AbortController();
  const end = () => stop.abort();
  signal?.addEventListener("abort", end);
  if (signal?.aborted) end();
  const ended: Reader[] = [];
  let isOpen = true;
  try {
    await new Promise<void>((resolve, reject) => {
      const hear = (reader: Reader) => {
        ended.push(reader);
        quorum.hear(reader);
        if (ended.length === readers.length || isEnough(quorum)) resolve();
      };
      for (const reader of readers) {
        const connection = endpoints[reader.endpoint] as Connection;
        readFrom(reader, connection, { timeout, signal: stop.signal })
          .then((read) => isOpen && hear(read))
          .catch(reject);
      }
    });
    isOpen = false;
    learn(record, leg, quorum, ended, known);
  } finally {
    signal?.removeEventListener("abort", end);
    end();
  }
  return quorum;
}

/** Remembers what the endpoints have shown, if enough of them agree. */
function learn(record: SwapRecord, leg: Leg, quorum: Quorum, readers: readonly Reader[], known: Map<string, string> | undefined): void {
  if (!known) return;
  try {
    record.state(leg, quorum);
  } catch {
    return;
  }
  for (const reader of readers) if (!reader.fault) known.set(reader.endpoint, reader.known);
}

/** A provider by EIP-1193, or a client of viem. */
export interface Eip1193Provider {
  // Libraries narrow the type of the request to the methods that they know.
  request(request: never): Promise<unknown>;
}

/**
 * A connection through a provider by EIP-1193, such as a browser wallet or a client of viem. For one endpoint of its own: what a browser
 * wallet's node says is only as good as that node.
 */
export function eip1193(provider: Eip1193Provider): Connection {
  return each(async (method, params) => ({ result: await provider.request({ method, params } as never) }));
}

/** A connection of @solana/web3.js. */
export interface SolanaConnection {
  readonly rpcEndpoint: string;
}

/**
 * A connection through a `Connection` of @solana/web3.js, with its headers and its fetch. {@link jsonRpc} sends fewer HTTP requests.
 *
 * It calls `_rpcRequest`, which that library does not document, because no other method returns answers as they came.
 */
export function solanaConnection(connection: SolanaConnection): Connection {
  const { _rpcRequest: request } = connection as { _rpcRequest?: (method: string, params: unknown) => Promise<unknown> };
  if (typeof request !== "function") throw new TypeError("this is not a Connection of @solana/web3.js 1; use jsonRpc(url)");
  return each(async (method, params) => reply(await request(method, params)));
}

/** A provider of starknet.js. */
export interface StarknetProvider {
  readonly channel: { fetch(method: string, params?: object, id?: string | number): Promise<unknown> };
}

/** A connection through an `RpcProvider` of starknet.js. */
export function starknetProvider(provider: StarknetProvider): Connection {
  return each(async (method, params) => {
    // The provider's own `fetch` lets plugins change the answer.
    const response = (await provider.channel.fetch(method, params as object, 0)) as Response;
    const whole = await receive(response);
    return "failed" in whole ? whole : { response: { status: whole.status, body: whole.body, calls: 1 }, place: 0 };
  });
}

/**
 * A connection to a JSON-RPC interface by HTTP: EVM chains, Starknet, Solana, a Bitcoin node. Calls go out in batches, or one by one where
 * the endpoint refuses batches.
 */
export function jsonRpc(url: string | URL, options: HttpOptions = {}): Connection {
  return async (requests, signal) => {
    const bodies = requests.map((request) => {
      if (request.kind !== "json_rpc") throw new TypeError("this chain is read by esplora(base) or http(base)");
      return `"method":${JSON.stringify(request.method)},"params":${request.paramsText}`;
    });
    const parts: string[][] = [];
    for (let start = 0; start < bodies.length; start += MAX_BATCH) parts.push(bodies.slice(start, start + MAX_BATCH));
    return (await Promise.all(parts.map((part) => sendCalls(url, part, options, signal)))).flat();
  };
}

async function sendCalls(url: string | URL, calls: readonly string[], options: HttpOptions, signal: AbortSignal): Promise<ChainAnswer[]> {
  const written = calls.map((call, id) => `{"jsonrpc":"2.0","id":${id},${call}}`);
  // Some nodes accept no batch of one.
  const body = written.length === 1 ? written.join() : `[${written.join(",")}]`;
  const whole = await request(url, { method: "POST", body, contentType: "application/json" }, options, signal);
  if ("failed" in whole) return calls.map(() => whole);
  // Not where the endpoint is overloaded or wants a key: more requests would make that worse.
  const isRefused = [200, 400, 413].includes(whole.status) && !isArray(whole.body);
  if (calls.length === 1 || !isRefused || signal.aborted) return calls.map((_, place) => ({ response: { ...whole, calls: calls.length }, place }));
  const half = Math.ceil(calls.length / 2);
  const [first, second] = [calls.slice(0, half), calls.slice(half)];
  return [...(await sendCalls(url, first, options, signal)), ...(await sendCalls(url, second, options, signal))];
}

/** A connection to an Esplora server by HTTP: Bitcoin and Litecoin. */
export function esplora(base: string | URL, options: HttpOptions = {}): Connection {
  return http(base, options);
}

/** A connection to an HTTP interface, for readers whose requests are of the kinds `get` and `post`, also by gRPC-web. */
export function http(base: string | URL, options: HttpOptions = {}): Connection {
  const root = `${base}`.replace(/\/+$/, "");
  return (requests, signal) =>
    Promise.all(
      requests.map((one) => {
        if (one.kind === "json_rpc") throw new TypeError("this chain is read by jsonRpc(url)");
        const sent = one.kind === "get" ? { method: "GET" } : { method: "POST", body: one.body, contentType: one.contentType };
        return request(`${root}${one.path}`, sent, options, signal);
      }),
    );
}

/** Sends JSON-RPC calls one by one. */
function each(send: (method: string, params: unknown) => Promise<ChainAnswer>): Connection {
  return (requests) =>
    Promise.all(
      requests.map(async (request): Promise<ChainAnswer> => {
        if (request.kind !== "json_rpc") throw new TypeError("this chain is read by esplora(base) or http(base)");
        try {
          return await send(request.method, request.params);
        } catch (error) {
          return asAnswer(error);
        }
      }),
    );
}

/** The parts of a JSON-RPC reply that was parsed. */
function reply(whole: unknown): ChainAnswer {
  const { result, error } = (typeof whole === "object" && whole !== null ? whole : {}) as { result?: unknown; error?: unknown };
  return typeof error === "object" && error !== null ? { error } : { result: result ?? null };
}

interface Sent {
  readonly method: string;
  readonly body?: string | Uint8Array;
  readonly contentType?: string;
}

type Whole = { readonly status: number; readonly body: Uint8Array; readonly grpcStatus?: string } | Extract<ChainAnswer, { failed: string }>;

async function request(url: string | URL, sent: Sent, options: HttpOptions, signal: AbortSignal): Promise<Whole> {
  const { method, body, contentType } = sent;
  const headers = { ...(contentType === undefined ? {} : { "content-type": contentType }), ...options.headers };
  const init: RequestInit = { method, headers, redirect: "error", cache: "no-store", credentials: "omit", signal };
  if (body !== undefined) init.body = body as BodyInit;
  try {
    return await receive(await (options.fetch ?? fetch)(url, init));
  } catch (error) {
    return { failed: signal.aborted ? "timeout" : "connect", detail: messageOf(error) };
  }
}

/** Reads a response, up to the limit. */
async function receive(response: Response): Promise<Whole> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    const reader = response.body?.getReader();
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      length += part.value.length;
      if (length > MAX_RESPONSE) {
        await reader?.cancel();
        return { failed: "too_large" };
      }
      chunks.push(part.value);
    }
  } catch (error) {
    return { failed: "interrupted", detail: messageOf(error) };
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  const grpcStatus = response.headers.get("grpc-status");
  return { status: response.status, body, ...(grpcStatus === null ? {} : { grpcStatus }) };
}

/** Whether a body is a JSON array: its first character that is not a space. */
function isArray(body: Uint8Array): boolean {
  return body.find((byte) => ![0x20, 0x09, 0x0a, 0x0d].includes(byte)) === 0x5b;
}

/** The parts that errors of providers have. */
interface ProviderError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
  readonly shortMessage?: unknown;
  readonly data?: unknown;
  readonly cause?: unknown;
}

/**
 * Turns what a provider throws into an answer. The first error with a numeric code, from the outside along `cause`, is the node's; the
 * codes of EIP-1193 that speak of the wallet or the connection say nothing about the chain.
 */
export function asAnswer(error: unknown): ChainAnswer {
  const causes = chainOf(error);
  // viem gives the code -1 to whatever its transport throws.
  // The code of a DOMException is a number too, with a meaning of its own.
  const found = causes.find((one) => typeof one.code === "number" && one.name !== "UnknownRpcError" && !(one instanceof DOMException));
  if (!found) {
    const isTimeout = causes.some(({ name }) => name === "TimeoutError" || name === "AbortError");
    return { failed: isTimeout ? "timeout" : "other", detail: messageOf(error) };
  }
  const code = found.code as number;
  const message = messageOf(found);
  if (code === 4200) return { error: { code: -32601, message } };
  if (code === 4001 || code === 4100) return { failed: "unsupported", detail: message };
  if (code === 4900 || code === 4901) return { failed: "connect", detail: message };
  // The outer error often has the code alone, and the data is that of its cause.
  const data = causes.slice(causes.indexOf(found)).map(revertData).find((data) => data !== undefined);
  return { error: data === undefined ? { code, message } : { code, message, data } };
}

function chainOf(error: unknown): ProviderError[] {
  const causes: ProviderError[] = [];
  for (let one = error; typeof one === "object" && one !== null && causes.length < 16; one = (one as ProviderError).cause) {
    causes.push(one as ProviderError);
  }
  return causes;
}

/** The data of an error. Some wallets wrap the node's error in it. */
function revertData({ data }: ProviderError): unknown {
  if (typeof data !== "object" || data === null) return data;
  const { originalError, data: inner } = data as { originalError?: ProviderError; data?: unknown };
  return originalError?.data ?? inner ?? data;
}

/** Returns the message of an error, without the URL that viem adds to it: that can have a key. */
function messageOf(error: unknown): string {
  const { details, shortMessage, message } = (typeof error === "object" && error !== null ? error : {}) as ProviderError;
  const text = [details, shortMessage, message].find((text) => typeof text === "string" && text !== "");
  return typeof text === "string" ? text : typeof error === "string" ? error : "";
}
