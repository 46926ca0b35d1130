// Verifies that a file is one that enough of a project's signers have signed, from a bundle, alone or in a saved
// answer of a server, and without a network.

import { readFacts, readOptions } from "./arguments.mjs";
import { readBundle, readStaple } from "./bundle.mjs";
import { extendPin, findChange, findRevocation, linksOf, readPin, rememberRevocation, writePin } from "./pin.mjs";
import { coded, refuse, VerifyError } from "./refusal.mjs";
import { verifyRevocation } from "./revocation.mjs";
import { checkState, refuseRevoked } from "./state.mjs";
import { subjectOf } from "./verify/freshness.mjs";
import { hasEd25519 } from "./verify/keys.mjs";
import { judgeReproduction, spellBuilder, spellLack, spellReproduction } from "./verify/reproduction.mjs";
import { checkFile, count, digestOf, verifyEvidence } from "./verify/rules.mjs";
import { nameOf, parseDigest, quoted, releaseOf, shownName } from "./verify/values.mjs";
import { spellDoubt, spellVerdict, weighDoubts } from "./verify/verdict.mjs";

export { VerifyError };

// Throws a VerifyError, or returns what was proven. `file` is null to learn what the release has before a download.
export async function verifyBundle(bundle, file, given) {
  const options = readOptions(given);
  const facts = await readFacts(file);
  await coded("no_ed25519", hasEd25519, "WebCrypto offers no Ed25519 here: ");
  const shown = await coded("not_a_bundle", () => readBundle(bundle), "Not a bundle: ");
  refuse(!shown.bundle, "not_complete", spellIncomplete(shown));
  const staple = await chooseStaple(options, shown.bundle);
  const signed = await verifySigned(shown.bundle, options.project);
  const { pin, isFirstUse } = await acceptSigned(signed, options);
  refuseLacking(signed);
  const { evidence, index, links, release } = signed;
  const other = `The bundle is of the release ${quoted(release)}, and not of ${quoted(`${options.release}`)}`;
  refuse((options.release ?? release) !== release, "other_release", other);
  const subject = await subjectOf(evidence, signed);
  const state = await checkState({ staple, subject, signers: links.at(-1).signers, pin }, options);
  const found = await findFile(index.published_files, facts, options.fileName);
  const doubts = await coded("not_verified", () => weighDoubts(evidence, shown.files, signed));
  const path = evidence.index_path;
  const begun = doubts.begun && `${releaseOf(path, index.project_id)}: ${spellDoubt(doubts)}`;
  refuse(options.strict && begun, "revocation_begun", begun, { pin: writePin(pin) });
  const [said, about] = spellVerdict(found?.file_name ?? "the release", doubts, { index, path });
  return {
    headline: about ? `${said} (${about})` : said,
    begun: doubts.begun,
    objections: doubts.objections,
    reproduction: tellReproduction(signed.reproduction, found?.file_name),
    project: options.project,
    ...spellSigned(signed),
    file: found && spellFile(found),
    bundledAt: evidence.bundled_at,
    ...state,
    isFirstUse,
    pin: writePin(pin),
  };
}

const spellIncomplete = ({ isProject }) =>
  `${isProject ? "The project had no complete release" : "The release was not complete"} when the server answered`;

const chooseStaple = ({ staple }, bundle) =>
  staple === undefined ? bundle.staple : coded("false_proof", () => readStaple(staple), "Not a staple: ");

// All that needs no memory: the index, its signatures, and a revocation.
async function verifySigned(evidence, project) {
  const verified = await coded("not_verified", () => verifyEvidence({ ...evidence, revocation: null }, () => {}));
  const named = verified.index.project_id;
  refuse(named !== project, "other_project", `The bundle is of ${named}, and not of ${project}`);
  const digest = await digestOf(evidence.index);
  const check = () => verifyRevocation(evidence.revocation, evidence, verified.links, digest);
  const revocation = evidence.revocation && (await coded("not_verified", check));
  const reproduction = await judgeReproduction(evidence, verified);
  return { ...verified, evidence, digest, revocation, reproduction, release: nameOf(evidence.index_path, project) };
}

