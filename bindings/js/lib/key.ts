// Local keys.
import * as glue from "countersign-glue";
import { CREATE, Made, handleOf, isOfAnotherBuild } from "./handle.js";
import { keyBytes, text } from "./input.js";
import { call } from "./module.js";
import type { Family } from "./types.js";

/** Returns the handle of a key. @internal */
export function keyHandle(key: unknown): glue.Key {
  return handleOf(key, Key, "key");
}

/** Whether a value is a key, also one of another build, which {@link keyHandle} refuses. @internal */
export function isKey(value: unknown): value is Key {
  return value instanceof Key || isOfAnotherBuild(value);
}

/**
 * A local key, parsed once, for {@link UnsignedOrder.sign}. It is in the memory of the WebAssembly module alone, which is wiped by
 * {@link Key.free}. Neither JSON nor `console.log` shows more than its family and its account.
 */
export class Key extends Made {
  private constructor(key: typeof CREATE, handle: glue.Key) {
    super(key, handle, "Key.parse");
  }

  /**
   * Parses a key.
   *
   * @param family - The family that the key signs for. Litecoin is of the family `bitcoin`.
   * @param key - 32 bytes, which the caller can wipe afterwards (on Solana also the 64 bytes of a keypair); or the key in its
   *   family's usual text form, as a string or as the bytes of the text.
   * @throws {@link CountersignError} `key_malformed`, never with any part of the key, or `unsupported_family`.
   */
  static parse(family: Family, key: string | Uint8Array): Key {
    const [name, bytes] = [text(family, "family"), keyBytes(key)];
    try {
      return new Key(CREATE, call(() => new glue.Key(name, bytes)));
    } finally {
      bytes.fill(0);
    }
  }

  /** The family that the key signs for. */
  get family(): Family {
    return call(() => keyHandle(this).family()) as Family;
  }

  /** The account that the key controls; null on Starknet and Bitcoin-like chains, where it does not follow from the key. */
  get account(): string | null {
    return call(() => keyHandle(this).account()) ?? null;
  }

  /** Family and account, and never the key. */
  toJSON(): { readonly family: Family; readonly account: string | null } {
    return { family: this.family, account: this.account };
  }
}
