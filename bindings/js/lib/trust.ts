// What the wallet trusts: its pinned registry, and its own limits.
import * as glue from "countersign-glue";
import { Freeable, bind, handleOf } from "./handle.js";
import { type JsonText, documentBytes } from "./input.js";
import { call } from "./module.js";
import type { Family } from "./types.js";

/** What the wallet has pinned: chains, assets with their contracts, and solvers. */
export class Registry extends Freeable {
  /** Keeps a policy from being taken for a registry. */
  declare private readonly kind: "Registry";

  /**
   * Parses a registry file.
   *
   * @throws {@link CountersignError} at the first member that is malformed or contradictory.
   */
  constructor(json: JsonText) {
    super();
    const bytes = documentBytes(json, "registry");
    bind(this, call(() => new glue.Registry(bytes)));
  }
}

/** The wallet's own limits: timelocks, fees, approvals, and warnings that it refuses. */
export class Policy extends Freeable {
  declare private readonly kind: "Policy";

  /**
   * Parses a policy file; without one, it is the default policy.
   *
   * @throws {@link CountersignError} at the first member that is malformed or unknown.
   */
  constructor(json: JsonText = "{}") {
    super();
    const bytes = documentBytes(json, "policy");
    bind(this, call(() => new glue.Policy(bytes)));
  }
}

/** Returns the handle of a registry. @internal */
export function registryHandle(registry: unknown): glue.Registry {
  return handleOf(registry, Registry, "registry");
}

let defaults: Policy | undefined;

/** Returns the handle of a policy, or of the default policy. @internal */
export function policyHandle(policy: unknown): glue.Policy {
  return handleOf(policy ?? (defaults ??= new Policy()), Policy, "policy");
}

/** Returns the families that this build has code for. An order of any other is refused as `unsupported_family`. */
export function families(): Family[] {
  return JSON.parse(call(() => glue.families()));
}

/**
 * Answers one line of `countersign batch` with one line, byte for byte as the program does. It never throws for what is in the
 * line: a refused case is a result with `"ok":false`.
 *
 * @param line - One case as JSON, at most 16 MiB: `id`, `request`, `response`, `order` and `wallet`.
 */
export function verifyLine(line: JsonText, registry: Registry, policy?: Policy): string {
  const bytes = documentBytes(line, "line");
  const [pinned, limits] = [registryHandle(registry), policyHandle(policy)];
  try {
    return call(() => glue.verifyLine(bytes, pinned, limits));
  } finally {
    // The line can have a key, and so can a wallet context.
    bytes.fill(0);
  }
}
