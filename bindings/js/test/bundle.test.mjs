// The README's recipe for esbuild, as a page and as a module worker, in headless Chromium; and an error that crosses between them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { HERE } from "../scripts/paths.mjs";
import { launch, skip } from "./chromium.mjs";
import { REGISTRY, documents, fixture } from "./fixtures.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };
const RECIPE = readFileSync(join(HERE, "README.md"), "utf8").match(/```js\n\/\/ esbuild ([^\n]*)\n([^]*?)```/);

const PAGE = `
import { CountersignError, Order, Registry, init } from "countersign";
${RECIPE[2]}
const { registry, docs } = await (await fetch("demo.json")).json();
const order = Order.verify(docs, new Registry(registry));
const worker = new Worker("worker.js", { type: "module" });
worker.onmessage = ({ data }) => {
  if (data === "ready") return worker.postMessage({ registry, docs });
  const error = CountersignError.from(data.failed);
  document.title = [order.orderId, data.orderId, error instanceof CountersignError, error.code, error.blame].join(" ");
};
worker.onerror = ({ message }) => (document.title = message);
`;
const WORKER = `
import { Order, Registry, init } from "countersign";
${RECIPE[2]}
self.onmessage = ({ data: { registry, docs } }) => {
  const { orderId } = Order.verify(docs, new Registry(registry));
  try {
    Order.verify({ ...docs, response: "{}" }, new Registry(registry));
  } catch (error) {
    self.postMessage({ orderId, failed: error.toJSON() });
  }
};
self.postMessage("ready");
`;

test("esbuild bundles a page and a worker that load the module", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "countersign-"));
  const entries = { page: PAGE, worker: WORKER };
  // The options that the recipe names.
  assert.match(RECIPE[1], /^--bundle --format=esm --loader:\.wasm=file --outdir=out page\.js$/);
  // Inside the package, so that its own name is found; esbuild resolves the imports of a text from there.
  for (const [name, contents] of Object.entries(entries)) {
    const options = { bundle: true, format: "esm", loader: { ".wasm": "file" }, outdir: folder, logLevel: "error" };
    const built = await build({ ...options, stdin: { contents, resolveDir: HERE, sourcefile: `${name}.js` }, entryNames: name });
    assert.deepEqual(built.warnings, []);
  }
  const one = fixture("evm-token-approval-exact");
  writeFileSync(join(folder, "demo.json"), JSON.stringify({ registry: REGISTRY, docs: documents(one.input) }));
  writeFileSync(join(folder, "index.html"), '<!doctype html><title></title><script type="module" src="page.js"></script>');
  const server = createServer(({ url }, response) => {
    try {
      const path = url === "/" ? "/index.html" : url;
      const body = readFileSync(join(folder, path));
      response.writeHead(200, { "content-type": TYPES[extname(path)] }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const browser = await launch();
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(() => document.title !== "", undefined, { timeout: 20_000 }).catch((error) => complaints.push(String(error)));
    assert.deepEqual(complaints, []);
    assert.equal(await page.title(), `${one.expect.order_id} ${one.expect.order_id} true missing_field service`);
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  }
});
