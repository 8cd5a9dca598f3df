// Whole swaps against the sandbox, honest and with lies.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CountersignError, NothingSent, Swaps, eip1193Signer, fileStore, memoryStore } from "countersign/swap";
import { signWithViem } from "countersign/viem";
import { build } from "esbuild";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { HERE } from "../scripts/paths.mjs";
import { endOf, sandboxFor, skip, until, userOf } from "./swap-user.mjs";

const TO_LITECOIN = ["base:usdc", "litecoin:ltc"];
const TO_BASE = ["litecoin:ltc", "base:usdc"];
const all = (cases, run) => Promise.all(cases.map(run));
const options = { skip, timeout: 120_000, concurrency: 2 };
const folder = (context) => {
  const path = mkdtempSync(join(tmpdir(), "countersign-swaps-"));
  context.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

test("a swap of each family completes", options, async (suite) => {
  const routes = [TO_LITECOIN, TO_BASE, ["solana:sol", "tron:usdt"], ["tron:usdt", "solana:sol"], ["starknet:strk", "sui:sui"], ["sui:sui", "starknet:strk"]];
  await all(routes, (route) =>
    suite.test(route.join(" to "), async (context) => {
      const { user, wish } = await sandboxFor(context, route);
      const swaps = await Swaps.open(user.options);
      const { receiveAt, ...asked } = wish;
      const quote = await swaps.quote(asked);
      assert.ok(quote.receive.number > 0n && quote.solverId !== "");
      const changes = await until(swaps.create(wish));
      const [first, second] = changes;
      assert.deepEqual([first.event, second.event], ["phrase_created", "created"]);
      assert.equal(changes.at(-1).reason, "complete", JSON.stringify(changes));
      assert.ok(changes.some((change) => change.event === "status" && change.isPaid));
      assert.equal(user.asked.length, 1);
      assert.equal(user.asked[0].orderId, second.orderId);
      assert.ok(user.asked[0].summary.length > 0 && user.asked[0].terms.pay.number > 0n);
      assert.deepEqual((await swaps.list()).map(({ orderId, outcome }) => [orderId, outcome]), [[second.orderId, "complete"]]);
      assert.match(swaps.phrase(), /^(\w+ ){11}\w+$/);
      assert.deepEqual(await until(swaps.resume()), []);
      await swaps.close();
    }),
  );
});

/** Every document that is a secret. */
const secrets = ({ documents }) => [...documents].filter(([name]) => name.endsWith("/secret")).map(([, bytes]) => Buffer.from(bytes).toString().trim());
const isTold = (user) => secrets(user.options.store).some((secret) => user.sent.some((sent) => sent.includes(secret)));

test("a lie ends as it must", options, async (suite) => {
  const lies = [
    ["evm-contract", TO_LITECOIN, "unknown_contract"],
    ["evm-redeemer", TO_LITECOIN, "unknown_redeemer"],
    ["evm-unlimited", TO_LITECOIN, "declined"],
    ["record-pays-less", TO_LITECOIN, "record_pays_less"],
    ["record-redeem-key", TO_LITECOIN, "record_pays_elsewhere"],
    ["record-pays-elsewhere", TO_BASE, "record_pays_elsewhere"],
    ["service-error-beside-ok", TO_LITECOIN, "error_beside_ok"],
    ["service-lists-twin", TO_LITECOIN, "secret_used"],
    ["service-gone", TO_LITECOIN, "complete"],
    ["relayer-invents", TO_BASE, "complete"],
    ["endpoint-denies", TO_LITECOIN, "complete"],
    ["endpoint-html", TO_LITECOIN, "complete"],
  ];
  await all(lies, ([lie, route, end]) =>
    suite.test(lie, async (context) => {
      const { user, wish } = await sandboxFor(context, route, lie);
      const swaps = await Swaps.open(user.options);
      assert.equal(await endOf(swaps.create(wish)), end);
      if (end !== "complete") {
        assert.equal((await swaps.list()).some(({ mayBePaid }) => mayBePaid), false);
        assert.equal(isTold(user), false);
      }
      await swaps.close();
    }),
  );
});

test("the secret stays here if the solver pays nothing final, and the payment comes back", options, async (suite) => {
  const lies = [["solver-pays-less", TO_LITECOIN], ["solver-one-block", TO_LITECOIN], ["solver-other-hash-evm", TO_BASE]];
  await all(lies, ([lie, route]) =>
    suite.test(lie, async (context) => {
      const { sandbox, user, wish } = await sandboxFor(context, route, lie);
      const swaps = await Swaps.open(user.options);
      const changes = swaps.create(wish);
      let orderId;
      // The solver's payment is there, and is not what was agreed.
      for await (const change of changes) {
        orderId ??= change.orderId;
        assert.notEqual(change.event, "stopped", JSON.stringify(change));
        if (change.event !== "status" || change.status !== "waiting") continue;
        await new Promise((resolve) => setTimeout(resolve, 1000));
        break;
      }
      assert.equal(isTold(user), false);
      const [chain, blocks] = route === TO_LITECOIN ? ["base", 50_000] : ["litecoin", 1_000];
      await sandbox.post("mine", { chain, blocks });
      await swaps.close();
      const later = await Swaps.open(user.options);
      const end = await endOf(later.follow(orderId));
      assert.equal(end, "refunded");
      assert.equal(isTold(user), false);
      await later.close();
    }),
  );
});

test("a deposit comes back before its timelock ends if the solver signs too", options, async (suite) => {
  for (const isNamed of [true, false])
    await suite.test(isNamed ? "the record names it" : "only the endpoints show it", async (context) => {
      const { user, wish } = await sandboxFor(context, TO_BASE, "solver-never-pays-evm");
      const send = user.options.fetch;
      user.options.fetch = async (url, init) => {
        const answer = await send(url, init);
        if (isNamed || !/\/v2\/orders\/[^/?]+$/.test(url)) return answer;
        const record = await answer.json();
        if (record.result?.source_swap) record.result.source_swap.initiate_tx_hash = "";
        return Response.json(record);
      };
      const swaps = await Swaps.open(user.options);
      const changes = swaps.create(wish);
      let orderId;
      for (;;) {
        const { value } = await changes.next();
        orderId ??= value.orderId;
        assert.notEqual(value.event, "stopped", JSON.stringify(value));
        if (value.status === "waiting") break;
      }
      // Until the payment is in a block, there may be nothing to sign.
      let end = "not_refunded";
      while (end === "not_refunded") {
        await new Promise((resolve) => setTimeout(resolve, 100));
        end = await endOf(swaps.instantRefund(orderId));
      }
      assert.equal(end, "refunding");
      assert.equal(await endOf(changes), "refunded");
      await swaps.close();
    });
});

test("a swap goes on after its process was killed, and one process at a time has its store", options, async (context) => {
  const { sandbox, user } = await sandboxFor(context, TO_LITECOIN);
  const store = join(folder(context), "swaps");
  const run = (...route) => {
    const path = fileURLToPath(new URL("swap-child.mjs", import.meta.url));
    return spawn(process.execPath, [path, sandbox.config, store, ...route], { stdio: ["ignore", "pipe", "inherit"] });
  };
  const first = run(...TO_LITECOIN);
  for await (const line of createInterface({ input: first.stdout })) if (JSON.parse(line).isPaid) break;
  await assert.rejects(Swaps.open({ ...user.options, store: fileStore(store) }), { name: "CountersignError", code: "usage", message: /is open in another process/ });
  first.kill("SIGKILL");
  await once(first, "exit");
  const files = readdirSync(store, { recursive: true }).map((name) => statSync(join(store, name)));
  assert.ok(files.length > 5 && files.every(({ mode }) => (mode & 0o077) === 0));
  const second = run();
  const lines = [];
  for await (const line of createInterface({ input: second.stdout })) lines.push(JSON.parse(line));
  assert.equal(lines.at(-1)?.reason, "complete", JSON.stringify(lines));
  const third = await Swaps.open({ ...user.options, store: fileStore(store) });
  assert.deepEqual((await third.list()).map(({ outcome }) => outcome), ["complete"]);
  await third.close();
});

test("files: replaced as a whole, deleted, and never outside of the directory", async (context) => {
  const path = join(folder(context), "swaps");
  const store = fileStore(path);
  const bytes = (text) => new TextEncoder().encode(text);
  const opened = await store.open();
  assert.deepEqual([...opened.documents], []);
  await assert.rejects(store.open(), { code: "usage" });
  await opened.write([{ name: "version", bytes: bytes("1") }, { name: "index", bytes: bytes("1") }, { name: "orders/ab/journal", bytes: bytes("old") }, { name: "orders/ab/secret", bytes: bytes("x") }]);
  await opened.write([{ name: "orders/ab/journal", bytes: bytes("new") }, { name: "orders/ab/secret", bytes: undefined }]);
  for (const name of ["../out", "/out", "orders//out", ".out", ""]) await assert.rejects(opened.write([{ name, bytes: bytes("") }]), TypeError, name);
  // What a process leaves that is killed while it writes.
  writeFileSync(join(path, "orders", "ab", ".journal.tmp"), "half");
  await opened.close();
  const again = await store.open();
  assert.equal(again.place, opened.place);
  const read = [...again.documents].map(([name, content]) => [name, Buffer.from(content).toString()]).sort();
  assert.deepEqual(read, [["index", "1"], ["orders/ab/journal", "new"], ["version", "1"]]);
  await again.close();
});

test("nothing happens that could not be stored", options, async (context) => {
  const { user, wish } = await sandboxFor(context, TO_LITECOIN);
  for (let good = 0; good < 5; good += 1) {
    const store = memoryStore();
    let writes = 0;
    const failing = {
      async open() {
        const opened = await store.open();
        const write = (...all) => ((writes += 1) > good ? Promise.reject(new Error("the disk is full")) : opened.write(...all));
        return { ...opened, write };
      },
    };
    const swaps = await Swaps.open({ ...user.options, store: failing });
    const end = await until(swaps.create(wish)).then((changes) => changes.at(-1), (error) => error);
    assert.match(end.message, /the disk is full/, `${good}`);
    assert.equal((await swaps.list().catch(() => [])).some(({ mayBePaid }) => mayBePaid), false);
    await swaps.close();
  }
});

test("an owner who declines, throws or has no signer pays nothing", options, async (context) => {
  const { user, wish } = await sandboxFor(context, TO_LITECOIN);
  const refuse = () => {
    throw new Error("not today");
  };
  const none = () => {
    throw new NothingSent("not today");
  };
  const cases = [
    [{ consent: () => false }, "declined"], [{ consent: refuse }, "declined"], [{ consent: () => "yes" }, "usage"], [{ signers: {} }, "not_signed"],
    [{ signers: { evm: none } }, "not_signed"], [{ signers: { evm: refuse }, signOnly: true }, "not_signed"], [{ signers: { evm: () => {} } }, "not_signed"],
  ];
  for (const [change, code] of cases) {
    const swaps = await Swaps.open({ ...user.options, store: memoryStore(), ...change });
    assert.equal(await endOf(swaps.create(wish)), code);
    assert.equal((await swaps.list())[0].mayBePaid, false);
    await swaps.close();
  }
});

/** A provider over HTTP, which counts its calls. */
function provider(url, methods) {
  return {
    async request({ method, params }) {
      methods.push(method);
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
      const { result, error } = await response.json();
      if (error) throw Object.assign(new Error(error.message), { code: error.code, data: error.data });
      return result;
    },
  };
}

test("the wallet of the example swaps", options, async (context) => {
  const { sandbox } = await sandboxFor(context, TO_LITECOIN);
  // Inside the package, so that its own name is found.
  const outfile = join(HERE, "target", "swap-example.mjs");
  await build({ entryPoints: [join(HERE, "examples", "swap.ts")], bundle: true, packages: "external", format: "esm", platform: "node", outfile, logLevel: "error" });
  const arguments_ = [outfile, sandbox.config, ...TO_LITECOIN, "1.5 usdc"];
  const { stdout } = await promisify(execFile)("sh", ["-c", 'echo yes | "$0" "$@"', process.execPath, ...arguments_], { cwd: folder(context) });
  assert.match(stdout, /write these words down: (\w+ ){11}\w+\norder [0-9a-f]{64}\n[^]*Sign this\?[^]*\ncomplete\n$/);
});

test("a chain is read through the wallet's provider, and viem signs", options, async (context) => {
  const { user, wish, sandbox } = await sandboxFor(context, TO_LITECOIN);
  const { options: given, keyOf } = user;
  const methods = [];
  const account = privateKeyToAccount(`0x${keyOf("base")}`);
  const nodes = { ...given.nodes, base: provider(`${sandbox.chains.base.url}/a`, methods) };
  const swaps = await Swaps.open({ ...given, nodes, signers: { evm: (unsigned) => signWithViem(unsigned, account) } });
  assert.equal(await endOf(swaps.create(wish)), "complete");
  assert.ok(methods.includes("eth_getLogs") || methods.includes("eth_call"), methods.join(" "));
  await swaps.close();
});

for (const [from, sends] of [["base:usdc", 1], ["base:eth", 1]]) {
  test(`a browser wallet signs messages and sends transactions by itself: ${from}`, options, async (context) => {
    const { user, wish, sandbox } = await sandboxFor(context, [from, "litecoin:ltc"]);
    const account = privateKeyToAccount(`0x${user.keyOf("base")}`);
    const node = provider(`${sandbox.chains.base.url}/a`, []);
    const client = createWalletClient({ account, transport: http(`${sandbox.chains.base.url}/a`) });
    const asked = [];
    const request = async ({ method, params: [first, second] }) => {
      asked.push(method);
      if (method === "eth_signTypedData_v4") return account.signTypedData(JSON.parse(second));
      if (method !== "eth_sendTransaction") return node.request({ method, params: [first, second].filter((one) => one !== undefined) });
      assert.deepEqual(Object.keys(first), ["from", "to", "data", "value", "chainId"]);
      return client.sendTransaction({ to: first.to, data: first.data, value: BigInt(first.value), chain: null });
    };
    const swaps = await Swaps.open({ ...user.options, signers: { evm: eip1193Signer({ request }) } });
    const amount = from === "base:eth" ? "0.02 eth" : wish.amount;
    assert.equal(await endOf(swaps.create({ ...wish, amount })), "complete");
    assert.equal(asked.filter((method) => method === "eth_sendTransaction").length, sends);
    assert.equal(asked.includes("eth_signTypedData_v4"), from !== "base:eth");
    await swaps.close();
  });
}

test("a browser wallet redeems by itself", options, async (context) => {
  const { user, wish, sandbox } = await sandboxFor(context, TO_BASE);
  const account = privateKeyToAccount(`0x${user.keyOf("base")}`);
  const url = `${sandbox.chains.base.url}/a`;
  const node = provider(url, []);
  const client = createWalletClient({ account, transport: http(url) });
  let sends = 0;
  const request = async ({ method, params }) => {
    if (method !== "eth_sendTransaction") return node.request({ method, params });
    sends += 1;
    return client.sendTransaction({ to: params[0].to, data: params[0].data, value: BigInt(params[0].value), chain: null });
  };
  const swaps = await Swaps.open({ ...user.options, relayer: false, signers: { ...user.options.signers, base: eip1193Signer({ request }) } });
  assert.equal(await endOf(swaps.create(wish)), "complete");
  assert.equal(sends, 1);
  await swaps.close();
});

test("without an own account, the relayer takes the word that the service is trusted", options, async (context) => {
  const { user, wish } = await sandboxFor(context, TO_BASE);
  const accounts = { litecoin: user.options.accounts.litecoin };
  const swaps = await Swaps.open({ ...user.options, accounts });
  assert.throws(() => swaps.create(wish), { code: "usage", at: "/accounts/base" });
  await swaps.close();
  // An account without a signer counts as none.
  const { litecoin } = user.options.signers;
  const unsigned = await Swaps.open({ ...user.options, signers: litecoin ? { litecoin } : {} });
  assert.throws(() => unsigned.create(wish), { code: "usage", at: "/signers/base" });
  await unsigned.close();
  const told = [];
  const consent = ({ warnings }) => told.push(...warnings.map(({ code }) => code)) > 0;
  const trusting = await Swaps.open({ ...user.options, accounts, trustTheService: true, consent });
  assert.equal(await endOf(trusting.create(wish)), "complete");
  assert.ok(told.includes("trusts_the_service"), told.join(" "));
  await trusting.close();
});

test("arguments that cannot be used, and a closed object", options, async (context) => {
  const { user, wish } = await sandboxFor(context, TO_LITECOIN);
  const { options: given } = user;
  const at = async (work) => {
    const error = await work().then(() => assert.fail("no error"), (thrown) => thrown);
    assert.ok(error instanceof CountersignError, String(error));
    return error.at || error.message;
  };
  const opening = (change) => at(() => Swaps.open({ ...given, ...change }));
  assert.equal(await opening({ service: "nowhere" }), "/options/service");
  const keys = [{ address: "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", weight: 1n }];
  for (const [permissions, where] of [
    [{ tron: 1 }, "/options/permissions/tron"], [{ base: { id: 2, threshold: 1, keys } }, "/options/permissions/base"],
    [{ tron: { id: 2, threshold: 2n, keys: [] } }, "/options/permissions/tron/keys"],
  ]) assert.equal(await opening({ permissions }), where);
  await (await Swaps.open({ ...given, permissions: { tron: { id: 2, threshold: 1, keys } }, ownTransactions: true })).close();
  // A chain may have been taken off the list since an order was paid, so its name stops no opening.
  for (const [change, where] of [
    [{ permissions: { tronShasta: 2 } }, "/options/permissions/tronShasta"], [{ accounts: { ...given.accounts, bse: given.accounts.base } }, "/options/accounts/bse"],
    [{ nodes: { ...given.nodes, bse: given.nodes.base } }, "/nodes/bse"],
  ]) {
    const misspelt = await Swaps.open({ ...given, ...change });
    assert.throws(() => misspelt.create(wish), { code: "usage", at: where });
    await misspelt.close();
  }
  assert.match(await opening({ registry: "{" }), /^\/registry/);
  assert.match(await opening({ policy: '{"x": 1}' }), /^\/policy/);
  assert.equal(await opening({ nodes: { base: ["http://far.example"] } }), "/nodes/base/0");
  assert.match(await opening({ nodes: { base: 1 } }), /neither a URL nor a provider/);
  const swaps = await Swaps.open(given);
  await assert.rejects(Swaps.open(given), { code: "usage" });
  assert.throws(() => swaps.create({ ...wish, to: undefined }), { at: "/to" });
  assert.throws(() => swaps.create({ ...wish, receiveAt: "nowhere" }), { at: "/receive_at" });
  assert.throws(() => swaps.follow("../x"), { name: "CountersignError" });
  assert.equal(swaps.phrase(), undefined);
  const changes = swaps.create(wish);
  await swaps.close();
  await assert.rejects(until(changes), { code: "used_up", message: "the swaps were closed" });
  assert.throws(() => swaps.phrase(), { code: "used_up" });
  await assert.rejects(swaps.list(), { code: "used_up" });
  await (await Swaps.open(given)).close();
});

test("a redirect is not followed, and a response has an end", options, async (context) => {
  const { user, wish } = await sandboxFor(context, TO_LITECOIN);
  const inits = [];
  const swaps = await Swaps.open({ ...user.options, fetch: async (url, init) => (inits.push(init), new Response(new Uint8Array(17 * 1024 * 1024))) });
  await assert.rejects(until(swaps.create(wish)), { name: "CountersignError", message: /too large|16777216|bytes/ });
  assert.ok(inits.every(({ redirect, credentials }) => redirect === "manual" && credentials === "omit"));
  await swaps.close();
});
