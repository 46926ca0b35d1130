import type { FileFacts } from "./index.js";

/** What a file is, read piece by piece. */
export function hashFile(path: string | URL): Promise<FileFacts>;

/** The same of chunks of bytes, such as the body of an answer. `onChunk` sees each of them. */
export function hashChunks(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  onChunk?: (chunk: Uint8Array) => void | Promise<void>,
): Promise<FileFacts>;
