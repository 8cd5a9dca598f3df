/**
 * Who can do something about an error:
 *
 * - `service`: the response or the record is wrong. Do not sign; report the service.
 * - `caller`: an argument, a document of the wallet's own or a key is wrong.
 * - `unsupported`: the order may be right, but this build cannot judge it.
 * - `chain`: the chain does not show what is needed. Wait, or do not reveal the secret.
 * - `bug`: a defect of this library. Please report it.
 */
export type Blame = "service" | "caller" | "unsupported" | "chain" | "bug";

/** What an error is made from. */
export interface ErrorFields {
  code: string;
  message: string;
  at: string;
  expected?: string | null;
  actual?: string | null;
  blame: Blame;
}

/** The one error that this package throws: a refused order, or an argument that cannot be used. */
export class CountersignError extends Error {
  /** `CountersignError`, which also holds across builds, where `instanceof` does not. */
  override readonly name = "CountersignError";
  /** A stable name in snake case, such as `amount_mismatch`. */
  readonly code: string;
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
  constructor(fields: ErrorFields) {
    super(fields.message);
    this.code = fields.code;
    this.at = fields.at;
    this.expected = fields.expected ?? undefined;
    this.actual = fields.actual ?? undefined;
    this.blame = fields.blame;
  }
}

/** Creates the error for an argument that cannot be used. */
export function usage(code: string, message: string, expected?: string, actual?: string): CountersignError {
  return new CountersignError({ code, message, at: "", expected: expected ?? null, actual: actual ?? null, blame: "caller" });
}
