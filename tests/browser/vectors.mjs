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
    "not agreed": " is not signed by everyone who had to$",
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
