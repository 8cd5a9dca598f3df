// Asks Safe's own contracts, running in an EVM, for the hashes that a Safe owner compares: those of the calls and of
// the message in some fixtures. Writes crates/view/tests/safe.json. With --check, fails if the file would change.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createCustomCommon, Mainnet } from "@ethereumjs/common";
import { createEVM } from "@ethereumjs/evm";
import { createAddressFromString, hexToBytes } from "@ethereumjs/util";
import { Interface, TypedDataEncoder, ZeroAddress, concat, dataSlice, getBytes, keccak256 } from "ethers";

const out = fileURLToPath(new URL("../../crates/view/tests/safe.json", import.meta.url));
const fixtures = new URL("../../fixtures/accept/evm.jsonl", import.meta.url);
const FIXTURES = ["evm-token-approval-exact", "evm-native-typed-data", "evm-on-behalf"];
const NONCE = 41;
/**
 * The package of each version, its digest, and the files of the contract and of the fallback handler, which computes
 * the hash of a message. The packages are fetched one by one, because their dependencies take 600 MB and are not
 * needed.
 */
const HANDLER_FILE = "build/artifacts/contracts/handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler.json";
const VERSIONS = {
  "1.2.0": {
    name: "@gnosis.pm/safe-contracts",
    integrity: "sha512-lcpZodqztDgMICB0kAc8aJdQePwCaLJnbeNjgVTfLAo3fBckVRV06VHXg5IsZ26qLA4JfZ690Cb7TsDVE9ZF3w==",
    files: ["build/contracts/GnosisSafe.json"],
  },
  "1.3.0": {
    name: "@gnosis.pm/safe-contracts",
    integrity: "sha512-1p+1HwGvxGUVzVkFjNzglwHrLNA67U/axP0Ct85FzzH8yhGJb4t9jDjPYocVMzLorDoWAfKicGy1akPY9jXRVw==",
    files: ["build/artifacts/contracts/GnosisSafe.sol/GnosisSafe.json", HANDLER_FILE],
  },
  "1.4.1": {
    name: "@safe-global/safe-contracts",
    integrity: "sha512-fP1jewywSwsIniM04NsqPyVRFKPMAuirC3ftA/TA4X3Zc5EnwQp/UCJUU2PL/37/z/jMo8UUaJ+pnFNWmMU7dQ==",
    files: ["build/artifacts/contracts/Safe.sol/Safe.json", HANDLER_FILE],
  },
  "1.5.0": {
    name: "@safe-global/safe-smart-account",
    integrity: "sha512-VIMWxoeY/kNuZVsQVvAeOFKcQS3eojCXg0ecGnesBSLn5ypYshmBhVEEU5XiurJJGTs/MrcoLTbTxhs9W9GvdQ==",
    files: ["build/artifacts/contracts/Safe.sol/Safe.json", HANDLER_FILE],
  },
};

/** Returns the code of a version's contracts. */
function code(version) {
  const { name, integrity, files } = VERSIONS[version];
  const folder = fileURLToPath(new URL(`node_modules/.safe/${version}/`, import.meta.url));
  if (!existsSync(`${folder}package`)) {
    mkdirSync(folder, { recursive: true });
    const [packed] = JSON.parse(execFileSync("npm", ["pack", "--json", "--silent", `--pack-destination=${folder}`, `${name}@${version}`]));
    const archive = `${folder}${packed.filename.replace("@", "").replace("/", "-")}`;
    const digest = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    if (digest !== integrity) throw new Error(`${name}@${version} is not what it was: ${digest}`);
    execFileSync("tar", ["-xzf", archive, "-C", folder]);
  }
  return files.map((file) => JSON.parse(readFileSync(`${folder}package/${file}`, "utf8")).deployedBytecode);
}

const safe = new Interface([
  "function setup(address[] owners,uint256 threshold,address to,bytes data,address fallbackHandler,address paymentToken,uint256 payment,address paymentReceiver)",
  "function domainSeparator() view returns (bytes32)",
  "function encodeTransactionData(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce) view returns (bytes)",
  "function getTransactionHash(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce) view returns (bytes32)",
  "function getMessageHashForSafe(address safe,bytes message) view returns (bytes32)",
  "function encodeMessageDataForSafe(address safe,bytes message) view returns (bytes)",
]);
const HANDLER = "0x00000000000000000000000000000000000f0001";

