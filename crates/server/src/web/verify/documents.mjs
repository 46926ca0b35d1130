// The documents of a release, read strictly (D8–D12).

import { fail, integer, list, map, object, oneOf, orNull, parseJson, text } from "./json.mjs";
import { parseKey, parseRecordedKey, parseSignature, toHex, utf8 } from "./keys.mjs";
import { checkIds, transparency } from "./log.mjs";
import { staple } from "./staple.mjs";
import { parseAssetName, parseDigest, parseHex, parsePath, parsePattern, parseSignerName, parseTime } from "./values.mjs";

export function parseBounded(source, kib) {
  if (utf8(source).length > kib * 1024) fail("", `must have at most ${kib} KiB`);
  return parseJson(source);
}

const membersOf = (groups = []) => groups.flatMap((group) => group.signers);
export const keysOf = (groups) => membersOf(groups).map((signer) => signer.data.pubkey);

const time = text(parseTime, "a time");
const path = text(parsePath, "a path");
const digest = text(parseDigest, "a SHA-512 digest");
const hex = (bytes) => text(parseHex(bytes), "a hexadecimal digest");

const listedKey = text((spelled) => {
  const read = parseKey(spelled);
  return read.key && read;
}, "a key that is not weak");

function keyData(value, at) {
  const { format, pubkey } = object({ "format?": oneOf("ed25519", "sk-ssh-ed25519"), pubkey: listedKey })(value, at);
  if (format && (pubkey.format ?? format) !== format) fail(`${at}.pubkey`, "is not a line of a key of this format");
  return { pubkey: pubkey.key, format: format ?? pubkey.format ?? "ed25519" };
}

const signer = object({
  kind: oneOf("key"),
  data: keyData,
  "name?": text(parseSignerName, "a signer's name"),
});

function group(value, at) {
  const read = object({ signers: list(signer), threshold: integer })(value, at);
  const size = read.signers.length;
  const again = keysOf([read]).findIndex((key, i, keys) => keys.indexOf(key) < i);
  if (again > 0) fail(`${at}.signers[${again}]`, "the same key again");
  if (!size) fail(`${at}.signers`, "must not be empty");
  if (read.threshold < 1 || read.threshold > size) fail(`${at}.threshold`, `must be 1 to ${size}`);
  return read;
}

const server = text((url) => url.match(/^(?=.{1,255}$)https?:\/\/[!-~]+$/), "an http(s) URL");
const some = (item, most) => (value, at) => {
  const read = list(item)(value, at);
  return read.length && read.length <= most ? read : fail(at, `must be 1 to ${most}`);
};

const role = some(group, 1000);

const formats = (value, at) => {
  // Also those that only a newer version knows.
  const named = some(text((name) => name.match(/^[a-z0-9-]{1,32}$/)?.[0], "the name of a format"), 16)(value, at);
  if (new Set(named).size < named.length) fail(at, "must name each format once");
};

const rebuilds = object({
  builders: role,
  "files?": some(text(parsePattern, "a pattern for names of files"), 16),
  "required?": oneOf(true, false),
});

const signersFile = object({
  version: oneOf(1),
  timestamp: time,
  artifact_signers: role,
  "admin_keys?": role,
  "master_keys?": role,
  "revocation_keys?": role,
  "registrars?": some(signer, 16),
  "rebuilds?": rebuilds,
  "servers?": some(server, 8),
  "transparency?": transparency,
  "formats?": formats,
  "rotation_delay_hours?": (value, at) => integer(value, at) > 0 && value <= 720 ? value : fail(at, "must be 1 to 720"),
});

export async function readSigners(source) {
  const json = parseBounded(source, 256);
  const read = signersFile(json, "");
  const { timestamp, artifact_signers: artifact, admin_keys: admin = artifact, master_keys: master = [], revocation_keys: revokers,
    registrars = [], transparency: log, rotation_delay_hours: hours, rebuilds } = read;
  const { builders = [] } = rebuilds ?? {};
  const all = [artifact, read.admin_keys, master, revokers, builders].flatMap((groups) => groups ?? []);
  const everyone = [...all, { signers: registrars }];
  if (membersOf(all).length > 1000) fail("signers", "more than 1,000");
  const plain = keysOf([...artifact, ...admin, ...(revokers ?? [])]);
  const building = new Set(keysOf(builders));
  if (keysOf(master).some((key) => plain.includes(key) || building.has(key))) fail("master_keys", "one has another role");
  if (building.size > 16 || plain.some((key) => building.has(key))) fail("rebuilds.builders", "more than 16, or one has another role");
  const [keys, known] = [all, everyone].map((groups) => new Set(keysOf(groups)));
  if (known.size < keys.size + registrars.length) fail("registrars", "one is there twice, or has another role");
  if (log?.keys.some(({ key }) => known.has(key))) fail("transparency", "one of its keys is also in another role");
  const formats = new Set(membersOf(everyone).map(({ data }) => `${data.pubkey} ${data.format}`));
  if (formats.size > known.size) fail("signers", "one key is listed as a FIDO key in one place and not in another");
  await checkIds(log?.keys ?? []);
  return { timestamp, dated: json.timestamp, artifact, admin, master, revokers, registrars, names: namesOf(everyone), keys, log, hours, rebuilds };
}

