// Node's build: the module lies beside this file and is loaded on import.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { initSync } from "countersign-glue";
import { loaded } from "./module.js";

loaded(initSync({ module: readFileSync(join(__dirname, "countersign_bg.wasm")) }));

export * from "./index.js";
