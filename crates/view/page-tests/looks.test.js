// Screenshots of every page, in shots/ to be looked at, compared with small references that are kept: `npm run references` rewrites them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, looks } from "./browser.js";
import { writeChosen } from "./orders.js";
import { LARGEST_REFERENCES, TOLERANCE, compare, kept, references, shoot, shrink } from "./shots.js";

/** The share by which fonts may make a page longer or shorter. */
const LONGER = 0.15;
let browser, pages, canvas;
before(async () => {
  [browser, pages] = await Promise.all([launch(), writeChosen()]);
  canvas = await browser.newPage();
});
after(() => browser?.close());

const isAlike = ({ height, top, all }) => Math.abs(height) <= LONGER && Math.max(top, all) <= TOLERANCE;

for (const look of Object.keys(looks)) {
  test(`${look}: every page looks like its reference`, async (context) => {
    for (const order of pages) {
      const png = await shoot(browser, order, look);
      if (!kept.includes(look)) continue;
      const difference = await compare(canvas, order.name, look, await shrink(canvas, png));
      context.diagnostic(`${order.name}: ${JSON.stringify(difference)}`);
      assert.ok(isAlike(difference), `${order.name}-${look}: ${JSON.stringify(difference)}; look at shots/, then npm run references`);
    }
  });
}

test("on paper, every page keeps its colours and its parts together", async () => {
  for (const order of pages) {
    const print = (page) => page.emulateMedia({ media: "print", colorScheme: "light" });
    const png = await shoot(browser, order, "light", { name: `${order.name}-print`, viewport: { width: 794, height: 1123 }, before: print });
    assert.ok(png.length > 50_000, order.name);
  }
});

/** A copy of a page with other rules behind its own, and without its policy, which would stop them. */
const restyled = (name, rules) => {
  const { path } = pages.find((page) => page.name === name);
  const copy = `${path}.${rules.length}.html`;
  const html = readFileSync(path, "utf8").replace(/<meta http-equiv[^>]*>/, "");
  writeFileSync(copy, html.replace("</style>", `${rules}</style>`));
  return { name, path: copy };
};
const changes = {
  "another font": ['body { font-family: "DejaVu Serif", serif }', true],
  "wider letters": ["body { letter-spacing: .02em }", true],
  "narrower letters": ["body { letter-spacing: -.02em }", true],
  "smaller letters": ["body { font-size: 14px }", true],
  "no columns": [".columns { display: block }", false],
  "no cards": [".card, .fact, .leg { display: inline }", false],
  "no tables": ["tr, td, th, tbody, table { display: inline }", false],
  "no legs beside each other": [".route { display: block }", false],
  "the colours of night": [":root { --page: #101215; --card: #181b20; --text: #e8eaee }", false],
};
for (const [change, [rules, isTolerated]] of Object.entries(changes)) {
  test(`${change}: ${isTolerated ? "tolerated" : "noticed"}`, async (context) => {
    const differences = [];
    for (const name of ["evm", "evm-refused", "sui", "bitcoin-refused"]) {
      const png = await shoot(browser, restyled(name, rules), "light", { name: `${name}-changed` });
      const difference = await compare(canvas, name, "light", await shrink(canvas, png));
      context.diagnostic(`${name}: ${JSON.stringify(difference)}`);
      differences.push(difference);
    }
    // A broken layout is noticed if it is noticed on one page.
    assert.equal(differences.every(isAlike), isTolerated);
  });
}

test("the references are small", () => {
  const sizes = readdirSync(references).map((name) => statSync(references + name).size);
  assert.equal(sizes.length, pages.length * kept.length);
  assert.ok(sizes.reduce((sum, size) => sum + size) <= LARGEST_REFERENCES);
});
