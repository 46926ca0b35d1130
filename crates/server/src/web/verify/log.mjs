// The log and the witnesses of a signers file (D91).

import { fail, integer, list, object, oneOf, text } from "./json.mjs";
import { decode, hash, toBytes, toHex, toKey, utf8 } from "./keys.mjs";
import { isSeen } from "./values.mjs";

// `NAME+ID+KEY` (D84). A byte before the key says what it signs: 6 is ML-DSA-44.
export const verifierKey = (...types) => text((spelled) => {
  const [name, id, ...rest] = spelled.split("+");
  const encoded = rest.join("+");
  const isLong = encoded.length === 1752;
  const typed = decode(encoded, isLong ? 1313 : 33);
  const type = typed?.charCodeAt();
  const key = types.includes(type) && isLong === type > 5 && (isLong ? typed : toKey(typed.slice(1)));
  const isName = name && utf8(name).length < 256 && !name.includes(" ") && isSeen(name);
  return key && isName ? { name, id, key, typed, type } : null;
}, "the verifier key of a log or witness");

// One that replays is an object (D213).
export const witnessKey = verifierKey(4, 6);
const marked = object({ key: witnessKey, replaying: oneOf(true) });
const witness = (value, at) => Object(value) === value ? { ...marked(value, at).key, replays: true } : witnessKey(value, at);
const group = object({ threshold: integer, keys: list(witness) });
const shape = object({ log: verifierKey(1), "witnesses?": list(group), "max_age_seconds?": integer });

// However many keys a witness has, it counts once (D264).
export const once = (nodes) => [...new Map(nodes.map((node) => [node.name ?? node, node])).values()];

export function transparency(value, at) {
  const { log, witnesses: groups, max_age_seconds: age } = shape(value, at);
  const keys = [log, ...(groups ?? []).flatMap((group) => group.keys)];
  const isReached = (group) => group.threshold > 0 && group.threshold <= once(group.keys).length;
  if (groups && (!groups.every(isReached) || keys.length < 2 || keys.length > 33)) {
    fail(`${at}.witnesses`, "must be 1 to 32, in groups that can reach their thresholds");
  }
  if (groups ? !(age >= 60 && age <= 315_360_000) : age !== undefined) {
    fail(`${at}.max_age_seconds`, "must be 60 to 315360000, and only with witnesses");
  }
  const names = keys.flatMap(({ key, name, id }) => [key, `${name}+${id}`]);
  const counted = groups?.flatMap((group) => once(group.keys)) ?? [];
  const isTwice = new Set(names).size < names.length || once(counted).length < counted.length;
  return isTwice ? fail(at, "the same key again") : { key: log, groups: groups ?? [], age, keys };
}

// Hashing takes a moment, so reading leaves this to be done.
export async function checkIds(keys) {
  for (const { name, id, typed } of keys) {
    const digest = await hash("SHA-256", Uint8Array.of(...utf8(`${name}\n`), ...toBytes(typed)));
    if (toHex(digest).slice(0, 8) !== id) fail("transparency", `the id of ${name} does not belong to its key`);
  }
}
