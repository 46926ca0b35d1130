// The documents of a release, read strictly (D8–D12).

import { fail, integer, list, map, object, oneOf, orNull, parseJson, text } from "./json.mjs";
import { parseKey, parseRecordedKey, parseSignature, toHex, utf8 } from "./keys.mjs";
import { parseAssetName, parseDigest, parseHex, parsePath, parseSignerName, parseTime } from "./values.mjs";

function parseBounded(source, kib) {
  if (utf8(source).length > kib * 1024) fail("", `must have at most ${kib} KiB`);
  return parseJson(source);
}

const membersOf = (groups = []) => groups.flatMap((group) => group.signers);
export const keysOf = (groups) => membersOf(groups).map((signer) => signer.data.pubkey);

const time = text(parseTime, "an RFC 3339 time");
const path = text(parsePath, "a normalised path");
const digest = text(parseDigest, "`sha512:` and 128 hexadecimal digits");
const hex = (bytes) => text(parseHex(bytes), `${2 * bytes} lower-case hexadecimal digits`);

const signer = object({
  kind: oneOf("key"),
  data: object({ "format?": oneOf("ed25519"), pubkey: text(parseKey, "an Ed25519 key that is not weak") }),
  "name?": text(parseSignerName, "at most 64 visible characters"),
});

function group(value, at) {
  const read = object({ signers: list(signer), threshold: integer })(value, at);
  const size = read.signers.length;
  keysOf([read]).forEach((key, i, keys) => {
    if (keys.indexOf(key) < i) fail(`${at}.signers[${i}]`, `the key ${key} is in this group already`);
  });
  if (!size) fail(`${at}.signers`, "must not be empty");
  if (read.threshold < 1 || read.threshold > size) fail(`${at}.threshold`, `must be 1 to ${size}`);
  return read;
}

function role(value, at) {
  const groups = list(group)(value, at);
  return groups.length ? groups : fail(at, "must not be empty");
}

const isServer = (url) => (/^(?=.{1,255}$)https?:\/\/[!-~]+$/.test(url) ? url : undefined);

function servers(value, at) {
  const read = list(text(isServer, "an http(s) URL"))(value, at);
  if (!read.length || read.length > 8 || new Set(read).size < read.length) fail(at, "must be 1 to 8, each once");
  return read;
}

const roles = { artifact_signers: role, "admin_keys?": role, "master_keys?": role, "revocation_keys?": role };

// Who may sign, in which role, and how many are needed.
export function readSigners(source) {
  const json = parseBounded(source, 256);
  const read = object({ version: oneOf(1), timestamp: time, ...roles, "servers?": servers })(json, "");
  const { version, timestamp, servers: asked, ...file } = read;
  const { artifact_signers: artifact, admin_keys: admin = artifact, master_keys: master = [], ...rest } = file;
  const all = Object.values(file).flat();
  if (membersOf(all).length > 1000) fail("signers", "more than 1,000 in all");
  const names = checkNames(file);
  const others = new Set(keysOf([...artifact, ...admin, ...Object.values(rest).flat()]));
  const both = keysOf(master).find((key) => others.has(key));
  if (both) fail("master_keys", `the key ${both} has another role as well`);
  return { timestamp, dated: json.timestamp, artifact, admin, master, names, keys: new Set(keysOf(all)) };
}

// One name per key and one key per name, over the whole file.
function checkNames(file) {
  const [byKey, byName] = [new Map(), new Map()];
  for (const [role, groups] of Object.entries(file)) {
    for (const { name, data: { pubkey: key } } of membersOf(groups)) {
      if (name === undefined) continue;
      const isOther = (byKey.get(key) ?? name) !== name || (byName.get(name) ?? key) !== key;
      if (isOther) fail(`${role}.name`, `the key ${key} has two names, or its name two keys`);
      byKey.set(key, name);
      byName.set(name, key);
    }
  }
  return byKey;
}

// Signatures on one file, by key.
export function signatures(value, at) {
  const entry = object({ signature: text(parseSignature, "base64 of 64 bytes"), collected_at: time });
  const { entries } = object({ entries: map(parseRecordedKey, entry) })(value, at);
  return entries.size > 2000 ? fail(at, "more than 2,000 signatures") : entries;
}

// The history of a project's signers files.
export function history(value, at) {
  const texts = { signers_config: text(), metadata: text() };
  const entry = object({ ...texts, signatures, metadata_signatures: signatures, timestamp: time });
  return object({ entries: list(entry) })(value, at).entries;
}

const kind = oneOf("github", "gitlab", "forgejo", "file_server");

// The metadata of a signers file.
const metadata = object({
  version: oneOf(1),
  origin: object({ kind, url: text(), retrieval_url: text(), retrieved_at: time }),
  project_id: path,
  signers_file_digest: digest,
  previous: orNull(digest),
});

// The index of a release, which artifact signers sign.
const index = object({
  version: oneOf(1),
  published_files: list(object({
    digests: object({ "sha256?": hex(32), "sha512?": hex(64) }),
    file_name: text(parseAssetName, "a safe relative path"),
    size: orNull(integer),
    source: text(),
  })),
  project_id: path,
  release_url: orNull(text()),
  mirrored_on: time,
  published_on: orNull(time),
});

export const readMetadata = (source) => metadata(parseBounded(source, 16), "");

export function readIndex(source) {
  const read = index(parseBounded(source, 2048), "");
  const names = read.published_files.map((file) => file.file_name).join("");
  if (utf8(names).length > 2 ** 19) fail("published_files", "all names have at most 512 KiB");
  read.published_files.forEach(({ digests, file_name: name }, i, files) => {
    if (!Object.keys(digests).length) fail(`published_files[${i}].digests`, "must have sha256, sha512 or both");
    // In hexadecimal: strings here are not ordered by characters.
    const isSorted = !i || toHex(utf8(files[i - 1].file_name)) < toHex(utf8(name));
    if (!isSorted) fail("published_files", "must be sorted by file_name");
  });
  return read;
}
