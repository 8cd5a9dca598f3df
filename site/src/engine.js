// The workers: each holds one build of the module, or one SDK. The page itself never runs either, so it never hangs.

/** How long one answer may take, in milliseconds, once the module is loaded. */
const PATIENCE = 8_000;
const PATIENCE_LOADING = 60_000;
/** What went wrong with a worker, in words for people. */
export class Stopped extends Error {}

// Scripts come from beside this page, and the page of an order from our own module: nothing else passes the page's policy.
const trusted = globalThis.trustedTypes?.createPolicy("countersign", {
  createHTML: (html) => html,
  createScriptURL: (url) => {
    if (!url.startsWith("blob:")) throw new TypeError("only the page's own scripts are loaded");
    return url;
  },
}) ?? { createHTML: (html) => html, createScriptURL: (url) => url };
/** Returns the markup of the page of an order for its frame, which runs no script. */
export const frameMarkup = (html) => trusted.createHTML(html);

/** One worker, which is started when it is first asked, and again after it was stopped. */
export class Engine {
  #script; #worker; #loaded = false;
  #queue = Promise.resolve();

  /** @param {string} script the worker's file, beside the page */
  constructor(script) {
    this.#script = new URL(script, document.baseURI).href;
  }
  /** Asks the worker. Questions are answered one after the other. */
  ask(question) {
    const answer = this.#queue.then(() => this.#one(question));
    this.#queue = answer.catch(() => {});
    return answer;
  }
  /** Stops the worker. Its memory is free again. */
  stop() {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#loaded = false;
  }
  #one(question) {
    return new Promise((resolve, reject) => {
      const worker = (this.#worker ??= start(this.#script));
      const patience = this.#loaded ? PATIENCE : PATIENCE_LOADING;
      const fail = (message) => {
        this.stop();
        reject(new Stopped(message));
      };
      const timer = setTimeout(() => fail(`no answer within ${patience / 1000} seconds: the worker was stopped`), patience);
      worker.onmessage = ({ data }) => {
        clearTimeout(timer);
        this.#loaded = true;
        if (data.failed === undefined) resolve(data.answer);
        else reject(new Stopped(data.failed));
      };
      worker.onerror = (event) => {
        clearTimeout(timer);
        fail(`the worker cannot run (${event.message ?? "its script cannot be loaded"})`);
      };
      worker.postMessage(question);
    });
  }
}

/** Starts a worker. One that comes from a blob has the policy of the page, so that it cannot reach another origin either. */
function start(script) {
  const url = URL.createObjectURL(new Blob([`import ${JSON.stringify(script)};`], { type: "text/javascript" }));
  return new Worker(trusted.createScriptURL(url), { type: "module" });
}
