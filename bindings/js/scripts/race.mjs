// Times the same swap in Chromium (examples/swap-page) and by the native program, in turn, against one sandbox: `npm run race`.
//
// Needs the package and the sandbox to be built, a Chromium, and the program in release mode: COUNTERSIGN names it.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { server } from "../examples/swap-page/serve.mjs";
import { launch } from "../test/chromium.mjs";
import { ROOT } from "./paths.mjs";

const ROUNDS = 7;
const program = process.env.COUNTERSIGN ?? join(ROOT, "target", "release", "countersign");
const wallet = await server();
wallet.serving.listen(0, "127.0.0.1");
await once(wallet.serving, "listening");
const browser = await launch();

/** Swaps in a new profile of the browser, and returns the milliseconds from the quote to the end. */
async function inChromium() {
  const profile = await browser.newContext();
  const page = await profile.newPage();
  await page.goto(`http://127.0.0.1:${wallet.serving.address().port}/`);
  await page.waitForSelector("#quote:enabled");
  const start = performance.now();
  await page.click("#quote");
  await page.waitForSelector("#create:enabled");
  await page.click("#create");
  await page.waitForSelector("#consent[open]");
  await page.click("#consent .main");
  await page.waitForFunction(() => document.querySelector("#swaps .message")?.textContent === "complete", undefined, { polling: 10 });
  const milliseconds = performance.now() - start;
  await profile.close();
  return milliseconds;
}

/** Swaps by the program, and returns the milliseconds of the whole process. */
function natively() {
  const start = performance.now();
  const env = { ...process.env, COUNTERSIGN_CONFIG: wallet.sandbox.config };
  execFileSync(program, ["swap", "--from", "base:usdc", "--amount", "50 usdc", "--to", "litecoin:ltc", "--yes", "--at-least", "1"], { env, stdio: "pipe" });
  return performance.now() - start;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
try {
  const [browsers, natives] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const [here, there] = [await inChromium(), natively()];
    // The first round fills caches.
    if (round > 0) browsers.push(here), natives.push(there);
  }
  const [here, there] = [median(browsers), median(natives)];
  const list = (values) => values.map(Math.round).join(" ");
  console.log(`Chromium ${Math.round(here)} ms (${list(browsers)})\nprogram  ${Math.round(there)} ms (${list(natives)})\nratio    ${(here / there).toFixed(2)}`);
} finally {
  await browser.close();
  wallet.sandbox.stop();
  wallet.serving.close();
  wallet.serving.closeAllConnections();
}
