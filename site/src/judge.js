// What the module says about the documents of one order. Pure: the module comes as an argument, so that Node's tests and the worker share it.

/**
 * The documents of an order as text. `order` is the record, empty without one; `wallet` has the published test key as `secret_key`; an empty
 * `policy` is the default policy.
 *
 * @typedef {{response: string, order: string, request: string, wallet: string, registry: string, policy: string}} Documents
 */

/**
 * Verifies, prepares and signs an order as far as it gets, with a build of the JavaScript package. `line` is the whole line of a corpus case,
 * whose text decides if it cannot be cut into documents without loss; `isLineOnly` says that its documents alone would be accepted.
 */
export function judge(module, documents, line) {
  const parts = { refusal: undefined, summary: [], warnings: [], coverage: [], requests: [], transactions: [], artefacts: undefined };
  const made = [];
  const keep = (object) => (made.push(object), object);
  try {
    const registry = attempt("registry", () => keep(new module.Registry(documents.registry)));
    const policy = documents.policy === "" ? undefined : attempt("policy", () => keep(new module.Policy(documents.policy)));
    try {
      judgeDocuments(module, documents, registry, policy, parts, keep);
    } catch (error) {
      parts.refusal = refusalOf(error);
    }
    // The line has more than its documents: its id, its keys, the type of the key. Where the documents are refused, so is their line.
    if (line !== undefined || !parts.refusal) {
      const verify = (text) => JSON.parse(module.verifyLine(text, registry, policy));
      const result = verify(line ?? lineOf(documents));
      parts.isLineOnly = !result.ok && line !== undefined && !parts.refusal && verify(lineOf(documents)).ok;
      if (!result.ok) parts.refusal = withLine(result.error, parts.refusal);
      else if (parts.refusal) Object.assign(parts, { refusal: undefined, artefacts: JSON.stringify(result.artefacts) });
    }
  } catch (error) {
    parts.refusal = refusalOf(error);
  } finally {
    for (const object of made.reverse()) object.free();
  }
  if (parts.refusal) parts.artefacts = undefined;
  return { ok: parts.refusal === undefined, ...parts };
}

function judgeDocuments(module, documents, registry, policy, parts, keep) {
  const order = keep(module.Order.verify(packed(documents), registry, policy));
  parts.summary = order.summary.map(plain);
  parts.warnings = order.warnings.map(notice);
  parts.coverage = order.coverage.map(({ topic, at, start, end, what }) => ({ topic, at, start, end, what }));
  const unsigned = keep(order.prepare(documents.wallet));
  parts.summary = unsigned.summary.map(plain);
  parts.warnings = unsigned.warnings.map(notice);
  parts.requests = unsigned.requests.map(({ name, signer, scheme, payload, digest }) => ({ name, signer, scheme, payload, digest }));
  const { secret_key: key } = JSON.parse(documents.wallet);
  if (typeof key === "string") unsigned.sign(key);
  parts.artefacts = unsigned.artefacts;
  if (unsigned.missing.length > 0) return;
  const signed = keep(unsigned.finish());
  parts.warnings = signed.warnings.map(notice);
  parts.transactions = signed.transactions.map(({ role, id, payload }) => ({ role, id, payload }));
}

/** Writes the page of an order, and its sentence, of which only the larger build is capable. */
export function writePage(module, documents) {
  const registry = new module.Registry(documents.registry);
  const policy = documents.policy === "" ? undefined : new module.Policy(documents.policy);
  try {
    const { html, sentence } = module.orderPage(packed(documents), registry, { policy });
    return { html, sentence: sentence?.text };
  } finally {
    policy?.free();
    registry.free();
  }
}

/** Says what an error is, as plain data. What is not an error of the module is a fault of this page, and is said so. */
export function refusalOf(error) {
  if (error?.name !== "CountersignError") return { code: "internal", message: `this page failed: ${error}`, at: "", blame: "bug" };
  const { code, message, at, expected, actual, blame } = error.toJSON();
  return { code, message, at: error.document ? `/${error.document}${at}` : at, expected, actual, blame };
}
/** Runs a step whose locations begin inside of a document, and notes which one. */
function attempt(document, step) {
  try {
    return step();
  } catch (error) {
    error.document = document;
    throw error;
  }
}

/** Returns the refusal of a line, with the blame that only the documents' refusal names, if they are the same. */
function withLine({ code, message, at, expected, got: actual }, refusal) {
  return refusal?.code === code && refusal.at === at ? refusal : { code, message, at, expected, actual, blame: undefined };
}
const lineOf = ({ request, response, order, wallet }) =>
  `{"id":"playground","request":${request},"response":${response},${order === "" ? "" : `"order":${order},`}"wallet":${wallet}}`;
const packed = ({ request, response, order }) => ({ request, response, record: order === "" ? undefined : order });
const plain = ({ topic, text, severity }) => ({ topic, text, severity });
const notice = ({ code, message, severity }) => ({ code, message, severity });
