// The record of an order that is under way, and what chains say about it.
import * as glue from "countersign-glue";
import { Freeable, bind, handleOf } from "./handle.js";
import { type Document, documentBytes, text, wholeNumber, wrongType } from "./input.js";
import { call } from "./module.js";
import { type Documents, openDocuments } from "./order.js";
import { read } from "./output.js";
import { type Policy, type Registry, policyHandle, registryHandle } from "./trust.js";
import type { Funded, Htlc, HtlcTerms, Leg, Warning } from "./types.js";

const CREATE = Symbol("create");

/** A verified order record: what both HTLCs must say. */
export class Record extends Freeable {
  private constructor(key: typeof CREATE, handle: glue.Record) {
    super();
    if (key !== CREATE) throw new TypeError("use Record.verify");
    bind(this, handle);
  }

  /**
   * Verifies the record of an order that may be funded, redeemed or refunded already. The documents must have a record.
   *
   * @throws {@link CountersignError} as {@link Order.verify}.
   */
  static verify(documents: Documents, registry: Registry, policy?: Policy): Record {
    const { request, response, record } = openDocuments(documents);
    if (!record) throw wrongType("documents.record", "a string or a Uint8Array", undefined);
    const [pinned, limits] = [registryHandle(registry), policyHandle(policy)];
    return new Record(CREATE, call(() => glue.Record.verify(request, response, record, pinned, limits)));
  }

  /** The order's id. */
  get orderId(): string {
    return call(() => this.#handle.orderId());
  }

  /** What the owner should know. */
  get warnings(): readonly Warning[] {
    return read(call(() => this.#handle.warnings()));
  }

  /** Returns what the HTLC of a leg must hold, and where it is. */
  terms(leg: Leg): HtlcTerms {
    const side = text(leg, "leg");
    return read(call(() => this.#handle.terms(side)));
  }

  /**
   * Decodes what a chain returned about the HTLC of a leg.
   *
   * @param evidence - JSON with what the chain returned. `docs/spec/batch.md#evidence` lists the members of each family.
   */
  readHtlc(leg: Leg, evidence: Document): Htlc {
    const [side, bytes] = [text(leg, "leg"), documentBytes(evidence, "evidence")];
    return read(call(() => this.#handle.readHtlc(side, bytes)));
  }

  /**
   * Compares what the destination chain returned with the verified terms. Reveal the secret only if it returns.
   *
   * @param evidence - What the destination chain returned, as for {@link readHtlc}.
   * @param seen - JSON with `height`, `hash`, `head_time` (Unix seconds), `depth`, and optionally `is_safe`, `is_finalized`,
   *   `agreed`, `needed`.
   * @param now - Unix seconds by the caller's clock.
   * @throws {@link CountersignError} with the blame `chain` if the secret must not leave, and whether waiting may help.
   */
  judge(evidence: Document, seen: Document, now: number): Funded {
    const [bytes, where] = [documentBytes(evidence, "evidence"), documentBytes(seen, "seen")];
    const seconds = BigInt(wholeNumber(now, "now"));
    return read(call(() => this.#handle.judge(bytes, where, seconds)));
  }

  get #handle(): glue.Record {
    return handleOf(this, Record, "record");
  }
}
