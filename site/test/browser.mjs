// A file server for dist/ below a path of its own, and Chromium with a page on it.
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const DIST = fileURLToPath(new URL("../dist", import.meta.url));
export { FAMILIES } from "../data.mjs";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json", ".svg": "image/svg+xml" };
/** The site must work at any path. */
const PATH = "/some/where/";

/** Serves dist/ as any file server does: without a header that protects anything. */
async function serve() {
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const name = pathname === PATH ? "index.html" : pathname.slice(PATH.length);
    const file = join(DIST, name);
    const isThere = pathname.startsWith(PATH) && !name.includes("..") && existsSync(file) && statSync(file).isFile();
    if (!isThere) return response.writeHead(404).end();
    return response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { server, origin, url: `${origin}${PATH}` };
}

/** What the tests of a file share, from `start` on. */
export let browser, site;
export function start() {
  before(async () => ([browser, site] = await Promise.all([launch(), serve()])));
  after(async () => {
    await browser?.close();
    site?.server.close();
  });
}

/** Returns a file of the site's data, and the id of the order that is shown first. */
export const json = (path) => JSON.parse(readFileSync(join(DIST, "data", path), "utf8"));
export const startOf = (family) => json(`${family}/index.json`).start;

/** Opens the card of a document as text, and returns it. */
export async function asText(page, title) {
  const card = page.locator("details.document", { has: page.getByRole("heading", { name: title, exact: true }) });
  if (!(await card.evaluate((element) => element.open))) await card.locator("summary").click();
  await card.getByRole("button", { name: "Text", exact: true }).click();
  return card;
}

/** Starts Chromium: CHROMIUM, or the one that `npx playwright-core install chromium` brings. Root, as in containers, cannot have its sandbox. */
const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? chromium.executablePath(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });

export const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  phone: { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
  "phone-dark": { colorScheme: "dark", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
};

/** Opens the site, calls `work` with the page and all that was heard from it and its workers, and closes it. */
export async function visit(browser, url, { look = "light", fragment = "", ...options }, work) {
  const context = await browser.newContext({ ...looks[look], ...options });
  const heard = { messages: [], requests: [] };
  context.on("request", (request) => heard.requests.push(request.url()));
  const page = await context.newPage();
  page.on("console", (message) => heard.messages.push(message.text()));
  page.on("pageerror", (error) => heard.messages.push(String(error)));
  // Measured in the page itself: shifts of the layout, and the first picture.
  await page.addInitScript(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.shifts.push({ value: entry.value, of: entry.sources.map(({ node }) => node?.id || node?.className || node?.nodeName) });
    }).observe({ type: "layout-shift", buffered: true });
  });
  try {
    await page.goto(`${url}${fragment}`);
    await settled(page);
    return await work(page, heard);
  } finally {
    await context.close();
  }
}

/** Waits for the verdict about what is shown. */
export const settled = (page) => page.waitForFunction(() => /^(Accepted|Refused|No verdict)/.test(document.getElementById("bar").textContent), undefined, { timeout: 60_000 });

/** Runs a step that leads to a new verdict, and returns what the bar then says. */
export async function verdictAfter(page, step) {
  await page.evaluate(() => (document.getElementById("bar").textContent = "…"));
  await step();
  await settled(page);
  return page.textContent("#bar");
}

/** Returns how many bytes a file has behind gzip. */
export const zipped = (path) => gzipSync(readFileSync(join(DIST, path)), { level: 9 }).length;
