// Packs what was built into a tarball: `npm run pack`. Subpaths that were not built are left out, and named.
//
// The package is put together in a folder of its own, because links of the README to other files of the project would lead nowhere in it.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import { BUILDS, DIST, HERE, ROOT, targetFolder } from "./paths.mjs";

/** Files of the project that the package takes along, and their places in it. */
const DOCS = { "docs/spec/batch.md": "docs/batch.md", "docs/codes.md": "docs/codes.md", "CHANGELOG.md": "CHANGELOG.md" };

/** Puts the package together, and returns its folder and the builds that it does not have. */
export function assemble() {
  const folder = join(targetFolder(), "npm", "package");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(DIST, join(folder, "dist"), { recursive: true, filter: (path) => !path.endsWith("inputs.txt") });
  mkdirSync(join(folder, "examples"));
  for (const file of readdirSync(join(HERE, "examples")).filter((file) => file.endsWith(".mjs"))) {
    cpSync(join(HERE, "examples", file), join(folder, "examples", file));
  }
  for (const [from, to] of Object.entries(DOCS)) cpSync(join(ROOT, from), join(folder, to));
  for (const file of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(ROOT, file), join(folder, file));
  const { devDependencies, overrides, scripts, ...published } = JSON.parse(readFileSync(join(HERE, "package.json"), "utf8"));
  const missing = BUILDS.filter((build) => !existsSync(join(DIST, build, "countersign_bg.wasm")));
  published.exports = Object.fromEntries(Object.entries(published.exports).filter(([path]) => !missing.includes(path.split("/")[1] ?? "all")));
  // Set by the release workflow, which knows where the sources are.
  const url = published.repository?.url?.replace(/^git\+|\.git$/g, "");
  if (url) Object.assign(published, { homepage: `${url}/tree/HEAD/bindings/js#readme`, bugs: `${url}/issues` });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
  writeFileSync(join(folder, "README.md"), readme(folder, url));
  return { folder, missing };
}

/** Returns the README with links that lead somewhere: to the files of the package, to the sources, or nowhere. */
function readme(folder, url) {
  const text = readFileSync(join(HERE, "README.md"), "utf8");
  return text.replace(/\[([^\]]*)\]\((?!https:|#)([^)#]*)(#[^)]*)?\)/g, (link, label, path, part = "") => {
    const inProject = posix.join("bindings/js", path);
    if (inProject in DOCS) return `[${label}](${DOCS[inProject]}${part})`;
    if (existsSync(join(folder, path))) return link;
    return url ? `[${label}](${url}/blob/HEAD/${inProject}${part})` : label;
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { folder, missing } = assemble();
  if (missing.length > 0) console.warn(`not built, so not in the package: ${missing.map((build) => `countersign/${build}`).join(", ")}`);
  execFileSync("npm", ["pack", "--pack-destination", HERE, folder], { stdio: "inherit" });
}