// One name per key, one key per name.
function namesOf(groups) {
  const named = membersOf(groups).flatMap(({ name, data }) => (name === undefined ? [] : [[data.pubkey, name]]));
  const [byKey, byName] = [new Map(named), new Map(named.map(([key, name]) => [name, key]))];
  const isOther = ([key, name]) => byKey.get(key) !== name || byName.get(name) !== key;
  return named.some(isOther) ? fail("name", "one key has two names, or a name two keys") : byKey;
}

export function signatures(value, at) {
  const entry = object({ signature: text(parseSignature, "a signature"), collected_at: time });
  const { entries } = object({ entries: map(parseRecordedKey, entry) })(value, at);
  return entries.size > 2000 ? fail(at, "more than 2,000") : entries;
}

const activation = object({
  signers_config: text(),
  signatures,
  metadata: text(),
  metadata_signatures: signatures,
  timestamp: time,
  "agreed_at?": time,
});

export const history = (value, at) => object({ entries: list(activation) })(value, at).entries;

const metadata = object({
  version: oneOf(1),
  origin: object({ kind: oneOf("github", "gitlab", "forgejo", "file_server"), url: text(), retrieval_url: text(), retrieved_at: time }),
  project_id: path,
  signers_file_digest: digest,
  previous: orNull(digest),
});

function digests(value, at) {
  const read = object({ "sha256?": hex(32), "sha512?": hex(64) })(value, at);
  return Object.keys(read).length ? read : fail(at, "must have sha256, sha512 or both");
}

const fileName = text(parseAssetName, "a safe path");

const sorted = (shape) => (value, at) => {
  const files = list(object(shape))(value, at);
  files.forEach(({ file_name: name }, i) => {
    // Strings here are not ordered by characters.
    if (i && toHex(utf8(files[i - 1].file_name)) >= toHex(utf8(name))) fail(at, "must be sorted");
  });
  return files;
};

const index = object({
  version: oneOf(1),
  published_files: sorted({ digests, file_name: fileName, size: orNull(integer), source: text() }),
  project_id: path,
  release_url: orNull(text()),
  mirrored_on: time,
  published_on: orNull(time),
});

export const readMetadata = (source) => metadata(parseBounded(source, 16), "");

export function readIndex(source) {
  const read = index(parseBounded(source, 2048), "");
  const names = read.published_files.map((file) => file.file_name).join("");
  if (utf8(names).length > 2 ** 19) fail("published_files", "names have at most 512 KiB");
  return read;
}

const rebuilt = sorted({ file_name: fileName, digests });

const rebuild = object({
  rebuild_of: path,
  subject_digest: digest,
  source_commit: text((id) => parseHex(20)(id) ?? parseHex(32)(id), "the whole id of a commit"),
  files: (value, at) => rebuilt(value, at)[0] ? value : fail(at, "must name at least one file"),
  timestamp: time,
});

export const readRebuild = (source) => rebuild(parseBounded(source, 60), "");

// What a builder got (D260), with the text that it signed.
const stated = object({
  document: (value, at) => {
    const source = text()(value, at);
    try {
      return { ...readRebuild(source), text: source };
    } catch (error) {
      return fail(at, error.message);
    }
  },
  signature: text(parseSignature, "a signature"),
  collected_at: time,
});

function statements(value, at) {
  const read = map(parseRecordedKey, stated)(value, at);
  return read.size && read.size <= 16 ? read : fail(at, "must be 1 to 16");
}

const bundle = object({
  version: oneOf(2),
  bundled_at: (value, at) => time(value, at) !== null && value,
  index_path: path,
  index: text(),
  signatures,
  signers_file_digest: digest,
  signers_history: history,
  // Those who check it read its request.
  revocation: orNull(object({ document: text(), signatures, signers_file_digest: digest, request: (value) => value })),
  staple: orNull(staple),
  "rebuilds?": statements,
});

// A bundle, alone or in an answer (D232), where it is null if no release is complete.
export function readShown(source) {
  const json = parseJson(source);
  if (json?.bundle === undefined) return { bundle: bundle(json, "") };
  const shown = orNull(bundle)(json.bundle, "bundle");
  oneOf(1)(json.version, "version");
  oneOf(shown?.index_path ?? json.path)(json.path, "path");
  return { ...json, files: map(parsePath, text())(json.files, "files"), bundle: shown };
}
