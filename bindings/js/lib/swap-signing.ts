// Signers are asked for one order and purpose once at a time: two calls at once could send two transactions.
import type { Signer, SigningTask } from "./swap-types.js";

/** What came of a need: the reply, the body beside it, or the order with its signatures. */
export interface Met {
  readonly reply: object;
  readonly body?: Uint8Array | undefined;
  readonly signed?: unknown;
}
/** A signer at work: since when, in milliseconds, and who waits for the same. */
interface Work {
  readonly since: number;
  readonly waiting: { readonly signal: AbortSignal; hear(met?: Met): void }[];
}

/** Milliseconds after which a signer at work counts as lost: a redemption that nobody signs loses the funds, and two do no harm. */
const LOST = 600_000;
/** The signers at work, by order and purpose. A wallet may have a prompt open for swaps that were closed and opened again. */
const atWork = new WeakMap<Signer, Map<string, Work>>();

/**
 * Asks a signer, or waits for what it is doing for the same order and purpose. What it has sent, or why not, holds for those who wait, too; a
 * signature does not, nor that it signs nothing because it was told to stop: then it is asked anew. Returns undefined if nobody waits for this
 * any more, or another one hears it.
 */
export async function askOnce<T extends Met>(signer: Signer, { orderId, purpose, signal }: SigningTask, ask: () => Promise<T>): Promise<T | undefined> {
  const tasks = atWork.get(signer) ?? new Map<string, Work>();
  atWork.set(signer, tasks);
  const key = `${orderId} ${purpose}`;
  for (let work = tasks.get(key); work && performance.now() < work.since + LOST; work = tasks.get(key)) {
    const { waiting } = work;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const met = await new Promise<Met | undefined>((hear) => {
      waiting.push({ signal, hear });
      signal.addEventListener("abort", () => hear(undefined), { once: true });
      timer = setTimeout(() => hear(undefined), work.since + LOST - performance.now());
    });
    clearTimeout(timer);
    // It may have been heard just before the need was withdrawn, and nobody else says that it was sent.
    if (met && !met.signed) return met as T;
    if (signal.aborted) return undefined;
  }
  const work: Work = { since: performance.now(), waiting: tasks.get(key)?.waiting ?? [] };
  tasks.set(key, work);
  let met: T | undefined;
  try {
    met = await ask();
  } finally {
    // Otherwise another call has begun meanwhile, and nobody waits for this one.
    if (tasks.get(key) === work) {
      tasks.delete(key);
      const others = work.waiting.filter(({ signal }) => !signal.aborted);
      const holds = met && !(signal.aborted && "not_signed" in met.reply);
      for (const { hear } of others) hear(holds ? met : undefined);
      // One transaction is reported once: for a withdrawn need only if no other need waits.
      if (signal.aborted && others.length > 0) met = undefined;
    }
  }
  return met;
}
