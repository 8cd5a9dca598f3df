// The record of an order that is under way, and what chains show of it.
import * as glue from "countersign-glue";
import { CREATE, Made, handleOf, once } from "./handle.js";
import { documentBytes, members, text, wholeNumber, wrongType } from "./input.js";
import { call } from "./module.js";
import { type Documents, openDocuments } from "./order.js";
import { read } from "./output.js";
import { Quorum, Reader, quorumHandle } from "./reader.js";
import { type Policy, type Registry, policyHandle, registryHandle } from "./trust.js";
import type { Htlc, HtlcTerms, Leg, Notice, Proof } from "./types.js";

const NOTHING = new Uint8Array();

/** How a reader begins. */
export interface ReaderOptions {
  /** What {@link Reader.known} was after the last reading of this endpoint. It notices an endpoint that falls behind. */
  readonly known?: string | undefined;
  /** Bitcoin-like chains: whether the endpoint is an Esplora server, which is the default, or a node's own RPC. */
  readonly protocol?: "esplora" | "rpc" | undefined;
}

/** A verified order record: what both HTLCs must say. */
export class SwapRecord extends Made {
  private constructor(key: typeof CREATE, handle: glue.Record) {
    super(key, handle, "SwapRecord.verify");
  }

  /**
   * Verifies the record of an order that may be funded, redeemed or refunded already. The documents must have a record.
   *
   * @throws {@link CountersignError} as {@link Order.verify}.
   */
  static verify(documents: Documents, registry: Registry, policy?: Policy): SwapRecord {
    const { request, response, record } = openDocuments(documents);
    if (!record) throw wrongType("documents.record", "a string or a Uint8Array", undefined);
    const [pinned, limits] = [registryHandle(registry), policyHandle(policy)];
    return new SwapRecord(CREATE, call(() => glue.Record.verify(request, response, record, pinned, limits)));
  }

  /** The order's id. */
  get orderId(): string {
    return call(() => this.#handle.orderId());
  }

  /** What the owner should know. */
  get warnings(): readonly Notice[] {
    return once(this, "warnings", () => read(call(() => this.#handle.warnings())));
  }

  /** Returns what the HTLC of a leg must hold, and where it is. */
  terms(leg: Leg): HtlcTerms {
    const side = text(leg, "leg");
    return once(this, `terms of ${side}`, () => read(call(() => this.#handle.terms(side))));
  }

  /**
   * Creates the reader of the HTLC of a leg for one endpoint. It says what to ask; the caller's own connection sends it.
   *
   * @param endpoint - The endpoint's name in the quorum.
   */
  reader(leg: Leg, endpoint: string, options: ReaderOptions = {}): Reader {
    const { known, protocol = "esplora" } = members(options, "options");
    if (protocol !== "esplora" && protocol !== "rpc") throw wrongType("options.protocol", '"esplora" or "rpc"', protocol);
    const [side, name] = [text(leg, "leg"), text(endpoint, "endpoint")];
    const before = known === undefined ? NOTHING : documentBytes(known, "options.known");
    return new Reader(CREATE, call(() => this.#handle.reader(side, name, before, protocol)), name);
  }

  /** Creates a quorum, for code that must not choose between the builds of this package: `new Quorum(endpoints, needed)`. */
  quorum(endpoints: readonly string[], needed: number): Quorum {
    return new Quorum(endpoints, needed);
  }

  /**
   * Compares what the endpoints show of the destination with the verified terms. Reveal the secret only if it returns.
   *
   * @param quorum - What the readers of the destination have shown.
   * @param now - Unix seconds by the caller's clock: `Math.floor(Date.now() / 1000)`.
   * @throws {@link CountersignError} with the blame `chain` while the secret must not leave; the message says whether waiting may help.
   */
  judge(quorum: Quorum, now: number): Proof {
    const [heard, seconds] = [quorumHandle(quorum), BigInt(wholeNumber(now, "now"))];
    return read(call(() => this.#handle.judge(heard, seconds)));
  }

  /**
   * Returns the state of the HTLC of a leg, on which enough endpoints agree. It is for display: only {@link judge} decides about the
   * secret.
   *
   * @param quorum - What the readers of that leg have shown.
   * @throws {@link CountersignError} with the blame `chain` if too few endpoints agree.
   */
  state(leg: Leg, quorum: Quorum): Htlc {
    const [side, heard] = [text(leg, "leg"), quorumHandle(quorum)];
    return read(call(() => this.#handle.state(side, heard)));
  }

  get #handle(): glue.Record {
    return handleOf(this, SwapRecord, "record");
  }
}
