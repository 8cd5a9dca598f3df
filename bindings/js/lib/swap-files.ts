// Swaps in files, for Node.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readFile, readdir, realpath, rename, stat, unlink } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join, relative } from "node:path";
import { type DocumentWrite, type SwapStore, openElsewhere } from "./swap-store.js";

/**
 * Keeps swaps in a directory that only its owner can read, with the names of the program's state directory: `countersign orders --state`
 * lists them.
 *
 * One process at a time can open it, by a lock on its file `.host-lock` that the operating system releases when the process dies. The program
 * `countersign` and the hosts in other languages respect it; on Linux this needs the program `flock` (util-linux, BusyBox). Without it, and on
 * Windows, only processes of Node see each other. Another machine that has the same directory does not see it.
 *
 * An older `index` that is put back is noticed by the file `.host-mark`.
 */
export function fileStore(directory: string): SwapStore {
  return {
    async open() {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const root = await realpath(directory);
      const { dev, ino } = await stat(root, { bigint: true });
      const unlock = await lock(root, `${dev}-${ino}`);
      try {
        const mark = await readMark(root);
        const write = async (writes: readonly DocumentWrite[]) => {
          for (const { name, bytes } of writes) {
            await (bytes ? replace(root, place(root, name), bytes) : remove(place(root, name)));
            if (name === "index") await replace(root, join(root, MARK), new TextEncoder().encode(`${mark} ${await indexOf(root)}`));
          }
        };
        return { place: `${root}:${ino}:${mark}`, documents: await readAll(root), write, close: unlock };
      } catch (error) {
        await unlock();
        throw error;
      }
    },
  };
}

/** The file with a random word, and what the file `index` was when it was written. */
const MARK = ".host-mark";

/** Returns the word of the mark as long as `index` is the file that was written with it; otherwise a new word, because it was put back. */
async function readMark(root: string): Promise<string> {
  const [word, ...index] = (await readFile(join(root, MARK), "utf8").catch(() => "")).split(" ");
  return word && index.join(" ") === (await indexOf(root)) ? word : randomUUID();
}

/** Returns what tells the file `index` from every other that was or will be there. A copied file has another time of change. */
async function indexOf(root: string): Promise<string> {
  const file = await stat(join(root, "index"), { bigint: true }).catch((error) => (error.code === "ENOENT" ? undefined : Promise.reject(error)));
  return file ? `${file.ino} ${file.ctimeNs}` : "none";
}

/** Takes the lock of a directory, and returns what releases it. */
async function lock(root: string, id: string): Promise<() => Promise<void>> {
  const refusal = () => openElsewhere(root, "in another process");
  const { platform } = process;
  const lockFile = join(root, ".host-lock");
  if (platform !== "linux" && platform !== "win32") {
    // O_EXLOCK of the BSDs and macOS, which Node has no name for: `flock` along with opening.
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | 0x20;
    const file = await open(lockFile, flags, 0o600).catch((error) => Promise.reject(error.code === "EAGAIN" ? refusal() : error));
    return () => file.close();
  }
  if (platform === "linux") {
    const file = await open(lockFile, constants.O_RDWR | constants.O_CREAT, 0o600);
    // Node has no file locks. The program locks what this process has open, and the lock stays with it.
    const { status, error } = spawnSync("flock", ["-n", "3"], { stdio: ["ignore", "ignore", "ignore", file.fd] });
    if (!error && status === 0) return () => file.close();
    await file.close();
    // Any other status says that the file system has no such locks.
    if (!error && status === 1) throw refusal();
  }
  // A name of this kind belongs to one process, and is free when that dies.
  const server = createServer((socket) => socket.destroy());
  const path = `${platform === "win32" ? "\\\\.\\pipe\\" : "\0"}countersign-swaps-${id}`;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(["EADDRINUSE", "EACCES"].includes(error.code ?? "") ? refusal() : error));
    server.listen({ path, exclusive: true }, resolve);
  });
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** Returns the path of a document. Names come from the machine; a name that leads elsewhere is an error all the same. */
function place(root: string, name: string): string {
  const isName = name.split("/").every((part) => /^[a-z0-9_-][a-z0-9._-]*$/.test(part));
  if (!isName) throw new TypeError(`${name} is not the name of a document`);
  return join(root, name);
}

/** Replaces a file, so that it has its old or its new content whenever the power fails. */
async function replace(root: string, path: string, bytes: Uint8Array): Promise<void> {
  const folder = dirname(path);
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `.${relative(folder, path)}.tmp`);
  await withFile(await open(temporary, "w", 0o600), async (file) => {
    await file.writeFile(bytes);
    await file.sync();
  });
  await rename(temporary, path);
  await syncFolder(folder);
  // A new directory is durable when the one that contains it is.
  if (made) for (let parent = folder; parent !== root; ) await syncFolder((parent = dirname(parent)));
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch((error) => (error.code === "ENOENT" ? undefined : Promise.reject(error)));
  await syncFolder(dirname(path)).catch((error) => (error.code === "ENOENT" ? undefined : Promise.reject(error)));
}

async function syncFolder(folder: string): Promise<void> {
  // Windows has no such thing, and writes directories through.
  if (process.platform !== "win32") await withFile(await open(folder, "r"), (file) => file.sync());
}

async function withFile(file: FileHandle, work: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/** Reads every document. Locks and temporary files are none. */
async function readAll(root: string): Promise<[string, Uint8Array][]> {
  const documents: [string, Uint8Array][] = [];
  for (const entry of await readdir(root, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || entry.name.startsWith(".") || entry.name === "lock") continue;
    const path = join(entry.parentPath, entry.name);
    documents.push([relative(root, path).replaceAll("\\", "/"), await readFile(path)]);
  }
  return documents;
}
