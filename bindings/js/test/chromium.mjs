// The browser of the tests.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

/** Returns the path of a Chromium: CHROMIUM, one of the system, or the one that `npx playwright-core install chromium` brings. */
export function findChromium() {
  const { CHROMIUM } = process.env;
  if (CHROMIUM) return CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // Try the next.
    }
  }
  const own = chromium.executablePath();
  return existsSync(own) ? own : undefined;
}

/** Why tests with a browser are skipped; false if there is one. */
export const skip = findChromium() ? false : "no Chromium: apt-get install chromium, npx playwright-core install chromium, or set CHROMIUM";

/** Starts the browser. Root, as in containers, cannot have Chromium's sandbox. */
export function launch() {
  return chromium.launch({ executablePath: findChromium(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}