/** Deploys a Safe of a version at an address on a chain. Returns a function that calls it. */
async function deployed(version, account, chain) {
  const evm = await createEVM({ common: createCustomCommon({ chainId: chain }, Mainnet) });
  const [contract, handler] = code(version);
  await evm.stateManager.putCode(createAddressFromString(account), hexToBytes(contract));
  if (handler) await evm.stateManager.putCode(createAddressFromString(HANDLER), hexToBytes(handler));
  const call = async (to, name, ...values) => {
    const data = getBytes(safe.encodeFunctionData(name, values));
    const result = await evm.runCall({ to: createAddressFromString(to), data, gasLimit: 10_000_000n });
    if (result.execResult.exceptionError) throw new Error(`${version}: ${name}: ${result.execResult.exceptionError.error}`);
    return safe.decodeFunctionResult(name, result.execResult.returnValue).at(0);
  };
  await call(account, "setup", [`0x${"11".repeat(20)}`], 1, ZeroAddress, "0x", handler ? HANDLER : ZeroAddress, ZeroAddress, 0, ZeroAddress);
  return call;
}

/** Returns the domain hash, the message hash and their digest. The hashed bytes are `1901 | domain hash | message
   hash`. */
function hashes(domain, preimage, digest) {
  if (keccak256(preimage) !== digest || dataSlice(preimage, 2, 34) !== domain) throw new Error("the Safe contradicts itself");
  return [domain, dataSlice(preimage, 34, 66), digest];
}

const cases = [];
for (const line of readFileSync(fixtures, "utf8").trim().split("\n").map(JSON.parse)) {
  if (!FIXTURES.includes(line.id)) continue;
  // The account that sends and signs.
  const account = line.request.source.delegate ?? line.request.source.owner;
  const { approval_transaction: approval, initiate_transaction: initiate, typed_data: typed } = line.response.result;
  for (const version of Object.keys(VERSIONS)) {
    const call = await deployed(version, account, Number(initiate.chain_id));
    const domain = await call(account, "domainSeparator");
    const shown = {};
    let nonce = NONCE;
    for (const [name, transaction] of Object.entries({ approval, initiate })) {
      if (!transaction) continue;
      const values = [transaction.to, transaction.value, transaction.data, 0, 0, 0, 0, ZeroAddress, ZeroAddress, nonce++];
      const preimage = await call(account, "encodeTransactionData", ...values);
      shown[name] = hashes(domain, preimage, await call(account, "getTransactionHash", ...values));
    }
    // Up to version 1.2, a Safe does not support today's form of ERC-1271.
    if (typed && version !== "1.2.0") {
      const { EIP712Domain, ...types } = typed.types;
      const digest = TypedDataEncoder.hash(typed.domain, types, typed.message);
      const all = await call(HANDLER, "getMessageHashForSafe", account, digest);
      // Up to version 1.3, the contracts return only the digest. The code below finds the parts that lead to it.
      const isParted = version >= "1.4";
      const struct = keccak256(concat([keccak256(Buffer.from("SafeMessage(bytes message)")), keccak256(digest)]));
      const preimage = isParted ? await call(HANDLER, "encodeMessageDataForSafe", account, digest) : concat(["0x1901", domain, struct]);
      shown.typed_data = hashes(domain, preimage, all);
    }
    cases.push({ fixture: line.id, version, nonce: NONCE, shown });
  }
}
if (cases.length !== FIXTURES.length * Object.keys(VERSIONS).length) throw new Error("a fixture is missing");

const text = `${JSON.stringify({ source: "Safe's own contracts 1.2.0, 1.3.0, 1.4.1 and 1.5.0, run by @ethereumjs/evm 10.1.3: proofs/safe", cases }, null, 1)}\n`;
if (!process.argv.includes("--check")) writeFileSync(out, text);
else if (readFileSync(out, "utf8") !== text) throw new Error(`${out} is not what Safe's contracts say`);
console.log(`${cases.length} orders, each by its Safe`);
