// Orders on their way to a signature, and behind it.
import type * as glue from "countersign-glue";
import { Freeable, bind, handleOf } from "./handle.js";
import { keyBytes, signatureText, text, transactionBytes } from "./input.js";
import { call } from "./module.js";
import { read } from "./output.js";
import type { Family, Line, SigningRequest, Transaction, Warning } from "./types.js";

const CREATE = Symbol("create");

/** Payloads for any signer, and the signatures that have been attached so far. */
export class UnsignedOrder extends Freeable {
  private constructor(key: typeof CREATE, handle: glue.UnsignedOrder) {
    super();
    if (key !== CREATE) throw new TypeError("use order.prepare");
    bind(this, handle);
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
  get summary(): readonly Line[] {
    return read(call(() => this.#handle.summary()));
  }

  /** What the owner should know. */
  get warnings(): readonly Warning[] {
    return read(call(() => this.#handle.warnings()));
  }

  /** What signers are asked for, in the order in which payloads are sent. */
  get requests(): readonly SigningRequest[] {
    return read(call(() => this.#handle.requests()), true);
  }

  /** The names of the requests that have no signature yet. */
  get missing(): readonly string[] {
    return JSON.parse(call(() => this.#handle.missing()));
  }

  /** The artefacts with the signatures so far, as the JSON of `countersign batch`. */
  get artefacts(): string {
    return call(() => this.#handle.artefacts());
  }

  /**
   * Proves a signature of an external signer and attaches it. A refused signature changes nothing.
   *
   * @param name - The name of the request. A signed PSBT has the name `psbt`.
   * @param signature - Text in its family's usual form: hex on EVM, Tron and Bitcoin, base58 on Solana, base64 on Sui, felts
   *   joined by commas on Starknet. JSON for a contract wallet: `{"contract": "0x.."}`.
   */
  attach(name: string, signature: string): void {
    const [request, proof] = [text(name, "name"), signatureText(signature)];
    call(() => this.#handle.attach(request, proof));
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
    return JSON.parse(call(() => this.#handle.attachTransaction(bytes)));
  }

  /**
   * Signs whatever a local key can sign. An external signer and {@link attach} are safer: JavaScript cannot keep a key from being
   * copied, and not every family signs in constant time.
   *
   * @param key - 32 bytes, which the caller can wipe afterwards (on Solana also the 64 bytes of a keypair); or the key in its
   *   family's usual text form, as a string or as the bytes of the text.
   */
  sign(key: string | Uint8Array): void {
    const bytes = keyBytes(key);
    try {
      call(() => this.#handle.sign(bytes));
    } finally {
      bytes.fill(0);
    }
  }

  /**
   * Combines the payloads with their signatures. Afterwards nothing is left here: every further use is an error with the code
   * `used_up`.
   *
   * @throws {@link CountersignError} `signature_missing`; the order then stays as it is.
   */
  finish(): SignedOrder {
    return SignedOrder.from(call(() => this.#handle.finish()));
  }

  get #handle(): glue.UnsignedOrder {
    return handleOf(this, UnsignedOrder, "unsigned order");
  }
}

/** An order with all its signatures. Each is made with a local key or proven, or there is a warning. */
export class SignedOrder extends Freeable {
  private constructor(key: typeof CREATE, handle: glue.SignedOrder) {
    super();
    if (key !== CREATE) throw new TypeError("use unsigned.finish");
    bind(this, handle);
  }

  /** @internal */
  static from(handle: glue.SignedOrder): SignedOrder {
    return new SignedOrder(CREATE, handle);
  }

  /** The order's id. */
  get orderId(): string {
    return call(() => this.#handle.orderId());
  }

  /** The transactions, in the order in which they are broadcast. */
  get transactions(): readonly Transaction[] {
    return read(call(() => this.#handle.transactions()));
  }

  /** The signature that the service is sent on the gasless path; undefined where the wallet chose another path. */
  get gasless(): string | undefined {
    return call(() => this.#handle.gasless());
  }

  /** What the owner should know. */
  get warnings(): readonly Warning[] {
    return read(call(() => this.#handle.warnings()));
  }

  get #handle(): glue.SignedOrder {
    return handleOf(this, SignedOrder, "signed order");
  }
}
