/// <reference lib="esnext.disposable" preserve="true" />
// The objects of the module that belong to the objects of this package, and what was read from them.
import { CountersignError, usage } from "./error.js";
import { wrongType } from "./input.js";

interface Handle {
  free(): void;
}

/** Keeps constructors from being called by others. @internal */
export const CREATE = Symbol("create");

/** Every build marks its objects with this symbol, which the builds of one page share. @internal */
const MARK = Symbol.for("countersign.object");

const handles = new WeakMap<object, { readonly handle: Handle; readonly values: Map<string, unknown> }>();

/** Gives an object its handle. @internal */
export function bind<T extends object>(object: T, handle: Handle): T {
  handles.set(object, { handle, values: new Map() });
  return object;
}

/** Returns the handle of an object, which has to be of this class and still in use. @internal */
export function handleOf<H>(object: unknown, kind: Function, what: string): H {
  if (!(object instanceof kind)) {
    if (isOfAnotherBuild(object)) throw usage("usage", `${what} is of another build of this package`, `a ${what} of this build`, "one of another build");
    throw wrongType(what, `the ${what} that this package made`, object);
  }
  const bound = handles.get(object);
  if (!bound) throw new CountersignError({ code: "used_up", message: `${what} was freed already; create it again`, at: "", blame: "caller" });
  return bound.handle as H;
}

/** Whether an object is of another build of this package. @internal */
export function isOfAnotherBuild(object: unknown): boolean {
  try {
    return typeof object === "object" && object !== null && MARK in object && !(object instanceof Freeable);
  } catch {
    return false; // a proxy
  }
}

/** Returns what was read under this name before, so that equal values are the same object; or reads it. @internal */
export function once<T>(object: object, name: string, read: () => T): T {
  const values = handles.get(object)?.values;
  if (values?.has(name)) return values.get(name) as T;
  const value = read();
  values?.set(name, value);
  return value;
}

/** Forgets what was read, because the object changes. @internal */
export function forget(object: object): void {
  handles.get(object)?.values.clear();
}

/** What all objects of this package have in common. */
export abstract class Freeable {
  /** @internal */
  get [MARK](): true {
    return true;
  }

  /**
   * Frees the object's memory in the WebAssembly module at once. Without it the garbage collector does so, some time later.
   * Every later use is an error with the code `used_up`.
   */
  free(): void {
    handles.get(this)?.handle.free();
    handles.delete(this);
  }

  /** The same as {@link free}: `using order = Order.verify(..)`. */
  [Symbol.dispose](): void {
    this.free();
  }
}

/** An object that only this package makes. */
export abstract class Made extends Freeable {
  /** @internal */
  constructor(key: symbol, handle: Handle, how: string) {
    super();
    if (key !== CREATE) throw new TypeError(`use ${how}`);
    bind(this, handle);
  }
}
