// Writes the measured tables into the README: `npm run readme`, or `npm run readme -- speed` for one of them.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { machine, speedTable, startTable } from "./bench.mjs";
import { HERE } from "./paths.mjs";
import { sizeTable } from "./sizes.mjs";
import { partsTable } from "./where.mjs";

const path = join(HERE, "README.md");
let text = readFileSync(path, "utf8");
const tables = { sizes: sizeTable, parts: () => partsTable(["all", "evm", "starknet", "swap", "page"]), speed: () => `${machine()}:\n\n${speedTable()}`, start: startTable };
const named = process.argv.slice(2);
for (const name of named.length > 0 ? named : Object.keys(tables)) {
  const table = tables[name]?.();
  if (table === undefined) throw new Error(`no table ${name}; there are ${Object.keys(tables).join(" and ")}`);
  const [start, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [before, rest] = text.split(start);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`README.md has no ${start} with ${end}`);
  text = `${before}${start}\n${table}\n${end}${after}`;
}
writeFileSync(path, text);
