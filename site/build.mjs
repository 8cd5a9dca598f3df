// Builds the site into dist/: static files with relative addresses, which any file server can serve.
//
//   ./build                    builds what is needed, the WebAssembly modules included
//   ./build --modules-as-they-are   takes bindings/js/dist as it is, for work on the site alone
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FAMILIES, NAMES, writeData } from "./data.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const OUT = join(HERE, "dist");
const BINDINGS = join(ROOT, "bindings", "js");
const SDKS = join(ROOT, "benches", "js");

const options = process.argv.slice(2);
const unknown = options.filter((option) => option !== "--modules-as-they-are");
if (unknown.length > 0) fail(`unknown: ${unknown.join(" ")}; the option is --modules-as-they-are`);

for (const folder of [HERE, BINDINGS, SDKS]) install(folder);
if (!options.includes("--modules-as-they-are")) run("node", ["scripts/build.mjs", "--if-needed"], BINDINGS);

const { build: bundle } = await import("esbuild");
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
for (const name of [...FAMILIES, "page"]) copyModule(name);
await bundleScripts();
await writeData(ROOT, OUT);
const hasBook = existsSync(join(HERE, "book", "build"));
if (hasBook) run(join(HERE, "book", "build"), [join(OUT, "book")], HERE);
for (const name of ["style.css", "icon.svg"]) cpSync(join(HERE, "src", name), join(OUT, name));
writeFileSync(join(OUT, "index.html"), page());

/** Copies what a browser needs of one build of the JavaScript package. */
function copyModule(name) {
  mkdirSync(join(OUT, "countersign", name), { recursive: true });
  const script = readFileSync(join(BINDINGS, "dist", name, "web.js"), "utf8").replace(/^\/\/# sourceMappingURL=.*$/m, "");
  writeFileSync(join(OUT, "countersign", name, "web.js"), script);
  cpSync(join(BINDINGS, "dist", name, "countersign_bg.wasm"), join(OUT, "countersign", name, "countersign_bg.wasm"));
}

/** Bundles the page, the worker, and one worker for each SDK, which is loaded only when it is asked to sign. */
async function bundleScripts() {
  const common = { bundle: true, minify: true, format: "esm", platform: "browser", target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" };
  await bundle({ ...common, entryPoints: [join(HERE, "src", "main.js"), join(HERE, "src", "worker.js")], outdir: OUT });
  for (const family of FAMILIES) {
    await bundle({
      ...common, entryPoints: [join(HERE, "src", "sdk.js")], outfile: join(OUT, "sdk", `${family}.js`),
      alias: { "sdk-family": join(SDKS, "families", `${family}.mjs`) },
      legalComments: "linked", inject: [join(HERE, "src", "sdk-globals.js")], nodePaths: [join(HERE, "node_modules")],
      define: { global: "globalThis", "process.env.NODE_ENV": '"production"' },
    });
  }
}

/** Returns the page with its policy. */
function page() {
  const policy = [
    "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'",
    // The workers start from a blob, so that they have this policy too.
    "worker-src 'self' blob:",
    "connect-src 'self'", "img-src 'self'", "style-src 'self'",
    // The page of an order has a style of its own. Its frame has this policy too, besides the page's own, which allows that one style only.
    "style-src-elem 'self' 'unsafe-inline'",
    "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types countersign",
  ].join("; ");
  const families = FAMILIES.map((family, place) =>
    `<label class="family"><input type="radio" name="family" value="${family}"${place === 0 ? " checked" : ""}><span>${NAMES[family]}</span></label>`);
  const book = hasBook ? '<a href="book/index.html">Book</a>' : "";
  return readFileSync(join(HERE, "src", "index.html"), "utf8").replace("POLICY", policy).replace("<!-- book -->", book).replace("<!-- families -->", families.join(""));
}

/** Installs the pinned packages of a folder, if they are not there. */
function install(folder) {
  const [made, lock] = [join(folder, "node_modules", ".package-lock.json"), join(folder, "package-lock.json")];
  const pinned = JSON.parse(readFileSync(lock, "utf8")).packages;
  const isThere = existsSync(made) && Object.entries(JSON.parse(readFileSync(made, "utf8")).packages).every(([name, { version }]) => pinned[name]?.version === version);
  if (!isThere) run("npm", ["ci", "--silent", "--no-audit", "--no-fund"], folder);
}

function run(program, words, folder) {
  try {
    execFileSync(program, words, { cwd: folder, stdio: "inherit" });
  } catch (error) {
    fail(`${program} ${words.join(" ")} failed: ${error.message}`);
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
