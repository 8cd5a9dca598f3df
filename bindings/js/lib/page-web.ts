// The browsers' build with the page of an order: the program awaits `init` once.
export * from "./index.js";
export * from "./page.js";