// The history must be the project's own, and nothing may be revoked. Returns the pin with what it adds.
async function acceptSigned({ evidence, links, digest, revocation }, options) {
  const { project, pin, signersDigest, firstUse, requireCurrent } = options;
  const shown = await linksOf(links, evidence.signers_history);
  const known = pin === undefined ? null : await coded("bad_pin", () => readPin(pin, project), "The pin cannot be used: ");
  const change = findChange(known?.links ?? [], shown);
  const changed = `The past of ${project} has changed: signers file ${change + 1} is not the one that was accepted`;
  refuse(change >= 0, "changed_past", changed);
  const isExpected = ({ signers }) => signers === parseDigest(signersDigest);
  const isOther = signersDigest !== undefined && !shown.some(isExpected);
  refuse(isOther, "other_signers", `No signers file of ${project} has the digest that is expected`);
  const isRooted = known || signersDigest !== undefined || firstUse;
  const unknown = `Nothing says that these are the signers of ${project}: pass a pin, or the digest of a signers file`;
  refuse(!isRooted, "unknown_signers", unknown);
  const next = extendPin(known, project, shown);
  if (revocation) {
    const { reason, revokedAt: revoked_at } = revocation;
    const seen = { index_path: evidence.index_path, index_digest: digest, reason, revoked_at };
    refuseRevoked(seen, "", rememberRevocation(next, seen));
  }
  const before = findRevocation(next, evidence.index_path, digest);
  if (before) refuseRevoked(before, ", as was seen before; the bundle does not know of it", next);
  const counts = `it shows ${shown.length} of the ${next.links.length} signers files of ${project} that were seen`;
  const isBehind = requireCurrent && shown.length < next.links.length;
  refuse(isBehind, "behind", `The server is behind: ${counts}. Try again later, or ask another server`);
  return { pin: next, isFirstUse: !known };
}

// A release that its project wants to be reproduced first (D261).
function refuseLacking({ reproduction, evidence, index }) {
  const lack = spellLack(reproduction);
  const details = reproduction?.different.map((builder) => spellBuilder(builder, called));
  refuse(lack, "not_reproduced", `${releaseOf(evidence.index_path, index.project_id)} ${lack}`, { details });
}

const called = ({ key, name }) => (name ? shownName(name) : key);

function tellReproduction(reproduction, file) {
  if (!reproduction) return null;
  const { isRequired, isReproduced, collected, needed, covered, commits, different } = reproduction;
  const said = spellReproduction(reproduction, called, file);
  return { said, isRequired, isReproduced, covered, collected, needed, commits, different };
}

// The listed file that these facts are of; without facts, the one that is wanted.
function findFile(files, facts, wanted) {
  const named = files.find((file) => file.file_name === wanted);
  refuse(wanted !== undefined && !named, "other_file", `The release has no file ${quoted(`${wanted}`)}`);
  return facts ? coded("other_file", () => checkFile(facts, files, wanted, () => {})) : named ?? null;
}

function spellSigned({ evidence, index, digest, links, governing, signedBy, release }) {
  const signers = new Set(signedBy);
  return {
    release,
    indexPath: evidence.index_path,
    indexDigest: `sha512:${digest}`,
    files: index.published_files.map(spellFile),
    signedBy: Array.from(signers, (key) => ({ key, name: governing.names.get(key) ?? null })),
    groups: governing.artifact.map((group) =>
      ({ threshold: group.threshold, size: group.signers.length, signed: count(group, signers) })),
    signersDigest: `sha512:${evidence.signers_file_digest}`,
    signersFiles: links.length,
  };
}

const spellFile = ({ file_name: name, size, digests, source }) =>
  ({ name, size, sha256: digests.sha256 ?? null, sha512: digests.sha512 ?? null, source });
