// A browser without a network, and its pages.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

/** A Chromium: CHROMIUM, one of the system, or the one that `npx playwright-core install chromium` brings. */
const executable = () => {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // Try the next.
    }
  }
  const own = chromium.executablePath();
  if (existsSync(own)) return own;
  throw new Error("no Chromium: apt-get install chromium, npx playwright-core install chromium, or set CHROMIUM");
};

/** Starts it. Root, as in containers, cannot have Chromium's own sandbox. */
export const launch = () => chromium.launch({ executablePath: executable(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });

/** What each screenshot is made with. */
export const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  middle: { colorScheme: "light", viewport: { width: 700, height: 900 } },
  narrow: { colorScheme: "dark", viewport: { width: 390, height: 844 } },
};

/**
 * Opens a file, calls `work` with the page and what the browser said and requested, and closes it. The file itself is not counted
 * as a request.
 */
export const open = async (browser, file, options, work) => {
  const context = await browser.newContext({ ...looks.light, ...options });
  const page = await context.newPage();
  const heard = { messages: [], requests: [] };
  const url = pathToFileURL(file).href;
  page.on("console", (message) => heard.messages.push(message.text()));
  page.on("pageerror", (error) => heard.messages.push(String(error)));
  page.on("request", (request) => request.url() !== url && heard.requests.push(request.url()));
  try {
    await page.goto(url);
    return await work(page, heard);
  } finally {
    await context.close();
  }
};
