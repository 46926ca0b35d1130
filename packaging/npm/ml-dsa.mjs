// Cosignatures with ML-DSA-44 (D263), where WebCrypto knows it: in Node from 24.7 on, and in few browsers yet.

import { toBytes, utf8 } from "./verify/keys.mjs";
import { parseCheckpoint } from "./verify/staple.mjs";

const ML_DSA = 6;
const named = (text) => [utf8(text).length, ...utf8(text)];
const number = (value) => [...new Uint8Array(new BigUint64Array([value]).buffer)].reverse();
const fromHex = (hex) => hex.match(/../g).map((byte) => parseInt(byte, 16));

// What the key of this name signs of a checkpoint (c2sp.org/tlog-cosignature).
function signedBytes(name, time, { origin, size, root }) {
  const parts = [utf8("subtree/v1\n\0"), named(name), time, named(origin), number(0n), number(size), fromHex(root)];
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

// A witness with a `check`, which says whether the key has signed a note; `undefined` if no one here can check that.
function checked({ name, typed, ...rest }) {
  const imported = crypto.subtle
    .importKey("raw-public", toBytes(typed.slice(1)), "ML-DSA-44", false, ["verify"])
    .catch(() => undefined);
  const check = async (bytes, text) => {
    const [key, checkpoint] = [await imported, parseCheckpoint(text)];
    if (!key || !checkpoint) return key && false;
    const signed = signedBytes(name, bytes.subarray(0, 8), checkpoint);
    return crypto.subtle.verify("ML-DSA-44", key, bytes.subarray(8), signed);
  };
  return { name, typed, ...rest, check };
}

// The same trust, whose witnesses of this type can be checked.
export const withMlDsa = (trust) =>
  trust && { ...trust, witnesses: (trust.witnesses ?? []).map((key) => (key.type === ML_DSA ? checked(key) : key)) };
