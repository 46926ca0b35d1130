// Verifies that a file is one that enough of a project's signers have signed, from a bundle and without a network.

import { decodeSource, readBundle } from "./bundle.mjs";
import { extendPin, findChange, findRevocation, linksOf, readPin, rememberRevocation, writePin } from "./pin.mjs";
import { readPolicy } from "./policy.mjs";
import { verifyRevocation } from "./revocation.mjs";
import { subjectOf, trustOf, Unmet, verifyProof } from "./verify/freshness.mjs";
import { hasEd25519, hash, toHex } from "./verify/keys.mjs";
import { checkFile, count, digestOf, verifyEvidence } from "./verify/rules.mjs";
import { readStaple } from "./verify/staple.mjs";
import { parseDigest, parseHex, parsePath, quoted } from "./verify/values.mjs";

// `code` is for programs, the message for people. `pin`, if there is one, must be stored all the same.
export class VerifyError extends Error {
  constructor(code, message, { details = [], pin = null, cause } = {}) {
    super(message, { cause });
    this.name = "VerifyError";
    this.code = code;
    this.details = details;
    this.pin = pin;
  }
}

function refuse(is, code, message, more) {
  if (is) throw new VerifyError(code, message, more);
}

async function coded(code, work, what = "") {
  try {
    return await work();
  } catch (error) {
    if (error instanceof VerifyError) throw error;
    throw new VerifyError(code, what + error.message, { details: error.details, cause: error });
  }
}

const OPTIONS = ["project", "pin", "signersDigest", "firstUse", "release", "fileName", "staple", "policy", "maxAge", "requireNewest", "now"];

// A misspelled option must not be a check that is left out.
function checkOptions(options) {
  const misuse = (is, what) => {
    if (is) throw new TypeError(`verifyBundle: ${what}`);
  };
  const isAbsentOr = (value, is) => value === undefined || value === null || is(value);
  const isText = (value) => typeof value === "string";
  misuse(Object(options) !== options, "the third argument must be an object with options");
  for (const name of Object.keys(options)) misuse(!OPTIONS.includes(name), `there is no option ${quoted(name)}`);
  const { project, signersDigest, firstUse, release, fileName, maxAge, requireNewest, now } = options;
  misuse(!isText(project) || !parsePath(project), "project must be its path, such as https/github.com/443/acme/app");
  misuse(!isAbsentOr(signersDigest, (digest) => isText(digest) && parseDigest(digest)), "signersDigest must be sha512: and 128 hexadecimal digits");
  misuse(!isAbsentOr(firstUse, (how) => how === "accept"), 'firstUse must be "accept"');
  misuse(!isAbsentOr(release, isText) || !isAbsentOr(fileName, isText), "release and fileName must be strings");
  const isAge = (age) => age === "signers" || (Number.isFinite(age) && age >= 0);
  misuse(!isAbsentOr(maxAge, isAge), 'maxAge must be a number of seconds, or "signers"');
  misuse(!isAbsentOr(requireNewest, (is) => typeof is === "boolean"), "requireNewest must be true or false");
  misuse(!isAbsentOr(now, (time) => time instanceof Date && !Number.isNaN(time.getTime())), "now must be a Date");
}

// What a file is, from its bytes; or checked, if the caller has hashed it.
async function readFacts(file) {
  const bytes = file instanceof Blob ? await file.arrayBuffer() : file;
  if (bytes instanceof ArrayBuffer || ArrayBuffer.isView(bytes)) {
    const [sha256, sha512] = await Promise.all(["SHA-256", "SHA-512"].map((kind) => hash(kind, bytes)));
    return { size: bytes.byteLength, sha256: toHex(sha256), sha512: toHex(sha512) };
  }
  const { size, sha256, sha512 } = Object(bytes);
  const isHex = (text, length) => typeof text === "string" && parseHex(length)(text);
  if (!Number.isSafeInteger(size) || size < 0 || !isHex(sha256, 32) || !isHex(sha512, 64)) {
    throw new TypeError("verifyBundle: the file must be its bytes, or { size, sha256, sha512 } in lower-case hexadecimal digits, or null");
  }
  return { size, sha256, sha512 };
}

// The part of a path that people know a release by.
const nameOf = (path, project) => path.slice(project.length + 1).replace(/^releases\/tag\/|\/svc\.index\.json$/g, "");

// The history must be the project's own. Returns the pin with what it adds.
async function acceptChain({ links, history }, { project, pin, signersDigest, firstUse }) {
  const shown = await linksOf(links, history);
  const known = pin && (await coded("bad_pin", () => readPin(pin, project), "The stored pin cannot be used: "));
  const change = findChange(known?.links ?? [], shown);
  refuse(change >= 0, "changed_past", `The past of ${project} has changed: signers file ${change + 1} is not the one that was accepted`);
  const digest = signersDigest && parseDigest(signersDigest);
  const isListed = shown.some(({ signers }) => signers === digest);
  refuse(digest && !isListed, "other_signers", `No signers file of ${project} has the digest that is expected`);
  const isRooted = known || digest || firstUse === "accept";
  refuse(!isRooted, "unknown_signers", `Nothing says that these are the signers of ${project}: pass a pin, or the digest of a signers file`);
  return { pin: extendPin(known, project, shown), isFirstUse: !known };
}

function refuseRevoked({ reason, revoked_at: at }, note, pin) {
  throw new VerifyError("revoked", `The release was revoked on ${at}${note}: ${quoted(reason)}`, { pin: writePin(pin) });
}

