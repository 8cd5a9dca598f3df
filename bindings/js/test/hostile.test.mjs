// What hosts return wrongly, by the table that every language's tests share. The machine is a script, so no module is needed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { createWalletClient, custom } from "viem";
import { HERE } from "../scripts/paths.mjs";

const TABLE = JSON.parse(readFileSync(join(HERE, "..", "hostile.json"), "utf8"));
const outfile = join(mkdtempSync(join(tmpdir(), "countersign-hostile-")), "swap.mjs");
process.on("exit", () => rmSync(join(outfile, ".."), { recursive: true, force: true }));
const glue = join(HERE, "test", "scripted-glue.mjs");
const contents = ["swap", "swap-files", "swap-http", "module", "signing", "swap-signing", "output", "error"].map((name) => `export * from "./lib/${name}.ts";`).join("\n") + `\nexport * from "countersign-glue";`;
await build({
  stdin: { contents, resolveDir: HERE, loader: "ts" }, bundle: true, format: "esm", platform: "node", target: "es2022", outfile, logLevel: "error",
  alias: { "countersign-glue": glue }, keepNames: true,
});
const { Connections, CountersignError, NothingSent, ORDER, Swaps, eip1193Signer, fileStore, inWholeUnits, loaded, memoryStore, script, askOnce } = await import(pathToFileURL(outfile));
loaded({ __wbindgen_start() {}, memory: { buffer: { byteLength: 0 } } });

const NEEDS = {
  http: { kind: "http", method: "POST", url: "https://node.example/", headers: [] },
  store: { kind: "store", names: ["orders/1/journal"] },
  consent: { kind: "consent", summary: [], warnings: [], terms: {} },
  sign: { kind: "sign", purpose: "funding", chain: "base", account: "0x" },
};
const answer = (status = 200, headers = {}, body = null) => ({ status, type: "basic", headers: { get: (name) => headers[name] ?? null }, body });
const given = { service: "https://service.example", registry: "{}", nodes: {}, consent: () => true, fetch: async () => answer() };
const wish = { from: "base:usdc", to: "litecoin:ltc", amount: "1", receiveAt: "ltc1" };

const open = (changes) => Swaps.open({ ...given, store: memoryStore(), ...changes });
const within = (promise) => {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("it hangs")), 5000)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};
async function changesOf(changes) {
  const all = [];
  for await (const change of changes) all.push(change);
  return all;
}

/** Returns the reply that the machine got. Whatever it was, other calls go on. */
async function replyOf(kind, changes = {}, more = {}) {
  script.need = { ...NEEDS[kind], ...more };
  const swaps = await open(changes);
  const last = (await within(changesOf(swaps.create(wish)))).at(-1);
  assert.deepEqual(await within(swaps.list()), []);
  await swaps.close();
  return JSON.parse(last.reason);
}

test("only true is a yes", async () => {
  for (const yes of TABLE.consent.yes) assert.deepEqual(await replyOf("consent", { consent: () => yes }), { consent: true });
  for (const no of TABLE.consent.no) assert.deepEqual(await replyOf("consent", { consent: async () => no }), { consent: false });
  for (const wrong of [...TABLE.consent.wrong, undefined, Symbol("yes"), () => true, new Boolean(true)]) {
    script.need = NEEDS.consent;
    const swaps = await open({ consent: async () => wrong });
    await assert.rejects(within(changesOf(swaps.create(wish))), { name: "CountersignError", code: "usage", message: /must return true or false/ });
    assert.deepEqual(await within(swaps.list()), []);
    await swaps.close();
  }
});

test("whatever a host throws answers the need", async () => {
  const cyclic = new Error("x");
  cyclic.cause = cyclic;
  const unreadable = Object.defineProperty({}, "message", { get: () => { throw new Error("no"); } });
  for (const thrown of [new Error("no"), "no", undefined, null, 7n, Symbol("no"), Object.create(null), cyclic, unreadable, new CountersignError({ code: "internal", message: "no", at: "", blame: "bug" })]) {
    const fails = () => {
      throw thrown;
    };
    assert.equal((await replyOf("http", { fetch: fails })).failed, "interrupted");
    assert.deepEqual(await replyOf("consent", { consent: fails }), { consent: false });
    assert.ok("signer_failed" in (await replyOf("sign", { signers: { base: fails } })));
    const store = { open: async () => ({ place: "here", documents: [], write: fails, close() {} }) };
    assert.equal((await replyOf("store", { store })).stored, false);
  }
});

