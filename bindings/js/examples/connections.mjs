// Whether the solver has paid: read through the browser wallet's provider and two nodes, of which two must agree.
import { Registry, SwapRecord } from "countersign/evm";
import { eip1193, jsonRpc, readAll } from "countersign/connections";

/** Returns the proof. Throws with the blame `chain` while the secret must stay. */
export async function funded(documents, registry, provider, [own, other], clock = () => Math.floor(Date.now() / 1000)) {
  const record = SwapRecord.verify(documents, new Registry(registry));
  const endpoints = { wallet: eip1193(provider), own: jsonRpc(own), other: jsonRpc(other) };
  const quorum = await readAll(record, "destination", { endpoints, needed: 2 });
  return record.judge(quorum, clock());
}
