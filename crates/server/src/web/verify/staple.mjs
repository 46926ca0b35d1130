// A staple (D86), read strictly.

import { list, object, oneOf, text } from "./json.mjs";
import { toBytes, toHex, utf8 } from "./keys.mjs";
import { isSeen, parsePath } from "./values.mjs";

const LEAF = /^countersign\/leaf\/v1\ncommit [\da-f]{40}\nobject [\da-f]{64}\nchanges [\da-f]{64}\nstate ([\da-f]{64})\n$/;
const RELEASE =
  /^countersign\/release\/v1\npath ([^\n]*)\nnumber (\d+)\nindex ([\da-f]{128})\nstate (?:complete|revoked ([\da-f]{128}))\n$/;
const PROJECT =
  /^countersign\/project\/v1\npath ([^\n]*)\nsigners ([\da-f]{128})\nhistory (\d+)\ncompleted (\d+)\n((?:newest [^\n]*\n)*)$/;

const parseNumber = (text) => /^(0|[1-9]\d*)$/.test(text) && BigInt(text) < 2n ** 63n ? BigInt(text) : null;
const parseCount = (text) => parseNumber(text) < 2n ** 32n ? Number(parseNumber(text) ?? NaN) : NaN;

function decodePadded(text) {
  try {
    const binary = atob(text);
    return btoa(binary) === text ? toBytes(binary) : null;
  } catch {
    return null;
  }
}

function parseHash(text) {
  const bytes = decodePadded(text);
  return bytes?.length === 32 ? bytes : null;
}

function parseLeaf(text) {
  const [, state] = LEAF.exec(text) ?? [];
  return state ? { text, state } : null;
}

function parseRelease(text) {
  const [, path = "", count, index, revocation = null] = RELEASE.exec(text) ?? [];
  const number = parseCount(count);
  return parsePath(path) && number > 0 ? { text, path, number, index, revocation } : null;
}

function parseProject(text) {
  const [, path = "", signers, length, count, lines = ""] = PROJECT.exec(text) ?? [];
  const [history, completed] = [length, count].map(parseCount);
  const newest = lines.split("\n").slice(0, -1).map((line, i) => {
    const [, digits, ...rest] = line.split(" ");
    const number = completed - i;
    return { number, path: digits === `${number}` ? parsePath(rest.join(" ")) : null };
  });
  const isWhole = newest.length === Math.min(completed, 8) && newest.every((release) => release.path);
  return parsePath(path) && history > 0 && isWhole ? { text, path, signers, history, completed, newest } : null;
}

function parseSibling(text) {
  const [bit, ...rest] = text.split(" ");
  const hash = parseHash(rest.join(" "));
  return hash && parseCount(bit) < 256 ? { bit: Number(bit), hash } : null;
}

function parseProof(text) {
  const [, head = "", note] = /^([^]*?)\n\n([^]*)$/.exec(text) ?? [];
  const [kind, place, ...lines] = head.split("\n");
  const index = parseNumber(/^index (\d+)$/.exec(place)?.[1]);
  const hashes = lines.map(parseHash);
  const isProof = kind === "c2sp.org/tlog-proof@v1" && index !== null && lines.length < 64 && hashes.every(Boolean);
  const signed = isProof && parseNote(note);
  return signed ? { index, hashes, ...signed } : null;
}

// A text, an empty line, and signatures (D84).
function parseNote(note) {
  const end = note.lastIndexOf("\n\n");
  if (end < 0 || !note.endsWith("\n") || /[\0-\x09\x0b-\x1f]/.test(note)) return null;
  const lines = note.slice(end + 2, -1).split("\n").map(parseLine);
  return lines.length <= 100 && lines.every(Boolean) ? { text: note.slice(0, end + 1), lines } : null;
}

function parseLine(line) {
  const [, name, encoded = ""] = /^— ([^\p{White_Space}+]+) (.*)$/u.exec(line) ?? [];
  const bytes = decodePadded(encoded);
  return bytes?.length > 4 ? { name, id: toHex(bytes.subarray(0, 4)), bytes: bytes.subarray(4) } : null;
}

// What the log signs, and no more.
export function parseCheckpoint(text) {
  const [, origin, digits, encoded] = /^([^\n]+)\n(\d+)\n(\S+)\n$/.exec(text) ?? [];
  const [size, root] = [parseNumber(digits), parseHash(encoded)];
  const isOrigin = size && root && utf8(origin).length < 256 && isSeen(origin);
  return isOrigin ? { origin, size, root: toHex(root) } : null;
}

const siblings = list(text(parseSibling, "a bit and a hash"));
const proven = (parse) => object({ siblings, record: text(parse, "a record of the status map") });

export const staple = object({
  version: oneOf(1),
  release: proven(parseRelease),
  project: proven(parseProject),
  leaf: text(parseLeaf, "a leaf of a log"),
  proof: text(parseProof, "a proof with a checkpoint"),
});
