// A wallet that swaps, against the sandbox: `node swap.js CONFIG FROM TO AMOUNT`, or without assets to continue what is not over.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { type ConsentRequest, type Signer, type SwapChange, Swaps, fileStore } from "countersign/swap";
import { signWithViem } from "countersign/viem";
import { privateKeyToAccount } from "viem/accounts";

interface Config {
  readonly base_url: string;
  readonly app_id: string;
  readonly owners: Readonly<Record<string, string>>;
  readonly key_file: string;
  readonly key_files: Readonly<Record<string, string>>;
}

const [path = "config.json", from, to, amount] = process.argv.slice(2);
const file = (name: string): string => readFileSync(join(dirname(path), name), "utf8").trim();
const config: Config = JSON.parse(file("config.json"));

/** Signs EVM orders with viem, and those of other chains with a key. */
const signer = (chain: string): Signer => {
  const key = file(config.key_files[chain] ?? config.key_file);
  return (unsigned) => (unsigned.family === "evm" ? signWithViem(unsigned, privateKeyToAccount(`0x${key}`)) : unsigned.sign(key));
};

async function consent({ summary, warnings }: ConsentRequest): Promise<boolean> {
  for (const { topic, text } of summary) console.log(`${topic}: ${text}`);
  for (const { severity, message } of warnings) console.log(`${severity}: ${message}`);
  const asking = createInterface({ input: stdin, output: stdout });
  const answer = await asking.question("Sign this? (yes/no) ");
  asking.close();
  return answer === "yes";
}

function show(change: SwapChange): void {
  if (change.event === "phrase_created") console.log(`write these words down: ${swaps.phrase()}`);
  else if (change.event === "created") console.log(`order ${change.orderId}`);
  else console.log(change.message);
  if (change.event === "status" && change.status === "waiting") console.log(`waiting (${change.code})`);
}

const swaps = await Swaps.open({
  service: config.base_url,
  appId: config.app_id,
  registry: file("registry.json"),
  nodes: JSON.parse(file("nodes.json")) as Record<string, string[]>,
  accounts: config.owners,
  signers: Object.fromEntries(Object.keys(config.owners).map((chain) => [chain, signer(chain)])),
  store: fileStore("swaps"),
  consent,
});
const receiveAt = config.owners[to?.split(":")[0] ?? ""];
const changes = from && to && amount && receiveAt ? swaps.create({ from, to, amount, receiveAt }) : swaps.resume();
for await (const change of changes) show(change);
await swaps.close();
