// Builds the package into dist/: `npm run build`, or `npm run build -- evm` for one of the builds alone, with its types.
// `npm run build -- swap+evm+bitcoin` builds the driver for these chains alone, in dist/swap+evm+bitcoin.
//
// Each build is one WebAssembly module with its JavaScript. Needed beside Node: cargo, and what `.ci/wasm` needs to compile for
// WebAssembly. The wasm-bindgen tool is installed once into the cache folder, in the version of the lock file. It is compiled, because
// its releases are on no registry of packages; one of the right version in the PATH is taken as it is.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { build as bundle } from "esbuild";
import { ADAPTERS, BUILDS, DIST, FAMILIES, HERE, LARGER, ROOT, cacheFolder, localProgram, lockedVersion, targetFolder } from "./paths.mjs";
import { measure } from "./sizes.mjs";
import { StepFailed, step } from "./step.mjs";

const TARGET = "wasm32-unknown-unknown";
const WORK = join(targetFolder(), "npm");

const options = process.argv.slice(2).filter((word) => word.startsWith("--"));
const named = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const unknown = [...named.filter((name) => !BUILDS.includes(name) && !isOwn(name)), ...options.filter((option) => option !== "--if-needed")];
if (unknown.length > 0) fail(`unknown: ${unknown.join(" ")}; the builds are ${BUILDS.join(", ")}, or such as swap+evm+bitcoin; the option is --if-needed`);
const builds = named.length > 0 ? [...new Set(named)] : BUILDS;

// A line for each build that is there, with the hash of what it was made from.
const stamp = join(DIST, "inputs.txt");
const hash = hashOfInputs();
const lineOf = (name) => `${name} ${hash}`;
const made = new Set(existsSync(stamp) ? readFileSync(stamp, "utf8").split("\n").filter((line) => line.endsWith(` ${hash}`)) : []);
const wanted = options.includes("--if-needed") ? builds.filter((name) => !made.has(lineOf(name))) : builds;
if (wanted.length === 0) process.exit(0);
for (const name of wanted) made.delete(lineOf(name));
writeStamp();

try {
  const bindgen = await wasmBindgen();
  let finished = Promise.resolve();
  for (const name of wanted) {
    await compile(name, bindgen);
    // wasm-opt has one thread, and cargo ends with one, so each build is finished while the next one is compiled.
    finished = finish(name, finished);
    finished.catch(() => {});
  }
  await finished;
  await adapters();
  writeStamp();
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  fail(error.message);
}

function writeStamp() {
  mkdirSync(DIST, { recursive: true });
  writeFileSync(stamp, [...made].map((line) => `${line}\n`).join(""));
}

/** Whether a build is the driver or the page for some families alone: `swap+evm+bitcoin`. */
function isOwn(name) {
  const [kind, ...families] = name.split("+");
  return LARGER.includes(kind) && families.length > 0 && families.every((family) => FAMILIES.includes(family));
}

/** Makes a module small and bundles its JavaScript, once that of the build `before` is done. */
async function finish(name, before) {
  await before;
  await shrink(name);
  await link(name);
  if (name === wanted[0]) await declarations(name);
  if (isOwn(name)) console.log(`${name}: ${Math.round(measure([name])[0].gzip / 1000)} kB with gzip`);
  made.add(lineOf(name));
}

/** Compiles the crate with the families of a build. */
async function compile(name, bindgen) {
  const only = ["--no-default-features", "--features", name.replaceAll("+", ",")];
  const families = name === "all" ? [] : LARGER.includes(name) ? ["--features", name] : only;
  const args = ["build", "--release", "--locked", "--target", TARGET, "--manifest-path", join(HERE, "Cargo.toml"), ...families];
  // `.ci/release-cargo`: the module must not depend on the folders of the machine that built it.
  const linker = join(HERE, "scripts", "link");
  const env = { CARGO_TARGET_DIR: targetFolder(), CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: linker };
  await step(`${name}: cargo build`, join(ROOT, ".ci", "wasm"), [join(ROOT, ".ci", "release-cargo"), ...args], env);
  const made = join(targetFolder(), TARGET, "release", "countersign_js.wasm");
  await step(`${name}: wasm-bindgen`, bindgen, [made, "--target", "web", "--out-dir", join(WORK, name), "--out-name", "countersign"]);
}

async function shrink(name) {
  mkdirSync(join(DIST, name), { recursive: true });
  // Never --all-features: it emits imports that browsers refuse. --low-memory-unused is sound because the lowest kilobyte of memory is
  // the end of the stack and contains no data. Sorting functions by name puts similar ones next to each other, so that gzip saves 2 %.
  const module = join(WORK, name, "countersign_bg.wasm");
  await step(`${name}: wasm-opt`, localProgram("wasm-opt"), ["-Oz", "--converge", "--low-memory-unused", "--reorder-functions-by-name", module, "-o", join(DIST, name, "countersign_bg.wasm")]);
}

