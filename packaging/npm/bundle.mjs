// Reads what a caller passes as a bundle (docs/bundle.md): a bundle, or a saved answer of `/v1/state` that has one.

import { decodeSource } from "./arguments.mjs";
import { parseBounded, readShown } from "./verify/documents.mjs";
import { fail, object, orNull, text } from "./verify/json.mjs";
import { parseKey, parseSignature, utf8 } from "./verify/keys.mjs";
import { staple } from "./verify/staple.mjs";
import { parseTime } from "./verify/values.mjs";

const MAX_BYTES = 45 * 2 ** 20;
// 16 stored files more.
const MAX_ANSWER_BYTES = MAX_BYTES + 16 * 2 ** 21;
const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?\+00:00$/;
const NONCE = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

// A revocation can need it: it says which file is meant (D20). The page does not check revocations, so it is read here.
const parseCanonicalTime = (spelled) => (CANONICAL_TIME.test(spelled) && parseTime(spelled) !== null ? spelled : null);
const request = object({
  timestamp: text(parseCanonicalTime, "a time in canonical form"),
  nonce: text((spelled) => (NONCE.test(spelled) ? spelled : null), "a UUID of version 4"),
  payload: text((body) => (utf8(body).length <= 64 * 1024 ? body : null), "at most 64 KiB"),
  public_key: text((key) => (key.startsWith("svc-pub:") ? parseKey(key).key : null), "a key that is not weak"),
  signature: text(parseSignature, "a signature"),
});

const readRevocation = (shown) => ({ ...shown, request: orNull(request)(shown.request, "revocation.request") });

// `source`: bytes or text. The bundle is null if a server answered that no release was complete.
export function readBundle(source) {
  const decoded = decodeSource(source);
  const size = utf8(decoded).length;
  if (size > MAX_ANSWER_BYTES) fail("", `an answer has at most ${MAX_ANSWER_BYTES} bytes`);
  const { bundle, path, kind, files = new Map(), history_after: cut = null } = readShown(decoded);
  if (path === undefined && size > MAX_BYTES) fail("", `a bundle has at most ${MAX_BYTES} bytes`);
  if (cut !== null) fail("history_after", "must be null: the beginning of the history is left out");
  const whole = bundle && { ...bundle, revocation: orNull(readRevocation)(bundle.revocation) };
  return { bundle: whole, files, isProject: kind === "project" };
}

export const readStaple = (source) => staple(parseBounded(decodeSource(source), 320), "");
