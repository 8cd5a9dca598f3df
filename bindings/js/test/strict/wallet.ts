// Compiled, never run: what a wallet with strict settings writes. The package's declarations are checked too, and need no newer library.
import { CountersignError, type EvmWallet, Order, Policy, Recovery, Registry, type SolanaWallet, SwapRecord, init } from "countersign";
import { type Connection, jsonRpc, readAll } from "countersign/connections";
import { sendTransactions } from "countersign/eip1193";
import { signPsbt } from "countersign/psbt";

export async function wallet(request: string, response: string, record: Uint8Array, registry: Registry): Promise<void> {
  await init();
  const order = Order.verify({ request, response, record }, registry, new Policy());
  const evm: EvmWallet = { nonce: 7, maxFeePerGas: 30_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
  const unsigned = order.prepare(evm);
  order.prepare({ nonce: 7, gasPrice: 9n, chainId: 1 });
  order.prepare({ refBlockBytes: "b71d", refBlockHash: "4e4d2a3bb2d9e5a1", expiration: 2, timestamp: 1 });
  const bound = { maxAmount: 0n, maxPricePerUnit: 0n };
  order.prepare({ nonce: 1n, resourceBounds: { l1Gas: bound, l2Gas: bound, l1DataGas: bound }, tip: 0n });
  const solana: SolanaWallet = { recentBlockhash: "11", lastValidBlockHeight: 5 };
  order.prepare(solana);
  order.prepare({ gasPrice: 1000n, gasBudget: 5_000_000n, gasPayment: [{ objectId: "0x1", version: 1n, digest: "d" }] });
  order.prepare({ utxos: [{ txid: "", vout: 0, value: 1n, scriptPubkey: "" }], changeAddress: "", feeRate: 2.5 });
  order.prepare("{}");
  Recovery.redeem(record, "destination", new Uint8Array(32), registry).prepare({ nonce: 1, gasPrice: 1n, sender: "0x", gasLimit: 1 });
  // @ts-expect-error A misspelt member.
  order.prepare({ nonce: 7, maxFeePerGas: 1n, maxPriorityFeePerGass: 1n });
  // @ts-expect-error A member of another type.
  order.prepare({ nonce: 7, maxFeePerGas: true, maxPriorityFeePerGas: 1n });

  const [name] = unsigned.missing;
  if (name) unsigned.attach(name, new Uint8Array(65));
  unsigned.attach("typed_data", { contract: "0x00" });
  unsigned.attach("invoke", [1n, "0x2"]);
  // @ts-expect-error Neither form.
  unsigned.attach("invoke", { r: 1n });
  await signPsbt(unsigned, (psbt) => psbt);
  for (const transaction of unsigned.finish().transactions) {
    const isFunding: boolean = transaction.role === "initiate";
    if (transaction.family === "evm") await send(transaction.payload, transaction.id);
    // @ts-expect-error Only on EVM chains.
    else await send(transaction.payload, transaction.id);
    void isFunding;
    // @ts-expect-error There is no such role.
    void (transaction.role === "initiated");
  }
  for (const { from, to, data, value } of order.walletCalls("evm")) await call({ from, to, data, value: BigInt(value) });
  await sendTransactions(order, { request: async () => "0x" }, async (hash) => receipt({ hash }));
  const own: Connection = async (requests) => requests.map(() => ({ failed: "timeout" as const }));
  const swap = SwapRecord.verify({ request, response, record }, registry);
  const { left, unit } = swap.judge(await readAll(swap, "destination", { endpoints: { own, node: jsonRpc("https://node.example") }, needed: 2 }), 5);
  void [left, unit];
}

export function codes(error: unknown): string {
  if (!(error instanceof CountersignError)) return "";
  if (error.code === "amount_mismatch" || error.code === "used_up" || error.code === "init_failed") return error.message;
  // @ts-expect-error There is no such code.
  if (error.code === "amount_mismach") return error.message;
  return CountersignError.from(error.toJSON()).code;
}

declare function send(serializedTransaction: `0x${string}`, hash: `0x${string}`): Promise<void>;
declare function call(parameters: { from: `0x${string}`; to: `0x${string}`; data: `0x${string}`; value: bigint }): Promise<void>;
declare function receipt(parameters: { hash: `0x${string}` }): Promise<void>;
