// Compiles all contracts in src/ and writes out/<Name>.json. The same compiler and sources give the same bytes.
// Nothing here depends on the clock, the path or the environment, and the bytecode has no metadata hash.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import solc from "solc";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

// A source without bytecode of its own (an abstract base) gets no artefact.
const sources = Object.fromEntries(
  readdirSync(path("src"))
    .filter((file) => file.endsWith(".sol"))
    .sort()
    .map((file) => [file, { content: readFileSync(path(`src/${file}`), "utf8") }]),
);

const answer = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources,
      settings: {
        optimizer: { enabled: true, runs: 200 },
        // The oldest instruction set among the chains of this family. Tron and some rollups lag behind Ethereum.
        evmVersion: "paris",
        metadata: { bytecodeHash: "none", appendCBOR: false },
        outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
      },
    }),
  ),
);

// A warning fails the build like an error. An artefact is only written if the compiler reports nothing.
const complaints = (answer.errors ?? []).map((complaint) => complaint.formattedMessage);
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exit(1);
}

rmSync(path("out"), { recursive: true, force: true });
mkdirSync(path("out"));
for (const contracts of Object.values(answer.contracts)) {
  for (const [name, { abi, evm }] of Object.entries(contracts)) {
    if (evm.bytecode.object === "") continue;
    const artefact = {
      compiler: `solc ${solc.version()}`,
      abi,
      bytecode: `0x${evm.bytecode.object}`,
      deployedBytecode: `0x${evm.deployedBytecode.object}`,
    };
    writeFileSync(path(`out/${name}.json`), `${JSON.stringify(artefact, null, 2)}\n`);
    console.log(`out/${name}.json: ${evm.deployedBytecode.object.length / 2} bytes`);
  }
}
