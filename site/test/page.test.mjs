// The site in Chromium: verdicts, attacks, signatures, links.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as cases from "../src/cases.js";
import * as link from "../src/link.js";
import { FAMILIES, ROOT, asText, browser, json, settled, site, start, startOf, verdictAfter, visit } from "./browser.mjs";

const ATTACKS = 10;
/** A member of the first order of each family and another value of it; and a byte of a payload. */
const EDITS = {
  evm: ["response", "result initiate_transaction to", `0x${"5e".repeat(20)}`, "response", "result initiate_transaction data", 40],
  tron: ["response", "result initiate_transaction to", "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf", "response", "result initiate_transaction data", 40],
  starknet: ["response", "result initiate_transaction to", "0x5e", "request", "secret_hash", 3],
  solana: ["response", "result versioned_tx", "AAAA", "response", "result versioned_tx", 130],
  sui: ["response", "status", "Error", "response", "result ptb_bytes", 30],
  bitcoin: ["response", "result amount", "1", "order", "source_swap secret_hash", 3],
};

const program = await import(pathToFileURL(join(ROOT, "bindings", "js", "dist", "all", "node.js")).href);
const PINNED = readFileSync(join(ROOT, "fixtures", "corpus", "registry.json"), "utf8");
start();

const field = (page, document, path) => page.getByLabel(`${document} ${path}`, { exact: true });

/** Returns the text of each document, as the page has it. */
async function documents(page) {
  const texts = {};
  for (const [name, title] of Object.entries({ response: "Response", order: "Order record", request: "Request", wallet: "Wallet context" })) {
    const card = await asText(page, title);
    texts[name] = await card.locator("textarea").inputValue();
    await card.getByRole("button", { name: "Members", exact: true }).click();
  }
  return texts;
}

/** Returns what `countersign batch` says about the documents that the page has. */
async function batch(page) {
  const { request, response, order, wallet } = await documents(page);
  const registry = new program.Registry(PINNED);
  const line = `{"id":"test","request":${request},"response":${response},${order ? `"order":${order},` : ""}"wallet":${wallet}}`;
  const result = JSON.parse(program.verifyLine(line, registry));
  return result.ok ? "accepted" : `Refused: ${result.error.code} at ${result.error.at}`;
}

