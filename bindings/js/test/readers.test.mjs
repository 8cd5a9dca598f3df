// A wallet reads chains through its own connections, and judges as the Rust library does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection } from "@solana/web3.js";
import { RpcProvider } from "starknet";
import { createPublicClient, custom, http as viemHttp } from "viem";
import { Quorum, Registry, SwapRecord, splitBatch } from "countersign";
import { asAnswer, eip1193, esplora, http, jsonRpc, readAll, readFrom, solanaConnection, starknetProvider } from "countersign/connections";
import * as example from "../examples/connections.mjs";
import { FAMILIES } from "../scripts/paths.mjs";
import { conversation, conversations, provider, recordOf, serve, toAnswer, toRecorded } from "./conversations.mjs";
import { REGISTRY, documents, fixture } from "./fixtures.mjs";

/** Plays the endpoint's part of a conversation. */
function play(record, line, endpoint = "one") {
  const reader = record.reader(line.leg, endpoint, { protocol: line.protocol });
  for (const { requests, answers } of line.rounds) {
    assert.deepEqual(reader.next().map(toRecorded), requests, line.case);
    reader.answer(answers.map(toAnswer));
  }
  assert.equal(reader.next(), undefined, line.case);
  return reader;
}

/** Judges, and returns what the conversation says of a verdict. */
function verdict(record, quorum, { now }) {
  try {
    const { left, unit, orderId } = record.judge(quorum, now);
    assert.equal(orderId, record.orderId);
    return { left, unit };
  } catch (error) {
    assert.deepEqual([error.name, error.blame], ["CountersignError", "chain"], error.message);
    return { code: error.code };
  }
}

const camelCase = (state) => Object.fromEntries(Object.entries(state).map(([key, value]) => [key.replace(/_(.)/g, (_, letter) => letter.toUpperCase()), key === "amount" && value ? BigInt(value) : value]));

for (const family of FAMILIES) {
  test(`${family}: every conversation has its requests and its outcome`, () => {
    for (const line of conversations(family)) {
      const record = recordOf(line);
      const reader = play(record, line);
      assert.deepEqual([reader.fault?.code ?? null, reader.height ?? null], [line.outcome.fault, line.outcome.height], line.case);
      const quorum = new Quorum(["one"], 1);
      quorum.hear(reader);
      assert.ok(quorum.isSettled);
      assert.deepEqual(verdict(record, quorum, line), line.outcome.verdict, line.case);
      if (line.outcome.state) assert.deepEqual({ ...record.state("destination", quorum) }, camelCase(line.outcome.state), line.case);
      else assert.throws(() => record.state("destination", quorum), { blame: "chain" });
    }
  });
}

/** The connections that a wallet has to each chain, and the chain behind them. */
const CONNECTIONS = [
  ["evm", "eip1193: a provider", (line) => eip1193(provider(line))],
  ["evm", "eip1193: a client of viem", (line) => eip1193(createPublicClient({ transport: custom(provider(line), { retryCount: 0 }) }))],
  ["evm", "jsonRpc", (_, url) => jsonRpc(url)],
  ["solana", "jsonRpc", (_, url) => jsonRpc(url)],
  ["solana", "solanaConnection", (_, url) => solanaConnection(new Connection(url))],
  ["starknet", "jsonRpc", (_, url) => jsonRpc(url)],
  ["starknet", "starknetProvider", (_, url) => starknetProvider(new RpcProvider({ nodeUrl: url }))],
  ["bitcoin", "esplora", (_, url) => esplora(url)],
  ["bitcoin", "jsonRpc", (_, url) => jsonRpc(url)],
  ["tron", "http", (_, url) => http(`${url}/`)],
  ["sui", "http", (_, url) => http(url)],
];

