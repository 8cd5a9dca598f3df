// The wallet page in headless Chromium, under its content security policy, against the sandbox.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { launch, skip as noBrowser } from "./chromium.mjs";
import { skip as noSandbox } from "./swap-user.mjs";
import { server } from "../examples/swap-page/serve.mjs";

const options = { skip: noBrowser || noSandbox, timeout: 120_000 };
let [browser, wallet, address] = [];

before(async () => {
  if (options.skip) return;
  wallet = await server();
  wallet.serving.listen(0, "127.0.0.1");
  await once(wallet.serving, "listening");
  address = `http://127.0.0.1:${wallet.serving.address().port}/`;
  browser = await launch();
});
after(async () => {
  await browser?.close();
  wallet?.sandbox.stop();
  wallet?.serving.close();
  wallet?.serving.closeAllConnections();
});

/** Opens the page in a browser profile of its own. */
async function open(context, device = {}) {
  const profile = await browser.newContext(device);
  context.after(() => profile.close());
  const page = await profile.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  // A reload while a transaction is sent sends it again, and the node has it already.
  const isKnown = (message) => /400/.test(message.text()) && message.location().url.endsWith("/tx");
  page.on("console", (message) => message.type() === "error" && !isKnown(message) && complaints.push(`${message.text()} ${message.location().url}`));
  await page.goto(address);
  await page.waitForSelector("#quote:enabled");
  return { profile, page, complaints };
}

/** Takes a picture where SCREENSHOTS names a folder. */
const picture = async (page, name) => process.env.SCREENSHOTS && page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true });

/** Quotes, creates an order, and waits for what is to be signed. */
async function create(page) {
  await page.click("#quote");
  await page.waitForSelector("#create:enabled");
  assert.match(await page.textContent("#receive"), /^0\.\d+ LTC$/);
  await page.click("#create");
}
const message = (page, pattern) => page.waitForFunction((source) => new RegExp(source, "i").test(document.querySelector("#swaps .message")?.textContent), pattern.source, { timeout: 60_000 });

test("a whole swap, with a reload in the middle", options, async (context) => {
  const { page, complaints } = await open(context);
  await create(page);
  await page.waitForSelector("#consent[open]");
  const topics = await page.locator("#summary dt").allTextContents();
  assert.ok(topics.length > 5, topics.join());
  await picture(page, "consent");
  await page.click("#consent .main");
  await page.waitForSelector("#swaps .steps .done");
  await page.reload();
  await message(page, /^complete$/);
  assert.equal(await page.locator("#swaps .steps .done").count(), 3);
  await page.click("details >> text=Rescue phrase");
  assert.match(await page.textContent("#phrase"), /^(\w+ ){11}\w+$/);
  await picture(page, "complete");
  assert.deepEqual(complaints, []);
});

test("a payment that the solver does not answer comes back", options, async (context) => {
  const { page, complaints } = await open(context, { colorScheme: "dark", viewport: { width: 390, height: 844 } });
  await page.click("details >> text=Sandbox");
  await page.selectOption("#lie", "solver-pays-less");
  await create(page);
  await page.waitForSelector("#consent[open]");
  await picture(page, "consent-dark");
  await page.click("#consent .main");
  await message(page, /^paid;/);
  await picture(page, "waiting-dark");
  await page.click("#later");
  await message(page, /^refunded$/);
  await page.selectOption("#lie", "none");
  assert.deepEqual(complaints, []);
});

test("an order that pays a stranger is refused, and shown as that", options, async (context) => {
  const { page } = await open(context);
  await page.click("details >> text=Sandbox");
  await page.selectOption("#lie", "evm-contract");
  await create(page);
  await page.waitForFunction(() => !document.querySelector("#trouble").hidden || document.querySelector("#swaps .failed"));
  assert.equal(await page.isVisible("#consent"), false);
  await picture(page, "refused");
  await page.selectOption("#lie", "none");
});

test("an order that is declined is not paid, and a second tab is told why it has no swaps", options, async (context) => {
  const { profile, page } = await open(context);
  await create(page);
  await page.waitForSelector("#consent[open]");
  await page.click("#consent button[value=no]");
  await message(page, /declined/);
  const other = await profile.newPage();
  await other.goto(address);
  await other.waitForSelector("#trouble:not([hidden])");
  assert.match(await other.textContent("#trouble"), /open in another tab/);
  assert.equal(await other.isEnabled("#quote"), false);
  await page.close();
  await other.reload();
  await other.waitForSelector("#quote:enabled");
  await other.waitForSelector("#swaps [data-order]");
});
