// What was reported and not read yet.

/** Changes on their way to a `for await` loop. */
export class Inbox<T> {
  #items: T[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake = () => {};

  /** Adds a change. */
  push(item: T): void {
    this.#items.push(item);
    this.#wake();
  }

  /** Ends the loop, with an error if there is one. */
  end(error?: unknown): void {
    this.#end ??= error === undefined ? {} : { error };
    this.#wake();
  }

  /** Reads everything, once. */
  async *read(): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        while (this.#items.length > 0) yield this.#items.shift() as T;
        if (this.#end) break;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      // Nobody reads what comes later.
      this.push = () => {};
    }
    if (Object.hasOwn(this.#end, "error")) throw this.#end.error;
  }
}