for (const family of FAMILIES) {
  test(`${family}: the honest order is accepted, a changed member and a changed byte are refused as the program does`, async () => {
    await visit(browser, site.url, { fragment: `#${family}:${startOf(family)}` }, async (page, heard) => {
      assert.match(await page.textContent("#bar"), /^Accepted/);
      assert.equal(await batch(page), "accepted");
      assert.ok((await page.locator("#requests .card").count()) > 0);
      const [document, path, value, holder, payload, index] = EDITS[family];
      const changed = await verdictAfter(page, () => field(page, document, path).fill(value));
      assert.match(changed, /^Refused/);
      assert.equal(changed, await batch(page));
      assert.equal(await page.locator("#requests .card").count(), 0);
      assert.match(await verdictAfter(page, () => page.click("#reset")), /^Accepted/);
      await page.getByRole("button", { name: new RegExp(`^\\d+ bytes of ${holder} ${payload}$`) }).click();
      const cell = page.getByRole("grid", { name: `bytes of ${holder} ${payload}` }).getByRole("gridcell").nth(index);
      const before = parseInt(await cell.textContent(), 16);
      const flipped = await verdictAfter(page, () => cell.click());
      assert.equal(parseInt(await cell.textContent(), 16), before ^ 1);
      assert.match(flipped, /^Refused/);
      assert.match(await cell.getAttribute("class"), /\bchanged\b/);
      assert.equal(await page.locator(".row.refused, .name.refused").count(), 1);
      assert.match(await page.textContent("#verdict"), /whose fault.*cost, if signed(funds|fees|time|privacy|display|nothing|unknown)/);
      if (family === "evm" || family === "tron") {
        assert.match(await cell.getAttribute("class"), /\brefused\b/);
        await page.click("#verdict button");
        const [, first] = /#(\d+)-\d+$/.exec(flipped);
        assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), new RegExp(`^byte ${first}: .*, refused$`));
      }
      assert.equal(flipped, await batch(page));
      assert.deepEqual(heard.messages, []);
    });
  });

  test(`${family}: ${ATTACKS} attacks are refused, and none is accepted`, async () => {
    const { cases, attacks } = json(`${family}/index.json`);
    const { losses } = json("common.json");
    await visit(browser, site.url, { fragment: `#${family}:${startOf(family)}` }, async (page, heard) => {
      const seen = new Set();
      for (let step = 0; step < ATTACKS; step += 1) {
        const verdict = await verdictAfter(page, () => page.click("#next"));
        const id = await page.inputValue("#order");
        const expected = cases.find((row) => row.id === id);
        assert.equal(verdict, `Refused: ${expected.code}${expected.at === "" ? "" : ` at ${expected.at}`}`, id);
        const shown = (await page.textContent("#case")).toLowerCase();
        assert.ok(shown.includes(attacks[expected.attack].words.toLowerCase()) && shown.includes(losses[expected.loss].toLowerCase()), id);
        const isShown = ["response", "record", "request", "wallet"].includes(expected.changed) && (await page.locator(".row.changed, .name.changed, .was:not([hidden])").count()) > 0;
        assert.ok(isShown || (await page.locator(".has-change, .has-refusal, #case pre").count()) > 0, `${id} shows no difference`);
        seen.add(id);
      }
      assert.equal(seen.size, ATTACKS);
      assert.deepEqual(heard.messages, []);
    });
  });

  test(`${family}: the chain's own SDK signs the same bytes, and signs an attack too`, async (context) => {
    await visit(browser, site.url, { fragment: `#${family}:${startOf(family)}` }, async (page, heard) => {
      const sign = async () => {
        await page.click("#sdk");
        await page.waitForFunction(() => !/^(Loading|$)/.test(document.getElementById("sdk-state").textContent));
        return page.textContent("#sdk-state");
      };
      assert.match(await sign(), /^Equal: all [1-9]\d* artefacts/);
      assert.equal(await page.locator("#compared .unequal").count(), 0);
      const isSigned = [];
      // The corpus has no tampered order on Bitcoin whose wallet has coins.
      if (family === "bitcoin") {
        const [document, path, value] = EDITS.bitcoin;
        await verdictAfter(page, () => field(page, document, path).fill(value));
        assert.match(await sign(), /signed what countersign refused/);
        await verdictAfter(page, () => page.click("#next"));
        return assert.match(await sign(), /^Neither signs/);
      }
      for (let step = 0; step < ATTACKS; step += 1) {
        await verdictAfter(page, () => page.click("#next"));
        isSigned.push(/signed what countersign refused/.test(await sign()));
      }
      context.diagnostic(`${family}: the SDK signed ${isSigned.filter(Boolean).length} of the first ${ATTACKS} attacks`);
      assert.ok(isSigned.some(Boolean));
      assert.deepEqual(heard.messages, []);
    });
  });
}

test("documents of one's own are judged, and an empty choice is no verdict", async () => {
  let texts;
  await visit(browser, site.url, { fragment: `#sui:${startOf("sui")}` }, async (page) => (texts = await documents(page)));
  await visit(browser, site.url, {}, async (page) => {
    assert.match(await verdictAfter(page, () => page.selectOption("#order", "own")), /^No verdict: paste a request and a response$/);
    for (const [name, text] of Object.entries(texts)) {
      if (name === "wallet") await page.locator("summary", { hasText: "Wallet context" }).click();
      await page.getByLabel(`text of the ${name}`, { exact: true }).fill(text);
    }
    await page.waitForFunction(() => document.getElementById("bar").textContent.startsWith("Refused: unsupported_family"));
  });
  await visit(browser, `${site.url}#sui:`, {}, async (page) => {
    await page.locator("summary", { hasText: "Wallet context" }).click();
    for (const [name, text] of Object.entries(texts)) await page.getByLabel(`text of the ${name}`, { exact: true }).fill(text);
    await page.waitForFunction(() => document.getElementById("bar").textContent.startsWith("Accepted"));
    await page.click("#link");
    await page.waitForFunction(() => location.hash.split(":").length === 3);
    const { hash } = new URL(page.url());
    // Another key, and then the link stays as it was.
    const own = texts.wallet.replace(/("secret_key":")([^"]*)/, (_, before, key) => `${before}${key.slice(0, -1)}${key.endsWith("q") ? "p" : "q"}`);
    assert.notEqual(own, texts.wallet);
    await verdictAfter(page, () => page.getByLabel("text of the wallet", { exact: true }).fill(own));
    await page.click("#link");
    await page.waitForSelector("#notice:not([hidden])");
    assert.match(await page.textContent("#notice"), /^There is no link: .* secret key that is none of the published ones/);
    assert.equal(new URL(page.url()).hash, hash);
  });
});

