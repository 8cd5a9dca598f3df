// The page of an order, and the sentence above it.
import * as glue from "countersign-glue";
import { type JsonText, documentBytes, keyBytes, members, text, wrongType } from "./input.js";
import { call } from "./module.js";
import { type Documents, openDocuments } from "./order.js";
import { read } from "./output.js";
import { type UnsignedOrder, preparedHandle } from "./signing.js";
import { type Policy, type Registry, policyHandle, registryHandle } from "./trust.js";
import type { PinChange } from "./types.js";

/** The calls that only this build has. */
interface PageCalls {
  orderPage(
    request: Uint8Array, response: Uint8Array, record: Uint8Array | undefined, registry: glue.Registry, policy: glue.Policy, language: string,
    messages: string | undefined,
  ): string;
  preparedPage(
    request: Uint8Array, response: Uint8Array, record: Uint8Array | undefined, registry: glue.Registry, policy: glue.Policy, language: string,
    messages: string | undefined, prepared: glue.UnsignedOrder,
  ): string;
  writeReceipt(
    request: Uint8Array, response: Uint8Array, record: Uint8Array | undefined, registry: glue.Registry, policy: glue.Policy, key: Uint8Array | undefined,
  ): Uint8Array;
  checkReceipt(receipt: Uint8Array, registry: glue.Registry, signer: string | undefined): string;
  checkReceiptWithPolicy(receipt: Uint8Array, registry: glue.Registry, policy: glue.Policy, signer: string | undefined): string;
  registryDiff(pinned: glue.Registry, newer: glue.Registry): string;
  descriptors?(registry: glue.Registry): string;
}

const pages = glue as unknown as PageCalls;

/** The languages of the sentence that this package has. */
export type Language = "en" | "de";

/** What a page shows besides the order. */
export interface PageOptions {
  /** The wallet's limits; the default policy without it. */
  readonly policy?: Policy;
  /** The language of the sentence; English without it. With `messages`, any language tag. */
  readonly language?: Language | (string & {});
  /** The messages of another language, in the syntax of [Fluent](https://projectfluent.org). Each must show all of its values. */
  readonly messages?: string;
  /** The same order, prepared from the same documents: the page then shows what the wallet contributed, its warnings, the digests and the
   * signatures so far. */
  readonly prepared?: UnsignedOrder;
}

/** An order as people see it. */
export interface OrderPage {
  /** Whether the order was verified. A refused order has a page too, which shows the received values next to the expected ones. */
  readonly ok: boolean;
  /**
   * A whole HTML document without script, which loads nothing. Show it in a frame of its own:
   * `<iframe sandbox srcdoc="...">`, or as a file.
   */
  readonly html: string;
  /** What the order does, in one sentence; null for a refused order. */
  readonly sentence: Sentence | null;
}

/** One sentence, and its parts for a wallet with its own messages. */
export interface Sentence {
  /** The id of the message. */
  readonly message: "lock" | "lock-for-promise" | "lock-without-refund" | "lock-for-promise-without-refund" | "lock-without-terms";
  /** The values by name: `pay`, `source`, `receive`, `destination`, `payout`, `refund`. */
  readonly values: Readonly<Record<string, string>>;
  /** The sentence in the chosen language. */
  readonly text: string;
}

/**
 * Verifies an order, and writes a page that shows it down to its bytes.
 *
 * @throws {@link CountersignError} if a document is not JSON, and `usage` if `prepared` was not made from these documents with this registry
 * and policy. What is wrong in a document is on the page.
 */
export function orderPage(documents: Documents, registry: Registry, options: PageOptions = {}): OrderPage {
  const { request, response, record } = openDocuments(documents);
  const { policy, language = "en", messages, prepared } = members<PageOptions>(options, "options");
  const [pinned, limits, tag] = [registryHandle(registry), policyHandle(policy), text(language, "options.language")];
  const own = messages === undefined ? undefined : catalogueText(messages);
  const { ok, html, sentence, text: words } = JSON.parse(
    prepared === undefined
      ? call(() => pages.orderPage(request, response, record, pinned, limits, tag, own))
      : call(() => pages.preparedPage(request, response, record, pinned, limits, tag, own, preparedHandle(prepared))),
  );
  return { ok, html, sentence: sentence === null ? null : { ...sentence, text: words } };
}

/** Returns the text of a catalogue. */
function catalogueText(messages: unknown): string {
  if (typeof messages !== "string") throw wrongType("options.messages", "a string", messages);
  // The same limits as of a document.
  return new TextDecoder().decode(documentBytes(messages, "options.messages"));
}

