// Contract wallets: the real smart account and bundler client of viem, and a Safe, on a node that judges signatures as their contracts do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, custom, decodeAbiParameters, decodeFunctionData, hashTypedData, parseAbi, recoverAddress } from "viem";
import { createBundlerClient, entryPoint06Address, toCoinbaseSmartAccount } from "viem/account-abstraction";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";
import { Order, Registry } from "countersign";
import { AccountRefused, FateUnknown, safeCalls, sendUserOperation, signByContract, throughProvider } from "countersign/contract-wallet";
import { paymentOfReceipt } from "countersign/eip1193";
import * as example from "../examples/evm-contract.mjs";
import { documents, fixture } from "./fixtures.mjs";
import { bundled, failure, inTime, scripted } from "./wallets.mjs";

const approve = async (summary) => summary.length > 0;
const ERC1271 = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
const ACCEPTED = `0x1626ba7e${"00".repeat(28)}`;
const REFUSED = `0xffffffff${"00".repeat(28)}`;
const keys = [1, 2, 3].map((number) => privateKeyToAccount(`0x${number.toString(16).padStart(64, "0")}`));

function gaslessOrder() {
  const { input, registry } = fixture("evm-token-approval-exact");
  const docs = documents(input);
  const order = Order.verify(docs, new Registry(registry));
  const [{ signer: owner, digest, native }] = order.prepareGasless().requests;
  return { docs, registry, order, owner, digest: `0x${Buffer.from(digest).toString("hex")}`, htlc: JSON.parse(native.value).domain.verifyingContract };
}

/** A node with one account, whose code judges by a function of hash and signature. */
function node({ owner, htlc }, judge, answers = {}) {
  return scripted({
    eth_chainId: "0x2105",
    eth_getCode: ([account]) => (account.toLowerCase() === owner.toLowerCase() ? "0x6080" : "0x"),
    eth_call: async ([{ from, to, data }]) => {
      assert.deepEqual([from, to], [htlc, owner]);
      const { args } = decodeFunctionData({ abi: ERC1271, data });
      return (await judge(...args)) ? ACCEPTED : REFUSED;
    },
    ...answers,
  });
}

/** Judges as Coinbase's smart wallet does: a key among its owners has signed its own hash over the hash. */
const coinbase = (owner, owners) => async (hash, signature) => {
  const [{ ownerIndex, signatureData }] = decodeAbiParameters([{ type: "tuple", components: [{ name: "ownerIndex", type: "uint8" }, { name: "signatureData", type: "bytes" }] }], signature);
  const domain = { name: "Coinbase Smart Wallet", version: "1", chainId: 8453, verifyingContract: owner };
  const types = { CoinbaseSmartWalletMessage: [{ name: "hash", type: "bytes32" }] };
  const signed = hashTypedData({ domain, types, primaryType: "CoinbaseSmartWalletMessage", message: { hash } });
  return (await recoverAddress({ hash: signed, signature: signatureData })) === owners[ownerIndex].address;
};

/** Returns viem's smart account at the owner's address, on a node. */
function smartAccount(owner, request, owners) {
  const client = createClient({ chain: base, transport: custom({ request }, { retryCount: 0 }) });
  return toCoinbaseSmartAccount({ client, address: owner, owners, version: "1.1" });
}

