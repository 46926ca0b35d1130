// Whether builders got the same files, as in the crates `core` and `explain` (D261).

import { keysOf } from "./documents.mjs";
import { hash, isSignedBy, utf8 } from "./keys.mjs";
import { digestOf, isMet, refuseIf, tally } from "./rules.mjs";
import { isCovered } from "./values.mjs";

// What the builder with this key got of this very index.
async function readStated({ index_path: path, rebuilds }, digest, key) {
  const { document, signature } = rebuilds?.get(key) ?? {};
  const isAbout = document?.rebuild_of === path && document.subject_digest === digest;
  return isAbout && (await isSignedBy(key, await hash("SHA-512", utf8(document.text)), signature)) ? document : {};
}

// `undefined` if they have no digest in common.
function isSame(one, other = {}) {
  const common = Object.keys(one).filter((kind) => other[kind] !== undefined);
  return common[0] && common.every((kind) => one[kind] === other[kind]);
}

// How far; null if the signers file names no builders. The server chose it, so none back to the time of the index must refuse.
export async function judgeReproduction(evidence, { index, links, governing }) {
  const at = links.findIndex(({ signers }) => signers === governing);
  const made = Math.max(0, links.findLastIndex(({ proposed }) => proposed <= index.mirrored_on));
  const between = links.slice(Math.min(at, made), Math.max(at, made) + 1);
  const judged = await Promise.all(between.map(({ signers }) => judge(evidence, index, signers)));
  return judged.find(spellLack) ?? judged[at - Math.min(at, made)];
}

async function judge(evidence, index, { rebuilds: policy, names }) {
  if (!policy) return null;
  const { builders, files: patterns = ["*"], required: isRequired = false } = policy;
  const digest = await digestOf(evidence.index);
  const listed = new Map(index.published_files.map((file) => [file.file_name, file.digests]));
  const covered = [...listed.keys()].filter((name) => patterns.some((pattern) => isCovered(name, pattern)));
  const agreed = new Map(covered.map((name) => [name, new Set()]));
  const [different, missing, sources] = [[], [], new Set()];
  for (const key of new Set(keysOf(builders))) {
    const builder = { key, name: names.get(key) ?? null };
    const { files: got = [], source_commit: commit } = await readStated(evidence, digest, key);
    const named = (is) => got.filter((file) => isSame(file.digests, listed.get(file.file_name)) === is).map((file) => file.file_name);
    const [same, files] = [named(true).filter((name) => agreed.get(name)?.add(key)), named(false)];
    if (same[0]) sources.add(commit);
    if (files[0]) different.push({ ...builder, files, commit });
    else if (same.length < agreed.size) missing.push(builder);
  }
  const found = covered[0] ? [...agreed.values()] : [new Set()];
  const [least] = found.map((keys) => tally(builders, keys)).sort((a, b) => a.collected - b.collected);
  const isReproduced = found.every((keys) => isMet(builders, keys));
  return { builders, covered, isRequired, isReproduced, ...least, commits: [...sources].sort(), different, missing };
}

const NO_FILE = "it has no file that builders make";

// Why clients refuse it.
export function spellLack(judged) {
  const { covered, isRequired, isReproduced, collected, needed, different } = judged ?? {};
  if (!isRequired || isReproduced) return null;
  const but = different[0] ? `, and ${spellDifferent(different)}` : "";
  const lack = covered[0] ? `it has ${collected} of ${needed}; ${needed - collected} more${but}` : NO_FILE;
  return `is not reproduced: ${lack}, and its project wants that before anyone uses it`;
}

export function refuseLacking(judged, called) {
  const lack = spellLack(judged);
  if (lack) refuseIf(true, `The release ${lack}`, ...judged.different.map((builder) => spellBuilder(builder, called)));
}

const s = (count) => count === 1 ? "" : "s";
const ofBuilders = (count) => `${count} builder${s(count)}`;

// At most four, and how many more.
const few = (words, joint) => words.slice(0, 4).join(", ") + (words[4] ? `${joint}${words.length - 4} more` : "");

function spellCommits(commits) {
  const short = few(commits.map((commit) => `${commit.slice(0, 12)}…`), ", ");
  return short && ` from commit${s(commits.length)} ${short}`;
}

const gotElse = (who, files) => `${who} got something else: ${few(files, " and ")}`;

export const spellBuilder = ({ files, commit, ...builder }, called) => gotElse(called(builder), files) + spellCommits([commit]);

export const spellDifferent = (different) =>
  gotElse(ofBuilders(different.length), [...new Set(different.flatMap((builder) => builder.files))].sort());

export function spellReproduction({ builders, covered, collected, needed, commits, missing, isReproduced }, called, file) {
  if (!covered[0]) return `not reproduced: ${NO_FILE}`;
  if (file && !covered.includes(file)) return `${file} is not a file that builders make`;
  const rules = builders.map(({ threshold, signers }) => `any ${threshold} of ${ofBuilders(signers.length)}`);
  const text = `reproduced by ${collected} of ${needed} (${rules.join(", and ")})${spellCommits(commits)}`;
  if (isReproduced) return text;
  const others = missing.map(called);
  if (others[8]) others.splice(7, 9, `${others.length - 7} others`);
  const last = others.splice(-2).join(" or ");
  return `${text}; ${needed - collected} more${last && ` from ${[...others, last].join(", ")}`}`;
}
