// The browsers' build with whole swaps. `Swaps.open` loads the module.
export * from "./index.js";
export * from "./swap.js";
export { indexedDbStore } from "./swap-indexed-db.js";