test("a wrong answer of the transport fails that need alone", async () => {
  const { status, headers } = TABLE.transport;
  for (const good of status.good) assert.equal((await replyOf("http", { fetch: async () => answer(good) })).status, good);
  for (const wrong of [...status.wrong, Number.NaN, undefined]) {
    assert.equal((await replyOf("http", { fetch: async () => ({ ...answer(), status: wrong }) })).failed, "interrupted", `${wrong}`);
  }
  for (const wrong of headers.wrong) {
    if (wrong !== null && typeof wrong === "object" && Object.values(wrong)[0] === null) continue; // No header.
    const get = typeof wrong === "object" && wrong !== null ? (name) => wrong[name] ?? null : undefined;
    assert.equal((await replyOf("http", { fetch: async () => ({ ...answer(), headers: get ? { get } : wrong }) })).failed, "interrupted", JSON.stringify(wrong));
  }
  const stream = (value) => ({ getReader: () => ({ read: async () => ({ done: false, value }), cancel: async () => {} }) });
  for (const wrong of TABLE.transport.body.wrong) {
    if (wrong !== null) assert.equal((await replyOf("http", { fetch: async () => answer(200, {}, wrong) })).failed, "interrupted", JSON.stringify(wrong));
    assert.equal((await replyOf("http", { fetch: async () => answer(200, {}, stream(wrong)) })).failed, "interrupted", JSON.stringify(wrong));
  }
  for (const wrong of [undefined, null, 200, "200", {}]) assert.equal((await replyOf("http", { fetch: async () => wrong })).failed, "interrupted");
});

test("only undefined says that documents are kept", async () => {
  const store = (result) => ({ open: async () => ({ place: "here", documents: [], write: async () => result, close() {} }) });
  assert.deepEqual(await replyOf("store", { store: store(undefined) }), { stored: true });
  for (const wrong of [...TABLE.store.write.wrong, null]) assert.equal((await replyOf("store", { store: store(wrong) })).stored, false, JSON.stringify(wrong));
});

test("a store that opens wrongly is an error, and is closed", async () => {
  const sound = { place: "here", documents: [], async write() {}, close() {} };
  let closed = 0;
  const wrong = [
    ...TABLE.store.place.wrong.map((place) => ({ ...sound, place })),
    ...[undefined, "documents", 1, [1], [["version", "1"]], [[1, new Uint8Array()]]].map((documents) => ({ ...sound, documents })),
    { ...sound, write: undefined },
  ].map((opened) => ({ ...opened, close: () => void (closed += 1) }));
  for (const opened of wrong) await assert.rejects(open({ store: { open: async () => opened } }), (error) => error instanceof Error);
  assert.equal(closed, wrong.length);
  for (const opened of TABLE.store.open.wrong) await assert.rejects(open({ store: { open: async () => opened } }), { name: "CountersignError" });
  for (const store of [undefined, null, {}, 1]) await assert.rejects(open({ store }), { name: "CountersignError", code: "usage" });
});

test("what a signer returns is no statement but undefined, sent and again", async () => {
  const by = (sign) => replyOf("sign", { signers: { evm: sign } });
  assert.deepEqual(await by((unsigned) => unsigned.sign("01")), { signed: true });
  // The adapters and attachTransaction return names.
  assert.deepEqual(await by((unsigned) => (unsigned.sign("01"), ["initiate"])), { signed: true });
  assert.deepEqual(await by(() => "sent"), { sent: true });
  assert.match((await by(() => {})).not_signed, /left out initiate/);
  assert.match((await replyOf("sign")).not_signed, /no signer for base/);
  for (const wrong of TABLE.signer.wrong) assert.match((await by(() => wrong)).signer_failed, /the signer returned/, JSON.stringify(wrong));
});

