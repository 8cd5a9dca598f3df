// A process that swaps, and writes what happens: `node swap-child.mjs CONFIG STORE FROM TO`. Without assets, it resumes.
import { Swaps, fileStore } from "countersign/swap";
import { userOf, wishOf } from "./swap-user.mjs";

const [config, store, ...route] = process.argv.slice(2);
const swaps = await Swaps.open({ ...userOf(config).options, store: fileStore(store) });
for await (const change of route.length > 0 ? swaps.create(wishOf(config, route)) : swaps.resume()) console.log(JSON.stringify(change));
await swaps.close();
