/**
 * Verifies, explains and signs what a cross-chain swap service asks a wallet to sign.
 *
 * {@link Order.verify} is the only way to an {@link Order}, an order the only way to an {@link UnsignedOrder}, and an unsigned
 * order with all signatures the only way to a {@link SignedOrder}. A {@link Reader} says what to ask a chain, and takes the answers.
 * Nothing here reads a clock, a network or randomness.
 */
export { CountersignError, type ErrorData } from "./error.js";
export type { JsonText } from "./input.js";
export { Key } from "./key.js";
export { init, memoryBytes, type ModuleSource } from "./module.js";
export { inWholeUnits } from "./output.js";
export { Order, type Documents } from "./order.js";
export { Quorum, Reader, splitBatch } from "./reader.js";
export { SwapRecord, type ReaderOptions } from "./record.js";
export { Recovery } from "./recovery.js";
export { SignedOrder, UnsignedOrder } from "./signing.js";
export { Policy, Registry, families, verifyLine } from "./trust.js";
export type { TypedDataSigner } from "./typed-data.js";
export type * from "./types.js";
