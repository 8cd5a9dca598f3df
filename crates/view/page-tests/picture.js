// Makes docs/images/order.png: an order that is accepted, and below it the same order with another contract.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open } from "./browser.js";
import { accepted, parsed, write } from "./orders.js";

/** The longest that a picture of the documentation may be. */
const LONGEST = 300_000;
const path = fileURLToPath(new URL("../../../docs/images/order.png", import.meta.url));
const family = "evm";
/** An order with its record, so that both legs were checked. */
const base = "evm-record-bitcoin-delegate";

/** The same order, which calls another contract. */
const order = () => {
  const changed = parsed(base);
  changed.response.result.initiate_transaction.to = `0x${"12".repeat(20)}`;
  return changed;
};

/** Takes a page from its verdict to the end of an element. */
const take = async (browser, order, last) =>
  open(browser, (await write({ family, order })).path, {}, async (page) => {
    const start = Math.round((await page.locator(".verdict").boundingBox()).y) - 12;
    const end = await page.locator(last).first().boundingBox();
    const height = Math.round(end.y + end.height) + 12 - start;
    return page.screenshot({ fullPage: true, clip: { x: 0, y: start, width: 1280, height } });
  });

const browser = await launch();
try {
  const pictures = [await take(browser, accepted.get(base).text, ".timeline"), await take(browser, order(), ".card")];
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const images = pictures.map((png) => `<img style="display: block" src="data:image/png;base64,${png.toString("base64")}">`);
  await page.setContent(`<body style="margin: 0">${images.join('<div style="background: #b9bbb4; height: 2px"></div>')}`, { waitUntil: "load" });
  const png = await page.screenshot({ fullPage: true });
  if (png.length > LONGEST) throw new Error(`${path} would have ${png.length} bytes, more than ${LONGEST}`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, png);
  console.log(`${path}: ${png.length} bytes`);
} finally {
  await browser.close();
}
