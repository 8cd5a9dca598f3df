// What is published: complete, with links that lead somewhere, and usable from both module systems with strict types.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assemble } from "../scripts/pack.mjs";
import { HERE, localProgram } from "../scripts/paths.mjs";

const { folder, missing } = assemble();

test("every file that the package names is in it", () => {
  assert.deepEqual(missing, []);
  const { exports, devDependencies, scripts, peerDependenciesMeta, peerDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const paths = JSON.stringify(exports).match(/"\.\/[^"]+\.[a-z.]+"/g).map((path) => JSON.parse(path));
  for (const path of paths.filter((path) => path.startsWith("./dist"))) assert.ok(existsSync(join(folder, path)), path);
  assert.deepEqual([devDependencies, scripts], [undefined, undefined]);
  assert.ok(Object.keys(peerDependencies).every((name) => peerDependenciesMeta[name].optional));
  for (const file of readdirSync(join(folder, "dist"), { recursive: true }).filter((file) => /\.c?js$/.test(file) && !file.endsWith("node.js"))) {
    assert.match(readFileSync(join(folder, "dist", file), "utf8"), /\n\/\/# sourceMappingURL=/, file);
    assert.ok(existsSync(join(folder, "dist", `${file}.map`)), file);
  }
});

test("the links of the README lead to files of the package", () => {
  const text = readFileSync(join(folder, "README.md"), "utf8");
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link).filter((link) => !link.startsWith("http"));
  assert.ok(links.some((link) => link.startsWith("docs/batch.md#")));
  for (const link of links) assert.ok(existsSync(join(folder, link.split("#")[0])), link);
});

for (const type of ["module", "commonjs"]) {
  test(`a strict project of type ${type} compiles and runs with it`, () => {
    const project = mkdtempSync(join(tmpdir(), "countersign-"));
    try {
      mkdirSync(join(project, "node_modules"));
      symlinkSync(folder, join(project, "node_modules", "countersign"));
      for (const file of ["wallet.ts", "tsconfig.json"]) cpSync(join(HERE, "test", "strict", file), join(project, file));
      writeFileSync(join(project, "package.json"), JSON.stringify({ type }));
      execFileSync(localProgram("tsc"), ["--project", project, "--preserveSymlinks"], { encoding: "utf8", stdio: "pipe" });
      const load = type === "module" ? 'import { families } from "countersign"' : 'const { families } = require("countersign")';
      const file = join(project, "run.js");
      writeFileSync(file, `${load};\nconsole.log(families().length);`);
      assert.equal(execFileSync(process.execPath, [file], { encoding: "utf8" }).trim(), "6");
    } catch (error) {
      assert.fail(`${error.stdout ?? ""}${error.message}`);
    } finally {
      rmSync(project, { recursive: true });
    }
  });
}
