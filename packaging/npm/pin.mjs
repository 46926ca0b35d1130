// What was accepted of a project, and whether what is shown continues it (D116).

import { fail, list, object, oneOf, text } from "./verify/json.mjs";
import { digestOf } from "./verify/rules.mjs";
import { parseDigest, parsePath, parseTime } from "./verify/values.mjs";

const digest = text(parseDigest, "a SHA-512 digest");
const path = text(parsePath, "a path");
const time = (value, at) => text(parseTime, "a time")(value, at) !== null && value;

const shape = object({
  version: oneOf(1),
  project: path,
  history: list(object({ signers_file_digest: digest, metadata_digest: digest })),
  revocations: list(object({ index_path: path, index_digest: digest, reason: text(), revoked_at: time })),
});

// `value`: what `writePin` gave, after it went through JSON.
export function readPin(value, project) {
  const { history, revocations, ...pin } = shape(value, "");
  if (!history.length) fail("history", "must not be empty");
  if (pin.project !== project) fail("project", `must be ${project}`);
  const links = history.map((link) => ({ signers: link.signers_file_digest, metadata: link.metadata_digest }));
  return { project, links, revocations };
}

export function writePin({ project, links, revocations }) {
  const prefixed = (hex) => `sha512:${hex}`;
  const history = links.map(({ signers, metadata }) =>
    ({ signers_file_digest: prefixed(signers), metadata_digest: prefixed(metadata) }));
  const seen = revocations.map((seen) => ({ ...seen, index_digest: prefixed(seen.index_digest) }));
  return { version: 1, project, history, revocations: seen };
}

// The signers files and metadata of a verified chain. When they became active is the server's word, and not kept.
export const linksOf = (links, history) =>
  Promise.all(links.map(async ({ digest }, i) => ({ signers: digest, metadata: await digestOf(history[i].metadata) })));

// The place of the first entry that differs, or -1. A bundle may show less than was seen.
export const findChange = (pinned, shown) => shown.findIndex(({ signers, metadata }, i) =>
  pinned[i] && (pinned[i].signers !== signers || pinned[i].metadata !== metadata));

// What is known after `shown` was accepted.
export function extendPin(pin, project, shown) {
  const { links = [], revocations = [] } = pin ?? {};
  return { project, links: [...links, ...shown.slice(links.length)], revocations };
}

// A revocation that was seen once, by the path or the content of the index.
export const findRevocation = ({ revocations }, path, digest) =>
  revocations.find((seen) => seen.index_path === path) ?? revocations.find((seen) => seen.index_digest === digest);

export function rememberRevocation(pin, seen) {
  const isKnown = pin.revocations.some((known) => known.index_path === seen.index_path);
  return isKnown ? pin : { ...pin, revocations: [...pin.revocations, seen] };
}