test("viem's smart account signs the gasless message, and the account is asked before anything is submitted", async () => {
  const { docs, registry, order, owner, digest, htlc } = gaslessOrder();
  const chain = node({ owner, htlc }, coinbase(owner, keys));
  const account = await smartAccount(owner, chain.request, keys);
  const signature = await example.sign(docs, registry, account, chain, approve);
  assert.equal(chain.named("eth_call").length, 1);
  assert.ok(await coinbase(owner, keys)(digest, signature));

  // Before viem has seen the account's code it wraps the signature (ERC-6492), which the swap contract cannot read: only the inner one leaves.
  let seen = "0x";
  const young = await smartAccount(owner, node({ owner, htlc }, undefined, { eth_getCode: () => seen }).request, keys);
  const wrapped = await young.signTypedData(JSON.parse(order.prepareGasless().requests[0].native.value));
  assert.ok(wrapped.endsWith("6492".repeat(16)));
  assert.equal((await signByContract(order, async () => wrapped, chain)).gasless, signature);

  // The account of somebody else, an account that is not deployed, and another chain. Nobody signs where the answer cannot count.
  const foreign = await smartAccount(owner, chain.request, [keys[2]]);
  await assert.rejects(signByContract(order, (message) => foreign.signTypedData(message), chain), { name: "AccountRefused", code: "contract_signature_refused" });
  const never = async () => assert.fail("signed");
  await assert.rejects(signByContract(order, never, node({ owner, htlc }, never, { eth_getCode: "0x" })), (error) => error instanceof AccountRefused && error.code === "account_not_deployed");
  await assert.rejects(signByContract(order, never, node({ owner, htlc }, never, { eth_chainId: "0x1" })), TypeError);
  await assert.rejects(signByContract(order, async () => signature, node({ owner, htlc }, never, { eth_call: failure(3, "execution reverted") })), { code: 3 });
  for (const answer of ["0x", "0x1626ba7e", "0x1626ba7e".padEnd(66, "1"), null]) {
    await assert.rejects(signByContract(order, async () => signature, node({ owner, htlc }, never, { eth_call: answer })), { code: "contract_signature_refused" });
  }
});

/** Judges as a Safe with two owners of three does: sorted signatures of its own hash, or none where the hash was signed on chain. */
const safe = (owner, onChain = false) => async (hash, signature) => {
  const signed = hashTypedData({ domain: { chainId: 8453, verifyingContract: owner }, types: { SafeMessage: [{ name: "message", type: "bytes" }] }, primaryType: "SafeMessage", message: { message: hash } });
  if (signature === "0x") return onChain;
  const parts = signature.slice(2).match(/.{130}/g).map((part) => `0x${part}`);
  const signers = await Promise.all(parts.map((part) => recoverAddress({ hash: signed, signature: part })));
  const isSorted = signers.every((signer, at) => at === 0 || signers[at - 1].toLowerCase() < signer.toLowerCase());
  return isSorted && signers.length === 2 && signers.every((signer) => keys.some(({ address }) => address === signer));
};

test("a Safe signs the gasless message through its provider: by its owners, or on chain", async () => {
  const { docs, registry, order, owner, htlc } = gaslessOrder();
  const app = (owners) => scripted({
    eth_signTypedData_v4: async ([account, text]) => {
      assert.equal(account, owner);
      const message = { domain: { chainId: 8453, verifyingContract: owner }, types: { SafeMessage: [{ name: "message", type: "bytes" }] }, primaryType: "SafeMessage", message: { message: hashTypedData(JSON.parse(text)) } };
      const sorted = owners.toSorted((one, other) => (one.address.toLowerCase() < other.address.toLowerCase() ? -1 : 1));
      return `0x${(await Promise.all(sorted.map((key) => key.signTypedData(message)))).map((part) => part.slice(2)).join("")}`;
    },
  });
  const signature = await example.sign(docs, registry, app(keys.slice(0, 2)), node({ owner, htlc }, safe(owner)), approve);
  assert.equal(signature.length, 2 + 2 * 130);
  // One owner alone: 65 bytes, which are still not taken for a key's signature.
  const alone = throughProvider(app(keys.slice(0, 1)));
  await assert.rejects(signByContract(order, alone, node({ owner, htlc }, safe(owner))), { code: "contract_signature_refused" });
  // A Safe that signs on chain answers with nothing, and accepts that once its owners have executed it.
  const onChain = throughProvider(scripted({ eth_signTypedData_v4: "0x" }));
  await assert.rejects(signByContract(order, onChain, node({ owner, htlc }, safe(owner))), { code: "contract_signature_refused" });
  assert.equal((await signByContract(order, onChain, node({ owner, htlc }, safe(owner, true)))).gasless, "0x");
  const asked = scripted({ eth_signTypedData_v4: failure(4001) });
  await assert.rejects(signByContract(order, throughProvider(asked), node({ owner, htlc }, safe(owner))), { code: 4001 });
  assert.equal(asked.asked.length, 1);
});

