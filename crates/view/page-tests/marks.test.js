// The marks of refused pages: which digits differ. The expected values are those of the accepted fixtures, which other libraries made.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import { after, before, test } from "node:test";
import { launch } from "./browser.js";
import { at, families, parsed, refused, write } from "./orders.js";

let browser, page;
before(async () => {
  browser = await launch();
  page = await browser.newPage();
});
after(() => browser?.close());

/** The refused rows of a page, and the rows that say what was expected: text, and the positions of its marked characters. */
const rows = (html) =>
  page.evaluate((html) => {
    const read = (row) => {
      if (!row) return null;
      const walker = row.ownerDocument.createTreeWalker(row.querySelector("td code"), NodeFilter.SHOW_TEXT);
      const [text, marks] = [[], []];
      while (walker.nextNode()) {
        for (const character of walker.currentNode.data) {
          if (walker.currentNode.parentElement.closest("mark")) marks.push(text.length);
          text.push(character);
        }
      }
      return { text: text.join(""), marks };
    };
    const all = [...new DOMParser().parseFromString(html, "text/html").querySelectorAll("tbody tr")];
    const unpaired = all.filter((row, index) => row.matches(".expected") && !all[index - 1].matches(".wrong")).length;
    const others = all.filter((row) => !row.matches(".wrong, .expected") && row.querySelector("mark")).length;
    const pairs = all.flatMap((row, index) => {
      if (!row.matches(".wrong")) return [];
      const next = all[index + 1]?.matches(".expected") ? all[index + 1] : null;
      const th = row.querySelector("th");
      return [{ label: th.textContent, isBytes: th.matches(".offset"), actual: read(row), expected: read(next) }];
    });
    return { unpaired, others, pairs };
  }, html);

/** The positions where two texts differ; none if one of them is longer. */
const differing = (left, right) => {
  const [one, other] = [[...left], [...right]];
  return one.length === other.length ? one.flatMap((character, index) => (character === other[index] ? [] : [index])) : [];
};

/** A range of the bytes of a payload as digits: hex, base64 or an array of numbers. */
const slice = (payload, start, end) => {
  const isHex = typeof payload === "string" && /^(0x)?([0-9a-f]{2})*$/i.test(payload);
  const bytes = isHex ? Buffer.from(payload.replace(/^0x/, ""), "hex") : Buffer.from(payload, "base64");
  return bytes.subarray(start, end).toString("hex");
};

for (const family of families) {
  test(`${family}: exactly the digits that differ are marked`, async (context) => {
    const left = [...refused].filter(([, { family: own }]) => own === family);
    const count = { pages: left.length, compared: 0, asInTheFixture: 0 };
    const check = async ([id, { base, at: location, set, order }]) => {
      const changed = order();
      const { path, isAccepted } = await write({ family, order: changed });
      assert.ok(!isAccepted, id);
      const { unpaired, others, pairs } = await rows(readFileSync(path, "utf8"));
      assert.deepEqual({ unpaired, others }, { unpaired: 0, others: 0 }, id);
      assert.ok(pairs.length > 0, `${id}: no row is refused`);
      for (const { isBytes, actual, expected } of pairs) {
        // Words like "68 bytes" cannot be compared with digits.
        const isComparable = expected && (!isBytes || /^[0-9a-f]+$/.test(expected.text));
        const marks = isComparable ? differing(actual.text, expected.text) : [];
        assert.deepEqual(actual.marks, marks, `${id}: ${actual.text}`);
        if (expected) assert.deepEqual(expected.marks, marks, `${id}: ${expected.text}`);
        if (actual.marks.length > 0) count.compared += 1;
      }
      // The bytes at the refused place, in the changed response and in the fixture.
      const [, pointer, start, end] = /^(.*?)(?:#(\d+)-(\d+))?$/.exec(location);
      const value = (order) => {
        const found = at(order, pointer);
        return start ? slice(found, Number(start), Number(end)) : String(found);
      };
      const first = pairs.findIndex(({ label }) => (start ? label === start : pointer.endsWith(label)));
      if (first < 0 || !Object.keys(set).includes(pointer)) return;
      // A long range is in several rows.
      const digits = (end - start) * 2;
      const joined = (key) => {
        let text = "";
        for (const pair of pairs.slice(first)) if (!start || text.length < digits) text += pair[key]?.text ?? "";
        return text;
      };
      if (!start) return void (pairs[first].expected?.text === value(parsed(base)) && (count.asInTheFixture += 1));
      assert.equal(joined("actual"), value(changed), id);
      if (joined("expected") === value(parsed(base))) count.asInTheFixture += 1;
    };
    const work = async () => {
      for (let next = left.pop(); next; next = left.pop()) await check(next);
    };
    await Promise.all(cpus().map(work));
    context.diagnostic(JSON.stringify(count));
    assert.ok(count.asInTheFixture >= 3, JSON.stringify(count));
  });
}
