// Ed25519 keys and signatures (D1–D3). Browsers differ in strictness.

const PREFIX = "svc-pub:";
const SSH_HEAD = "\0\0\0\x0bssh-ed25519\0\0\0\x20";
const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
// All points of small order.
const Y8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022n;
const WEAK = [0n, 1n, P - 1n, Y8, P - Y8];

export const utf8 = (text) => new TextEncoder().encode(text);
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const hash = async (kind, bytes) => new Uint8Array(await crypto.subtle.digest(kind, bytes));

export const decodeText = (bytes, fatal = true) => new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(bytes);
export const toBytes = (binary) => Uint8Array.from(binary, (c) => c.charCodeAt(0));

export function decode(text, length) {
  const body = text.replace(/={1,2}$/, "");
  const isShaped = /^[A-Za-z0-9+/]*$/.test(body) && body.length % 4 !== 1;
  if (!isShaped || (body !== text && text.length % 4)) return null;
  const binary = atob(body);
  return binary.length === length && btoa(binary).replace(/=+$/, "") === body ? binary : null;
}

export function parseKey(text) {
  if (!text.includes(" ")) return toKey(decode(text.replace(/^svc-pub:/, ""), 32));
  const [kind, encoded] = text.split(" ");
  const blob = kind === "ssh-ed25519" ? decode(encoded, 51) : null;
  return blob?.startsWith(SSH_HEAD) ? toKey(blob.slice(SSH_HEAD.length)) : null;
}

export const toKey = (binary) => binary && isStrictPoint(toBytes(binary)) ? PREFIX + btoa(binary).replace("=", "") : null;

export function parseRecordedKey(text) {
  return text.startsWith(PREFIX) && !text.endsWith("=") && decode(text.slice(PREFIX.length), 32) ? text : null;
}

export const parseSignature = (text) => decode(text, 64) && toBytes(decode(text, 64));

const toNumber = (littleEndian) => BigInt(`0x${toHex(littleEndian.toReversed())}`);

// The one encoding of a point that proves something.
function isStrictPoint(bytes) {
  const y = toNumber(bytes) & (2n ** 255n - 1n);
  const y2 = (y * y) % P;
  // x² is (y² - 1) / (1 - 121665/121666 y²), which is a square if this product is one.
  const product = ((y2 - 1n) * (121666n + 121665n * (P - y2)) * 121666n) % P;
  return y < P && !WEAK.includes(y) && power(product, (P - 1n) / 2n) === 1n;
}

const power = (base, exponent) =>
  exponent ? (power((base * base) % P, exponent >> 1n) * (exponent & 1n ? base : 1n)) % P : 1n;

export async function isSignedBy(key, bytes, signature) {
  const point = toBytes(atob(key.slice(PREFIX.length)));
  const isStrict = isStrictPoint(point) && isStrictPoint(signature.subarray(0, 32));
  if (!isStrict || toNumber(signature.subarray(32)) >= ORDER) return false;
  return crypto.subtle.verify("Ed25519", await importPoint(point), signature, bytes);
}

const importPoint = (point) => crypto.subtle.importKey("raw", point, "Ed25519", false, ["verify"]);

export const hasEd25519 = async () => importPoint(Uint8Array.of(0x58, ...Array(31).fill(0x66)));
