// Whether a revocation that a bundle shows holds (D20), as in the crate `core`.

import { keysOf, parseBounded } from "./verify/documents.mjs";
import { fail, object, parseJson, text } from "./verify/json.mjs";
import { hash, isSignedBy, parseKey, parseSignature, utf8 } from "./verify/keys.mjs";
import { attempt, isMet, refuseIf, verifySet } from "./verify/rules.mjs";
import { parseDigest, parsePath, parseTime } from "./verify/values.mjs";
import { revokersOf } from "./verify/verdict.mjs";

const LAST_SECOND = 253_402_300_799;
const WHAT = "The revocation is not valid";

const parseReason = (reason) => (reason && [...reason].length <= 1000 ? reason : null);
const isSeconds = (value) => Number.isSafeInteger(value) && value >= 0 && value <= LAST_SECOND;
const time = (value, at) => {
  if (typeof value !== "number") text(parseTime, "a time")(value, at);
  else if (!isSeconds(value)) fail(at, "must be a time");
  return typeof value === "number" ? new Date(value * 1e3).toISOString().replace(".000", "") : value;
};
const key = text((spelled) => parseKey(spelled).key, "a key that is not weak");

const shape = object({
  reason: text(parseReason, "1 to 1,000 characters"),
  timestamp: time,
  "subject_digest?": text(parseDigest, "a SHA-512 digest"),
  "initiator?": key,
});

const bodyShape = object({
  file_path: text(parsePath, "a path"),
  revocation_json: text(),
  signature: text(parseSignature, "a signature"),
  public_key: key,
});

// The body of a request can have more fields.
function readBody(payload) {
  const { file_path, revocation_json, signature, public_key } = Object(parseJson(payload));
  return bodyShape({ file_path, revocation_json, signature, public_key }, "");
}

// Returns what it says and by whom, or refuses. `digest` is that of the index at `path`.
export async function verifyRevocation(shown, { index_path: path, signers_file_digest: governedBy }, links, digest) {
  const document = await attempt(`${WHAT}: its document`, () => shape(parseBounded(shown.document, 16), ""));
  const position = (wanted) => links.findIndex((link) => link.digest === wanted);
  const allowing = links[position(shown.signers_file_digest)]?.signers;
  const isKnown = allowing && position(shown.signers_file_digest) >= position(governedBy);
  refuseIf(!isKnown, `${WHAT}: the signers file that allowed it is not in the history, or older than the release's`);
  const signed = await verifySet(WHAT, shown.document, shown.signatures);
  const groups = revokersOf(allowing);
  refuseIf(!isMet(groups, signed), `${WHAT}: not enough of the keys that can revoke have signed it`);
  const { initiator, subject_digest: subject } = document;
  refuseIf(initiator && !signed.has(initiator), `${WHAT}: the key in \`initiator\` has not signed it`);
  if (subject) refuseIf(subject !== digest, `${WHAT}: it is about another file`);
  else await checkRequest(shown, path, groups);
  const revokedBy = [...new Set(keysOf(groups))].filter((key) => signed.has(key));
  return { reason: document.reason, revokedAt: document.timestamp, revokedBy };
}

// The revoker's own request names the file. It speaks for no other key, so this one must be enough.
async function checkRequest({ document, signatures, request }, path, groups) {
  const missing = `${WHAT}: it has no \`subject_digest\`, and the signed request that would name the file is missing or invalid`;
  refuseIf(!request, missing);
  const { timestamp, nonce, payload, public_key: revoker, signature } = request;
  const digest = await hash("SHA-512", utf8(`${timestamp}##${nonce}##${payload}`));
  refuseIf(!(await isSignedBy(revoker, digest, signature)), missing);
  const body = await attempt(missing, () => readBody(payload));
  const isByRevoker = body.public_key === revoker && signatures.has(revoker);
  refuseIf(!isByRevoker || body.revocation_json !== document, missing);
  refuseIf(!isMet(groups, new Set([revoker])), `${WHAT}: not enough of the keys that can revoke have signed it`);
  refuseIf(body.file_path !== path, `${WHAT}: it is about another file`);
}