for (const [family, name, connect] of CONNECTIONS) {
  for (const which of ["funded", "not funded"]) {
    test(`${family}: ${name} shows a destination that is ${which}`, async () => {
      const line = conversation(family, which, name === "esplora" ? "esplora" : "rpc");
      const server = await serve(line);
      try {
        const record = recordOf(line);
        const rpc = line.protocol === "rpc" ? ["one"] : [];
        const quorum = await readAll(record, "destination", { endpoints: { one: connect(line, server.url) }, needed: 1, rpc });
        assert.deepEqual(verdict(record, quorum, line), line.outcome.verdict);
      } finally {
        await server.close();
      }
    });
  }
}

test("the example judges a destination by two of three endpoints", async () => {
  const line = conversation("evm", "funded");
  const [server, single] = [await serve(line), await serve(line, { batches: false })];
  try {
    const docs = documents(fixture(line.fixture).input);
    const clock = () => line.now;
    const { left } = await example.funded(docs, REGISTRY, provider(line), [server.url, single.url], clock);
    assert.equal(left, line.outcome.verdict.left);
  } finally {
    await Promise.all([server.close(), single.close()]);
  }
});

test("an endpoint that refuses batches is asked one by one", async () => {
  const line = conversation("evm", "funded");
  const server = await serve(line, { batches: false });
  try {
    const record = recordOf(line);
    const reader = await readFrom(record.reader("destination", "one"), jsonRpc(server.url));
    assert.equal(reader.fault, undefined);
  } finally {
    await server.close();
  }
});

test("one endpoint that lies, hangs or fails among three changes nothing", async () => {
  const line = conversation("evm", "funded");
  const record = recordOf(line);
  const [honest, absent, other] = [line, conversation("evm", "not funded"), conversation("evm", "another chain")].map((one) => eip1193(provider(one)));
  const hangs = () => new Promise(() => {});
  const fails = eip1193({ request: async () => { throw new Error("no route"); } });
  for (const [name, bad] of Object.entries({ absent, other, hangs, fails })) {
    const known = new Map();
    const quorum = await readAll(record, "destination", { endpoints: { bad, one: honest, two: honest }, needed: 2, known });
    assert.deepEqual(verdict(record, quorum, line), line.outcome.verdict, name);
    assert.ok(JSON.parse(known.get("one")).height > 0);
    const state = record.state("destination", quorum);
    assert.deepEqual([state.state, state.agreed >= 2, state.needed], ["locked", true, 2]);
  }
  // Alone, each of them holds the secret back.
  for (const [name, bad] of Object.entries({ absent, other, hangs, fails })) {
    const quorum = await readAll(record, "destination", { endpoints: { bad }, needed: 1, timeout: 50 });
    assert.throws(() => record.judge(quorum, line.now), { blame: "chain" }, name);
  }
});

test("a reading ends when the caller says so, and is over for the others when enough agree", async () => {
  const line = conversation("evm", "funded");
  const record = recordOf(line);
  const signals = [];
  const hangs = (requests, signal) => new Promise(() => { signals.push(signal); });
  const stop = new AbortController();
  const waiting = readAll(record, "destination", { endpoints: { one: hangs }, needed: 1, signal: stop.signal });
  stop.abort();
  const quorum = await waiting;
  assert.throws(() => record.judge(quorum, line.now), { code: "destination_unclear", message: /timed out/ });
  const honest = eip1193(provider(line));
  await readAll(record, "destination", { endpoints: { one: hangs, two: honest, three: honest }, needed: 2 });
  assert.ok(signals.every((signal) => signal.aborted));
  // Waiting for all of them is the caller's choice.
  const heard = [];
  const isEnough = () => { heard.push(1); return false; };
  await readAll(record, "destination", { endpoints: { one: honest, two: honest, three: honest }, needed: 2, isEnough });
  assert.equal(heard.length, 2);
});

test("what is known about an endpoint shows that it went back", async () => {
  const line = conversation("evm", "funded");
  const record = recordOf(line);
  const known = JSON.parse(play(record, line).known);
  const later = JSON.stringify({ ...known, height: known.height + 1000 });
  const reader = await readFrom(record.reader("destination", "one", { known: later }), eip1193(provider(line)));
  assert.deepEqual([reader.fault.code, reader.fault.blame], ["node_went_back", "chain"]);
});

