// The page of an order in headless Chromium: how it looks, what it lets happen, and who can read it.
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.js";
import { accepted, write, writeChosen } from "./orders.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** The longest page, in bytes, and the longest time until it is shown, in milliseconds: ten times what it should be. */
const LONGEST = 300_000;
const SLOWEST = 1_000;
let browser, pages;

before(async () => {
  [browser, pages] = await Promise.all([launch(), writeChosen()]);
});
after(() => browser?.close());

const named = (name) => pages.find((page) => page.name === name);
/** Calls `work` with each page in turn. */
const each = async (options, work) => {
  for (const order of pages) await open(browser, order.path, options, (page, heard) => work(page, order, heard));
};

for (const colorScheme of ["light", "dark"]) {
  test(`${colorScheme}: axe finds nothing`, async () => {
    await each({ colorScheme }, async (page, { name }) => {
      await page.evaluate(axe);
      const { violations, incomplete } = await page.evaluate(() => globalThis.axe.run());
      const found = [...violations, ...incomplete].map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3)}`);
      assert.deepEqual(found, [], name);
    });
  });
}

for (const width of [1280, 700, 390]) {
  test(`${width} pixels: nothing overflows, nothing is said, nothing is requested`, async () => {
    await each({ viewport: { width, height: 900 } }, async (page, { name }, heard) => {
      const outside = await page.evaluate(() => {
        const shown = [...document.querySelectorAll("body *:not(.skip, .hidden, .hidden *)")];
        const inWindow = shown.filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5);
        const boxes = shown.filter((element) => element.matches(".card, .fact, .leg, .verdict, .secret, table, td, dd") && element.scrollWidth > element.clientWidth + 1);
        return [...inWindow, ...boxes].map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`);
      });
      assert.deepEqual(outside, [], name);
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= window, `${name}: ${content} > ${window}`);
      assert.deepEqual(heard, { messages: [], requests: [] }, name);
    });
  });
}

test("neither a script, nor a style, nor a request gets through the policy", async () => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const foreign = `<script>document.title = "taken"</script><script src="${url}/script"></script><style>main { display: none }</style>
    <link rel="stylesheet" href="${url}/style"><img src="${url}/image" onerror="document.title = 'taken'"><iframe src="${url}/frame"></iframe>
    <p id="styled" style="display: none">p</p><form action="${url}/form"><button>send</button></form>`;
  const taken = async (html) => {
    const path = `${named("evm").path}.foreign.html`;
    writeFileSync(path, html.replace("</main>", `${foreign}</main>`));
    asked.length = 0;
    return open(browser, path, {}, async (page) => {
      const hidden = await page.evaluate(() => [...document.querySelectorAll("main, #styled")].some((element) => getComputedStyle(element).display === "none"));
      const title = await page.title();
      await page.evaluate(() => document.querySelector("form").submit());
      await page.waitForTimeout(200);
      return { title: title === "taken", hidden, asked: [...new Set(asked)].filter((path) => path !== "/favicon.ico").sort() };
    });
  };
  const html = readFileSync(named("evm").path, "utf8");
  const policy = /<meta http-equiv="Content-Security-Policy"[^>]*>/;
  try {
    assert.match(html, policy);
    // Without the policy all of it happens, so the attempt is a real one.
    const all = ["/form?", "/frame", "/image", "/script", "/style"];
    assert.deepEqual(await taken(html.replace(policy, "")), { title: true, hidden: true, asked: all });
    assert.deepEqual(await taken(html), { title: false, hidden: false, asked: [] });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("every page accounts for all bytes, none is too long, and the longest one is shown soon", async (context) => {
  const left = [...accepted];
  const unaccounted = [];
  let longest = { size: 0 };
  const work = async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [id, { family, generation, text }] = next;
      const { path, isAccepted } = await write({ family, generation, order: text });
      assert.ok(isAccepted, id);
      // Every byte of an honest order is accounted for, but for members that the service may add to the result.
      const isAccounted = !readFileSync(path, "utf8").includes("not part of what is signed");
      if (isAccounted === /^\w+-unknown-fields(-in-result)?$/.test(id)) unaccounted.push(id);
      const { size } = statSync(path);
      assert.ok(size <= LONGEST, `${id}: ${size} bytes`);
      if (size > longest.size) longest = { id, path, size };
    }
  };
  await Promise.all(cpus().map(work));
  assert.deepEqual(unaccounted, []);
  const times = await open(browser, longest.path, {}, async (page) => {
    const all = [];
    // The first time, Chromium starts a process for it.
    for (let run = 0; run < 5; run++) {
      await page.reload();
      all.push(
        await page.evaluate(() => {
          document.body.getBoundingClientRect();
          const [{ startTime, loadEventEnd }] = performance.getEntriesByType("navigation");
          return loadEventEnd - startTime;
        }),
      );
    }
    return all;
  });
  const shown = `${accepted.size} pages; ${longest.id} is the longest, ${longest.size} bytes, shown after ${times.map(Math.round).join(", ")} ms`;
  context.diagnostic(shown);
  assert.ok(times.every((time) => time > 0) && Math.min(...times) <= SLOWEST, shown);
});

/** What is outlined: for each row or fact with an outline its number among all of them. */
const outlined = (page) =>
  page.evaluate(() => {
    const topics = [...document.querySelectorAll("[data-topic]")];
    const isOutlined = (element) => {
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
      return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && !/, 0\)$/.test(outlineColor);
    };
    return topics.flatMap((element, index) => (isOutlined(element) ? [index] : []));
  });
