// The WebAssembly module: loading it, and calling it.
import load, { type InitOutput } from "countersign-glue";
import { CountersignError, usage } from "./error.js";

/** Where the WebAssembly module comes from. */
export type ModuleSource = string | URL | Request | Response | BufferSource | WebAssembly.Module | Promise<Response>;

let memory: WebAssembly.Memory | undefined;
let loading: Promise<void> | undefined;

/** Remembers that the module is there. @internal */
export function loaded(exports: InitOutput): void {
  // The glue keeps the first module that it was given, whatever it is.
  if (!("__wbindgen_start" in exports)) throw new TypeError("it is not the module of this package; load the page or the process again");
  memory = exports.memory;
}

/**
 * Loads the WebAssembly module. Call it once before anything else in a browser; further calls wait for the first. In Node the
 * module is loaded on import, and this does nothing.
 *
 * @param source - Where the module comes from: by default `countersign_bg.wasm` beside this file, which bundlers find by
 *   themselves. Extensions and workers may give its URL, its bytes or a compiled module.
 * @throws {@link CountersignError} `init_failed` if there is no such module. It can be called again.
 */
export function init(source?: ModuleSource): Promise<void> {
  if (memory) return Promise.resolve();
  loading ??= load(source === undefined ? undefined : { module_or_path: source }).then(loaded).catch((error: unknown) => {
    // The next call may try again, for example when the network is back.
    loading = undefined;
    const why = error instanceof Error ? error.message : String(error);
    const message = `the WebAssembly module cannot be loaded (${why}); serve countersign_bg.wasm and give its URL or its bytes to init`;
    throw new CountersignError({ code: "init_failed", message, at: "", blame: "caller" }, { cause: error });
  });
  return loading;
}

/** Calls into the module. What it throws is the JSON of an error. @internal */
export function call<T>(work: () => T): T {
  if (!memory) throw usage("not_initialized", "the WebAssembly module is not loaded yet; await init() first");
  try {
    return work();
  } catch (error) {
    if (typeof error === "string") throw new CountersignError(JSON.parse(error));
    if (error instanceof WebAssembly.RuntimeError) {
      const message = `the WebAssembly module stopped (${error.message}); load the page or the process again, and report this`;
      throw new CountersignError({ code: "internal", message, at: "", blame: "bug" });
    }
    throw error;
  }
}

/** Returns how many bytes of memory the module has taken. It grows with the largest input and never shrinks. */
export function memoryBytes(): number {
  return memory?.buffer.byteLength ?? 0;
}