test("the calls of an order are one transaction of a Safe, and its receipt shows the payment", () =>
  inTime(async () => {
    const { order, receipt } = bundled();
    const calls = order.walletCalls("evm");
    assert.deepEqual(safeCalls(order), calls.map(({ to, data, value }) => ({ to, data, value: String(Number(value)) })));
    assert.equal(await paymentOfReceipt(order, scripted({ eth_getTransactionReceipt: receipt }), receipt.transactionHash), receipt.transactionHash);
  }));

/** A bundler and node of one chain for viem's clients; records the operations that are sent. */
function bundler(answers, receipt) {
  const hex = (number) => `0x${number.toString(16)}`;
  return scripted({
    eth_chainId: hex(base.id),
    eth_getCode: "0x6080",
    eth_call: `0x${"00".repeat(32)}`,
    eth_getBlockByNumber: { baseFeePerGas: "0x1", number: "0x1", timestamp: "0x1", transactions: [] },
    eth_maxPriorityFeePerGas: "0x1",
    eth_estimateUserOperationGas: { preVerificationGas: hex(50_000), verificationGasLimit: hex(90_000), callGasLimit: hex(200_000) },
    eth_sendUserOperation: `0x${"4337".repeat(16)}`,
    eth_getUserOperationReceipt: ([hash]) => ({ userOpHash: hash, success: true, actualGasCost: "0x1", actualGasUsed: "0x1", nonce: "0x0", logs: receipt.logs, receipt }),
    ...answers,
  });
}

test("viem's bundler client sends the calls of an order as one operation of its owner", () =>
  inTime(async () => {
    const { order, receipt } = bundled();
    const { input, registry } = fixture("evm-record-evm-v3");
    const calls = order.walletCalls("evm");
    const chain = { ...base, id: Number(calls[0].chainId) };
    const clientOf = async (answers, address = calls[0].from) => {
      const { request, named } = bundler({ eth_chainId: calls[0].chainId, ...answers }, receipt);
      const client = createClient({ chain, transport: custom({ request }, { retryCount: 0 }) });
      const account = await toCoinbaseSmartAccount({ client, address, owners: keys, version: "1.1" });
      return { account, named, client: createBundlerClient({ account, client, chain, transport: custom({ request }, { retryCount: 0 }), pollingInterval: 1 }) };
    };
    const { account, client, named } = await clientOf({});
    assert.equal(await example.pay(documents(input), registry, client, approve), receipt.transactionHash);
    const [{ params: [operation, entryPoint] }] = named("eth_sendUserOperation");
    assert.deepEqual([operation.sender, entryPoint], [calls[0].from, entryPoint06Address]);
    const sent = await account.decodeCalls(operation.callData);
    assert.deepEqual(sent.map(({ to, data, value }) => [to.toLowerCase(), data, value]), calls.map(({ to, data, value }) => [to.toLowerCase(), data, BigInt(value)]));

    // Nothing is sent by another account, on another chain, or where the gas cannot be estimated.
    const other = await clientOf({}, keys[0].address);
    await assert.rejects(sendUserOperation(order, other.client), TypeError);
    const elsewhere = await clientOf({ eth_chainId: "0x1" });
    await assert.rejects(sendUserOperation(order, elsewhere.client), TypeError);
    const reverts = await clientOf({ eth_estimateUserOperationGas: failure(-32521, "reverted") });
    await assert.rejects(sendUserOperation(order, reverts.client), (error) => !(error instanceof FateUnknown));
    for (const one of [other, elsewhere, reverts]) assert.deepEqual(one.named("eth_sendUserOperation"), []);
    // Nobody knows whether it was sent.
    const lost = await clientOf({ eth_sendUserOperation: failure(-32603, "timeout") });
    await assert.rejects(sendUserOperation(order, lost.client), (error) => error instanceof FateUnknown && error.cause !== undefined);
    assert.equal(lost.named("eth_sendUserOperation").length, 1);
    // A receipt without the payment.
    const { client: silent } = await clientOf({ eth_getUserOperationReceipt: ([hash]) => ({ userOpHash: hash, success: false, actualGasCost: "0x1", actualGasUsed: "0x1", nonce: "0x0", logs: [], receipt: { ...receipt, logs: [] } }) });
    await assert.rejects(example.pay(documents(input), registry, silent, approve), { code: "transaction_mismatch" });
  }));