test("misuse throws and changes nothing", () => {
  const line = conversation("evm", "funded");
  const record = recordOf(line);
  const reader = record.reader("destination", "one");
  const before = reader.next();
  assert.deepEqual(before[0], { kind: "json_rpc", method: before[0].method, params: JSON.parse(before[0].paramsText), paramsText: before[0].paramsText });
  const all = (answer) => before.map(() => answer);
  for (const answers of [[], [{ result: 1 }], undefined, "answers", all(null), all({}), all({ failed: "never" }), all({ status: 200 }), all({ status: -1, body: new Uint8Array() }), all({ resultText: 1 }), all({ response: {}, place: 0 }), all({ status: 200, body: new Uint8Array(), grpcStatus: 5 })]) {
    assert.throws(() => reader.answer(answers), { name: "CountersignError", code: "usage", blame: "caller" }, JSON.stringify(answers));
    assert.deepEqual(reader.next(), before);
  }
  assert.deepEqual([reader.fault, reader.height, reader.endpoint], [undefined, undefined, "one"]);
  const quorum = new Quorum(["one"], 1);
  quorum.hear(reader);
  assert.equal(quorum.isSettled, false);
  assert.throws(() => record.reader("nowhere", "one"), { code: "usage" });
  assert.throws(() => record.reader("destination", "one", { known: "{}" }), { at: "/known/height" });
  assert.throws(() => record.reader("destination", "one", { protocol: "grpc" }), { code: "usage" });
  assert.throws(() => new Quorum(["one", "two"], 1), { at: "/quorum" });
  assert.throws(() => new Quorum("one", 1), { code: "usage" });
  assert.throws(() => quorum.hear({}), { code: "usage" });
  assert.throws(() => record.judge({}, 5), { code: "usage" });
});

test("what an endpoint says never throws", () => {
  const line = conversation("evm", "funded");
  const record = recordOf(line);
  const deep = (levels) => { let value = 1; for (let level = 0; level < levels; level += 1) value = [value]; return value; };
  const circular = {};
  circular.self = circular;
  const said = [
    { result: undefined }, { result: null }, { result: 1n }, { result: NaN }, { result: 2 ** 60 }, { result: deep(100) }, { result: deep(100_000) },
    { result: circular }, { result: () => 1 }, { result: "\ud800" }, { resultText: "" }, { resultText: "{" }, { resultText: new Uint8Array([255]) },
    { resultText: "[".repeat(1_000_000) }, { error: null }, { error: "busy" }, { error: circular }, { error: { code: 2 ** 60, data: deep(100) } },
    { status: 200, body: new Uint8Array(100) }, { status: 99999, body: new Uint8Array(), grpcStatus: "x" }, { failed: "other", detail: "x".repeat(1e6) },
    ...splitBatch(new Uint8Array(), 1), ...splitBatch(new TextEncoder().encode("[[]]"), 1, 500), { response: { status: 200, body: new Uint8Array(), calls: 0 }, place: 7 },
    { resultText: "1".repeat(16 * 1024 * 1024 + 1) }, { status: 200, body: new Uint8Array(16 * 1024 * 1024 + 1) },
  ];
  for (const answer of said) {
    const reader = record.reader("destination", "one");
    reader.answer(reader.next().map(() => answer));
    assert.equal(reader.next(), undefined);
    assert.equal(reader.fault.blame, "chain");
  }
});

