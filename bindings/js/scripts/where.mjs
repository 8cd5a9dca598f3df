// Where the bytes of a build are: `node scripts/where.mjs`, or with the names of builds. Reads the modules that wasm-bindgen made, which
// still have the names of their functions, and divides what a page downloads in proportion to what each part compresses to on its own.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { DIST, FAMILIES, targetFolder } from "./paths.mjs";

const of = (...names) => new RegExp(`^(${names.join("|")})$`);

/** The parts, by the crate that a function's name begins with. A function of the standard library that is compiled for a type is counted there. */
const PARTS = [
  ["rules, readers and texts of a family", of(...FAMILIES.map((family) => `countersign_${family}`), "countersign_evm_core")],
  ["rules that all families share, JSON, the interface", /^countersign(_core|_chains|_json|_js|_orders)?$|^jiter$/],
  ["driver: client, nodes, store, transport", /^countersign_(client|node|store|swap|transport)$|^(url|idna|icu_\w+|futures_\w+|argon2|bip\w+|chacha\w+|poly1305|getrandom)$/],
  ["page of an order", /^countersign_view$|^(maud|fluent\w*|unic_\w+|intl_\w+|qrcode)$/],
  ["curves and hashes", /^(k256|p256|secp256k1\w*|rustsecp256k1\w*|ecdsa|elliptic_curve|crypto_bigint|curve25519_dalek|ed25519\w*|lambdaworks_\w+|starknet_\w+|rfc6979|hmac|sha[23]|digest|keccak|blake2|ripemd|bitcoin_hashes|primeorder|P)$/],
  ["formats of the chains", /^(alloy_\w+|bitcoin\w*|bech32|bdk_\w+|psbt\w*|solana_\w+|sui_\w+|bcs|ruint|prost|bs58|five8|base64\w*)$/],
  ["standard library, for all types", /^(core|alloc|std|dlmalloc|hashbrown|T)$/],
];
const OTHER = "other libraries";
const PARTS_OF_DATA = "texts and tables";

/** Returns the functions of a module as [name, bytes], and the bytes of its data. */
function read(module) {
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = module[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const bytes = () => {
    const length = number();
    at += length;
    return module.subarray(at - length, at);
  };
  const [bodies, names] = [[], new Map()];
  let data = Buffer.alloc(0);
  while (at < module.length) {
    const id = module[at++];
    const end = number() + at;
    if (id === 10) for (let left = number(); left > 0; left--) bodies.push(bytes());
    else if (id === 11) data = module.subarray(at, end);
    else if (id === 0 && bytes().toString() === "name") {
      while (at < end) {
        const kind = module[at++];
        const next = number() + at;
        if (kind === 1) for (let left = number(); left > 0; left--) names.set(number(), bytes().toString());
        at = next;
      }
    }
    at = end;
  }
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(module)).filter(({ kind }) => kind === "function").length;
  return { functions: bodies.map((body, index) => [names.get(index + imported) ?? "", body]), data };
}

/** Returns the kilobytes of each part of a build, as a page downloads them with gzip, by the name of the part. */
export function parts(build) {
  const { functions, data } = read(readFileSync(join(targetFolder(), "npm", build, "countersign_bg.wasm")));
  const found = new Map([...PARTS.map(([name]) => name), OTHER, PARTS_OF_DATA].map((name) => [name, []]));
  for (const [name, body] of functions) {
    // What JavaScript calls has the name of its export, without a crate.
    const crate = name.includes("::") ? name.match(/^(?:[<&*[(]|mut |dyn |const )*([A-Za-z_0-9]+)/)?.[1] ?? "" : "countersign_js";
    found.get(PARTS.find(([, crates]) => crates.test(crate))?.[0] ?? OTHER).push(body);
  }
  found.get(PARTS_OF_DATA).push(data);
  const gzip = (bytes) => gzipSync(bytes, { level: 9 }).length;
  const alone = [...found].map(([name, bodies]) => [name, gzip(Buffer.concat(bodies))]);
  const all = alone.reduce((total, [, size]) => total + size, 0);
  const made = gzip(readFileSync(join(DIST, build, "countersign_bg.wasm"))) / 1000;
  const script = gzip(readFileSync(join(DIST, build, "web.js"))) / 1000;
  return new Map([...alone.map(([name, size]) => [name, (size / all) * made]), ["JavaScript", script]]);
}

/** Returns the table of the README. */
export function partsTable(builds) {
  const columns = builds.map(parts);
  const rows = [...columns[0].keys()].map((name) => [name, ...columns.map((column) => Math.round(column.get(name)))]);
  const total = ["together", ...columns.map((column) => Math.round([...column.values()].reduce((sum, size) => sum + size, 0)))];
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(["part", ...builds.map((build) => `\`${build}\``)]), line(["---", ...builds.map(() => "---")]), ...[...rows, total].map(line)].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const named = process.argv.slice(2);
  const builds = named.length > 0 ? named : ["all", ...FAMILIES, "swap", "page"];
  const missing = builds.filter((build) => !existsSync(join(DIST, build, "countersign_bg.wasm")));
  if (missing.length > 0) throw new Error(`not built: ${missing.join(", ")}`);
  console.log(partsTable(builds));
}
