// The machine's HTTP requests: sent by `fetch`, or answered by a wallet's provider.
import { usage } from "./error.js";
import { jsonText } from "./output.js";
import type { ChainEndpoint, ChainEndpoints, ChainProvider } from "./swap-types.js";
import { asciiUrl } from "./swap-url.js";

/** A request of the machine. */
export interface HttpNeed {
  readonly kind: "http";
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** The reply to one, as the machine reads it; a body is beside it. */
export interface HttpReply {
  readonly json: { readonly status: number; readonly headers: [string, string][] } | { readonly failed: string; readonly detail: string };
  readonly body?: Uint8Array;
}

/** Milliseconds for one exchange. */
const TIMEOUT = 20_000;
/** Most bytes of a response. */
const MAX_BODY = 16 * 1024 * 1024;
/** The headers of a response that the machine reads. */
const HEADERS = ["retry-after", "grpc-status"];
/** Errors of Node before anything is sent. Browsers do not tell. */
const NOTHING_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

function isProvider(endpoint: unknown): endpoint is ChainProvider {
  return typeof (endpoint as ChainProvider | null | undefined)?.request === "function";
}

/** The connections of the chains. */
export class Connections {
  /** What the machine is told: URLs alone. */
  readonly document: Readonly<Record<string, unknown>>;
  readonly #providers = new Map<string, ChainProvider>();
  readonly #fetch: typeof fetch;

  constructor(nodes: Readonly<Record<string, ChainEndpoints>>, send?: typeof fetch) {
    this.#fetch = send ?? ((input, init) => fetch(input, init));
    const url = (chain: string, endpoint: ChainEndpoint) => {
      if (typeof endpoint === "string") return asciiUrl(endpoint);
      if (typeof endpoint === "object" && endpoint !== null && Object.hasOwn(endpoint, "url")) {
        const { url, ...more } = endpoint as { readonly url: unknown };
        return { ...more, url: asciiUrl(url) };
      }
      if (!isProvider(endpoint)) throw usage("usage", `an endpoint of ${chain} is neither a URL nor a provider`);
      // A name that no server can have, and that tells people what is meant.
      const origin = `https://provider-${this.#providers.size + 1}.${chain.replaceAll("_", "-")}.invalid`;
      this.#providers.set(origin, endpoint);
      return `${origin}/`;
    };
    const read = (chain: string, given: ChainEndpoints): unknown => {
      if (Array.isArray(given)) return given.map((endpoint) => url(chain, endpoint));
      if (typeof given !== "object" || given === null || !Object.hasOwn(given, "endpoints")) return [url(chain, given as ChainEndpoint)];
      const { endpoints, ...more } = given as { readonly endpoints: readonly ChainEndpoint[] };
      if (!Array.isArray(endpoints)) throw usage("usage", `the endpoints of ${chain} are no array`);
      return { ...more, endpoints: endpoints.map((endpoint) => url(chain, endpoint)) };
    };
    this.document = Object.fromEntries(Object.entries(nodes).map(([chain, given]) => [chain, read(chain, given)]));
  }

  /** Sends a request once, and replies in time whatever the other side does. Never throws. */
  async send(need: HttpNeed, body: Uint8Array | undefined, withdrawn: AbortSignal): Promise<HttpReply> {
    const stop = new AbortController();
    const { signal } = stop;
    const end = () => stop.abort();
    // Not AbortSignal.timeout in AbortSignal.any: Node 20 collects the former as garbage, and it never aborts then.
    const timer = setTimeout(end, TIMEOUT);
    withdrawn.addEventListener("abort", end, { once: true });
    try {
      const provider = this.#providers.get(new URL(need.url).origin);
      const reply = provider ? this.#ask(provider, body) : this.#exchange(need, body, signal);
      // Providers take no signal, and a `fetch` of the wallet's own may ignore it.
      const late = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
      return await Promise.race([reply, late]);
    } catch (error) {
      if (signal.aborted) return { json: { failed: "timeout", detail: "no complete response in time" } };
      // Anything can be thrown. Not the message: that of some HTTP stacks has the URL, which can contain a key.
      const { name, cause } = Object(error) as { name?: unknown; cause?: unknown };
      const code: unknown = (Object(cause) as { code?: unknown }).code;
      const failed = typeof code === "string" && NOTHING_SENT.includes(code) ? "connect" : "interrupted";
      const detail = [code, name].find((word) => typeof word === "string") ?? "the request failed";
      return { json: { failed, detail: detail as string } };
    } finally {
      clearTimeout(timer);
      withdrawn.removeEventListener("abort", end);
    }
  }

