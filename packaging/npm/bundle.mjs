// Reads a bundle (docs/bundle.md) of version 1 or 2, as strictly as the client.

import { history, signatures } from "./verify/documents.mjs";
import { fail, object, oneOf, orNull, parseJson, text } from "./verify/json.mjs";
import { decodeText, parseKey, parseSignature, utf8 } from "./verify/keys.mjs";
import { staple } from "./verify/staple.mjs";
import { parseDigest, parsePath, parseTime } from "./verify/values.mjs";

const MAX_BYTES = 45 * 2 ** 20;
const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?\+00:00$/;
const NONCE = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

const time = text(parseTime, "a time");
const path = text(parsePath, "a path");
const digest = text(parseDigest, "a SHA-512 digest");

// Kept because a revocation can need it: it says which file is meant (D20).
const parseCanonicalTime = (spelled) => (CANONICAL_TIME.test(spelled) && parseTime(spelled) !== null ? spelled : null);
const request = object({
  timestamp: text(parseCanonicalTime, "a time in canonical form"),
  nonce: text((spelled) => (NONCE.test(spelled) ? spelled : null), "a UUID of version 4"),
  payload: text((body) => (utf8(body).length <= 64 * 1024 ? body : null), "at most 64 KiB"),
  public_key: text((key) => (key.startsWith("svc-pub:") ? parseKey(key) : null), "a key that is not weak"),
  signature: text(parseSignature, "a signature"),
});

const revocation = object({ document: text(), signatures, signers_file_digest: digest, request: orNull(request) });

const version1 = {
  version: oneOf(1, 2),
  bundled_at: time,
  index_path: path,
  index: text(),
  signatures,
  signers_file_digest: digest,
  signers_history: history,
  revocation: orNull(revocation),
};
const shapes = new Map([[1, object(version1)], [2, object({ ...version1, staple: orNull(staple) })]]);

// A string has no lone halves of characters, so that its bytes are what was signed.
export function decodeSource(source) {
  if (typeof source !== "string") return decodeText(source);
  return source.isWellFormed() ? source : fail("", "half a character");
}

// `source`: the bytes of a bundle, or its text.
export function readBundle(source) {
  const text = decodeSource(source);
  if (utf8(text).length > MAX_BYTES) fail("", `a bundle has at most ${MAX_BYTES} bytes`);
  const json = parseJson(text);
  const read = (shapes.get(json?.version) ?? shapes.get(2))(json, "");
  return {
    bundledAt: json.bundled_at,
    evidence: {
      path: read.index_path,
      index: read.index,
      signatures: read.signatures,
      governedBy: read.signers_file_digest,
      history: read.signers_history,
      revocation: read.revocation,
    },
    staple: read.staple ?? null,
  };
}
