// Paths, times, digests, names, shown text.

import { utf8 } from "./keys.mjs";

// Not seen, or changes what is (D43).
const UNSEEN = /(?! )[\p{Cc}\p{Cf}\p{Z}\p{DI}\u2800\u{1d159}]/gu;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

export const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
export const isPort = (text) => /^[1-9]\d{0,4}$/.test(text) && text < 65536;
export const isDots = (segment) => ["", ".", ".."].includes(segment);

// D6.
export function parsePath(text) {
  const parts = text.split("/");
  const [scheme, host, port = ""] = parts;
  const isForbidden = (segment) => isDots(segment) || lower(segment) === ".git";
  if (parts.some(isForbidden) || /[\p{Cc}\\]/u.test(text)) return null;
  if (utf8(text).length > 1024 || parts.length > 64) return null;
  if (!/^https?$/i.test(scheme)) return text;
  const isNormal = host === undefined || (host === lower(host) && isPort(port));
  return isNormal && scheme === lower(scheme) ? text : null;
}

// RFC 3339, as nanoseconds.
export function parseTime(text) {
  const [, clock, fraction = "", sign = "+", hours = "0", minutes = "0"] = TIME.exec(text) ?? [];
  const local = Date.parse(`${clock}Z`);
  const spell = (time) => new Date(time).toISOString();
  if (isNaN(local) || !spell(local).startsWith(clock) || hours > 23 || minutes > 59) return null;
  const utc = local - `${sign}60000` * (hours * 60 + Number(minutes));
  return /^\d{4}-/.test(spell(utc)) ? BigInt(utc) * 1_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, "0")) : null;
}

export const parseHex = (bytes) => (text) => text.length === 2 * bytes && /^[0-9a-f]*$/.test(text) ? text : null;
export const parseDigest = (text) => text.startsWith("sha512:") ? parseHex(64)(text.slice(7)) : null;

export const isSeen = (text) => text.search(UNSEEN) < 0;

// D24.
export function parseAssetName(text) {
  const isFine = (segment) => !isDots(segment) && utf8(segment).length <= 200;
  const isShort = utf8(text).length <= 1024 && text.split("/").every(isFine);
  return isShort && !text.includes("\\") && isSeen(text) ? text : null;
}

export const parseSignerName = (text) => [...text].length <= 64 && isSeen(text) ? text : null;

// A pattern of names, in which `*` is any text (D259). One that no name can match is refused.
export const parsePattern = (text) => (utf8(text).length <= 255 && parseAssetName(text.replaceAll("*", "a")) ? text : null);

export function isCovered(name, pattern) {
  const [first, ...parts] = pattern.split("*");
  const last = parts.pop();
  let rest = name.startsWith(first) ? name.slice(first.length) : null;
  // As far left as possible: that leaves most for what follows.
  for (const part of parts) rest = rest?.includes(part) ? rest.slice(rest.indexOf(part) + part.length) : null;
  return last === undefined ? rest === "" : !!rest?.endsWith(last);
}

// Safe to show (D39).
export const shownText = (text) =>
  text.slice(0, 2000).replace(UNSEEN, (c) => `\\u{${c.codePointAt().toString(16)}}`);

export const quoted = (text) => `"${text.replace(/[\\"]/g, "\\$&")}"`;

export const shownName = (name = "") => /^[\p{Alphabetic}\p{N}\-_.@+]*$/u.test(name) ? name : quoted(name);

// The part of a path that people know a release by.
export const nameOf = (path, project) =>
  path.slice(project.length + 1).replace(/^releases\/tag\/|\/svc\.index\.json$/g, "");

export function urlOf(project) {
  const [scheme, host, port, ...names] = project.split("/");
  const isUsual = `${scheme}/${port}` === "https/443" || `${scheme}/${port}` === "http/80";
  return [`${scheme}://${host}${isUsual ? "" : `:${port}`}`, ...names].join("/");
}

export const releaseOf = (path, project) => `${nameOf(path, project)} of ${urlOf(project)}`;