test("errors of providers are what the node said, or no answer", async () => {
  const cases = [
    [{ code: 4200, message: "no" }, { error: { code: -32601, message: "no" } }],
    [{ code: 4001, message: "rejected" }, { failed: "unsupported", detail: "rejected" }],
    [{ code: 4100, message: "locked" }, { failed: "unsupported", detail: "locked" }],
    [{ code: 4900, message: "gone" }, { failed: "connect", detail: "gone" }],
    [{ code: 4901, message: "gone" }, { failed: "connect", detail: "gone" }],
    [{ code: 3, message: "reverted", data: "0x08" }, { error: { code: 3, message: "reverted", data: "0x08" } }],
    [{ message: "outer", cause: { code: -32000, message: "inner", data: "0x01" } }, { error: { code: -32000, message: "inner", data: "0x01" } }],
    [{ code: -32603, message: "internal", data: { originalError: { code: 3, data: "0x02" } } }, { error: { code: -32603, message: "internal", data: "0x02" } }],
    [{ name: "UnknownRpcError", code: -1, cause: new TypeError("fetch failed") }, { failed: "other", detail: "" }],
    [new TypeError("fetch failed"), { failed: "other", detail: "fetch failed" }],
    [new DOMException("too slow", "TimeoutError"), { failed: "timeout", detail: "too slow" }],
    ["text", { failed: "other", detail: "text" }],
    [undefined, { failed: "other", detail: "" }],
  ];
  for (const [error, expected] of cases) assert.deepEqual(asAnswer(error), expected);
  // viem's own errors, around a node's error and around a failure of HTTP. Its messages contain the URL, which can have a key.
  const line = conversation("evm", "funded");
  const error = { code: 3, message: "execution reverted", data: "0x08c379a0" };
  const respond = (request, response) => {
    response.statusCode = request.url === "/the-key" ? 503 : 200;
    response.end(JSON.stringify({ jsonrpc: "2.0", id: 0, error }));
    return true;
  };
  const server = await serve(line, { respond });
  try {
    for (const [path, expected] of [["", { error }], ["/the-key", undefined]]) {
      const client = createPublicClient({ transport: viemHttp(`${server.url}${path}`, { retryCount: 0 }) });
      const [answer] = await eip1193(client)([{ kind: "json_rpc", method: "eth_call", params: [{}, "latest"], paramsText: "[]" }]);
      if (expected) assert.deepEqual(answer, expected);
      assert.ok(!JSON.stringify(answer).includes("the-key"), JSON.stringify(answer));
    }
  } finally {
    await server.close();
  }
});

test("HTTP connections follow no redirect and read no endless response", async () => {
  const line = conversation("bitcoin", "funded", "esplora");
  const record = recordOf(line);
  const honest = await serve(line);
  const endless = (response) => {
    const more = () => { while (!response.destroyed && response.write(Buffer.alloc(1 << 20))); };
    response.on("drain", more);
    more();
  };
  const cases = {
    redirect: ({ url }, response) => { response.writeHead(307, { location: `${honest.url}${url}` }).end(); },
    endless: (_, response) => endless(response),
    cut: (_, response) => { response.writeHead(200, { "content-length": "100" }); response.write("x"); setTimeout(() => response.destroy(), 10); },
    silent: () => {},
  };
  try {
    for (const [name, act] of Object.entries(cases)) {
      const server = await serve(line, { respond: (request, response) => { act(request, response); return true; } });
      try {
        const reader = await readFrom(record.reader("destination", "one"), esplora(server.url), { timeout: name === "silent" ? 100 : 20_000 });
        assert.ok(reader.fault, name);
        if (name === "silent") assert.equal(reader.fault.code, "timeout");
        if (name === "endless") assert.equal(reader.fault.code, "response_too_large");
      } finally {
        await server.close();
      }
    }
    const gone = await readFrom(record.reader("destination", "one"), esplora("http://127.0.0.1:1"));
    assert.equal(gone.fault.code, "connect");
  } finally {
    await honest.close();
  }
});

test("a record without its order cannot be read", () => {
  const line = conversation("evm", "funded");
  const docs = documents(fixture(line.fixture).input);
  assert.throws(() => SwapRecord.verify({ ...docs, record: undefined }, new Registry(REGISTRY)), { code: "usage" });
});
