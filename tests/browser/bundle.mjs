// Reads the bundles of the test vectors (docs/bundle.md) into what the page's script verifies.

import { history, signatures } from "../../crates/server/src/web/verify/documents.mjs";
import { object, orNull, parseJson, text } from "../../crates/server/src/web/verify/json.mjs";
import { parseDigest, parsePath, parseTime } from "../../crates/server/src/web/verify/values.mjs";

const version = (value, at) => {
  if (value !== 1) throw Object.assign(new Error("must be 1"), { field: at });
};
const digest = text(parseDigest, "a digest");

const bundle = object({
  version,
  bundled_at: text(parseTime, "a time"),
  index_path: text(parsePath, "a normalised path"),
  index: text(),
  signatures,
  signers_file_digest: digest,
  signers_history: history,
  revocation: orNull(object({
    document: text(),
    signatures,
    signers_file_digest: digest,
    request: orNull((value) => value),
  })),
});

export function readBundle(source) {
  const read = bundle(parseJson(source), "");
  return {
    path: read.index_path,
    index: read.index,
    signatures: read.signatures,
    governedBy: read.signers_file_digest,
    history: read.signers_history,
    revocation: read.revocation?.document ?? null,
  };
}
