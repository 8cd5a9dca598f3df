// The objects of the module that belong to the objects of this package.
import { CountersignError } from "./error.js";
import { wrongType } from "./input.js";

interface Handle {
  free(): void;
}

const handles = new WeakMap<object, Handle>();

/** Gives an object its handle. @internal */
export function bind<T extends object>(object: T, handle: Handle): T {
  handles.set(object, handle);
  return object;
}

/** Returns the handle of an object, which has to be of this class and still in use. @internal */
export function handleOf<H>(object: unknown, kind: Function, what: string): H {
  if (!(object instanceof kind)) throw wrongType(what, `the ${what} that this package made`, object);
  const handle = handles.get(object);
  if (!handle) throw usedUp(what);
  return handle as H;
}

/** Frees the memory of an object; it cannot be used afterwards. @internal */
export function release(object: object): void {
  handles.get(object)?.free();
  handles.delete(object);
}

/** What all objects of this package have in common. */
export abstract class Freeable {
  /**
   * Frees the object's memory in the WebAssembly module at once. Without it the garbage collector does so, some time later.
   * Every later use is an error with the code `used_up`.
   */
  free(): void {
    release(this);
  }

  /** The same as {@link free}: `using order = Order.verify(..)`. */
  [Symbol.dispose](): void {
    release(this);
  }
}

function usedUp(what: string): CountersignError {
  const message = `${what} was freed already; create it again`;
  return new CountersignError({ code: "used_up", message, at: "", blame: "caller" });
}
