// How large the modules are: what a page downloads.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { BUILDS, DIST } from "./paths.mjs";

/**
 * What is above the aim of 350 kB for one family: Bitcoin's, Sui's and Starknet's code, the spellings of signatures and transactions of EVM's
 * wallets, and on EVM, Solana and Starknet the proof of payments of other accounts.
 */
const REACHED = { all: 961_000, bitcoin: 421_000, evm: 372_000, solana: 352_000, starknet: 367_000, sui: 402_000 };

/** Most bytes of the build with the driver, which is for whole wallets. */
const SWAP = 1_606_000;

/** Most bytes of the build with the page of an order, receipts and descriptors. */
const PAGE = 1_111_000;

/** Most bytes of a build's WebAssembly and JavaScript together, with gzip. */
export const limitOf = (build) => ({ swap: SWAP, page: PAGE, ...REACHED }[build] ?? 350_000);

/** Measures builds: WebAssembly and JavaScript, plain, with gzip, and with brotli, in bytes. */
export function measure(builds = BUILDS) {
  return builds.map((build) => {
    const files = ["countersign_bg.wasm", "web.js"].map((file) => readFileSync(join(DIST, build, file)));
    const sum = (size) => files.reduce((total, file) => total + size(file), 0);
    return { build, raw: sum((file) => file.length), gzip: sum((file) => gzipSync(file, { level: 9 }).length), brotli: sum((file) => brotliCompressSync(file).length) };
  });
}

/** Returns the table of the README. */
export function sizeTable() {
  const kilobytes = (bytes) => Math.round(bytes / 1000).toString();
  const rows = measure().map(({ build, raw, gzip, brotli }) => {
    const name = build === "all" ? "`countersign`" : `\`countersign/${build}\``;
    return `| ${name} | ${kilobytes(raw)} | ${kilobytes(gzip)} | ${kilobytes(brotli)} |`;
  });
  return ["| build | kB | gzip | brotli |", "|---|---|---|---|", ...rows].join("\n");
}
