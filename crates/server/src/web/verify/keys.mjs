// Ed25519 keys and signatures (D1–D3). Browsers differ in strictness.

const PREFIX = "svc-pub:";
// As OpenSSH writes it: with its length, which is short here.
const string = (binary) => `\0\0\0${String.fromCharCode(binary.length)}${binary}`;
// By the type of an OpenSSH line: the format, and what stands behind the 32 bytes.
const SSH = new Map([
  ["ssh-ed25519", ["ed25519", ""]],
  ["sk-ssh-ed25519@openssh.com", ["sk-ssh-ed25519", string("ssh:")]],
]);
const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 0x14def9dea2f79cd65812631a5cf5d3edn;
// All points of small order.
const Y8 = 0x5fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;
const WEAK = [0n, 1n, P - 1n, Y8, P - Y8];

export const utf8 = (text) => new TextEncoder().encode(text);
export const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
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

// Only an OpenSSH line says what the format is (D256).
export function parseKey(text) {
  if (!text.includes(" ")) return { key: toKey(decode(text.replace(/^svc-pub:/, ""), 32)) };
  const [type, encoded] = text.split(" ");
  const [format, tail] = SSH.get(type) ?? [];
  const head = `${string(type)}\0\0\0\x20`;
  const blob = format && decode(encoded, head.length + 32 + tail.length);
  const isShaped = blob?.startsWith(head) && blob.endsWith(tail);
  return { key: isShaped ? toKey(blob.substr(head.length, 32)) : null, format };
}

export const toKey = (binary) => binary && isStrictPoint(toBytes(binary)) ? PREFIX + btoa(binary).replace("=", "") : null;

export const parseRecordedKey = (text) =>
  text.startsWith(PREFIX) && !text.endsWith("=") && decode(text.slice(PREFIX.length), 32) ? text : null;

// 64 bytes, or 69 of a FIDO key.
export function parseSignature(text) {
  const binary = decode(text, 64) ?? decode(text, 69);
  return binary && toBytes(binary);
}

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

// Whether the key signed these bytes, which are a digest where a FIDO key may have signed.
export async function isSignedBy(key, bytes, signature) {
  if (signature.length === 69) return isTouchedBy(key, bytes, signature);
  const point = toBytes(atob(key.slice(PREFIX.length)));
  const isStrict = isStrictPoint(point) && isStrictPoint(signature.subarray(0, 32));
  if (!isStrict || toNumber(signature.subarray(32)) >= ORDER) return false;
  return crypto.subtle.verify("Ed25519", await importPoint(point), signature, bytes);
}

// D255: flags and counter stand behind the 64 bytes.
async function isTouchedBy(key, digest, signature) {
  const touch = signature.subarray(64);
  if (!(touch[0] & 1)) return false;
  const fields = ["countersign", "", "sha512", String.fromCharCode(...digest)].map(string);
  const message = await hash("SHA-256", toBytes(`SSHSIG${fields.join("")}`));
  const framed = [...await hash("SHA-256", utf8("ssh:")), ...touch, ...message];
  return isSignedBy(key, Uint8Array.from(framed), signature.subarray(0, 64));
}

const importPoint = (point) => crypto.subtle.importKey("raw", point, "Ed25519", false, ["verify"]);

export const hasEd25519 = async () => importPoint(Uint8Array.of(0x58, ...Array(31).fill(0x66)));
