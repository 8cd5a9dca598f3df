// The browsers' build: the page awaits `init` once.
export * from "./index.js";
