// What is said of a release in one line, as the client says it (D238).

import { keysOf, signatures } from "./documents.mjs";
import { parseJson } from "./json.mjs";
import { spellDifferent } from "./reproduction.mjs";
import { attempt, tally, verifySet } from "./rules.mjs";
import { quoted, releaseOf } from "./values.mjs";

// Without a role for it, any one admin can revoke.
export const revokersOf = ({ revokers, admin }) =>
  revokers ?? [{ threshold: 1, signers: admin.flatMap((group) => group.signers) }];

const list = (words) => words[1] ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join("");

// How far a revocation is that waits for signatures. The signers in force count (D20).
async function weighBegun(path, files, { links }) {
  const text = files.get(`${path}.revocation.json.pending`);
  if (text === undefined) return null;
  const { reason } = await attempt("The begun revocation", () => parseJson(text));
  const set = () => signatures(parseJson(files.get(`${path}.revocation.json.signatures.json.pending`)), "");
  const signed = await verifySet("The begun revocation", text, await attempt("Its signatures", set));
  return { reason: `${reason}`, ...tally(revokersOf(links.at(-1).signers), signed) };
}

function listObjections(path, files, { links }) {
  const { names } = links.at(-1).signers;
  const said = Object.entries(JSON.parse(files.get(`${path}.objections.json`) ?? null)?.objections ?? {});
  const read = ([key, { document }]) => ({ key, name: names.get(key) ?? null, text: JSON.parse(document).objection });
  return said.map(read).filter(({ text }) => text !== null);
}

// What speaks against a release that is not revoked. What cannot be read is an error, and no good sign (D185).
export async function weighDoubts({ index_path: path }, files, verified) {
  const begun = await weighBegun(path, files, verified);
  const objections = await attempt("The list of objections", () => listObjections(path, files, verified));
  return { begun, different: verified.reproduction?.different ?? [], objections };
}

export const spellSigners = ({ index, governing, signedBy }, shorten) =>
  governing.artifact.map((group) => {
    const signed = keysOf([group]).filter((key) => signedBy.includes(key));
    const people = `${signed.length} of the ${group.signers.length} people who can release ${nameIn(index.project_id)}`;
    return `${people} signed this file: ${list(signed.map((key) => governing.names.get(key) ?? shorten(key)))}`;
  });

const nameIn = (project) => project.split("/").slice(3).join("/") || project;

// The gravest doubt, if there is one.
export function spellDoubt({ begun, different, objections }) {
  if (begun) return `${begun.collected} of ${begun.needed} revokers want it revoked: ${quoted(begun.reason)}`;
  if (different[0]) return spellDifferent(different);
  const many = objections[1] ? `${objections.length} signers object` : "1 signer objects";
  return objections[0] && `${many}: ${quoted(`${objections[0].text}`)}`;
}

// The headline, and what it is about if the headline does not say so.
export function spellVerdict(file, doubts, { index, path }) {
  const about = `${file}: ${releaseOf(path, index.project_id)}`;
  const but = spellDoubt(doubts);
  return but ? [`Verified, but ${but}`, about] : [`Verified ${about}`];
}
