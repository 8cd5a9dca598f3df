// The page of an order, and the sentence above it.
import * as glue from "countersign-glue";
import { usage } from "./error.js";
import { describe, members } from "./input.js";
import { call } from "./module.js";
import { type Documents, openDocuments } from "./order.js";
import { type UnsignedOrder, preparedHandle } from "./signing.js";
import { type Policy, type Registry, policyHandle, registryHandle } from "./trust.js";

/** The calls that only this build has. */
interface PageCalls {
  orderPage(request: Uint8Array, response: Uint8Array, record: Uint8Array | undefined, registry: glue.Registry, policy: glue.Policy, language: string): string;
  preparedPage(
    request: Uint8Array, response: Uint8Array, record: Uint8Array | undefined, registry: glue.Registry, policy: glue.Policy, language: string,
    prepared: glue.UnsignedOrder,
  ): string;
}

/** The languages of the sentence. */
export type Language = "en" | "de";

/** What a page shows besides the order. */
export interface PageOptions {
  /** The wallet's limits; the default policy without it. */
  readonly policy?: Policy;
  /** The language of the sentence; English without it. */
  readonly language?: Language;
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
  const { policy, language, prepared } = members<PageOptions>(options, "options");
  if (language !== undefined && language !== "en" && language !== "de") throw usage("usage", "the language is not known", "en or de", describe(language));
  const [pinned, limits, tag] = [registryHandle(registry), policyHandle(policy), language ?? "en"];
  const pages = glue as unknown as PageCalls;
  const rendered = JSON.parse(
    prepared === undefined
      ? call(() => pages.orderPage(request, response, record, pinned, limits, tag))
      : call(() => pages.preparedPage(request, response, record, pinned, limits, tag, preparedHandle(prepared))),
  );
  const { html, sentence, text } = rendered;
  return { ok: rendered.refusal === null, html, sentence: sentence === null ? null : { ...sentence, text } };
}
