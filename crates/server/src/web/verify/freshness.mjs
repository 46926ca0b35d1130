// What a staple proves of a release (D86).

import { hash, isSignedBy, toHex, utf8 } from "./keys.mjs";
import { once } from "./log.mjs";
import { digestOf, refuseIf } from "./rules.mjs";
import { parseCheckpoint } from "./staple.mjs";
import { nameOf } from "./values.mjs";

// Such a proof does not lie: it proves nothing.
export class Unmet extends Error {}

function refuse(is, why, Kind = Error) {
  if (is) throw new Kind(`The log does not prove the state of the release: ${why}`);
}

const sha256 = (...parts) => hash("SHA-256", Uint8Array.from(parts.flatMap((part) => [...part])));

// A group of witnesses can have groups as members.
const isMet = ({ key, threshold, keys }, cosigned) =>
  keys ? once(keys.filter((member) => isMet(member, cosigned))).length >= threshold : cosigned.has(key);
const leavesOf = (node) => node.keys?.flatMap(leavesOf) ?? [node];
const fewest = ({ threshold, keys }) =>
  keys ? once(keys).map(fewest).sort((a, b) => a - b).slice(0, threshold).reduce((sum, count) => sum + count, 0) : 1;

// Of known keys. Those of others are ignored, but no wrong one is. An ML-DSA-44 key may lack its `check`.
async function verifyNote({ text, lines }, known) {
  const signed = [];
  for (const { name, id, bytes } of lines) {
    const signer = known.find((key) => key.name === name && key.id === id);
    if (!signer) continue;
    const { type, key, check } = signer;
    const time = type > 1 ? BigInt(`0x${toHex(bytes.subarray(0, 8))}`) : 1n;
    const said = type > 1 ? `cosignature/v1\ntime ${time}\n${text}` : text;
    const isWhole = bytes.length === { 1: 64, 4: 72, 6: 2428 }[type] && time > 0n && time < 2n ** 63n;
    const isRight = isWhole && await (type > 5 ? check?.(bytes, text) : isSignedBy(key, utf8(said), bytes.subarray(-64)));
    refuse(isRight === false, `the signature of ${name} on its checkpoint does not verify`);
    signed.push({ signer, time, isRight });
  }
  return signed;
}

// `trust` is null if the signers name no log.
async function attest(proof, { origin }, signerKeys, trust, now) {
  const { logs = [], witnesses = [], quorum = { threshold: 0, keys: [] } } = trust ?? {};
  const isSigner = ({ key }) => signerKeys.has(key);
  refuse([...logs, ...witnesses].some(isSigner), "a key of its log or of a witness is also a signer's");
  const own = logs.filter((log) => log.name === origin);
  refuse(trust && !own.length, "its checkpoint is of another log", Unmet);
  const [log] = await verifyNote(proof, own);
  refuse(trust && !log, "its log has not signed its checkpoint", Unmet);
  const newest = new Map();
  let note = "";
  for (const { signer: { key, name }, time, isRight } of await verifyNote(proof, witnesses)) {
    refuse(time - now > 300n, `the time of the witness ${name} is more than five minutes ahead; check your clock`);
    if (!isRight) note = "; ML-DSA-44 cannot be checked here";
    else if (!(newest.get(key)?.time >= time)) newest.set(key, { name, time });
  }
  const leaves = leavesOf(quorum);
  const counted = once(leaves);
  const signed = once(leaves.filter(({ key }) => newest.has(key)));
  const replays = ({ name }) => leaves.every((leaf) => leaf.name !== name || leaf.replays);
  const [needed, cosigned] = [fewest(quorum), signed.length];
  const replaying = counted.some(replays) ? signed.filter(replays).length : null;
  const few = `${cosigned} of ${counted.length}, and at least ${needed} are needed${note}`;
  refuse(!isMet(quorum, newest), `too few witnesses have cosigned its checkpoint: ${few}`, Unmet);
  // The latest time that enough have reached.
  const times = [...newest].sort(([, a], [, b]) => Number(b.time - a.time));
  const enough = times.findIndex((_, i) => isMet(quorum, new Map(times.slice(0, i + 1))));
  const asOf = needed ? times[enough][1].time : null;
  const cosignatures = [...newest.values()];
  return { asOf, needed, cosigned, replaying, witnesses: counted.length, note, cosignatures, log: log?.signer };
}

// The last leaf has only left neighbours.
async function isLastLeaf(leaf, { index, hashes }, root) {
  let node = await sha256([0], utf8(leaf.text));
  for (const left of hashes) node = await sha256([1], left, node);
  return hashes.length === index.toString(2).replaceAll("0", "").length && toHex(node) === root;
}

// The key says at each bit on which side the sibling stands.
async function checkInMap(kind, { record, siblings }, state) {
  const isRising = siblings.every(({ bit }, i) => !i || siblings[i - 1].bit < bit);
  refuse(!isRising, "the bits of a path in its status map do not rise");
  const key = await sha256(utf8(`${kind}\0${record.path}`));
  let node = await sha256([2], key, await sha256(utf8(record.text)));
  for (const { bit, hash } of siblings.toReversed()) {
    const isRight = key[bit >> 3] & (0x80 >> bit % 8);
    node = await (isRight ? sha256([3, bit], hash, node) : sha256([3, bit], node, hash));
  }
  refuse(toHex(node) !== state, `the record of the ${kind} is not in its status map`);
}