// What the log proves, or why that is nothing (D117).
async function checkState({ staple, subject, signers, pin }, { policy, maxAge, requireNewest, now }) {
  const trust = policy ? await coded("bad_policy", () => readPolicy(policy), "The policy cannot be used: ") : trustOf(signers);
  const isDemanded = typeof maxAge === "number" || requireNewest || (maxAge === "signers" && trust);
  const limit = maxAge === "signers" ? signers.log?.age : maxAge ?? undefined;
  const unproven = (why) => {
    refuse(isDemanded, "unproven", `It is not proven that the release is not revoked: ${why}`);
    return { freshness: null, unproven: why };
  };
  if (!staple) return unproven("there is no proof from a log");
  const seconds = BigInt(Math.floor((now ?? new Date()).getTime() / 1e3));
  let fresh;
  try {
    fresh = await verifyProof(staple, subject, trust, seconds);
  } catch (error) {
    if (error instanceof Unmet) return unproven(error.message);
    throw new VerifyError("false_proof", error.message, { cause: error });
  }
  const { asOf, release, checkpoint } = fresh;
  const time = asOf === null ? null : new Date(Number(asOf) * 1e3);
  if (release.revocation) {
    const reason = `by the log ${checkpoint.origin}, with sha512:${release.revocation}`;
    const seen = { index_path: subject.path, index_digest: subject.digest, reason, revoked_at: (time ?? new Date(Number(seconds) * 1e3)).toISOString().replace(".000", "") };
    refuseRevoked(seen, " or before", time ? rememberRevocation(pin, seen) : pin);
  }
  if (limit !== undefined) {
    refuse(!time, "unproven", "Nothing proves how old the state of the release is: no witness is asked for a time");
    const age = Number(seconds - asOf);
    refuse(age > limit, "too_old", `The newest proof that the release is not revoked is of ${time.toISOString()}, ${age} seconds old`);
  }
  const newerReleases = fresh.newerPaths.map((path) => nameOf(path, subject.project));
  refuse(requireNewest && fresh.newer, "not_newest", `The release is not the newest: ${fresh.newer} newer exist`, { details: newerReleases });
  const { cosigned, needed, witnesses, newer, signers: standing } = fresh;
  const freshness = { asOf: time, origin: checkpoint.origin, cosigned, needed, witnesses, number: release.number, newer, newerReleases, signers: standing };
  return { freshness, unproven: null };
}

function checkListed(files, facts, wanted) {
  refuse(wanted && !files.some((file) => file.file_name === wanted), "other_file", `The release has no file ${quoted(wanted ?? "")}`);
  if (!facts) return wanted ? files.find((file) => file.file_name === wanted) : null;
  try {
    return checkFile(facts, files, wanted, () => {});
  } catch (error) {
    throw new VerifyError("other_file", error.message, { details: error.details, cause: error });
  }
}

const spellFile = ({ file_name: name, size, digests, source }) =>
  ({ name, size, sha256: digests.sha256 ?? null, sha512: digests.sha512 ?? null, source });

// Throws a VerifyError, or returns what was proven. `file` is null to learn what the release has before a download.
export async function verifyBundle(bundle, file, options) {
  checkOptions(options);
  const facts = file === null ? null : await readFacts(file);
  await coded("no_ed25519", hasEd25519, "WebCrypto offers no Ed25519 here: ");
  const { project } = options;
  const read = await coded("not_a_bundle", () => readBundle(bundle), "Not a bundle: ");
  const { evidence, bundledAt } = read;
  const given = options.staple ?? null;
  const staple = given === null ? read.staple : await coded("false_proof", () => readStaple(decodeSource(given)), "Not a staple: ");
  const verified = await coded("not_verified", () => verifyEvidence({ ...evidence, revocation: null }, () => {}));
  const { index, links, governing, signedBy } = verified;
  refuse(index.project_id !== project, "other_project", `The bundle is of ${index.project_id}, and not of ${project}`);
  const release = nameOf(evidence.path, project);
  const digest = await digestOf(evidence.index);
  const revocation = evidence.revocation
    && (await coded("not_verified", () => verifyRevocation(evidence.revocation, evidence, links, digest)));
  const { pin, isFirstUse } = await acceptChain({ links, history: evidence.history }, options);
  if (revocation) {
    const seen = { index_path: evidence.path, index_digest: digest, reason: revocation.reason, revoked_at: revocation.revokedAt };
    refuseRevoked(seen, "", rememberRevocation(pin, seen));
  }
  const before = findRevocation(pin, evidence.path, digest);
  if (before) refuseRevoked(before, ", as was seen before; the bundle does not know of it", pin);
  const isOther = (options.release ?? release) !== release;
  refuse(isOther, "other_release", `The bundle is of the release ${quoted(release)}, and not of ${quoted(`${options.release}`)}`);
  const subject = await subjectOf(evidence, verified);
  const { signers } = links.at(-1);
  const state = await checkState({ staple, subject, signers, pin }, options);
  const found = checkListed(index.published_files, facts, options.fileName ?? undefined);
  const distinct = [...new Set(signedBy)];
  return {
    project,
    release,
    indexPath: evidence.path,
    indexDigest: `sha512:${digest}`,
    file: found && spellFile(found),
    files: index.published_files.map(spellFile),
    signedBy: distinct.map((key) => ({ key, name: governing.names.get(key) ?? null })),
    groups: governing.artifact.map((group) =>
      ({ threshold: group.threshold, size: group.signers.length, signed: count(group, new Set(distinct)) })),
    signersDigest: `sha512:${evidence.governedBy}`,
    signersFiles: links.length,
    bundledAt,
    ...state,
    isFirstUse,
    pin: writePin(pin),
  };
}
