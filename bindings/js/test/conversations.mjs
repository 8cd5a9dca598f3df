// The recorded conversations of readers with chains: as answers, as an EIP-1193 provider, and as servers on this machine.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Registry, SwapRecord } from "countersign";
import { ROOT } from "../scripts/paths.mjs";
import { REGISTRY, documents, fixture } from "./fixtures.mjs";

/** Returns the conversations of a family's reader. */
export function conversations(family) {
  const lines = readFileSync(join(ROOT, "fixtures", "readers", `${family}.jsonl`), "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line));
}

/** Returns one conversation. */
export function conversation(family, name, protocol = "rpc") {
  const found = conversations(family).filter((one) => one.case === name);
  return found.find((one) => one.protocol === protocol) ?? found[0];
}

/** Opens the record of a conversation. */
export function recordOf({ fixture: id }) {
  return SwapRecord.verify(documents(fixture(id).input), new Registry(REGISTRY));
}

const bytes = (text) => new Uint8Array(Buffer.from(text.slice(2), "hex"));

/** Turns a recorded answer into one for the package. */
export function toAnswer(answer) {
  if ("result" in answer) return { resultText: answer.result };
  if ("status" in answer) return { status: answer.status, body: bytes(answer.body), grpcStatus: answer.grpc_status };
  return answer;
}

/** Turns a request of the package into a recorded one. */
export function toRecorded(request) {
  const { kind, method = null, paramsText: params = null, path = null, contentType = null, body } = request;
  return { kind, method, params, path, content_type: contentType, body: body ? `0x${Buffer.from(body).toString("hex")}` : null };
}

const pairs = ({ rounds }) => rounds.flatMap(({ requests, answers }) => requests.map((request, place) => [request, answers[place]]));

/** Answers a JSON-RPC call from a conversation, as the text of its result or its error. */
function answerTo(line, method, params) {
  const found = pairs(line).find(([request]) => request.method === method && JSON.stringify(JSON.parse(request.params)) === JSON.stringify(params));
  if (!found) throw new Error(`${method} ${JSON.stringify(params)} was not recorded`);
  return found[1];
}

/** A provider by EIP-1193 on a chain. */
export function provider(line) {
  return {
    async request({ method, params }) {
      const answer = answerTo(line, method, params);
      if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error);
      return JSON.parse(answer.result);
    },
  };
}

/**
 * Serves a chain: JSON-RPC alone and in batches, with the replies in another order, and GET and POST.
 *
 * @returns The URL, what was asked, and a function that ends it.
 */
export async function serve(line, { batches = true, respond } = {}) {
  const asked = [];
  const reply = ({ id, method, params }) => {
    asked.push(method);
    const answer = answerTo(line, method, params);
    const part = answer.error ? `"error":${JSON.stringify(answer.error)}` : `"result":${answer.result}`;
    return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${part}}`;
  };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (respond?.(request, response, body)) return;
    const isRpc = line.rounds[0].requests[0].kind === "json_rpc";
    if (isRpc) {
      const calls = JSON.parse(body.toString());
      response.setHeader("content-type", "application/json");
      if (!Array.isArray(calls)) response.end(reply(calls));
      else if (batches) response.end(`[${calls.map(reply).reverse().join(",")}]`);
      else response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}');
      return;
    }
    asked.push(request.url);
    const hex = body.length > 0 ? `0x${body.toString("hex")}` : null;
    const [recorded, answer] = pairs(line).find(([one]) => one.path === request.url && one.body === hex) ?? [];
    if (!answer || (request.headers["content-type"] ?? null) !== recorded.content_type) throw new Error(`${request.url} was not recorded`);
    if (answer.grpc_status !== undefined) response.setHeader("grpc-status", answer.grpc_status);
    response.statusCode = answer.status;
    response.end(Buffer.from(bytes(answer.body)));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, asked, close };
}
