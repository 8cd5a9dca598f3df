// The worker that verifies: it loads one build of the module, and judges documents.
import { judge, writePage } from "./judge.js";
let loading;
/** Loads the build that the first question names; each worker has one. */
function load(build) {
  loading ??= (async () => {
    const module = await import(new URL(`countersign/${build}/web.js`, import.meta.url).href);
    await module.init();
    return module;
  })();
  return loading;
}

self.onmessage = async ({ data: { build, task, documents, line } }) => {
  try {
    const module = await load(build);
    const answer = task === "page" ? writePage(module, documents) : judge(module, documents, line);
    self.postMessage({ answer });
  } catch (error) {
    loading = undefined;
    self.postMessage({ failed: error instanceof Error ? error.message : String(error) });
  }
};