test("what is answered in one call ends no other call of the same order", async () => {
  const twice = async (kind, changes, first, second) => {
    script.need = NEEDS[kind];
    const waiting = [];
    const asked = () => new Promise((resolve) => waiting.push(resolve));
    const swaps = await open(changes(asked));
    const calls = [swaps.create(wish), swaps.follow(ORDER)].map(changesOf);
    for (const each of calls) each.catch(() => {});
    while (waiting.length < 2) await within(new Promise((resolve) => setTimeout(resolve, 1)));
    // Both at once, the second call first: the answer to the first is known when the second ends.
    waiting[1](second);
    waiting[0](first);
    return { swaps, calls, waiting };
  };

  const consent = await twice("consent", (asked) => ({ consent: asked }), "yes", false);
  assert.equal(JSON.parse((await within(consent.calls[1])).at(-1).reason).consent, false);
  await assert.rejects(within(consent.calls[0]), { code: "usage", message: /must return true or false/ });
  await consent.swaps.close();

  // For another purpose: a signer is asked for the same one once at a time.
  script.needs = { follow: { purpose: "redemption" } };
  const sign = await twice("sign", (asked) => ({ signers: { base: asked } }), "again", "sent");
  assert.deepEqual(JSON.parse((await within(sign.calls[1])).at(-1).reason), { sent: true });
  while (sign.waiting.length < 3) await within(new Promise((resolve) => setTimeout(resolve, 1)));
  sign.waiting[2]("sent");
  assert.deepEqual(JSON.parse((await within(sign.calls[0])).at(-1).reason), { sent: true });
  await sign.swaps.close();
  script.needs = {};
});

test("a signer that did something else first is asked by the same call again", async () => {
  script.needs = { follow: { purpose: "redemption" }, refund: { purpose: "refund" }, instantRefund: { purpose: "refund" } };
  const ways = [
    { start: (swaps) => swaps.create(wish), started: ["create", "follow"], purposes: ["funding", "redemption"] },
    { start: (swaps) => swaps.follow(ORDER), started: ["follow", "follow"], purposes: ["redemption", "redemption"] },
    // Following the order could release the secret, of which the owner has said nothing.
    { start: (swaps) => swaps.refund(ORDER), started: ["refund", "refund"], purposes: ["refund", "refund"] },
    { start: (swaps) => swaps.instantRefund(ORDER), started: ["instantRefund", "instantRefund"], purposes: ["refund", "refund"] },
  ];
  try {
    for (const { start, started, purposes } of ways) {
      [script.need, script.started] = [NEEDS.sign, []];
      const asked = [];
      const swaps = await open({ signers: { base: (_, { purpose }) => (asked.push(purpose) === 1 ? "again" : "sent") } });
      const last = (await within(changesOf(start(swaps)))).at(-1);
      assert.deepEqual([script.started, asked, JSON.parse(last.reason)], [started, purposes, { sent: true }]);
      await swaps.close();
    }
  } finally {
    script.needs = {};
  }
});

test("a question is answered by its own answer alone", async () => {
  script.need = NEEDS.consent;
  // A call that has ended has no number any more, and an event of another version may have neither a call nor an order.
  const others = () => [{ event: "phrase_created" }, { event: "quoted", call: 99, solver_id: "another" }, { event: "listed", call: 99, orders: [1] }];
  let agree;
  const swaps = await open({ consent: () => new Promise((resolve) => (agree = resolve)) });
  const changes = swaps.create(wish);
  script.events = others();
  assert.deepEqual(await within(swaps.list()), []);
  script.events = others();
  assert.equal((await within(swaps.quote(wish))).solverId, "solver");
  agree(true);
  assert.deepEqual((await within(changesOf(changes))).map(({ event }) => event), ["phrase_created", "created", "phrase_created", "stopped"]);
  await swaps.close();
});

/** Has a need withdrawn that a signer works on, and returns what the machine hears of the signer afterwards. */
async function heardLate(sign, isAtWork, end) {
  script.need = { ...NEEDS.sign, purpose: "redemption" };
  const swaps = await open({ signers: { base: sign } });
  const changes = changesOf(swaps.create(wish));
  while (!isAtWork()) await within(new Promise((resolve) => setTimeout(resolve, 1)));
  script.withdrawn = [1];
  await within(swaps.list());
  end();
  const last = (await within(changes)).at(-1);
  await swaps.close();
  return JSON.parse(last.reason);
}

