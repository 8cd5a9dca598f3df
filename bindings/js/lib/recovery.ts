// How an order ends without the service.
import * as glue from "countersign-glue";
import { CREATE, Made, handleOf } from "./handle.js";
import { type JsonText, contractBytes, documentBytes, keyBytes, text } from "./input.js";
import { call } from "./module.js";
import { UnsignedOrder } from "./signing.js";
import { type Policy, type Registry, policyHandle, registryHandle } from "./trust.js";
import type { Family, Leg, RecoveryContext, Role } from "./types.js";

/** A refund or a redemption, from the order record alone. Look at the chain before you broadcast it. */
export class Recovery extends Made {
  /** What its transaction does. */
  readonly role: Extract<Role, "refund" | "redeem">;

  private constructor(key: typeof CREATE, handle: glue.Recovery, role: "refund" | "redeem") {
    super(key, handle, "Recovery.refund or Recovery.redeem");
    this.role = role;
  }

  /** Returns the recovery that refunds a leg after its timelock. */
  static refund(record: JsonText, leg: Leg, registry: Registry): Recovery {
    const [bytes, side, pinned] = [documentBytes(record, "record"), text(leg, "leg"), registryHandle(registry)];
    return new Recovery(CREATE, call(() => glue.Recovery.refund(bytes, side, pinned)), "refund");
  }

  /**
   * Returns the recovery that redeems a leg with the secret. Broadcasting it makes the secret public: do it at
   * once, or check the chain again before.
   *
   * @param secret - Its 32 bytes, which the caller can wipe afterwards, or 64 hex digits.
   */
  static redeem(record: JsonText, leg: Leg, secret: string | Uint8Array, registry: Registry): Recovery {
    const [bytes, side, pinned] = [documentBytes(record, "record"), text(leg, "leg"), registryHandle(registry)];
    const hidden = keyBytes(secret, "secret");
    try {
      return new Recovery(CREATE, call(() => glue.Recovery.redeem(bytes, side, hidden, pinned)), "redeem");
    } finally {
      hidden.fill(0);
    }
  }

  /** The family that signs. */
  get family(): Family {
    return call(() => this.#handle.family()) as Family;
  }

  /** The order's id. */
  get orderId(): string {
    return call(() => this.#handle.orderId());
  }

  /** Who is paid. */
  get payee(): string {
    return call(() => this.#handle.payee());
  }

  /** How much, in base units. */
  get amount(): bigint {
    return BigInt(call(() => this.#handle.amount()));
  }

  /**
   * Prepares the transaction with the wallet context of its family, which also may name the `sender` who pays for it. Or with its JSON,
   * as `docs/spec/batch.md#recovery-contexts` has it.
   *
   * @throws {@link CountersignError} at the member of `/wallet` that is missing, unknown, malformed or invalid.
   */
  prepare(wallet: RecoveryContext | JsonText, policy?: Policy): UnsignedOrder {
    const [bytes, limits] = [contractBytes(wallet, "wallet"), policyHandle(policy)];
    try {
      return UnsignedOrder.from(call(() => this.#handle.prepare(bytes, limits)));
    } finally {
      bytes.fill(0);
    }
  }

  get #handle(): glue.Recovery {
    return handleOf(this, Recovery, "recovery");
  }
}
