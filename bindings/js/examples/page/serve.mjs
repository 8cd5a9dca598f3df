// Serves the page with the strictest policy that WebAssembly allows: `npm run page`, then http://127.0.0.1:8087.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { DIST, HERE } from "../../scripts/paths.mjs";
import { REGISTRY, documents, fixture, walletOf } from "../../test/fixtures.mjs";

/** What the page may do: `'wasm-unsafe-eval'` compiles WebAssembly, and allows no `eval`. */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
const IDS = ["evm-token-approval-exact", "tron-token-approval-exact", "starknet-approval-exact", "solana-token-v0", "sui-native", "bitcoin-p2wpkh"];

/** Returns orders of the fixtures, with their published keys, and one with another recipient than the pinned one. */
export function demo() {
  const cases = IDS.map((id) => {
    const { input } = fixture(id);
    return { id, ...documents(input), ...walletOf(input) };
  });
  const [first] = cases;
  const { initiate_transaction } = JSON.parse(first.response).result;
  const response = first.response.replaceAll(initiate_transaction.to.slice(2), "5e".repeat(20));
  return { registry: REGISTRY, cases: [...cases, { ...first, id: "evm-tampered", response }] };
}

/** Creates the server. Another policy is for tests. */
export function server(policy = POLICY) {
  const files = {
    "/": join(HERE, "examples", "page", "index.html"),
    "/page.js": join(HERE, "examples", "page", "page.js"),
    "/style.css": join(HERE, "examples", "page", "style.css"),
    "/countersign/web.js": join(DIST, "all", "web.js"),
    "/countersign/countersign_bg.wasm": join(DIST, "all", "countersign_bg.wasm"),
  };
  return createServer(({ url }, response) => {
    const path = url === "/demo.json" ? url : files[url];
    if (!path) return response.writeHead(404).end();
    const body = url === "/demo.json" ? JSON.stringify(demo()) : readFileSync(path);
    const headers = { "content-type": TYPES[extname(path)], "content-security-policy": policy, "x-content-type-options": "nosniff" };
    return response.writeHead(200, headers).end(body);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  server().listen(8087, "127.0.0.1", () => console.log("http://127.0.0.1:8087"));
}