/** The first order of EVM with other documents, as an author of links would send it. */
function ofAuthor(changed) {
  const { part, place } = json("evm/index.json").cases.find(({ id }) => id === startOf("evm"));
  return { ...cases.cut(json(`evm/${part}.json`)[place], PINNED), ...changed };
}

const [REGISTRY, POLICY] = ["a registry that is not the pinned one", "a policy that is not the default one"];
for (const [what, id, changed, under] of [
  ["own documents with a registry", "", { registry: `${PINNED} ` }, REGISTRY],
  ["own documents with a policy", "", { policy: '{"solana_memo":4}' }, POLICY],
  ["own documents with both", "", { registry: `${PINNED} `, policy: "{}" }, `${REGISTRY} and ${POLICY}`],
  ["own documents without either", "", {}, ""],
  ["a case with a changed registry", startOf("evm"), { registry: `${PINNED} ` }, REGISTRY],
  ["a case of the corpus with its own registry", "reject/warns-unpinned-solver", {}, REGISTRY],
  ["a case of the corpus with its own policy", "reject/policy-finality", {}, POLICY],
]) {
  test(`a verdict says that the author of the link chose by what it was reached: ${what}`, async () => {
    const fragment = await link.write("evm", id, id === "" ? ofAuthor(changed) : changed);
    await visit(browser, site.url, { fragment }, async (page, heard) => {
      const said = under && ` under ${under}`;
      assert.match(await page.textContent("#bar"), new RegExp(`^Accepted${said}( with \\d+ warnings?)?$`));
      assert.equal(await page.textContent("#verdict .kicker"), `Accepted${said}`);
      for (const [title, part] of [["Registry", REGISTRY], ["Policy", POLICY]]) {
        const card = page.locator("details.document", { has: page.getByRole("heading", { name: title, exact: true }) });
        assert.deepEqual([await card.evaluate((element) => element.open), await card.locator(".state").textContent()], said.includes(part) ? [true, "changed"] : [false, ""], title);
      }
      assert.deepEqual(heard.messages, []);
    });
  });
}

test("what was said is taken back as soon as the documents change, and nothing moves", async () => {
  await visit(browser, site.url, {}, async (page, heard) => {
    const shown = () => page.evaluate(() => ["verdict", "summary", "requests"].map((id) => [document.getElementById(id).offsetHeight, document.getElementById(id).textContent]));
    await page.click("#sdk");
    await page.waitForSelector("#compared .equal");
    for (const [what, step, then] of [
      ["a change", () => field(page, "response", "status").fill("Error"), /^Refused/], ["Undo", () => page.click("#reset"), /^Accepted/],
      ["an attack", () => page.click("#next"), /^Refused/], ["an order", () => page.selectOption("#order", startOf("evm")), /^Accepted/],
    ]) {
      const [before, shifts] = [await shown(), await page.evaluate(() => globalThis.shifts.length)];
      // What is asked is held back.
      await page.evaluate(() => {
        const [all, { postMessage }] = [(globalThis.held = []), Worker.prototype];
        Worker.prototype.postMessage = function (question) { all.push([this, question]); };
        globalThis.release = () => { Worker.prototype.postMessage = postMessage; for (const [worker, question] of all) worker.postMessage(question); };
      });
      await step();
      await page.waitForFunction(() => globalThis.held.length > 0);
      assert.deepEqual(await shown(), before.map(([height], place) => [height, place === 0 ? "No verdict yetChecking…" : ""]), what);
      assert.deepEqual([await page.textContent("#bar"), await page.textContent("#compared"), await page.locator(".good, .has-refusal").count()], ["Checking…", "", 0], what);
      await page.click("#sdk");
      assert.equal(await page.textContent("#sdk-state"), "There is nothing to compare: there is no verdict about these documents.", what);
      assert.equal(await page.evaluate(() => globalThis.shifts.length), shifts, what);
      await page.evaluate(() => globalThis.release());
      await settled(page);
      assert.match(await page.textContent("#bar"), then, what);
      assert.equal(await page.locator("#work [style*=min-height]").count(), 0, what);
    }
    assert.deepEqual(heard.messages, []);
  });
});