/** How a receipt is made. */
export interface ReceiptOptions {
  /** The wallet's limits; the default policy without it. */
  readonly policy?: Policy;
  /** An Ed25519 key that signs the receipt: its seed, as 32 bytes or 64 hex digits. */
  readonly key?: string | Uint8Array;
}

/** What a receipt must have. */
export interface ReceiptRequirements {
  /** The policy under which it must have been made. Without it, it is checked under its own policy: show {@link CheckedReceipt.ownLimits}. */
  readonly policy?: Policy;
  /** The public key that must have signed it, 64 hex digits. */
  readonly signer?: string;
}

/**
 * What the check of a receipt found. A receipt is free text of whoever wrote it: anybody can compute its digest. Such text is here one plain
 * word or in quotation marks, cut, and with characters escaped that move or hide what is around them. That does not make it safe as HTML.
 */
export interface CheckedReceipt {
  /** Whether everything is as the receipt says. */
  readonly isProven: boolean;
  /** The program that wrote it, by its own words: quoted, unless it is this version. */
  readonly program: string;
  /** SHA-256 of what the receipt says, which is what is signed, as the receipt states it: it is right unless `/digest` differs. */
  readonly digest: string;
  /** The public key of the valid signature; null without one. */
  readonly signer: string | null;
  /** The verdict; null unless it is proven. */
  readonly verdict: ReceiptVerdict | null;
  /** The limits of the receipt's policy that are not the default ones. */
  readonly ownLimits: readonly { readonly name: string; readonly value: unknown; readonly default: unknown }[];
  /** What differs: the place in the receipt, what it has there, and what was computed or required, each quoted. */
  readonly differences: readonly { readonly at: string; readonly receipt: string; readonly computed: string }[];
}

/** The verdict of a receipt. */
export type ReceiptVerdict =
  | { readonly ok: true; readonly family: string; readonly orderId: string; readonly summary: readonly string[]; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly code: string; readonly at: string; readonly expected?: string; readonly got?: string };

/**
 * Verifies an order, and writes a receipt of the verdict, whatever it is (`docs/spec/receipt.md`). Whoever has the same registry can check
 * it later, also by `countersign check-receipt`.
 *
 * @returns The file: one line of JSON.
 * @throws {@link CountersignError} if the request has a member `secret_key`, or the key is malformed.
 */
export function writeReceipt(documents: Documents, registry: Registry, options: ReceiptOptions = {}): Uint8Array {
  const { request, response, record } = openDocuments(documents);
  const { policy, key } = members<ReceiptOptions>(options, "options");
  const [pinned, limits] = [registryHandle(registry), policyHandle(policy)];
  const seed = key === undefined ? undefined : keyBytes(key);
  try {
    return call(() => pages.writeReceipt(request, response, record, pinned, limits, seed));
  } finally {
    seed?.fill(0);
  }
}

/**
 * Verifies the documents of a receipt again, and compares everything that it says.
 *
 * @throws {@link CountersignError} if it is not a receipt. What differs in a receipt is returned.
 */
export function checkReceipt(receipt: JsonText, registry: Registry, requirements: ReceiptRequirements = {}): CheckedReceipt {
  const { policy, signer } = members<ReceiptRequirements>(requirements, "requirements");
  const [bytes, pinned] = [documentBytes(receipt, "receipt"), registryHandle(registry)];
  const key = signer === undefined ? undefined : text(signer, "requirements.signer");
  const limits = policy === undefined ? undefined : policyHandle(policy);
  return read(call(() => (limits ? pages.checkReceiptWithPolicy(bytes, pinned, limits, key) : pages.checkReceipt(bytes, pinned, key))));
}

/** The descriptors of a registry's contracts. */
export interface Descriptors {
  /** The files by name, with the assets that pin their contract. */
  readonly files: readonly { readonly name: string; readonly assets: readonly string[]; readonly json: string }[];
  /** Assets of EVM chains without a file, and why. */
  readonly leftOut: readonly { readonly asset: string; readonly reason: string }[];
}

/** Writes the clear-signing descriptors (ERC-7730) of the EVM contracts that a registry pins, with which a device shows an order in words. */
export function descriptors(registry: Registry): Descriptors {
  const pinned = registryHandle(registry);
  // A build without EVM chains has none.
  return pages.descriptors ? read(call(() => pages.descriptors!(pinned))) : { files: [], leftOut: [] };
}

/**
 * Compares a newer registry with the pinned one. Show the changes to the owner before you pin the newer one.
 *
 * @returns Everything that differs, sorted by entry and member; nothing if both pin the same.
 */
export function registryDiff(pinned: Registry, newer: Registry): readonly PinChange[] {
  const [old, other] = [registryHandle(pinned), registryHandle(newer)];
  return read(call(() => pages.registryDiff(old, other)));
}
