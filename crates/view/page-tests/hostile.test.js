// Text from outside that would be markup, or would change how text is shown.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.js";
import { parsed, write } from "./orders.js";

const BASE = "evm-record-bitcoin-v1";
const texts = {
  script: `<script>document.title="taken"</script>`,
  image: `"'><img src=x onerror="document.title='taken'"><svg onload="document.title='taken'">`,
  ends: `</code></td></style></title></main><h1>Verified</h1><style>main{display:none}</style>`,
  entities: `&lt;b&gt;&#60;b&#62;&quot;&amp;`,
  bidirectional: "a\u202eb\u2066c\u2069d\u200fe\u061cf",
  control: "a\u0007b\u001bc\u0085d\u009be\nf\tg\u007f",
  invisible: "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u{e0041}h\u3164",
};
/** Where the text is put, and whether the page shows the member in any case. */
const places = {
  "the order id": [(order, text) => (order.response.result.order_id = text), true],
  "the version of the domain": [(order, text) => (order.response.result.typed_data.domain.version = text), true],
  "the name of the domain": [(order, text) => (order.response.result.typed_data.domain.name = text), true],
  "an unknown member": [(order, text) => (order.response.result.extra = text), true],
  "the name of an unknown member": [(order, text) => (order.response.result[text] = "1"), true],
  "a member of an unknown object": [(order, text) => (order.response.result.extra = { [text]: [text, { [text]: text }] }), true],
  "an unknown member of the transaction": [(order, text) => (order.response.result.initiate_transaction.extra = text), true],
  "the name of an unknown member of the transaction": [(order, text) => (order.response.result.initiate_transaction[text] = "1"), true],
  "the transaction's receiver": [(order, text) => (order.response.result.initiate_transaction.to = text), true],
  "the requested asset": [(order, text) => (order.request.source.asset = text), false],
  "the requested payout address": [(order, text) => (order.request.destination.owner = text), true],
  "a secret hash of the request": [(order, text) => (order.request.secret_hash = text), true],
  "the record's redeemer": [(order, text) => (order.order.source_swap.redeemer = text), true],
  "the record's time": [(order, text) => (order.order.created_at = text), true],
  "the record's swap id": [(order, text) => (order.order.source_swap.swap_id = text), true],
};
// What moves or hides text, or controls a terminal. Lines end with a line feed.
const FORGING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\u{e0000}-\u{e0fff}]/u;
const TAGS = "html head meta title style body a header p code main section h1 h2 h3 ul li strong dl dt dd div svg path rect line figure figcaption article table thead tbody tr th td span mark bdi br wbr footer".split(" ");
const ATTRIBUTES = "lang charset http-equiv content name class id href aria-labelledby aria-label aria-hidden data-topic tabindex scope viewBox d x y x1 x2 y1 y2 width height rx".split(" ");

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

for (const [place, [put, isShown]] of Object.entries(places)) {
  test(`what is in ${place} stays text`, async () => {
    for (const [kind, text] of Object.entries(texts)) {
      const order = parsed(BASE);
      put(order, text);
      const { path } = await write({ family: "evm", order });
      const html = readFileSync(path, "utf8");
      assert.equal(FORGING.exec(html), null, kind);
      await open(browser, path, {}, async (page, heard) => {
        const { tags, attributes, svg, styles, title, shown } = await page.evaluate(() => {
          const all = [...document.querySelectorAll("*")];
          const bars = document.querySelectorAll(".timeline rect").length;
          return {
            tags: [...new Set(all.map(({ localName }) => localName))],
            attributes: [...new Set(all.flatMap((element) => element.getAttributeNames()))],
            svg: document.querySelectorAll("svg").length - (document.querySelector(".secret") ? 1 : 0) - bars,
            styles: document.querySelectorAll("style").length,
            title: document.title,
            shown: document.body.textContent,
          };
        });
        assert.deepEqual(tags.filter((tag) => !TAGS.includes(tag)), [], kind);
        assert.deepEqual(attributes.filter((name) => !ATTRIBUTES.includes(name)), [], kind);
        assert.deepEqual({ svg, styles }, { svg: 0, styles: 1 }, kind);
        assert.match(title, /^(Verified|Refused) order/, kind);
        assert.deepEqual(heard, { messages: [], requests: [] }, kind);
        const escaped = [...text].map((one) => (FORGING.test(one) || one === "\n" ? `\\u{${one.codePointAt(0).toString(16).padStart(4, "0")}}` : one)).join("");
        if (isShown) assert.ok(shown.includes(escaped), `${kind} is not shown: ${escaped}`);
      });
    }
  });
}