// The n-th in the log must be the n-th of the chain.
function compareSigners({ history, signers }, chain) {
  refuse(history <= chain.length && chain[history - 1] !== signers, "it has other signers than the project's chain");
  return history === chain.length ? "newest" : history > chain.length ? "replaced" : "earlier";
}

// How old is too old, the caller knows.
export async function verifyProof({ release: shown, project: named, leaf, proof }, subject, trust, now) {
  const checkpoint = parseCheckpoint(proof.text);
  refuse(!checkpoint, "its checkpoint is malformed");
  const attested = await attest(proof, checkpoint, subject.keys, trust, now);
  // An older leaf is in the log too, and has an older state.
  refuse(proof.index + 1n !== checkpoint.size, "its leaf is not the last one in the log");
  refuse(!(await isLastLeaf(leaf, proof, checkpoint.root)), "its leaf is not in the log");
  await checkInMap("release", shown, leaf.state);
  await checkInMap("project", named, leaf.state);
  const [release, project] = [shown.record, named.record];
  refuse(release.path !== subject.path, "it is about another release");
  refuse(release.index !== subject.digest, "it is about another index of this release");
  refuse(project.path !== subject.project, "it is about another project");
  const newer = project.completed - release.number;
  const isOther = ({ number, path }) => (number === release.number) !== (path === release.path);
  refuse(newer < 0 || project.newest.some(isOther), "its records contradict each other");
  const newerPaths = project.newest.filter(({ number }) => number > release.number).map(({ path }) => path);
  const signers = compareSigners(project, subject.signers);
  return { ...attested, checkpoint, release, newer, newerPaths, signers, history: project.history };
}

function spellAge(age) {
  const [unit, name] = [[86400, "days"], [3600, "hours"], [60, "minutes"], [1, "seconds"]].find(([unit]) => age >= 2 * unit);
  return `${Math.floor(age / unit)} ${name}`;
}

const spellTime = (seconds) => `${new Date(Number(seconds) * 1e3).toISOString().slice(0, 16).replace("T", " ")} UTC`;

function spellNewer({ newer, newerPaths }, project) {
  if (!newer) return "the release completed last";
  const names = newerPaths.map((path) => nameOf(path, project)).join(", ");
  const last = newer > newerPaths.length ? ", the last of them" : ":";
  return `${newer > 1 ? `${newer} releases were` : "1 release was"} completed later${last} ${names}`;
}

export async function subjectOf({ index_path: path, index: text }, { index: { project_id: project }, links }) {
  const keys = new Set(links.flatMap((link) => [...link.signers.keys]));
  return { path, digest: await digestOf(text), project, signers: links.map((link) => link.digest), keys };
}

// Those whom the newest signers name (D91).
export const trustOf = ({ log }) =>
  log && { logs: [log.key], witnesses: log.keys.slice(1), quorum: { threshold: log.groups.length, keys: log.groups } };

// The newest signers decide whether it must be proven (D81).
export async function checkFreshness({ staple, noStaple, ...evidence }, verified, passed) {
  const { links } = verified;
  const newest = links.at(-1).signers;
  const { log } = newest;
  const missing = "The signers want a log to prove that the release is not revoked, but the server shows no proof";
  refuseIf(log && !staple, missing, `${noStaple ?? "it keeps no log"}`);
  if (!staple) return;
  const subject = await subjectOf(evidence, verified);
  const now = BigInt(Math.floor(Date.now() / 1e3));
  const fresh = await verifyProof(staple, subject, trustOf(newest), now);
  const { asOf, cosigned, replaying, witnesses, note, release, history } = fresh;
  const time = asOf !== null && spellTime(asOf);
  const rules = replaying === null ? "" : `, ${replaying || "none"} of which replay${replaying > 1 ? "" : "s"} the rules`;
  const by = time ? `as of ${time}, by ${cosigned} of ${witnesses} witnesses${rules}${note}` : `by the ${log ? "log" : "server"}'s word alone`;
  refuseIf(release.revocation, `The server hides that the release is revoked, ${by}`);
  const hides = `The server hides a change of signers: it shows ${links.length} of the ${history} signers files in its log, ${by}`;
  refuseIf(fresh.signers === "replaced", hides);
  const old = time && now - asOf > log.age && `is from ${time}; the signers allow ${spellAge(log.age)}`;
  refuseIf(old, `The newest proof that the release is not revoked ${old}`, "check this computer's clock, or try again later");
  const said = [by.replace(/^as/, "Fresh as").replace(/^by/, "By"), spellNewer(fresh, subject.project), "not revoked"];
  if (fresh.signers === "earlier") said.push("from before the last change of signers");
  passed(said.join("; "));
}
