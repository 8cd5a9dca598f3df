// Node's build with whole swaps.
export * from "./node.js";
export * from "./swap.js";
export { fileStore } from "./swap-files.js";
