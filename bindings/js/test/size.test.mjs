// What a page downloads stays small, and the README says how much it is.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HERE } from "../scripts/paths.mjs";
import { limitOf, measure } from "../scripts/sizes.mjs";

for (const { build, gzip } of measure()) {
  test(`${build} has at most ${limitOf(build) / 1000} kB with gzip`, () => {
    assert.ok(gzip <= limitOf(build), `${gzip} bytes`);
    const stated = readFileSync(join(HERE, "README.md"), "utf8").match(
      new RegExp(`\\| \`countersign${build === "all" ? "" : `/${build}`}\` \\| \\d+ \\| (\\d+) \\|`),
    );
    assert.ok(stated, "the README's table has the build; run npm run readme");
    // Compilers differ a little.
    assert.ok(Math.abs(gzip / 1000 - Number(stated[1])) <= 0.05 * Number(stated[1]), `${gzip} bytes; run npm run readme`);
  });
}
