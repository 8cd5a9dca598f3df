// Runs a program that may take minutes, and says what it is doing meanwhile.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { HERE } from "./paths.mjs";

/** Milliseconds between two lines of progress. */
const PACE = Number(process.env.COUNTERSIGN_PROGRESS_MS ?? 10_000);

/** A program that could not be run, or that failed. */
export class StepFailed extends Error {}

/**
 * Runs a program. Prints a line when it begins, one every ten seconds with the seconds so far and the crate that cargo compiles, and one when
 * it ends. Whatever else the program says is passed on.
 */
export async function step(what, program, args, env = {}) {
  const start = Date.now();
  const seconds = () => `${((Date.now() - start) / 1000).toFixed(0)} s`;
  console.log(`${what} ..`);
  const child = spawn(program, args, { cwd: HERE, stdio: ["inherit", "inherit", "pipe"], env: { ...process.env, ...env } });
  let [crates, last] = [0, ""];
  const lines = createInterface({ input: child.stderr });
  lines.on("line", (line) => {
    const compiled = /^\s*Compiling (\S+)/.exec(line);
    if (compiled) [crates, last] = [crates + 1, compiled[1]];
    else if (!isChatter(line)) console.error(line);
  });
  const progress = () => console.log(`${what}: ${seconds()}${crates > 0 ? `, ${crates} crates so far, now ${last}` : ""}`);
  const timer = setInterval(progress, PACE);
  const closed = new Promise((resolve) => lines.on("close", resolve));
  const failure = await new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (code, signal) => resolve(code === 0 ? undefined : `it ended with ${code ?? signal}`));
  });
  clearInterval(timer);
  await closed;
  if (failure !== undefined) throw new StepFailed(`${what} failed: ${failure}`);
  console.log(`${what} (${seconds()})`);
}

/** Whether a line says nothing but how far cargo is. */
function isChatter(line) {
  return line.trim() === "" || /^\s*(Updating|Downloading|Downloaded|Locking|Finished|Installing|Installed|Replacing|Replaced|Adding|Blocking|Fresh|warning: be sure to add)\b/.test(line);
}
