import type { Blame, ErrorCode } from "./types.js";

/** The parts of an error as plain data: {@link CountersignError.toJSON}. */
export interface ErrorData {
  readonly name?: "CountersignError";
  readonly code: ErrorCode;
  readonly message: string;
  readonly at: string;
  readonly expected?: string | null;
  readonly actual?: string | null;
  readonly blame: Blame;
}

/** The one error that this package throws: a refused order, or an argument that cannot be used. */
export class CountersignError extends Error {
  /** `CountersignError`, which also holds across builds, where `instanceof` does not. */
  override readonly name = "CountersignError";
  /** A stable name in snake case, such as `amount_mismatch`. */
  readonly code: ErrorCode;
  /**
   * Where: a JSON pointer into the case, such as `/response/result/initiate_transaction/to`. A range of bytes of the decoded
   * payload may follow: `#36-68`. Empty where no single place is meant.
   */
  readonly at: string;
  /** What would have been accepted, where one value can be named. */
  readonly expected: string | undefined;
  /** What came, shortened and with control characters escaped. */
  readonly actual: string | undefined;
  /** Who can do something about it. */
  readonly blame: Blame;

  /** @internal */
  constructor(fields: ErrorData, options?: ErrorOptions) {
    super(fields.message, options);
    this.code = fields.code;
    this.at = fields.at;
    this.expected = fields.expected ?? undefined;
    this.actual = fields.actual ?? undefined;
    this.blame = fields.blame;
  }

  /** Returns all parts as plain data, which `postMessage` and `JSON.stringify` keep. They drop most of an error. */
  toJSON(): ErrorData {
    const { name, code, message, at, expected, actual, blame } = this;
    return { name, code, message, at, ...(expected === undefined ? {} : { expected }), ...(actual === undefined ? {} : { actual }), blame };
  }

  /**
   * Creates the error again from what {@link toJSON} returned, for example on the other side of a worker.
   *
   * @throws {@link CountersignError} `usage` if the data is something else.
   */
  static from(data: unknown): CountersignError {
    const fields = (typeof data === "object" && data !== null ? data : {}) as ErrorData;
    const isText = [fields.code, fields.message, fields.at, fields.blame].every((part) => typeof part === "string");
    if (!isText) throw usage("usage", "this is not the data of a CountersignError", "what toJSON returned");
    return new CountersignError(fields);
  }
}

/** Creates the error for an argument that cannot be used. */
export function usage(code: ErrorCode, message: string, expected?: string, actual?: string): CountersignError {
  return new CountersignError({ code, message, at: "", expected: expected ?? null, actual: actual ?? null, blame: "caller" });
}
