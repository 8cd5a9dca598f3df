// Signs the orders of a file with the family's usual SDK, without verification:
//   node orders.mjs <family> <cases.jsonl>            prints a line of artefacts for each order
//   node orders.mjs <family> <cases.jsonl> <seconds>  prints the median time of an order, in nanoseconds
// As for the Rust contenders, the request and the wallet's own values are in memory, and the response and the keys
// are text.
import { readFile } from 'node:fs/promises';

const [family, file, seconds] = process.argv.slice(2);
const { sign } = await import(new URL(`families/${family}.mjs`, import.meta.url));
const lines = (await readFile(file, 'utf8')).trimEnd().split('\n').map((line) => JSON.parse(line));
const orders = lines.map(({ id, request, response, wallet }) => ({ id, request, wallet, response: JSON.stringify(response) }));

async function pass() {
  const started = process.hrtime.bigint();
  for (const { request, wallet, response } of orders) await sign(request, wallet, response);
  return Number(process.hrtime.bigint() - started) / orders.length;
}

/** Runs passes for a duration, but at least `least` of them. */
async function passes(nanoseconds, least) {
  const times = [];
  const end = process.hrtime.bigint() + BigInt(Math.round(nanoseconds));
  while (times.length < least || process.hrtime.bigint() < end) times.push(await pass());
  return times.sort((a, b) => a - b);
}

/** Returns every text of the artefacts by its JSON pointer, as the Rust contenders print them. */
function leaves(value, at = '') {
  if (typeof value === 'string') return { [at]: value };
  return Object.assign({}, ...Object.entries(value ?? {}).map(([key, member]) => leaves(member, `${at}/${key}`)));
}

if (seconds === undefined) {
  for (const { id, request, wallet, response } of orders) {
    console.log(JSON.stringify({ id, artefacts: leaves(await sign(request, wallet, response)) }));
  }
} else {
  // Node's compiler sees every order a few times before the measurement.
  await passes(Number(seconds) * 5e8, 2);
  const times = await passes(Number(seconds) * 1e9, 3);
  console.log(times[times.length >> 1]);
}
