// The log and the witnesses of a signers file (D91).

import { fail, integer, list, object, oneOf, text } from "./json.mjs";
import { decode, hash, toBytes, toHex, toKey, utf8 } from "./keys.mjs";
import { isSeen } from "./values.mjs";

// `NAME+ID+KEY` (D84). A byte before the key says what it signs.
export const verifierKey = (type) => text((spelled) => {
  const [name, id, ...rest] = spelled.split("+");
  const typed = decode(rest.join("+"), 33);
  const key = typed?.charCodeAt() === type && toKey(typed.slice(1));
  const isName = name && utf8(name).length < 256 && !name.includes(" ") && isSeen(name);
  return key && isName ? { name, id, key, typed } : null;
}, "the verifier key of a log or witness");

// One that replays is an object (D213).
const plain = verifierKey(4);
const marked = object({ key: plain, replaying: oneOf(true) });
const witness = (value, at) => (Object(value) === value ? { ...marked(value, at).key, replays: true } : plain(value, at));
const group = object({ threshold: integer, keys: list(witness) });
const shape = object({ log: verifierKey(1), "witnesses?": list(group), "max_age_seconds?": integer });

export function transparency(value, at) {
  const { log, witnesses: groups, max_age_seconds: age } = shape(value, at);
  const keys = [log, ...(groups ?? []).flatMap((group) => group.keys)];
  const isReached = (group) => group.threshold > 0 && group.threshold <= group.keys.length;
  if (groups && (!groups.every(isReached) || keys.length < 2 || keys.length > 33)) {
    fail(`${at}.witnesses`, "must be 1 to 32, in groups that can reach their thresholds");
  }
  if (groups ? !(age >= 60 && age <= 315_360_000) : age !== undefined) {
    fail(`${at}.max_age_seconds`, "must be 60 to 315360000, and only with witnesses");
  }
  const names = keys.flatMap(({ key, name, id }) => [key, `${name}+${id}`]);
  const isTwice = new Set(names).size < names.length;
  return isTwice ? fail(at, "the same key again") : { key: log, groups: groups ?? [], age, keys };
}

// Hashing takes a moment, so reading leaves this to be done.
export async function checkIds(keys) {
  for (const { name, id, typed } of keys) {
    const digest = await hash("SHA-256", Uint8Array.of(...utf8(`${name}\n`), ...toBytes(typed)));
    if (toHex(digest).slice(0, 8) !== id) fail("transparency", `the id of ${name} does not belong to its key`);
  }
}
