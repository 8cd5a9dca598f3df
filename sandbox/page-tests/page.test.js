// Tests the sandbox's page in headless Chromium. The screenshots are in shots/.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { start } from "../clients/sandbox.js";
import { launch, order, scene } from "./browser.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = fileURLToPath(new URL("shots/", import.meta.url));
let sandbox, browser;

before(async () => {
  mkdirSync(shots, { recursive: true });
  sandbox = await start("--chains", "base,litecoin,solana");
  browser = await launch();
  await scene(sandbox);
});
after(async () => {
  await browser?.close();
  sandbox?.stop();
});

/** Opens the page and calls `work`. Fails on any error in the browser, such as an exception or a violation of the
   policy. */
const open = async ({ expected, ...options }, work) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  try {
    await page.goto(sandbox.service);
    await work(page);
    assert.deepEqual(complaints.filter((text) => !expected?.test(text)), []);
  } finally {
    await context.close();
  }
};

const lies = async () => (await (await fetch(`${sandbox.service}/sandbox/state`)).json()).lies;
const refreshed = (page) => page.waitForResponse((response) => new URL(response.url()).pathname === "/" && response.ok());

const looks = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  narrow: { colorScheme: "light", viewport: { width: 400, height: 850 } },
  "narrow-dark": { colorScheme: "dark", viewport: { width: 320, height: 640 } },
};
for (const [name, options] of Object.entries(looks)) {
  test(`${name}: nothing overflows, and axe finds nothing`, async () => {
    await open(options, async (page) => {
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
      await page.screenshot({ path: `${shots}${name}.png`, fullPage: true });
      assert.ok(statSync(`${shots}${name}.png`).size > 50_000);
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= window, `${content} > ${window}`);
      const wide = await page.evaluate(() => [...document.querySelectorAll(".card, .told, .log")].filter((box) => box.scrollWidth > box.clientWidth).map(({ id, className }) => id || className));
      assert.deepEqual(wide, []);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3)}`), []);
    });
  });
}

test("the states of orders and legs are in words", async () => {
  await open({}, async (page) => {
    const badges = await page.locator(".badge").allTextContents();
    for (const state of ["Waits for the user's payment", "The solver has paid too little", "Complete", "Complete"]) {
      const at = badges.findIndex((badge) => badge.includes(state));
      assert.ok(at >= 0, `${state}: ${badges}`);
      badges.splice(at, 1);
    }
    const steps = await page.locator(".order.good").first().locator(".steps li > span").allTextContents();
    assert.deepEqual(steps, ["The user paid", "The solver redeemed", "The solver paid", "The user redeemed"]);
  });
});

test("every switch is reached by keyboard, has a name, and says what it does", async () => {
  await open({}, async (page) => {
    const expected = await page.locator("[role=switch]").evaluateAll((all) => all.map(({ id }) => id));
    assert.ok(expected.length > 40, `${expected.length} switches`);
    const reached = [];
    for (let presses = 0; presses < 400 && reached.length < expected.length; presses++) {
      await page.keyboard.press("Tab");
      const id = await page.evaluate(() => (document.activeElement.matches("[role=switch]") ? document.activeElement.id : ""));
      if (id) reached.push(id);
    }
    assert.deepEqual(reached, expected);
    for (const lie of expected.map((id) => id.slice(4))) {
      const button = page.getByRole("switch", { name: lie, exact: true });
      assert.equal(await button.count(), 1, lie);
      const about = page.locator(`#about-${lie}`);
      assert.equal(await button.getAttribute("aria-describedby"), `about-${lie}`);
      assert.ok((await about.isVisible()) && (await about.textContent()).length > 30, lie);
    }
  });
});

test("a lie is switched on and off by keyboard, and the switch keeps the focus", async () => {
  await open({}, async (page) => {
    const button = page.getByRole("switch", { name: "relayer-idles", exact: true });
    const focused = () => page.evaluate(() => document.activeElement.id);
    await button.focus();
    for (const [key, state] of [["Space", "true"], ["Enter", "false"]]) {
      await page.keyboard.press(key);
      await page.locator(`#lie-relayer-idles[aria-checked=${state}]`).waitFor();
      assert.equal((await lies()).includes("relayer-idles"), state === "true");
      assert.equal(await focused(), "lie-relayer-idles");
      assert.equal((await page.getByRole("status").allTextContents()).join().includes("relayer-idles"), state === "true");
    }
  });
});