test("an order that cannot be loaded leaves the one that is shown, with its verdict", async () => {
  await visit(browser, site.url, {}, async (page) => {
    await page.route("**/data/tron/*", (route) => route.abort());
    assert.match(await verdictAfter(page, () => page.locator("input[name=family][value=tron]").check({ force: true })), /^Accepted/);
    assert.match(await page.textContent("#notice"), /^tron\/index.json cannot be loaded/);
    assert.equal(await page.locator("input[name=family]:checked").inputValue(), "evm");
  });
});

test("a refused place is shown whatever its keys are, and what fails behind a change is said", async () => {
  await visit(browser, site.url, { fragment: await link.write("evm", startOf("evm"), { policy: '{"a#b":1}' }) }, async (page, heard) => {
    assert.match(await page.textContent("#bar"), /^Refused: \w+ at \/policy\/a#b$/);
    assert.match(await page.locator(".has-refusal .row.refused").innerText(), /^a#b/);
    await page.evaluate(() => document.getElementById("case").remove());
    await field(page, "response", "status").fill("Error");
    await page.waitForSelector("#notice:not([hidden])");
    assert.deepEqual(heard.messages, []);
  });
});

test("a case whose fault is in its line only says that an edit leaves the line out", async () => {
  await visit(browser, site.url, { fragment: "#evm:reject/duplicate-request" }, async (page) => {
    const sentence = /The fault is in the line around the documents, not in them: after any edit they are judged without that line\.$/;
    assert.match(await page.textContent("#case"), sentence);
    const area = (await asText(page, "Response")).locator("textarea");
    assert.match(await verdictAfter(page, async () => area.fill(`${await area.inputValue()} `)), /^Accepted/);
    assert.match(await page.textContent("#case"), sentence);
    await verdictAfter(page, () => page.click("#next"));
    assert.doesNotMatch(await page.textContent("#case"), sentence);
  });
});

test("the full page of an order is shown in a frame that runs nothing", async () => {
  await visit(browser, site.url, {}, async (page, heard) => {
    assert.ok(!heard.requests.some((url) => url.includes("countersign/page/")));
    await page.click("#page");
    const frame = page.frameLocator("iframe.order-page");
    await frame.locator(".verdict.good").waitFor();
    assert.equal(await page.getAttribute("iframe.order-page", "sandbox"), "");
    // Its own style is in force, which the page's policy must not stop.
    assert.notEqual(await frame.locator(".verdict").evaluate((element) => getComputedStyle(element).borderLeftWidth), "0px");
    await verdictAfter(page, () => page.click("#next"));
    assert.equal(await page.locator("iframe").count(), 0);
    await page.click("#page");
    await frame.locator(".verdict.bad").waitFor();
    assert.deepEqual(heard.messages, []);
  });
});

test("a link carries a case, and an order that was changed", async () => {
  let address, verdict, texts;
  await visit(browser, site.url, {}, async (page) => {
    await verdictAfter(page, () => page.click("#next"));
    await page.click("#link");
    await page.waitForFunction(() => location.hash !== "");
    assert.match(new URL(page.url()).hash, /^#evm:reject\/[a-z0-9-]+$/);
    verdict = await verdictAfter(page, () => field(page, "request", "source amount").fill("7"));
    await page.click("#link");
    await page.waitForFunction(() => location.hash.split(":").length === 3);
    [address, texts] = [page.url(), await documents(page)];
  });
  await visit(browser, address, {}, async (page) => {
    assert.equal(await page.textContent("#bar"), verdict);
    assert.deepEqual(await documents(page), texts);
    assert.match(await page.textContent("#case"), /Your own change/);
  });
});

for (const fragment of ["#nonsense", "#evm:accept/there-is-none", "#evm:accept/evm-native:AAAA", `#evm::${"A".repeat(70_000)}`, "#moon:accept/evm-native", "#<img src=x onerror=alert(1)>:"]) {
  test(`a broken link says so, and the first order is shown: ${fragment.slice(0, 40)}`, async () => {
    await visit(browser, site.url, { fragment }, async (page, heard) => {
      assert.match(await page.textContent("#notice"), /^The link cannot be used: .+ This is the first order instead\.$/);
      assert.match(await page.textContent("#bar"), /^Accepted/);
      assert.equal(await page.inputValue("#order"), startOf("evm"));
      assert.deepEqual(heard.messages, []);
      await page.goto(`${site.url}#sui:${startOf("sui")}`);
      await page.waitForFunction(() => document.querySelector("input[name=family]:checked").value === "sui");
      await settled(page);
      assert.equal(await page.isVisible("#notice"), false);
    });
  });
}
