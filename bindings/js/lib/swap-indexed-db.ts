// Swaps in IndexedDB, for browsers.
import { type DocumentWrite, type SwapStore, openElsewhere } from "./swap-store.js";

/**
 * Keeps swaps in a database of the page's origin. Every script of the origin can read it, and a browser that is told to clear the site's
 * data deletes it: have the owner write down the rescue phrase.
 *
 * One tab at a time can open it. A browser's profile can be copied or restored as a whole, which no page notices, so each opening derives its
 * secrets in a branch of the rescue phrase of its own.
 *
 * @param options - `wait`: whether to wait until another tab closes it. By default a second tab gets an error at once.
 */
export function indexedDbStore(name: string, options: { readonly wait?: boolean; readonly signal?: AbortSignal } = {}): SwapStore {
  return {
    async open() {
      const unlock = await lock(`countersign:${name}`, options);
      try {
        const opening = indexedDB.open(name, 1);
        opening.onupgradeneeded = () => {
          opening.result.createObjectStore("documents");
          opening.result.createObjectStore("place");
        };
        const database = await done(opening);
        // Otherwise the browser may delete the database when it needs the space.
        await navigator.storage?.persist?.().catch(() => false);
        const documents = database.transaction("documents").objectStore("documents");
        const [names, values] = await Promise.all([done(documents.getAllKeys()), done<Uint8Array[]>(documents.getAll())]);
        const close = () => {
          database.close();
          unlock();
        };
        const all = names.map((key, index) => [String(key), values[index] ?? new Uint8Array()] as const);
        return { place: "", documents: all, write: (writes) => write(database, writes), close };
      } catch (error) {
        unlock();
        throw error;
      }
    },
  };
}

/** Takes the lock of a database, which the browser releases when the tab dies, and returns what releases it. */
function lock(name: string, { wait = false, signal }: { readonly wait?: boolean; readonly signal?: AbortSignal }): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const hold = (taken: Lock | null) => {
      if (!taken) return reject(openElsewhere("the store", "in another tab"));
      return new Promise<void>((release) => resolve(release));
    };
    const options: LockOptions = wait ? (signal ? { signal } : {}) : { ifAvailable: true };
    navigator.locks.request(name, options, hold).catch(reject);
  });
}

/** Writes all documents in one transaction, which is durable when it is complete. */
function write(database: IDBDatabase, writes: readonly DocumentWrite[]): Promise<void> {
  const transaction = database.transaction("documents", "readwrite", { durability: "strict" });
  const documents = transaction.objectStore("documents");
  for (const { name, bytes } of writes) bytes ? documents.put(bytes, name) : documents.delete(name);
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