test("a refresh shows what is new, and keeps focus and open details", async () => {
  await open({}, async (page) => {
    const details = page.locator(".order details").first();
    await details.locator("summary").click();
    const card = await page.locator(".order").first().getAttribute("id");
    const mine = page.getByRole("button", { name: "Mine 1 block on Base" });
    await mine.focus();
    await mine.evaluate((element) => (element.marked = true));
    const made = await order(sandbox, { nonce: "refresh" });
    await page.locator(`#order-${made}`).waitFor();
    await refreshed(page);
    assert.equal(await page.evaluate(() => document.activeElement.marked), true);
    assert.equal(await page.locator(`#${card} details`).evaluate(({ open }) => open), true);
    assert.equal(await page.locator(`#order-${made} details`).evaluate(({ open }) => open), false);
    assert.equal(await page.locator(".order").first().getAttribute("id"), `order-${made}`);
  });
});

test("without scripts, a switch works and gets the focus again", async () => {
  await open({ javaScriptEnabled: false }, async (page) => {
    // Headless Chromium does not render this element, because its parser does not know that scripts are off.
    assert.match(await page.locator("noscript").innerHTML(), /Scripts are off: reload/);
    const button = page.getByRole("switch", { name: "net-500", exact: true });
    for (const state of ["true", "false"]) {
      await button.press("Enter");
      await page.waitForURL(/#lie-net-500$/);
      await page.locator(`#lie-net-500[aria-checked=${state}]`).waitFor();
      assert.equal((await lies()).includes("net-500"), state === "true");
      assert.equal(await page.locator("#lie-net-500:focus").count(), 1);
    }
    await page.getByRole("button", { name: "Mine 100 on Litecoin" }).click();
    await page.waitForURL(/#chains$/);
  });
});

test("what comes from outside is text", async () => {
  const foreign = `"'><img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
  const id = await order(sandbox, { nonce: foreign }, foreign);
  await open({}, async (page) => {
    await page.locator(`#order-${id} summary`).click();
    const shown = await page.locator(`#order-${id} dd`).allTextContents();
    assert.equal(shown.filter((text) => text === foreign).length, 2, shown.join("\n"));
    assert.equal(await page.locator("main img, main script").count(), 0);
    await refreshed(page);
    assert.equal(await page.title(), "countersign sandbox");
  });
});

test("the page says when the sandbox does not answer, and when it answers again", async () => {
  const expected = /status of 503/;
  await open({ expected }, async (page) => {
    await page.route("**/*", (route) => route.fulfill({ status: 503, body: "not now" }));
    await page.locator("#trouble", { hasText: "The sandbox refuses: not now" }).waitFor();
    await page.unroute("**/*");
    await page.locator("#trouble:empty").waitFor({ state: "attached" });
  });
});

test("what is signed for an order is one click away, and a lie in the record is seen there", async () => {
  const made = await order(sandbox, { nonce: "77" });
  await open({}, async (page) => {
    const link = page.locator(`#order-${made}`).getByRole("link", { name: /What is signed/ });
    assert.match(await link.textContent(), new RegExp(made.slice(0, 8)));
    await link.click();
    await page.waitForURL(new RegExp(`/order/${made}$`));
    assert.match(await page.locator("#verdict").textContent(), /^Lock .* on .*; receive at least .* refund after/);
    assert.ok((await page.locator("[tabindex], a, button").count()) > 0);
    await page.screenshot({ path: `${shots}order.png`, fullPage: true });
  });
  await sandbox.post("lies", { name: "record-pays-elsewhere", on: true });
  try {
    await open({}, async (page) => {
      await page.goto(`${sandbox.service}/order/${made}`);
      assert.match(await page.locator("#verdict").textContent(), /Do not sign/);
      assert.match(await page.locator("body").textContent(), /destination_swap\/redeemer/);
      await page.screenshot({ path: `${shots}order-refused.png`, fullPage: true });
    });
  } finally {
    await sandbox.post("lies", { name: "record-pays-elsewhere", on: false });
  }
});

test("there is no page of an order that is not there", async () => {
  for (const id of ["", "0".repeat(64), "..%2f..%2fetc", "<script>"]) {
    const reply = await fetch(`${sandbox.service}/order/${id}`);
    assert.equal(reply.status, 404);
    assert.equal(await reply.text(), "order not found");
  }
});
