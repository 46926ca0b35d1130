// For Node: what a file is, read piece by piece, so that no size is too large.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

// From chunks of bytes. `onChunk` sees each of them, for example to write it.
export async function hashChunks(chunks, onChunk = () => {}) {
  const [sha256, sha512] = ["sha256", "sha512"].map((kind) => createHash(kind));
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.byteLength;
    sha256.update(chunk);
    sha512.update(chunk);
    await onChunk(chunk);
  }
  return { size, sha256: sha256.digest("hex"), sha512: sha512.digest("hex") };
}

export const hashFile = (path) => hashChunks(createReadStream(path));
