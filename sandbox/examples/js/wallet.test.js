// The wallet's tests. Each test file can have its own sandbox, which uses free ports and starts in less than a
// second.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { createPublicClient, http } from "viem";

import { start } from "../../clients/sandbox.js";
import { Refused, wallet } from "./wallet.js";

const checkout = fileURLToPath(new URL("../../..", import.meta.url));
const built = ["release", "debug"].map((profile) => join(checkout, "target", profile, "countersign"));
const program = process.env.COUNTERSIGN_PROGRAM ?? built.find(existsSync) ?? "countersign";

let sandbox;
let user;
before(async () => {
  sandbox = await start("--chains", "base,arbitrum");
  const nodes = Object.fromEntries(Object.entries(sandbox.chains).map(([name, { url }]) => [name, url]));
  const registry = join(dirname(sandbox.config), "registry.json");
  user = wallet({ service: sandbox.service, nodes, registry, key: `0x${sandbox.key}`, program });
});
after(() => sandbox?.stop());
beforeEach(() => sandbox.post("lies", { name: "none", on: true }));

const sent = () => createPublicClient({ transport: http(sandbox.chains.base.url) }).getTransactionCount({ address: user.address });

test("a swap completes", async () => {
  const record = await user.swap("base:usdc", "arbitrum:usdc", 5_000_000);
  assert.equal(record.destination_swap.filled_amount, "4985000");
  assert.notEqual(record.destination_swap.redeem_tx_hash, "");
});

test("nothing is sent if the service names a stranger as the redeemer", async () => {
  await sandbox.post("lies", { name: "evm-redeemer", on: true });
  const before = await sent();
  await assert.rejects(user.swap("base:usdc", "arbitrum:usdc", 6_000_000), (error) => {
    assert.ok(error instanceof Refused, String(error));
    assert.equal(error.code, "unknown_redeemer");
    return true;
  });
  assert.equal(await sent(), before);
});