  /**
   * Answers from a provider, as long as it stays on its chain: a wallet can change that at any time. Which chain it is, the machine asks in
   * every request to a host that no server has.
   */
  async #ask(provider: ChainProvider, body: Uint8Array | undefined): Promise<HttpReply> {
    const chain = async () => {
      // Only EVM providers know the method.
      const id = await settled(() => provider.request({ method: "eth_chainId", params: [] } as never));
      return typeof id === "string" ? BigInt(id).toString() : "";
    };
    const before = await chain();
    const reply = await ask(provider, body);
    if ((await chain()) !== before) return { json: { failed: "interrupted", detail: "the wallet changed its chain" } };
    return reply;
  }

  async #exchange({ method, url, headers }: HttpNeed, body: Uint8Array | undefined, signal: AbortSignal): Promise<HttpReply> {
    const response = await this.#fetch(url, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      body: (body as BodyInit | undefined) ?? null,
      // Headers and bodies are for this address alone.
      redirect: "manual",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      signal,
    });
    const { status } = response;
    if (!Number.isInteger(status) || status < 100 || status > 999) return { json: { failed: "interrupted", detail: "no HTTP status" } };
    if (response.type === "opaqueredirect") return { json: { failed: "interrupted", detail: "the response is a redirect" } };
    const parts: Uint8Array[] = [];
    let length = 0;
    // Not every browser iterates over streams.
    for (const reader = response.body?.getReader(); reader; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!ArrayBuffer.isView(value)) throw new TypeError("a part of the body is not bytes");
      length += value.byteLength;
      // Nobody waits any more for what comes after the abort.
      if (signal.aborted || length > MAX_BODY) {
        await reader.cancel();
        return { json: { failed: "too_large", detail: `more than ${MAX_BODY} bytes` } };
      }
      parts.push(value);
    }
    const sent = HEADERS.map((name): [string, string] => [name, headerText(response.headers.get(name))]).filter(([, value]) => value !== "");
    return { json: { status, headers: sent }, body: new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer()) };
  }
}

/** Returns the text of a header; empty without it. */
function headerText(value: unknown): string {
  if (value !== null && typeof value !== "string") throw new TypeError("a header is not text");
  return value ?? "";
}

/** Returns what a call returns, or undefined if it fails. */
async function settled(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}

interface JsonRpcCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: unknown;
}

/** Answers a JSON-RPC request, or a batch of them, from a provider. */
async function ask(provider: ChainProvider, body: Uint8Array | undefined): Promise<HttpReply> {
  if (!body) throw new TypeError("a provider answers JSON-RPC calls, and this chain has none");
  const calls = JSON.parse(new TextDecoder().decode(body)) as JsonRpcCall | JsonRpcCall[];
  const answers = await (Array.isArray(calls) ? Promise.all(calls.map((one) => answer(provider, one))) : answer(provider, calls));
  return { json: { status: 200, headers: [] }, body: new TextEncoder().encode(jsonText(answers)) };
}

async function answer(provider: ChainProvider, { id, method, params }: JsonRpcCall): Promise<object> {
  try {
    return { jsonrpc: "2.0", id, result: (await provider.request({ method, params } as never)) ?? null };
  } catch (error) {
    const { code, message, data } = Object(error) as { code?: unknown; message?: unknown; data?: unknown };
    // Without a code, or disconnected (EIP-1193): this says nothing about the chain.
    if (!Number.isInteger(code) || code === 4900 || code === 4901) throw error;
    return { jsonrpc: "2.0", id, error: { code, message: String(message), data } };
  }
}
