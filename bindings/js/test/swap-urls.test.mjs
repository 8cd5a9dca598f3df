// URLs with names that are not ASCII. The module has no tables of them, so the platform converts them before the module sees them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Swaps, memoryStore } from "countersign/swap";
import { build } from "esbuild";
import { HERE, lockedVersion } from "../scripts/paths.mjs";
import { REGISTRY } from "./fixtures.mjs";
import { endOf, sandboxFor, skip } from "./swap-user.mjs";

const { outputFiles } = await build({ entryPoints: [join(HERE, "lib", "swap-http.ts")], bundle: true, format: "esm", target: "es2022", write: false, logLevel: "error" });
const { Connections } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
/** Returns what the module is told about the endpoints of a chain. */
const told = (given) => new Connections({ base: given }).document.base;

/** URLs of nodes, and what the module gets. */
const CONVERTED = [
  ["https://bücher.example/key", "https://xn--bcher-kva.example/key"],
  ["https://BÜCHER.example", "https://xn--bcher-kva.example/"],
  ["https://b%C3%BCcher.example:8443/key?a=%20#b", "https://xn--bcher-kva.example:8443/key?a=%20#b"],
  ["rpc+https://us@er:wört@bücher.example/", "rpc+https://us%40er:w%C3%B6rt@xn--bcher-kva.example/"],
  ["rpc+http://１２７.0.0.1:9332", "rpc+http://127.0.0.1:9332/"],
  ["https://節點。example\\key", "https://xn--r0z423e.example/key"],
  ["https://xn--bcher-kva.example/key", "https://xn--bcher-kva.example/key"],
];
/** What no module can be asked for: not in NFC, a bidirectional name that breaks its rule, Punycode that is none. */
const REFUSED = ["https://xn--zca%CC%88.example", "https://xn--u-ccb.example", "https://\u05d0a.example", "https://xn--a.example", "https://bü cher.example"];
/** Whatever is in these is the module's to judge, letter by letter. */
const PLAIN = [
  "https://Node.Example", "https://node.example:443/a%2Fb/ä?ö=ü#xn--a", "rpc+http://user:p%40ss@127.0.0.1:9332", "http://0x7f.1", "http://[::1]:8545/%",
  "https://ü:ä@node.example", "nowhere", "bücher.example", "", "https://", " https://node.example\n", "rpc+", "data:,ü", "https://a b",
];

test("the lock file pins the adapter without tables", () => {
  const version = lockedVersion("idna_adapter");
  assert.match(version, /^1\.0\./, `idna_adapter ${version} brings tables of names that are not ASCII, 45 kB of the module with gzip: cargo update -p idna_adapter --precise 1.0.0`);
  assert.doesNotMatch(readFileSync(join(HERE, "Cargo.lock"), "utf8"), /name = "icu_/);
});

test("international names reach the module as ASCII, in every form of an endpoint", () => {
  for (const [given, url] of CONVERTED) {
    assert.deepEqual(told(given), [url]);
    assert.deepEqual(told([given, { url: given, provider: "bücher" }]), [url, { provider: "bücher", url }]);
    assert.deepEqual(told({ url: given, provider: "one" }), [{ provider: "one", url }]);
    assert.deepEqual(told({ endpoints: [given, { url: given, provider: "one" }], quorum: 2 }), { quorum: 2, endpoints: [url, { provider: "one", url }] });
  }
});

test("every other URL reaches the module as it was written", () => {
  for (const url of PLAIN) {
    assert.deepEqual(told([url, { url, provider: "one" }]), [url, { provider: "one", url }]);
  }
  // What is no text, the module refuses by itself.
  assert.deepEqual(told([{ url: 1, provider: "one" }]), [{ provider: "one", url: 1 }]);
});

const given = { registry: REGISTRY, consent: () => false };
const open = (options) => Swaps.open({ ...given, nodes: {}, service: "https://service.example", store: memoryStore(), ...options });

test("the service is asked under the name's ASCII form", async () => {
  for (const [service, host] of [
    ["https://bücher.example/api/", "xn--bcher-kva.example"], [new URL("https://bücher.example"), "xn--bcher-kva.example"], ["https://service.example", "service.example"],
  ]) {
    const asked = [];
    const fetch = async (url) => asked.push(new URL(url).host) && new Response("{}");
    const swaps = await open({ service, fetch });
    await assert.rejects(swaps.quote({ from: "base:usdc", to: "bitcoin:btc", amount: "1.5 usdc" }), { name: "CountersignError" });
    assert.deepEqual([...new Set(asked)], [host]);
    await swaps.close();
  }
});

test("a name that no table allows is refused where it was given", async () => {
  for (const url of [...REFUSED, "http://bücher.example"]) {
    await assert.rejects(open({ nodes: { base: ["https://one.example", url] } }), { code: "wrong_type", at: "/nodes/base/1" }, url);
  }
  for (const url of REFUSED) await assert.rejects(open({ service: url }), { code: "wrong_type", at: "/options/service" }, url);
});

test("a name that comes around the conversion is refused", async () => {
  const hidden = { toJSON: () => "https://bücher.example" };
  await assert.rejects(open({ nodes: { base: [{ url: hidden }] } }), { code: "wrong_type", at: "/nodes/base/0/url" });
  await assert.rejects(open({ service: hidden }), { code: "wrong_type", at: "/options/service" });
});

test("a swap completes through services and nodes with international names", { skip, timeout: 120_000 }, async (context) => {
  const { user, wish } = await sandboxFor(context, ["base:usdc", "litecoin:ltc"]);
  const { options } = user;
  const hosts = new Map();
  const asked = new Set();
  /** Gives a server of the sandbox another name. */
  const renamed = (url, name) => {
    const { origin } = new URL(url);
    hosts.set(`https://${new URL(`https://${name}`).host}`, origin);
    return url.replace(origin, `https://${name}`);
  };
  const nodes = {
    base: options.nodes.base.map(({ url, provider }) => renamed(url, `küste-${provider}.example`)),
    litecoin: { endpoints: options.nodes.litecoin.map(({ url, provider }) => ({ url: renamed(url, `rivière-${provider}.example`), provider })) },
  };
  const fetch = (url, init) => {
    const { origin } = new URL(url);
    asked.add(origin);
    return options.fetch(url.replace(origin, hosts.get(origin) ?? "https://unknown.invalid"), init);
  };
  const swaps = await Swaps.open({ ...options, service: renamed(options.service, "bücher.example"), nodes, fetch });
  assert.equal(await endOf(swaps.create(wish)), "complete");
  await swaps.close();
  assert.deepEqual([...asked].sort(), [...hosts.keys()].sort());
  assert.ok([...asked].every((origin) => origin.startsWith("https://xn--")), [...asked].join(" "));
});
