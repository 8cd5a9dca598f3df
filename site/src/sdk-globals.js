// What the SDKs expect of Node.
import { Buffer } from "buffer";
globalThis.Buffer ??= Buffer;
globalThis.global ??= globalThis;
