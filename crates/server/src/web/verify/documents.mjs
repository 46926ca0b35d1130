// The documents of a release, read strictly (D8–D12).

import { fail, integer, list, map, object, oneOf, orNull, parseJson, text } from "./json.mjs";
import { parseKey, parseRecordedKey, parseSignature, toHex, utf8 } from "./keys.mjs";
import { checkIds, transparency } from "./log.mjs";
import { parseAssetName, parseDigest, parseHex, parsePath, parseSignerName, parseTime } from "./values.mjs";

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

const signer = object({
  kind: oneOf("key"),
  data: object({ "format?": oneOf("ed25519"), pubkey: text(parseKey, "a key that is not weak") }),
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

const roles = { artifact_signers: role, "admin_keys?": role, "master_keys?": role, "revocation_keys?": role };

const formats = (value, at) => {
  const named = list(oneOf("ssh", "minisign"))(value, at);
  if (!named.length || new Set(named).size < named.length) fail(at, "must name each format once");
};

const others = {
  "registrars?": some(signer, 16),
  "servers?": some(server, 8),
  "transparency?": transparency,
  "formats?": formats,
  "rotation_delay_hours?": (value, at) => (integer(value, at) > 0 && value <= 720 ? value : fail(at, "must be 1 to 720")),
};

export async function readSigners(source) {
  const json = parseBounded(source, 256);
  const read = object({ version: oneOf(1), timestamp: time, ...roles, ...others })(json, "");
  const { version, timestamp, registrars: machines = [], servers: asked, transparency: log, formats: named, rotation_delay_hours: hours, ...file } = read;
  const { artifact_signers: artifact, admin_keys: admin = artifact, master_keys: master = [], ...rest } = file;
  const all = Object.values(file).flat();
  if (membersOf(all).length > 1000) fail("signers", "more than 1,000");
  const names = checkNames({ ...file, registrars: [{ signers: machines }] });
  const plain = new Set(keysOf([...artifact, ...admin, ...Object.values(rest).flat()]));
  if (keysOf(master).some((key) => plain.has(key))) fail("master_keys", "one has another role");
  const [keys, known] = [new Set(keysOf(all)), new Set(keysOf([...all, { signers: machines }]))];
  if (known.size < keys.size + machines.length) fail("registrars", "one is there twice, or has another role");
  if (log?.keys.some(({ key }) => known.has(key))) fail("transparency", "one of its keys is also in another role");
  await checkIds(log?.keys ?? []);
  const revokers = rest.revocation_keys;
  return { timestamp, dated: json.timestamp, artifact, admin, master, revokers, registrars: machines, names, keys, log, hours };
}

// One name per key, one key per name.
function checkNames(file) {
  const [byKey, byName] = [new Map(), new Map()];
  for (const [role, groups] of Object.entries(file)) {
    for (const { name, data: { pubkey: key } } of membersOf(groups)) {
      if (name === undefined) continue;
      const isOther = (byKey.get(key) ?? name) !== name || (byName.get(name) ?? key) !== key;
      if (isOther) fail(`${role}.name`, "one key has two names, or a name two keys");
      byKey.set(key, name);
      byName.set(name, key);
    }
  }
  return byKey;
}

export function signatures(value, at) {
  const entry = object({ signature: text(parseSignature, "a signature"), collected_at: time });
  const { entries } = object({ entries: map(parseRecordedKey, entry) })(value, at);
  return entries.size > 2000 ? fail(at, "more than 2,000") : entries;
}

export function history(value, at) {
  const signed = { signers_config: text(), signatures, metadata: text(), metadata_signatures: signatures };
  const entry = object({ ...signed, timestamp: time, "agreed_at?": time });
  return object({ entries: list(entry) })(value, at).entries;
}

const kind = oneOf("github", "gitlab", "forgejo", "file_server");

const metadata = object({
  version: oneOf(1),
  origin: object({ kind, url: text(), retrieval_url: text(), retrieved_at: time }),
  project_id: path,
  signers_file_digest: digest,
  previous: orNull(digest),
});

const index = object({
  version: oneOf(1),
  published_files: list(object({
    digests: object({ "sha256?": hex(32), "sha512?": hex(64) }),
    file_name: text(parseAssetName, "a safe path"),
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
  if (utf8(names).length > 2 ** 19) fail("published_files", "names have at most 512 KiB");
  read.published_files.forEach(({ digests, file_name: name }, i, files) => {
    if (!Object.keys(digests).length) fail("published_files", "one has no digest");
    // Strings here are not ordered by characters.
    if (i && toHex(utf8(files[i - 1].file_name)) >= toHex(utf8(name))) fail("published_files", "must be sorted");
  });
  return read;
}