const topicsOf = (page) => page.locator("[data-topic]").evaluateAll((all) => all.map(({ dataset }) => dataset.topic));
const sameTopic = (topics, index) => topics.flatMap((topic, other) => (topic === topics[index] ? [other] : []));

test("pointing at a fact outlines its topic, and nothing else", async () => {
  await each({}, async (page, { name }) => {
    const topics = await topicsOf(page);
    assert.ok(new Set(topics).size > 8, name);
    assert.deepEqual(await outlined(page), [], name);
    for (const index of topics.keys()) {
      if (topics.indexOf(topics[index]) !== index) continue;
      await page.locator("[data-topic]").nth(index).hover();
      assert.deepEqual(await outlined(page), sameTopic(topics, index), `${name}: ${topics[index]}`);
    }
    await page.mouse.move(0, 0);
    assert.deepEqual(await outlined(page), [], name);
  });
});

test("the outline can be seen", async () => {
  for (const colorScheme of ["light", "dark"]) {
    // Nothing may be scrolled, because what is below the pointer would change.
    await open(browser, named("evm").path, { colorScheme, viewport: { width: 1280, height: 3000 } }, async (page) => {
      const row = page.locator("tr[data-topic=redeemer]").first();
      const plain = await row.screenshot();
      await page.locator(".fact[data-topic=chain]").hover();
      assert.ok((await row.screenshot()).equals(plain), "another topic changes the row");
      await page.locator(".fact[data-topic=redeemer]").hover();
      assert.ok(!(await row.screenshot()).equals(plain), "nothing is seen");
    });
  }
});

test("the tab key goes to the facts, then to the bytes, and outlines their topics", async () => {
  for (const name of ["evm", "sui-refused"]) {
    await open(browser, named(name).path, {}, async (page) => {
      const topics = await topicsOf(page);
      const stops = await page.locator(".fact, tbody tr[tabindex]").count();
      const focused = () => page.evaluate(() => [...document.querySelectorAll(".fact, tbody tr[tabindex]")].indexOf(document.activeElement));
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to what is signed");
      for (let stop = 0; stop < stops; stop++) {
        await page.keyboard.press("Tab");
        assert.equal(await focused(), stop, name);
        const index = await page.evaluate(() => [...document.querySelectorAll("[data-topic]")].indexOf(document.activeElement));
        if (index >= 0) assert.deepEqual(await outlined(page), sameTopic(topics, index), `${name}: ${topics[index]}`);
      }
      const facts = await page.locator(".fact").count();
      const kinds = await page.locator(".fact, tbody tr[tabindex]").evaluateAll((all) => all.map(({ tagName }) => tagName));
      assert.deepEqual(kinds, [...Array(facts).fill("DIV"), ...Array(stops - facts).fill("TR")], name);
      // The link at the top leaves the facts out.
      await page.locator(".skip").focus();
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      assert.equal(await focused(), facts, name);
    });
  }
});

test("everything that is seen is text, in the right order", async () => {
  await each({}, async (page, { name, isGood }) => {
    const tree = await page.locator("body").ariaSnapshot();
    const heading = (await page.locator("h1").textContent()).trim();
    assert.match(heading, isGood ? /^Lock .+ on .+; (receive|the service promises) at least .+\.$/ : /^Do not sign: .+\.$/, name);
    assert.equal(await page.getByRole("heading", { level: 1, name: heading }).count(), 1, name);
    assert.match(await page.locator(".kicker").textContent(), isGood ? /^Verified: every byte accounted for/ : /^Refused$/, name);
    assert.equal(/, and signed$/.test(await page.locator(".kicker").textContent()), name === "evm-signed");
    // What only the service says is a promise, in the sentence and above the leg.
    const isPromise = heading.includes("the service promises") || (!isGood && tree.includes("The service promises at least on"));
    for (const leg of ["You lock on", isPromise ? "The service promises at least on" : "You receive at least on"]) assert.equal(tree.split(leg).length, 2, `${name}: ${leg}`);
    const levels = await page.getByRole("heading").evaluateAll((all) => all.map(({ tagName }) => Number(tagName[1])));
    assert.equal(levels[0], 1, name);
    levels.slice(1).forEach((level, index) => assert.ok(level > 1 && level <= levels[index] + 1, `${name}: ${levels}`));
    // Each row of a table keeps its role at every width: the values and their meanings are cells.
    assert.equal(await page.getByRole("row").count(), await page.locator("tr").count(), name);
    const withoutWord = await page.locator("tbody tr").evaluateAll((rows) =>
      rows.filter((row) => {
        const what = row.querySelector(".what").textContent;
        return row.matches(".wrong") !== /^refused /.test(what) || row.matches(".expected") !== (what === "expected");
      }),
    );
    assert.deepEqual(withoutWord, [], name);
    assert.equal((await page.locator("tr.wrong").count()) > 0, !isGood, name);
    const unheard = await page.evaluate(() => {
      const text = [...document.querySelectorAll("[aria-hidden=true], [role=img], [aria-label]:not(section)")].map(({ textContent }) => textContent.trim()).filter(Boolean);
      const drawn = [...document.querySelectorAll("body *")].flatMap((element) =>
        ["::before", "::after"].map((part) => getComputedStyle(element, part).content).filter((content) => !["none", "normal", '"⚠\uFE0E"'].includes(content)),
      );
      return [...text, ...drawn];
    });
    assert.deepEqual(unheard, [], name);
  });
});
