/**
 * Verifies, explains and signs what a cross-chain swap service asks a wallet to sign.
 *
 * {@link Order.verify} is the only way to an {@link Order}, an order the only way to an {@link UnsignedOrder}, and an unsigned
 * order with all signatures the only way to a {@link SignedOrder}. A {@link Reader} says what to ask a chain, and takes the answers.
 * Nothing here reads a clock, a network or randomness.
 */
export { CountersignError, type Blame } from "./error.js";
export type { Document } from "./input.js";
export { init, memoryBytes, type ModuleSource } from "./module.js";
export { inWholeUnits } from "./output.js";
export { Order, type Documents } from "./order.js";
export { Quorum, Reader, splitBatch } from "./reader.js";
export { Record, type ReaderOptions } from "./record.js";
export { Recovery } from "./recovery.js";
export { SignedOrder, UnsignedOrder } from "./signing.js";
export { Policy, Registry, families, verifyLine } from "./trust.js";
export type {
  BatchResponse,
  ChainAnswer,
  ChainRequest,
  Coverage,
  Family,
  Funded,
  Htlc,
  HtlcTerms,
  Leg,
  Line,
  NativePayload,
  Severity,
  SigningRequest,
  Terms,
  Transaction,
  Value,
  Warning,
} from "./types.js";
