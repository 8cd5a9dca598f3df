// A small wallet that swaps from one EVM chain to another. countersign checks what the service asks it to sign.
import { createHash, randomBytes } from "node:crypto";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const ORDERS = {
  name: "orders", type: "function", stateMutability: "view",
  inputs: [{ name: "id", type: "bytes32" }],
  outputs: ["address", "address", "uint256", "uint256", "uint256", "uint256"].map((type, index) => {
    return { name: ["initiator", "redeemer", "initiatedAt", "timelock", "amount", "fulfilledAt"][index], type };
  }),
};

/** Thrown if countersign refuses what the service returned. */
export class Refused extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

/** Returns a single-key wallet. `nodes` are URLs by chain, `registry` is the path of the pinned registry, and
   `program` is that of countersign. */
export const wallet = ({ service, nodes, registry, key, program }) => {
  const account = privateKeyToAccount(key);

  const call = async (method, path, body) => {
    const headers = { "content-type": "application/json", "service-app-id": "example" };
    const response = await fetch(`${service}/v2${path}`, { method, headers, body: body && JSON.stringify(body) });
    const answer = await response.json();
    if (answer.status !== "Ok") throw new Error(answer.error);
    return answer.result;
  };

  const chain = async (asset) => {
    const [name] = asset.split(":");
    const transport = http(nodes[name]);
    const id = await createPublicClient({ transport }).getChainId();
    const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
    const viemChain = defineChain({ id, name, nativeCurrency, rpcUrls: { default: { http: [nodes[name]] } } });
    const reader = createPublicClient({ chain: viemChain, transport, pollingInterval: 100 });
    const sender = createWalletClient({ account, chain: viemChain, transport });
    return { reader, sender };
  };

  /** Compares the response and the record with the request, using countersign. Throws `Refused`. */
  const verify = async (request, response, order) => {
    const directory = await mkdtemp(join(tmpdir(), "wallet-"));
    try {
      const files = { request, response, order };
      const options = await Promise.all(
        Object.entries(files).map(async ([name, value]) => {
          const file = join(directory, `${name}.json`);
          await writeFile(file, JSON.stringify(value));
          return [`--${name}`, file];
        }),
      );
      const output = await new Promise((resolve, reject) => {
        // The exit code is 1 for a refusal. The output states the reason.
        execFile(program, ["--json", "explain", "--registry", registry, ...options.flat()], (error, stdout, stderr) => {
          if (stdout) resolve(stdout);
          else reject(error ?? new Error(stderr));
        });
      });
      const verdict = JSON.parse(output);
      if (verdict.ok !== true) throw new Refused(verdict.error);
      return verdict.summary;
    } finally {
      await rm(directory, { recursive: true });
    }
  };

  /** Sends a verified transaction, and waits until it is in a block. */
  const send = async ({ reader, sender }, { to, data, value, gas_limit: gas }) => {
    const hash = await sender.sendTransaction({ to, data, value: BigInt(value), gas: BigInt(gas) });
    const receipt = await reader.waitForTransactionReceipt({ hash });
    if (receipt.status !== "success") throw new Error(`${hash} has failed`);
    return hash;
  };

  /** Waits until the chain itself, not the service, shows that the solver has paid what was agreed. */
  const paid = async ({ reader }, { asset, amount, contract, swap }) => {
    for (let tries = 0; tries < 200; tries += 1) {
      const [, redeemer, initiatedAt, timelock, locked, fulfilledAt] = await reader.readContract({
        address: contract, abi: [ORDERS], functionName: "orders", args: [`0x${swap.swap_id}`],
      });
      const agrees = redeemer === account.address && locked >= BigInt(amount) && timelock === BigInt(swap.timelock);
      if (initiatedAt > 0n && fulfilledAt === 0n && agrees) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`nobody has paid ${asset}`);
  };

  /** Swaps an amount in base units, and returns the record of the completed order. */
  const swap = async (from, to, amount) => {
    const [quote] = await call("GET", `/quote?from=${from}&to=${to}&from_amount=${amount}`);
    const secret = randomBytes(32);
    const owner = account.address;
    const request = {
      source: { asset: from, owner, amount: String(amount) },
      destination: { asset: to, owner, amount: quote.destination.amount },
      secret_hash: createHash("sha256").update(secret).digest("hex"),
    };
    const result = await call("POST", "/orders", request);
    const order = await call("GET", `/orders/${result.order_id}`);
    await verify(request, { status: "Ok", result }, order);

    const source = await chain(from);
    if (result.approval_transaction) await send(source, result.approval_transaction);
    await send(source, result.initiate_transaction);

    // The contract comes from the pinned registry, whatever the service lists today. On chains whose blocks can be
    // replaced, a wallet also has to read a final block.
    const asset = JSON.parse(await readFile(registry, "utf8")).assets.find(({ id }) => id === to);
    await paid(await chain(to), { asset: to, amount: quote.destination.amount, contract: asset.htlc.address, swap: order.destination_swap });
    await call("PATCH", `/orders/${result.order_id}?action=redeem`, { secret: secret.toString("hex") });
    for (let tries = 0; tries < 200; tries += 1) {
      const record = await call("GET", `/orders/${result.order_id}`);
      if (record.destination_swap.redeem_tx_hash) return record;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("the destination is not redeemed");
  };

  return { address: account.address, swap };
};
