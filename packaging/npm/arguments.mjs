// What a caller passes. Wrong arguments are a TypeError: the program must be corrected.

import { fail } from "./verify/json.mjs";
import { decodeText, hash, toHex } from "./verify/keys.mjs";
import { parseDigest, parseHex, parsePath, quoted } from "./verify/values.mjs";

const isText = (value) => typeof value === "string";
const isDigest = (value) => isText(value) && parseDigest(value) !== null;
const isAge = (value) => value === "signers" || (Number.isFinite(value) && value >= 0);
const isDate = (value) => value instanceof Date && !Number.isNaN(value.getTime());
const isFlag = (value) => typeof value === "boolean";
const isSource = (value) => isText(value) || value instanceof ArrayBuffer || ArrayBuffer.isView(value);

// Each may be missing, undefined or null.
const OPTIONS = {
  pin: [() => true],
  signersDigest: [isDigest, "sha512: and 128 hexadecimal digits"],
  firstUse: [(value) => value === "accept", '"accept"'],
  release: [isText, "a string"],
  fileName: [isText, "a string"],
  staple: [isSource, "bytes or a string"],
  policy: [isSource, "bytes or a string"],
  maxAge: [isAge, 'a number of seconds, or "signers"'],
  requireNewest: [isFlag, "true or false"],
  requireCurrent: [isFlag, "true or false"],
  strict: [isFlag, "true or false"],
  now: [isDate, "a Date"],
};

const misuse = (what) => new TypeError(`verifyBundle: ${what}`);

// Returns the options that are there. A misspelled one must not be a check that is left out.
export function readOptions(options) {
  if (Object(options) !== options) throw misuse("the third argument must be an object with options");
  const { project, ...others } = options;
  if (!isText(project) || !parsePath(project)) {
    throw misuse("project must be its path, such as https/github.com/443/acme/app");
  }
  const read = { project };
  for (const [name, value] of Object.entries(others)) {
    const [isRight, what] = (Object.hasOwn(OPTIONS, name) && OPTIONS[name]) || [];
    if (!isRight) throw misuse(`there is no option ${quoted(name)}`);
    if (value === undefined || value === null) continue;
    if (!isRight(value)) throw misuse(`${name} must be ${what}`);
    read[name] = value;
  }
  return read;
}

// Bytes or text, as text. A string has no lone halves of characters, so that its bytes are what was signed.
export function decodeSource(source) {
  if (typeof source !== "string") return decodeText(source);
  return source.isWellFormed() ? source : fail("", "half a character");
}

// What a file is, from its bytes; or checked, if the caller has hashed it.
export async function readFacts(file) {
  if (file === null) return null;
  const bytes = file instanceof Blob ? await file.arrayBuffer() : file;
  if (bytes instanceof ArrayBuffer || ArrayBuffer.isView(bytes)) {
    const [sha256, sha512] = await Promise.all(["SHA-256", "SHA-512"].map((kind) => hash(kind, bytes)));
    return { size: bytes.byteLength, sha256: toHex(sha256), sha512: toHex(sha512) };
  }
  const { size, sha256, sha512 } = Object(file);
  const isHex = (text, length) => isText(text) && parseHex(length)(text);
  if (!Number.isSafeInteger(size) || size < 0 || !isHex(sha256, 32) || !isHex(sha512, 64)) {
    throw misuse("the file must be its bytes, or { size, sha256, sha512 } in lower-case hexadecimal digits, or null");
  }
  return { size, sha256, sha512 };
}
