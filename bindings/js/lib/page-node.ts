// Node's build with the page of an order.
export * from "./node.js";
export * from "./page.js";
