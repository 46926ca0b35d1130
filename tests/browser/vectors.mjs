// The client's test vectors, and what the page's script must say to each.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

const directory = new URL("../../crates/core/tests/vectors/", import.meta.url);

export function readVectors(kind) {
  const names = readdirSync(new URL(kind, directory)).filter((name) => name.endsWith(".json"));
  const read = (name) => [name, JSON.parse(readFileSync(new URL(`${kind}/${name}`, directory), "utf8"))];
  return Object.fromEntries(names.map(read));
}

// The sentence that goes with each rule by which the client refuses.
const SENTENCES = [
  [/^verified$/, () => /^verified$/],
  [/^revoked$/, () => /^The release is revoked: /],
  // A revocation that does not hold is not looked into: whatever is shown as one is a reason not to use the file.
  [/^revocation: /, () => /^The (release is revoked|revocation is not valid): /],
  [/^not reproduced$/, () => /^The release is not reproduced: it has (\d of \d; \d more(, and 1 builder got something else: [^,]+)?|no file that builders make), and its project wants that before anyone uses it$/],
  [/^not a (bundle|history): (.*)$/, ([, kind]) => new RegExp(`^Not a ${kind === "bundle" ? kind : "chain"}: `)],
  [/^index: /, () => /^The index is not valid: /],
  [/^place: not an index$/, () => /^The index does not belong .* not the path of an index$/],
  [/^place: other (.*)$/, ([, what]) => new RegExp(`^The index does not belong .* another ${what.replace("source", "place")}$`)],
  [/^unknown governor$/, () => /^The signers file of this release is not in the project's history$/],
  [/^bad signature$/, () => /^The index: the signature of svc-pub:\S+ does not verify$/],
  [/^too few$/, () => /^Too few of the right keys have signed: /],
  [/^chain, entry 0: empty$/, () => /^The chain has no signers file$/],
  [/^chain, entry (\d+): (.*)$/, ([, entry, fault]) => new RegExp(`^Signers file ${Number(entry) + 1}${inChain(fault)}`)],
];

function inChain(fault) {
  const [, document, field] = /^(signers file|metadata), (.*)$/.exec(fault) ?? [];
  if (document) return `${document === "metadata" ? ", its metadata," : ""} is not valid: .*${field.replace(/[[\].]/g, "\\$&")}`;
  return {
    "other project": " belongs to another project$",
    "other signers": " has the metadata of another$",
    broken: " does not continue the one before$",
    "not later": " is not later than the one before$",
    "bad signature": ": the signature of svc-pub:\\S+ does not verify$",
    "not agreed": " lacks required signatures$",
    "no agreement": " lacks agreed_at$",
    "needless agreement": " has a needless agreed_at$",
    "agreed too early": " has an agreed_at before the previous one took effect$",
    "before it was fetched": " is older than its fetch$",
    "not agreed then": " lacked required signatures at its agreed_at$",
    hasty: " took effect before the previous delay was over$",
  }[fault];
}

export function assertVerdicts(kind, verdicts) {
  const vectors = readVectors(kind);
  assert.deepEqual(Object.keys(verdicts), Object.keys(vectors));
  for (const [name, { expect, rule }] of Object.entries(vectors)) {
    const [pattern, sentence] = SENTENCES.find(([pattern]) => pattern.test(rule)) ?? [];
    assert.ok(pattern, `${name}: no sentence is known for ${rule}`);
    assert.equal(verdicts[name] === "verified", expect === "verified", `${name}: ${verdicts[name]}`);
    assert.match(verdicts[name], sentence(pattern.exec(rule)), name);
  }
  return Object.values(vectors).filter(({ expect }) => expect === "verified").length;
}

export function assertValues(judged) {
  const files = readVectors("values");
  for (const [name, { cases }] of Object.entries(files)) assert.deepEqual(judged[name], cases, name);
}

// The sentence that goes with each rule by which the client refuses a staple.
const STAPLE_SENTENCES = {
  "checkpoint: form": /: its checkpoint is malformed$/,
  "a signer's key": /: a key of its log or of a witness is also a signer's$/,
  "checkpoint: unknown origin": /: its checkpoint is of another log$/,
  "checkpoint: bad signature": /: the signature of \S+ on its checkpoint does not verify$/,
  "checkpoint: not signed": /: its log has not signed its checkpoint$/,
  "from the future": /: the time of the witness \S+ is more than five minutes ahead/,
  "too few witnesses": /: too few witnesses have cosigned its checkpoint: \d of \d, and at least \d are needed$/,
  "not the last leaf": /: its leaf is not the last one in the log$/,
  "not in the log": /: its leaf is not in the log$/,
  "bits do not rise": /: the bits of a path in its status map do not rise$/,
  "not in the map: release": /: the record of the release is not in its status map$/,
  "not in the map: project": /: the record of the project is not in its status map$/,
  "other release": /: it is about another release$/,
  "other index": /: it is about another index of this release$/,
  "other project": /: it is about another project$/,
  contradiction: /: its records contradict each other$/,
  "other signers": /: it has other signers than the project's chain$/,
};

// The whole result is compared where there is one.
export function assertStaples(judged) {
  const vectors = readVectors("log");
  assert.deepEqual(Object.keys(judged), Object.keys(vectors));
  const byName = (a, b) => a.witness.localeCompare(b.witness);
  for (const [name, { expect, rule, result }] of Object.entries(vectors)) {
    const { said = "", result: own } = judged[name];
    own?.cosignatures.sort(byName);
    result?.cosignatures.sort(byName);
    assert.deepEqual(own, result, `${name}: ${said}`);
    assert.equal(own !== null, expect !== "refused", name);
    if (own === null) {
      const [, field] = /^not a staple: (.*)$/.exec(rule) ?? [];
      assert.ok(field || STAPLE_SENTENCES[rule], `${name}: no sentence is known for ${rule}`);
      if (field) assert.ok(said.startsWith(`Not a staple: field \`${field}\`: `), `${name}: ${said}`);
      else assert.match(said, new RegExp(`^The log does not prove the state of the release${STAPLE_SENTENCES[rule].source}`), name);
    } else assert.equal(own.revocation ? "revoked" : "verified", rule, name);
  }
  return Object.values(judged).filter(({ result }) => result).length;
}