test("what a signer says late reaches the machine", async () => {
  for (const [result, heard] of [["sent", { sent: true }], ["again", { not_signed: "something else was done first" }]]) {
    let end;
    let aborted;
    script.started = [];
    const sign = (_, { signal }) => new Promise((resolve) => ([end, aborted] = [resolve, signal]));
    assert.deepEqual(await heardLate(sign, () => end, () => end(result)), heard);
    assert.ok(aborted.aborted);
    // Nothing is begun again for a need that is over.
    assert.deepEqual(script.started, ["create"]);
  }
  script.transaction = TRANSACTION;
  let confirm;
  const wallet = walletWith(() => new Promise((resolve) => (confirm = resolve)));
  assert.deepEqual(await heardLate(eip1193Signer(wallet), () => confirm, () => confirm("0xhash")), { sent: true });
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

test("a wallet whose first request never answers is asked again", async () => {
  script.transaction = TRANSACTION;
  script.need = { ...NEEDS.sign, purpose: "redemption" };
  let asked = 0;
  const prompts = [];
  const request = async ({ method }) => {
    if (method === "eth_chainId") return (asked += 1) === 1 ? new Promise(() => {}) : "0x2105";
    return prompts.push(method) && "0xhash";
  };
  const swaps = await open({ signers: { base: eip1193Signer({ request }) } });
  swaps.create(wish);
  await settled();
  // The machine gives the signature up, and asks again at once.
  script.withdrawn = [1];
  await within(swaps.list());
  assert.deepEqual(JSON.parse((await within(changesOf(swaps.follow(ORDER)))).at(-1).reason), { sent: true });
  assert.deepEqual(prompts, ["eth_sendTransaction"]);
  await swaps.close();
});

test("a signer at work is not asked again for the same", async (context) => {
  script.need = { ...NEEDS.sign, purpose: "redemption" };
  script.needs = { refund: { purpose: "refund" } };
  script.replies = [];
  const asked = [];
  const swaps = await open({ signers: { base: (_, { purpose }) => new Promise((end) => asked.push({ purpose, end })) } });
  const purposes = () => asked.map(({ purpose }) => purpose);
  try {
    swaps.create(wish);
    await settled();
    for (const withdrawn of [1, 3]) {
      script.withdrawn = [withdrawn];
      await within(swaps.list());
      swaps.follow(ORDER);
      await settled();
    }
    swaps.refund(ORDER);
    await settled();
    assert.deepEqual(purposes(), ["redemption", "refund"]);
    // One transaction is reported once, for the need that waits.
    asked[0].end("sent");
    await settled();
    assert.deepEqual(script.replies, [[5, { sent: true }]]);
    // It is asked again once it is done, and once it counts as lost.
    swaps.follow(ORDER);
    await settled();
    const time = performance.now();
    context.mock.method(performance, "now", () => time + 600_000);
    swaps.follow(ORDER);
    await settled();
    assert.deepEqual(purposes(), ["redemption", "refund", "redemption", "redemption"]);
    // A signature is for the order that it was asked for, so the other one is asked for.
    swaps.follow(ORDER);
    await settled();
    asked[3].end();
    await settled();
    assert.match(script.replies.at(-1)[1].not_signed, /left out/);
  } finally {
    script.needs = {};
    await swaps.close();
  }
});

/** A need for a signature of `signer`. What was heard of it is in `heard`. */
function need(signer) {
  const [abort, ends] = [new AbortController(), []];
  const it = { abort, ends, heard: [] };
  const ask = () => new Promise((end) => ends.push(end));
  askOnce(signer, { orderId: ORDER, purpose: "funding", signal: abort.signal }, ask).then((met) => it.heard.push(met));
  return it;
}

test("a signer that counts as lost is asked by who waits, without another need", async (context) => {
  const begin = setTimeout;
  const lost = [];
  context.mock.method(globalThis, "setTimeout", (act, time) => (time > 500_000 ? lost.push(act) : begin(act, time)));
  const signer = () => {};
  const needs = [need(signer), need(signer), need(signer)];
  await settled();
  assert.deepEqual(needs.map(({ ends }) => ends.length), [1, 0, 0]);
  const time = performance.now();
  context.mock.method(performance, "now", () => time + 600_000);
  for (const act of lost.splice(0)) act();
  await settled();
  assert.deepEqual(needs.map(({ ends }) => ends.length), [1, 1, 0]);
  needs[1].ends[0]({ reply: { sent: true } });
  await settled();
  assert.deepEqual(needs.map(({ heard }) => heard), [[], [{ reply: { sent: true } }], [{ reply: { sent: true } }]]);
});

test("what was sent is heard once, whenever the needs are withdrawn", async () => {
  for (let moments = 0; moments < 12; moments += 1) {
    const signer = () => {};
    const [first, second] = [need(signer), need(signer)];
    await settled();
    first.abort.abort();
    first.ends[0]({ reply: { sent: true } });
    for (let moment = 0; moment < moments; moment += 1) await undefined;
    second.abort.abort();
    await settled();
    const sent = [first, second].flatMap(({ heard }) => heard).filter((met) => met?.reply.sent);
    assert.equal(sent.length, 1, `${moments}`);
  }
});

test("a signer that uses its order up may have sent it, and ends no other swap", async () => {
  const ways = [
    (unsigned) => void (unsigned.sign("01"), unsigned.finish()),
    (unsigned) => unsigned.free(),
    (unsigned) => unsigned[Symbol.dispose ?? Symbol.for("dispose")]?.() ?? unsigned.free(),
  ];
  for (const sign of ways) assert.match((await replyOf("sign", { signers: { base: sign } })).signer_failed, /used up|freed/);
});

test("the machine learns the code of a signer that fails", async () => {
  const failing = (code, wrap = (error) => error) => {
    const sign = () => {
      throw wrap(Object.assign(new Error("no"), { code }));
    };
    return replyOf("sign", { signers: { base: sign } });
  };
  for (const code of TABLE.signer.nothing_sent) {
    assert.deepEqual(await failing(code), { signer_failed: "no", code: String(code) });
    assert.equal((await failing(code, (cause) => new Error("wrapped", { cause }))).code, String(code));
  }
  for (const code of TABLE.signer.maybe_sent) {
    assert.equal((await failing(code)).code, Number.isSafeInteger(code) ? String(code) : undefined, JSON.stringify(code));
  }
  const none = () => {
    throw new NothingSent("the device is locked");
  };
  assert.deepEqual(await replyOf("sign", { signers: { base: none } }), { not_signed: "the device is locked" });
});

test("a reply that the machine refuses fails that need alone", async () => {
  for (const kind of Object.keys(NEEDS)) {
    script.refuses = true;
    const reply = await replyOf(kind, { signers: { base: (unsigned) => unsigned.sign("01") } });
    assert.ok(reply.failed === "interrupted" || reply.stored === false || reply.consent === false || "signer_failed" in reply, kind);
  }
});

test("a module that stops is an error in every call, and never an end", async () => {
  script.need = NEEDS.consent;
  let agree;
  const swaps = await open({ consent: () => new Promise((resolve) => (agree = resolve)) });
  const changes = swaps.create(wish);
  assert.equal((await within(changes.next())).value.event, "created");
  await within(new Promise((resolve) => setTimeout(resolve, 20)));
  script.panics = true;
  try {
    agree(true);
    await assert.rejects(within(changesOf(changes)), { code: "internal" });
  } finally {
    script.panics = false;
  }
  await assert.rejects(swaps.list(), { code: "internal" });
  assert.throws(() => swaps.phrase(), { code: "internal" });
});

test("a clock without a time is an error in every call", async () => {
  script.need = NEEDS.consent;
  const swaps = await open();
  const { now } = Date;
  try {
    Date.now = () => Number.NaN;
    await assert.rejects(within(changesOf(swaps.create(wish))), { code: "usage", message: /clock/ });
  } finally {
    Date.now = now;
  }
});

test("what an object inherits is no option", async () => {
  script.need = NEEDS.sign;
  const polluted = { trustTheService: true, relayer: true, accept: ["contract_changed"], signOnly: true, signers: { base: () => "sent" }, base: () => "sent", error: "x", call: 1, endpoints: [] };
  for (const [name, value] of Object.entries(polluted)) Object.defineProperty(Object.prototype, name, { value, configurable: true, writable: true, enumerable: false });
  try {
    const reply = await replyOf("sign", { nodes: { base: "https://base.example" } });
    assert.match(reply.not_signed, /no signer for base/);
    for (const name of ["trust_the_service", "relayer", "sign_only"]) assert.equal(Object.hasOwn(script.opened, name), false, name);
    await replyOf("sign", { trustTheService: true });
    assert.equal(script.opened.trust_the_service, true);
  } finally {
    for (const name of Object.keys(polluted)) delete Object.prototype[name];
  }
});

test("what an owner and a signer read cannot be changed behind their back", async () => {
  let read;
  const sign = (unsigned) => {
    const [request] = unsigned.requests;
    for (const list of [unsigned.requests, unsigned.summary, unsigned.warnings]) {
      assert.throws(() => (list.length = 0), TypeError);
      assert.throws(() => list.push(1), TypeError);
      assert.throws(() => list.splice(0, 1), TypeError);
    }
    assert.throws(() => (request.digest = new Uint8Array()), TypeError);
    request.digest.fill(0x41);
    request.digest.reverse();
    read = [unsigned.requests[0].digest, unsigned.missingRequests[0].digest, { ...request }.digest];
    unsigned.sign("01");
  };
  await replyOf("sign", { signers: { base: sign } });
  for (const digest of read) assert.deepEqual(digest, new Uint8Array(32).fill(7));
});

test("everything that is refused is a CountersignError", async () => {
  for (const value of [undefined, null, 1, {}]) assert.throws(() => inWholeUnits(value), { name: "CountersignError" });
  for (const options of [undefined, null, 1, "x"]) await assert.rejects(Swaps.open(options), { name: "CountersignError" });
  const swaps = await open();
  for (const wrong of [undefined, null, 1, new Proxy({}, { ownKeys: () => { throw new Error("no"); } })]) assert.throws(() => swaps.create(wrong), { name: "CountersignError" });
  await swaps.close();
});

// ---- Wallets behind EIP-1193.

const TRANSACTION = { from: "0x1", to: "0x2", data: "0x", value: "0x0", chainId: "0x2105", nonce: "0x7", gas: "0x1" };
const walletWith = (send, asked = []) => ({
  async request({ method, params }) {
    asked.push([method, params]);
    if (method === "eth_chainId") return "0x2105";
    if (method === "eth_sendTransaction") return send(params);
    throw Object.assign(new Error(method), { code: 4200 });
  },
});

test("a browser wallet sends payments, redemptions and refunds by itself", async () => {
  script.transaction = TRANSACTION;
  for (const purpose of ["funding", "redemption", "refund"]) {
    const asked = [];
    assert.deepEqual(await replyOf("sign", { signers: { base: eip1193Signer(walletWith(() => "0xhash", asked)) } }, { purpose }), { sent: true });
    assert.deepEqual(asked.at(-1), ["eth_sendTransaction", [{ from: "0x1", to: "0x2", data: "0x", value: "0x0", chainId: "0x2105" }]]);
  }
});

test("a browser wallet that fails says whether it may have sent", async () => {
  script.transaction = TRANSACTION;
  const failing = (code) => replyOf("sign", { signers: { base: eip1193Signer(walletWith(() => { throw Object.assign(new Error("no"), { code }); })) } });
  for (const code of TABLE.signer.nothing_sent) assert.equal((await failing(code)).code, String(code));
  assert.deepEqual(await failing(undefined), { signer_failed: "no" });
  const elsewhere = { request: async ({ method }) => (method === "eth_chainId" ? "0x1" : assert.fail("asked")) };
  assert.deepEqual(await replyOf("sign", { signers: { base: eip1193Signer(elsewhere) } }), { not_signed: "the wallet is on another chain" });
});

test("a browser wallet of a contract may sign as briefly as a key", async () => {
  const [short, attached] = [`0x${"11".repeat(65)}`, []];
  const wallet = { request: async ({ method }) => (method === "eth_signTypedData_v4" ? short : assert.fail(method)) };
  const unsigned = {
    requests: [{ name: "typed_data", signer: "0x1", native: { kind: "typed_data", value: "{}" } }],
    missing: ["typed_data"],
    attach: (...signature) => attached.push(signature),
  };
  for (const by of [undefined, { contract: true }, { deployed: true }]) await eip1193Signer(wallet, by)(unsigned, { purpose: "funding" });
  assert.deepEqual(attached.map(([, signature]) => signature), [short, { contract: short }, { contract: short, deployed: true }]);
});

test("a client of viem does not ask a wallet again that failed", async () => {
  script.transaction = TRANSACTION;
  const asked = [];
  const wallet = walletWith(() => { throw Object.assign(new Error("no"), { code: -32603 }); }, asked);
  await replyOf("sign", { signers: { base: eip1193Signer(createWalletClient({ transport: custom(wallet) })) } });
  assert.equal(asked.filter(([method]) => method === "eth_sendTransaction").length, 1);
});

test("a prompt that is open is not opened again", async () => {
  script.transaction = TRANSACTION;
  script.need = { ...NEEDS.sign, purpose: "redemption" };
  let confirm;
  const asked = [];
  const signer = eip1193Signer(walletWith(() => new Promise((resolve) => (confirm = resolve)), asked));
  const first = await open({ signers: { base: signer } });
  const changes = first.create(wish);
  await within(changes.next());
  for (let turn = 0; turn < 50 && !confirm; turn += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  await first.close();
  await assert.rejects(within(changesOf(changes)), { code: "used_up" });
  setTimeout(() => confirm("0xhash"), 50);
  assert.deepEqual(await replyOf("sign", { signers: { base: signer } }, { purpose: "redemption" }), { sent: true });
  assert.equal(asked.filter(([method]) => method === "eth_sendTransaction").length, 1);
});

/** A wallet that is locked: it does not say its chain before somebody unlocks it. */
function lockedWallet() {
  let unlock;
  const unlocked = new Promise((resolve) => (unlock = resolve));
  const prompts = [];
  const request = async ({ method }) => {
    if (method === "eth_chainId") return unlocked;
    if (method === "eth_getTransactionReceipt") return { status: "0x1" };
    return prompts.push(method) && "0xhash";
  };
  return { wallet: { request }, prompts, unlock: () => unlock("0x2105") };
}
const orderOf = (...names) => ({ requests: names.map((name) => ({ name, native: { kind: "evm_transaction", value: JSON.stringify(TRANSACTION) } })), missing: names });

test("a locked wallet asks once when it is unlocked, however often it was asked", async () => {
  for (const [order, purpose, prompted, result] of [[orderOf("redeem"), "redemption", 1, "sent"], [orderOf("approval_reset", "approval", "initiate"), "funding", 2, "again"]]) {
    const { wallet, prompts, unlock } = lockedWallet();
    const signer = eip1193Signer(wallet);
    // The machine gives each need two minutes, and then asks again.
    const needs = [1, 2, 3].map(() => new AbortController());
    const signed = needs.map(({ signal }) => signer(order, { orderId: ORDER, purpose, signal }));
    needs[0].abort();
    needs[1].abort();
    unlock();
    assert.equal(await within(signed[2]), result);
    assert.deepEqual(prompts, new Array(prompted).fill("eth_sendTransaction"));
    // Afterwards it is asked again.
    assert.equal(await within(signer(order, { orderId: ORDER, purpose, signal: new AbortController().signal })), result);
    assert.equal(prompts.length, 2 * prompted);
    // One transaction is told once.
    assert.deepEqual((await within(Promise.allSettled(signed))).map(({ status }) => status), ["rejected", "rejected", "fulfilled"]);
  }
});

test("a wallet that is unlocked when nobody waits any more asks for nothing", async () => {
  for (const [order, purpose] of [[orderOf("redeem"), "redemption"], [orderOf("initiate"), "funding"], [orderOf("approval", "initiate"), "funding"]]) {
    const { wallet, prompts, unlock } = lockedWallet();
    const signer = eip1193Signer(wallet);
    const withdrawn = new AbortController();
    const signed = signer(order, { orderId: ORDER, purpose, signal: withdrawn.signal });
    withdrawn.abort();
    unlock();
    await assert.rejects(within(signed), { name: "NothingSent" });
    assert.deepEqual(prompts, [], purpose);
  }
  // The same after the end of everything, by the loop itself.
  script.transaction = TRANSACTION;
  script.need = NEEDS.sign;
  const { wallet, prompts, unlock } = lockedWallet();
  const swaps = await open({ signers: { base: eip1193Signer(wallet) } });
  const changes = swaps.create(wish);
  await within(changes.next());
  await new Promise((resolve) => setTimeout(resolve, 20));
  await swaps.close();
  unlock();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(prompts, []);
});

// ---- Connections.

/** Sends calls through an endpoint of a chain. Returns the reply, with the results of the calls. */
async function sentTo(connections, methods, signal = new AbortController().signal) {
  const calls = methods.map((method, id) => ({ jsonrpc: "2.0", id, method, params: [] }));
  const url = typeof connections.document.base[0] === "string" ? connections.document.base[0] : "https://node.example/";
  const { json, body } = await connections.send({ kind: "http", method: "POST", url, headers: [] }, bytes(JSON.stringify(calls)), signal);
  return body ? { ...json, results: JSON.parse(new TextDecoder().decode(body)).map(({ result }) => result ?? null) } : json;
}

test("a provider that fails, or is on another chain, is used again once it is on the right one", async () => {
  let chain;
  let moveTo;
  const request = async ({ method }) => {
    if (chain === undefined) throw Object.assign(new Error("locked"), { code: -32002 });
    if (method === "eth_chainId") return chain;
    chain = moveTo ?? chain;
    return "0x7";
  };
  const connections = new Connections({ base: { request } });
  // Which chain an answer is about, the machine asks in every round.
  const asked = () => within(sentTo(connections, ["eth_chainId", "eth_gasPrice"]));
  assert.deepEqual((await asked()).results, [null, null]);
  for (chain of ["0x1", "0x2105", "0x1", "0x2105"]) assert.deepEqual((await asked()).results, [chain, "0x7"]);
  // What comes while it moves is of no chain.
  moveTo = "0x1";
  assert.deepEqual(await asked(), { failed: "interrupted", detail: "the wallet changed its chain" });
  [chain, moveTo] = ["0x2105", undefined];
  assert.deepEqual((await asked()).results, ["0x2105", "0x7"]);
});

test("nothing that never answers holds a need for ever", async (context) => {
  const never = () => new Promise(() => {});
  const silent = [
    new Connections({ base: { request: never } }),
    new Connections({ base: { request: async ({ method }) => (method === "eth_chainId" ? never() : "0x7") } }),
    new Connections({ base: { request: async ({ method }) => (method === "eth_chainId" ? "0x1" : never()) } }),
    // A wallet's own `fetch` that ignores the signal.
    new Connections({ base: "https://node.example" }, never),
    new Connections({ base: "https://node.example" }, async () => answer(200, {}, { getReader: () => ({ read: never }) })),
  ];
  for (const connections of silent) {
    const withdrawn = new AbortController();
    const sent = sentTo(connections, ["eth_gasPrice"], withdrawn.signal);
    setTimeout(() => withdrawn.abort(), 5);
    assert.equal((await within(sent)).failed, "timeout");
  }
  context.mock.timers.enable({ apis: ["setTimeout"] });
  for (const connections of silent) {
    const sent = sentTo(connections, ["eth_gasPrice"]);
    context.mock.timers.tick(20_000);
    assert.equal((await sent).failed, "timeout");
  }
});

test("a body that is sent for ever by a fetch that ignores its signal is not read for ever", async () => {
  const read = async () => (await new Promise((resolve) => setTimeout(resolve, 1)), { done: false, value: new Uint8Array(1) });
  let isCancelled;
  const cancelled = new Promise((resolve) => (isCancelled = resolve));
  const connections = new Connections({ base: "https://node.example" }, async () => answer(200, {}, { getReader: () => ({ read, cancel: async () => isCancelled() }) }));
  const withdrawn = new AbortController();
  const sent = sentTo(connections, ["eth_gasPrice"], withdrawn.signal);
  setTimeout(() => withdrawn.abort(), 5);
  assert.equal((await within(sent)).failed, "timeout");
  await within(cancelled);
});

// ---- The store in files.

const folder = (context) => {
  const path = mkdtempSync(join(tmpdir(), "countersign-swaps-"));
  context.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
};
const bytes = (text) => new TextEncoder().encode(text);
const placeOf = async (path) => {
  const opened = await fileStore(path).open();
  await opened.close();
  return opened.place;
};

test("an older index that is put back is another place", async (context) => {
  const path = folder(context);
  const opened = await fileStore(path).open();
  await opened.write([{ name: "index", bytes: bytes("1 0 place\n") }]);
  await opened.close();
  const first = await placeOf(path);
  assert.equal(await placeOf(path), first);
  const [index, mark] = [join(path, "index"), join(path, ".host-mark")];
  copyFileSync(index, join(path, ".old"));
  const again = await fileStore(path).open();
  await again.write([{ name: "index", bytes: bytes("2 0 place\n") }]);
  await again.close();
  assert.equal(await placeOf(path), first);
  // With the content, the times and the mark of the older one.
  const [kept, { atime, mtime }] = [readFileSync(mark), statSync(index)];
  copyFileSync(join(path, ".old"), index);
  utimesSync(index, atime, mtime);
  writeFileSync(mark, kept);
  assert.notEqual(await placeOf(path), first);
});

test("a directory that another host or the program has locked is not opened", { skip: process.platform !== "linux" }, async (context) => {
  const path = folder(context);
  await placeOf(path);
  for (const kind of ["--shared", "--exclusive"]) {
    const other = spawn("flock", [kind, join(path, ".host-lock"), "sh", "-c", "echo held; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
    await once(other.stdout, "data");
    await assert.rejects(fileStore(path).open(), { name: "CountersignError", message: /is open in another process/ });
    other.stdin.end();
    await once(other, "exit");
  }
  const opened = await fileStore(path).open();
  await assert.rejects(fileStore(path).open(), { code: "usage" });
  const other = spawn("flock", ["--nonblock", "--shared", join(path, ".host-lock"), "true"]);
  assert.deepEqual(await once(other, "exit"), [1, null]);
  await opened.close();
});
