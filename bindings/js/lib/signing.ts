// Orders on their way to a signature, and behind it.
import type * as glue from "countersign-glue";
import { CREATE, Made, forget, handleOf, once } from "./handle.js";
import { keyBytes, signatureText, text, transactionBytes } from "./input.js";
import { type Key, isKey, keyHandle } from "./key.js";
import { call } from "./module.js";
import { read } from "./output.js";
import type { Family, Notice, Signature, SigningRequest, SummaryLine, Transaction } from "./types.js";

/** Returns the handle of an order that is not finished. @internal */
export function preparedHandle(order: unknown): glue.UnsignedOrder {
  return handleOf(order, UnsignedOrder, "prepared");
}

/** Payloads for any signer, and the signatures that have been attached so far. */
export class UnsignedOrder extends Made {
  private constructor(key: typeof CREATE, handle: glue.UnsignedOrder) {
    super(key, handle, "order.prepare");
  }

  /** @internal */
  static from(handle: glue.UnsignedOrder): UnsignedOrder {
    return new UnsignedOrder(CREATE, handle);
  }

  /** The family that signs. */
  get family(): Family {
    return call(() => this.#handle.family()) as Family;
  }

  /** The order's id. */
  get orderId(): string {
    return call(() => this.#handle.orderId());
  }

  /** What the owner reads before signing, fees and digests included. */
  get summary(): readonly SummaryLine[] {
    return once(this, "summary", () => read(call(() => this.#handle.summary())));
  }

  /** What the owner should know. */
  get warnings(): readonly Notice[] {
    return once(this, "warnings", () => read(call(() => this.#handle.warnings())));
  }

  /** What signers are asked for, in the order in which payloads are sent. */
  get requests(): readonly SigningRequest[] {
    return once(this, "requests", () => read(call(() => this.#handle.requests()), true));
  }

  /** The requests that have no signature yet. */
  get missingRequests(): readonly SigningRequest[] {
    return this.requests.filter(({ name }) => this.missing.includes(name));
  }

  /** The names of the requests that have no signature yet. */
  get missing(): readonly string[] {
    return once(this, "missing", () => Object.freeze(JSON.parse(call(() => this.#handle.missing())) as string[]));
  }

  /** The artefacts with the signatures so far, as the JSON of `countersign batch`. */
  get artefacts(): string {
    return call(() => this.#handle.artefacts());
  }

  /**
   * Proves a signature of an external signer and attaches it. A refused signature changes nothing.
   *
   * @param name - The name of the request. A signed PSBT has the name `psbt`.
   * @param signature - In its family's usual form, as `docs/spec/batch.md#external-signatures` lists them: text or bytes, an array of
   *   felts, or `{ contract }` for a contract wallet.
   */
  attach(name: string, signature: Signature): void {
    const [request, proof] = [text(name, "name"), signatureText(signature)];
    call(() => this.#handle.attach(request, proof));
    forget(this);
  }

  /**
   * Takes the signatures out of a transaction that an external signer has signed, proves and attaches them. A transaction that is
   * refused changes nothing.
   *
   * @param transaction - The bytes, in the form that `docs/spec/batch.md#external-signatures` lists: on EVM chains EIP-2718, on Solana
   *   the wire format, on Bitcoin-like chains a PSBT.
   * @returns The names of the requests whose signatures it had.
   * @throws {@link CountersignError} `transaction_mismatch` or `psbt_mismatch` if it is not one of the requested payloads.
   */
  attachTransaction(transaction: Uint8Array): readonly string[] {
    const bytes = transactionBytes(transaction);
    const names = JSON.parse(call(() => this.#handle.attachTransaction(bytes))) as string[];
    forget(this);
    return names;
  }

  /**
   * Signs whatever a local key can sign. An external signer and {@link attach} are safer: JavaScript cannot keep a key from being
   * copied, and not every family signs in constant time.
   *
   * @param key - A {@link Key}, which is parsed once; 32 bytes, which the caller can wipe afterwards (on Solana also the 64 bytes of a
   *   keypair); or the key in its family's usual text form, as a string or as the bytes of the text.
   */
  sign(key: Key | string | Uint8Array): void {
    if (isKey(key)) {
      const parsed = keyHandle(key);
      call(() => this.#handle.signWith(parsed));
      return forget(this);
    }
    const bytes = keyBytes(key);
    try {
      call(() => this.#handle.sign(bytes));
    } finally {
      bytes.fill(0);
      forget(this);
    }
  }

  /**
   * Combines the payloads with their signatures. Afterwards nothing is left here: every further use is an error with the code
   * `used_up`.
   *
   * @throws {@link CountersignError} `signature_missing`; the order then stays as it is.
   */
  finish(): SignedOrder {
    const { family } = this;
    const signed = call(() => this.#handle.finish());
    forget(this);
    return SignedOrder.from(signed, family);
  }

  get #handle(): glue.UnsignedOrder {
    return handleOf(this, UnsignedOrder, "unsigned order");
  }
}

/** An order with all its signatures. Each is made with a local key or proven, or there is a warning. */
export class SignedOrder extends Made {
  /** The family that signed. */
  readonly family: Family;

  private constructor(key: typeof CREATE, handle: glue.SignedOrder, family: Family) {
    super(key, handle, "unsigned.finish");
    this.family = family;
  }

  /** @internal */
  static from(handle: glue.SignedOrder, family: Family): SignedOrder {
    return new SignedOrder(CREATE, handle, family);
  }

  /** The order's id. */
  get orderId(): string {
    return call(() => this.#handle.orderId());
  }

  /** The transactions, in the order in which they are broadcast. */
  get transactions(): readonly Transaction[] {
    return once(this, "transactions", () => {
      const { family } = this;
      return read<Omit<Transaction, "family">[]>(call(() => this.#handle.transactions())).map((one) => Object.freeze({ ...one, family }) as Transaction);
    });
  }

  /** The signature that the service is sent on the gasless path; undefined where the wallet chose another path. */
  get gasless(): string | undefined {
    return call(() => this.#handle.gasless());
  }

  /** What the owner should know. */
  get warnings(): readonly Notice[] {
    return once(this, "warnings", () => read(call(() => this.#handle.warnings())));
  }

  get #handle(): glue.SignedOrder {
    return handleOf(this, SignedOrder, "signed order");
  }
}
