// Serves the wallet, with a sandbox of its own and the strictest policy that WebAssembly allows: `npm run swap-page`.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { start } from "../../../../sandbox/clients/sandbox.js";
import { DIST, HERE } from "../../scripts/paths.mjs";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
const FOLDER = join(HERE, "examples", "swap-page");
const FILES = {
  "/": join(FOLDER, "index.html"),
  "/page.js": join(FOLDER, "page.js"),
  "/style.css": join(FOLDER, "style.css"),
  "/countersign/web.js": join(DIST, "swap", "web.js"),
  "/countersign/countersign_bg.wasm": join(DIST, "swap", "countersign_bg.wasm"),
};
const AMOUNTS = { "base:usdc": "50 usdc", "litecoin:ltc": "0.5 ltc", "base:eth": "0.02 eth", "solana:sol": "0.4 sol", "starknet:strk": "300 strk" };
/** Blocks, in which every timelock passes. */
const LATER = { base: 50_000, litecoin: 1_000 };
const LIES = {
  "evm-contract": "the service: the call goes to a stranger's contract",
  "record-pays-less": "the service: the record pays half of what was requested",
  "solver-pays-less": "the solver pays half of what is agreed",
  "service-gone": "the service is gone once the source is paid",
};

/** What the page may do: `'wasm-unsafe-eval'` compiles WebAssembly, and allows no `eval`. */
const policy = (origins) =>
  [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "style-src 'self'",
    "img-src data:",
    `connect-src 'self' ${origins.join(" ")}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");

/** Returns what the page knows: a real wallet keeps its keys elsewhere. */
function wallet(path) {
  const read = (name) => readFileSync(join(dirname(path), name), "utf8");
  const config = JSON.parse(read("config.json"));
  const { base_url: service, app_id: appId, owners: accounts, key_file, key_files } = config;
  const keys = Object.fromEntries(Object.keys(accounts).map((chain) => [chain, read(key_files[chain] ?? key_file).trim()]));
  return { service, appId, accounts, keys, registry: read("registry.json"), nodes: JSON.parse(read("nodes.json")), amounts: AMOUNTS, lies: LIES, pollMs: 250 };
}

/** Starts a sandbox and creates the server. */
export async function server() {
  const chains = [...new Set(Object.keys(AMOUNTS).map((asset) => asset.split(":")[0]))];
  const sandbox = await start("--chains", chains.join(","));
  const known = wallet(sandbox.config);
  const headers = {
    "content-security-policy": policy([sandbox.service, ...Object.values(sandbox.chains).map(({ url }) => new URL(url).origin)]),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  };
  const turn = async (path) => {
    // More than the timelocks of the sources in which the solver's lies end.
    if (path === "/later") return Promise.all(Object.entries(LATER).map(([chain, blocks]) => sandbox.post("mine", { chain, blocks })));
    await sandbox.post("lies", { name: "none", on: true });
    const [, lie] = path.match(/^\/lie\/([\w-]+)$/) ?? [];
    return lie in LIES ? sandbox.post("lies", { name: lie, on: true }) : undefined;
  };
  const serving = createServer(async ({ url, method }, response) => {
    if (method === "POST") return void turn(url).then(() => response.writeHead(204).end(), () => response.writeHead(500).end());
    if (url === "/wallet.json") return response.writeHead(200, { ...headers, "content-type": "application/json" }).end(JSON.stringify(known));
    if (!FILES[url]) return response.writeHead(404).end();
    return response.writeHead(200, { ...headers, "content-type": TYPES[extname(FILES[url])] }).end(readFileSync(FILES[url]));
  });
  return { serving, sandbox };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { serving } = await server();
  serving.listen(8088, "127.0.0.1", () => console.log("http://127.0.0.1:8088"));
}
