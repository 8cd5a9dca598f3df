// Rewrites references/: small copies of the screenshots, which tell a broken layout.
import { rmSync } from "node:fs";
import { launch } from "./browser.js";
import { writeChosen } from "./orders.js";
import { LARGEST_REFERENCES, keep, kept, references, shoot, shrink } from "./shots.js";

const browser = await launch();
try {
  const canvas = await browser.newPage();
  rmSync(references, { recursive: true, force: true });
  let size = 0;
  for (const order of await writeChosen()) {
    for (const look of kept) {
      const webp = await shrink(canvas, await shoot(browser, order, look));
      keep(order.name, look, webp);
      size += webp.length;
    }
  }
  if (size > LARGEST_REFERENCES) throw new Error(`${references} has ${size} bytes, more than ${LARGEST_REFERENCES}`);
  console.log(`${references}: ${size} bytes`);
} finally {
  await browser.close();
}
