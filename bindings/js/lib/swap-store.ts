// Where swaps are kept.
import { usage } from "./error.js";

/** A document to write, or to delete if it has no bytes. */
export interface DocumentWrite {
  /** Lower-case letters, digits, `.`, `_` and `-`, with `/` between directories: `orders/4784d9c7.../journal`. */
  readonly name: string;
  readonly bytes: Uint8Array | undefined;
}

/** A store that is open, and nobody else's until it is closed. */
export interface OpenStore {
  /**
   * What tells this store from a copy of it, and changes if an older document `index` is put back: otherwise two orders would share a secret.
   * `fileStore` has a directory with its inode, and a random mark that is valid as long as `index` is the very file that it wrote. Empty where
   * a store cannot tell, as in a browser's profile, which can be copied or restored as a whole: each opening is then taken for a copy.
   */
  readonly place: string;
  /** Every document that was written. They contain secrets. */
  readonly documents: Iterable<readonly [name: string, bytes: Uint8Array]>;
  /**
   * Writes documents. When it resolves with undefined, they survive a power failure. All are written, or none; a store that cannot do that writes one
   * after the other in this order. The next call comes when this one is done.
   */
  write(writes: readonly DocumentWrite[]): Promise<void>;
  /** Lets others open the store. */
  close(): void | Promise<void>;
}

/** A place for swaps. What is lost with it cannot be redeemed or refunded without the rescue phrase. */
export interface SwapStore {
  /**
   * Opens the store. Rejects if it is open elsewhere: two that follow the same swaps can both pay. It must be free again when the process
   * or the tab dies.
   */
  open(): Promise<OpenStore>;
}

/** Opens a store of the caller's, and checks what it returns. @internal */
export async function checkedStore(store: SwapStore | undefined): Promise<OpenStore> {
  if (typeof store?.open !== "function") throw usage("usage", "the store has no open", "a SwapStore");
  const opened: Partial<OpenStore> | undefined = await store.open();
  try {
    const { place, documents, write, close } = opened ?? {};
    if (typeof place !== "string") throw usage("usage", "the store's place is not a string");
    if (typeof write !== "function" || typeof close !== "function") throw usage("usage", "the store has no write or no close");
    const checked = [...(documents ?? [undefined as never])].map((document): readonly [string, Uint8Array] => {
      const [name, bytes] = (Array.isArray(document) ? document : []) as readonly unknown[];
      // Of any realm.
      const isDocument = typeof name === "string" && Object.prototype.toString.call(bytes) === "[object Uint8Array]";
      if (!isDocument) throw usage("usage", "the store's documents are not pairs of a name and a Uint8Array");
      return [name, bytes as Uint8Array];
    });
    return { place, documents: checked, write: (writes) => write.call(opened, writes), close: () => close.call(opened) };
  } catch (error) {
    await opened?.close?.();
    throw error;
  }
}

/** Creates the error of a store that is open elsewhere. @internal */
export function openElsewhere(where: string, why: string): Error {
  return usage("usage", `${where} is open ${why}; swaps are followed by one at a time`);
}

/** Keeps swaps in memory, for tests. Everything is lost with the process. */
export function memoryStore(documents = new Map<string, Uint8Array>()): SwapStore & { readonly documents: Map<string, Uint8Array> } {
  let isOpen = false;
  const write = async (writes: readonly DocumentWrite[]) => {
    for (const { name, bytes } of writes) bytes ? documents.set(name, bytes) : documents.delete(name);
  };
  return {
    documents,
    async open() {
      if (isOpen) throw openElsewhere("the store", "already");
      isOpen = true;
      // What a caller puts back here, nobody notices.
      return { place: "", documents: [...documents], write, close: () => void (isOpen = false) };
    },
  };
}