/** Bundles the JavaScript of a build: a CommonJS file for Node, and an ECMAScript module for browsers. */
async function link(name) {
  const common = { bundle: true, charset: "utf8", target: "es2022", keepNames: true, legalComments: "none", logLevel: "warning" };
  const alias = { "countersign-glue": join(WORK, name, "countersign.js") };
  const file = (end) => join(DIST, name, end);
  const [kind] = name.split("+");
  const entry = (platform) => join(HERE, "lib", LARGER.includes(kind) ? `${kind}-${platform}.ts` : `${platform}.ts`);
  await bundle({
    ...common, alias, platform: "node", format: "cjs", sourcemap: true, entryPoints: [entry("node")], outfile: file("node.cjs"),
    // Only used where the module is fetched, which Node's build never does.
    define: { "import.meta.url": "undefined" },
  });
  // What a page downloads. Classes and functions keep the names that errors show.
  const small = { minifyWhitespace: true, minifySyntax: true, minifyIdentifiers: true };
  await bundle({
    ...common, ...small, alias, platform: "browser", format: "esm", sourcemap: true, entryPoints: [entry("web")], outfile: file("web.js"),
  });
  // One instance for both module systems: an order made in one is an order in the other.
  const list = Object.keys(createRequire(import.meta.url)(file("node.cjs"))).sort();
  writeFileSync(file("node.js"), `import countersign from "./node.cjs";\nexport const { ${list.join(", ")} } = countersign;\n`);
}

/** Writes the type declarations, once for each module system. The glue of every build has what they need. */
async function declarations(name) {
  const out = join(WORK, "types");
  rmSync(out, { recursive: true, force: true });
  // Where tsconfig.json finds it.
  copyFileSync(join(WORK, name, "countersign.d.ts"), join(WORK, "glue.d.ts"));
  await step("types", localProgram("tsc"), ["--project", HERE, "--outDir", out]);
  for (const [folder, to] of [["lib", "types"], ["adapters", "adapters"]]) {
    mkdirSync(join(DIST, to), { recursive: true });
    for (const file of readdirSync(join(out, folder)).filter((file) => file.endsWith(".d.ts"))) {
      const text = readFileSync(join(out, folder, file), "utf8").replaceAll("../lib/", "../types/");
      writeFileSync(join(DIST, to, file), text);
      writeFileSync(join(DIST, to, file.replace(/\.ts$/, ".cts")), text.replace(/(from "\.[^"]+)\.js"/g, '$1.cjs"'));
    }
  }
}

/** Bundles the adapters. They import nothing at run time, so one file of each kind serves everywhere. */
async function adapters() {
  for (const [format, end] of [["esm", "js"], ["cjs", "cjs"]]) {
    await bundle({
      bundle: true, charset: "utf8", target: "es2022", format, platform: "neutral", packages: "external", logLevel: "warning", sourcemap: true,
      entryPoints: ADAPTERS.map((name) => join(HERE, "adapters", `${name}.ts`)), outdir: join(DIST, "adapters"),
      outExtension: { ".js": `.${end}` },
    });
  }
}

/** Returns the wasm-bindgen tool of the lock file's version; another version refuses the module. */
async function wasmBindgen() {
  const version = lockedVersion("wasm-bindgen");
  const isRight = (program) => {
    try {
      return execFileSync(program, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim().endsWith(` ${version}`);
    } catch {
      return false;
    }
  };
  const folder = join(cacheFolder(), `wasm-bindgen-${version}`);
  const cached = join(folder, "bin", "wasm-bindgen");
  const found = ["wasm-bindgen", cached].find(isRight);
  if (found) return found;
  const args = ["install", "wasm-bindgen-cli", "--version", version, "--no-default-features", "--root", folder];
  await step(`wasm-bindgen ${version}, once: about 190 crates`, "cargo", args, { CARGO_TARGET_DIR: join(folder, "target") });
  rmSync(join(folder, "target"), { recursive: true, force: true });
  return cached;
}

/** Hashes everything that the builds are made from. */
function hashOfInputs() {
  const hash = createHash("sha256");
  const add = (path) => {
    for (const entry of readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) {
        if (entry.name !== "tests") add(inner);
      } else {
        hash.update(relative(ROOT, inner)).update("\0").update(readFileSync(inner));
      }
    }
  };
  for (const folder of ["src", "lib", "adapters", "scripts"]) add(join(HERE, folder));
  for (const folder of readdirSync(join(ROOT, "crates")).filter((folder) => folder !== "cli")) add(join(ROOT, "crates", folder));
  const files = ["Cargo.toml", "Cargo.lock", "package.json", "package-lock.json", "tsconfig.json"].map((name) => join(HERE, name));
  for (const file of [...files, ...["Cargo.toml", ".ci/release-cargo", ".ci/release-rustc"].map((name) => join(ROOT, name))]) hash.update(readFileSync(file));
  return hash.digest("hex");
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
