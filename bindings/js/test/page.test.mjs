// The page in headless Chromium, under its content security policy.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Order, Registry } from "countersign";
import { POLICY, demo, server } from "../examples/page/serve.mjs";
import { launch, skip } from "./chromium.mjs";
import { fixture } from "./fixtures.mjs";

let browser;

before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

/** Opens the page under a policy and calls `work` with it and what it complained about. */
async function open(policy, work) {
  const serving = server(policy).listen(0, "127.0.0.1");
  await once(serving, "listening");
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && !message.text().includes("favicon") && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  try {
    await page.goto(`http://127.0.0.1:${serving.address().port}/`);
    await work(page, complaints);
  } finally {
    await page.close();
    serving.close();
    serving.closeAllConnections();
  }
}

const quiet = (complaints) => complaints.filter((text) => !/404/.test(text));

test("the page verifies, shows and signs orders of every family", { skip }, async () => {
  const { registry, cases } = demo();
  await open(POLICY, async (page, complaints) => {
    await page.waitForSelector("#verify:enabled");
    for (const one of cases.filter(({ id }) => id !== "evm-tampered")) {
      await page.selectOption("#cases", one.id);
      await page.click("#verify");
      await page.waitForSelector("#order:not([hidden])");
      const order = Order.verify(one, new Registry(registry));
      assert.deepEqual(await page.locator("#summary dd").allTextContents(), order.summary.map(({ text }) => text), one.id);
      assert.deepEqual(await page.locator("#warnings li").allTextContents(), order.warnings.map(({ message }) => message), one.id);
      await page.click("#sign");
      await page.waitForSelector("#signed:not([hidden])");
      const unsigned = order.prepare(one.wallet);
      unsigned.sign(one.key);
      const expected = unsigned.finish().transactions.map(({ payload }) => payload);
      assert.deepEqual(await page.locator("#transactions li").allTextContents(), expected, one.id);
      assert.equal(await page.inputValue("#key"), "");
      if (one.id.startsWith("evm-")) {
        const { approval, initiate } = fixture(one.id).expect.artefacts;
        assert.deepEqual(expected, [approval.signed, initiate.signed]);
      }
    }
    assert.deepEqual(quiet(complaints), []);
  });
});

test("the page refuses an order that pays another contract", { skip }, async () => {
  await open(POLICY, async (page, complaints) => {
    await page.waitForSelector("#verify:enabled");
    await page.selectOption("#cases", "evm-tampered");
    await page.click("#verify");
    await page.waitForSelector("#refusal:not([hidden])");
    assert.match(await page.textContent("#refusal"), /code: \w*contract\w*.*at: \/response\/result\/initiate_transaction\/to/);
    assert.equal(await page.isVisible("#sign"), false);
    assert.deepEqual(quiet(complaints), []);
  });
});

test("without 'wasm-unsafe-eval' the module does not load, so the policy is in force", { skip }, async () => {
  await open(POLICY.replace(" 'wasm-unsafe-eval'", ""), async (page, complaints) => {
    await page.waitForFunction(() => document.readyState === "complete");
    await page.waitForTimeout(1000);
    assert.equal(await page.isEnabled("#verify"), false);
    assert.ok(complaints.some((text) => /WebAssembly|CompileError|Content Security Policy/.test(text)), complaints.join("\n"));
  });
});
