// Makes docs/images/sandbox.png, which shows the page after a few swaps.
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { start } from "../clients/sandbox.js";
import { launch, scene } from "./browser.js";

/** The maximum size of an image in the documentation. */
const LONGEST = 300_000;
const path = fileURLToPath(new URL("../../docs/images/sandbox.png", import.meta.url));

const sandbox = await start();
const browser = await launch();
try {
  await scene(sandbox);
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  await page.goto(sandbox.service);
  mkdirSync(dirname(path), { recursive: true });
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > LONGEST) throw new Error(`${path} has ${size} bytes, more than ${LONGEST}`);
  console.log(`${path}: ${size} bytes`);
} finally {
  await browser.close();
  sandbox.stop();
}
