// What the log proves about the release of a bundle (D117).

import { withMlDsa } from "./ml-dsa.mjs";
import { rememberRevocation, writePin } from "./pin.mjs";
import { readPolicy } from "./policy.mjs";
import { coded, refuse, VerifyError } from "./refusal.mjs";
import { trustOf, Unmet, verifyProof } from "./verify/freshness.mjs";
import { nameOf, quoted, releaseOf } from "./verify/values.mjs";

export function refuseRevoked({ index_path: path, reason, revoked_at: at }, note, pin) {
  const message = `${releaseOf(path, pin.project)} was revoked on ${at}${note}: ${quoted(reason)}`;
  throw new VerifyError("revoked", message, { pin: writePin(pin) });
}

const toDate = (seconds) => new Date(Number(seconds) * 1e3);
const spellTime = (date) => date.toISOString().replace(".000", "");

// A revocation that the bundle does not show. It is remembered only if witnesses stand behind it.
function refuseLogged(subject, { asOf, release, checkpoint }, now, pin) {
  const seen = {
    index_path: subject.path,
    index_digest: subject.digest,
    reason: `by the log ${checkpoint.origin}, with sha512:${release.revocation}`,
    revoked_at: spellTime(toDate(asOf ?? now)),
  };
  refuseRevoked(seen, " or before", asOf === null ? pin : rememberRevocation(pin, seen));
}

// Too few witnesses prove no time. But if the log itself says that the release is revoked, it is.
async function refuseByLogAlone({ staple, subject, pin }, { logs }, now) {
  const said = await verifyProof(staple, subject, { logs }, now).catch(() => null);
  if (said?.release.revocation) refuseLogged(subject, said, now, pin);
}

function checkAge({ asOf }, limit, now) {
  if (limit === undefined) return;
  refuse(asOf === null, "unproven", "Nothing proves how old the state of the release is: no witness gives a time");
  const age = Number(now - asOf);
  const told = `The newest proof that the release is not revoked is from ${spellTime(toDate(asOf))}, ${age} seconds old`;
  refuse(age > limit, "too_old", told);
}

// How old a proof can be under a policy of the caller's own that says nothing (D216).
const OWN_MAX_AGE = 86_400;

// In seconds; undefined: nothing is demanded. A policy without witnesses proves no time.
function limitAge(maxAge, own, signers) {
  if (maxAge === "signers") return signers.log?.age;
  if (maxAge !== undefined || !own) return maxAge;
  const usual = own.quorum.keys?.length === 0 ? undefined : Math.min(OWN_MAX_AGE, signers.log?.age ?? Infinity);
  return own.maxAge ?? usual;
}

// `signers`: the newest of the project. Returns what is proven, or why that is nothing.
export async function checkState({ staple, subject, signers, pin }, options) {
  const { policy, maxAge, requireNewest, now: date = new Date() } = options;
  const own = policy !== undefined && (await coded("bad_policy", () => readPolicy(policy), "The policy cannot be used: "));
  const trust = withMlDsa(own || trustOf(signers));
  const isDemanded = typeof maxAge === "number" || requireNewest || own || (maxAge === "signers" && trust);
  const unproven = (why) => {
    refuse(isDemanded, "unproven", `It is not proven that the release is not revoked: ${why}`);
    return { freshness: null, unproven: why };
  };
  if (!staple) return unproven("there is no proof from a log");
  const now = BigInt(Math.floor(date.getTime() / 1e3));
  let proven;
  try {
    proven = await verifyProof(staple, subject, trust, now);
  } catch (error) {
    if (error instanceof Unmet) {
      await refuseByLogAlone({ staple, subject, pin }, trust, now);
      return unproven(error.message);
    }
    throw new VerifyError("false_proof", error.message, { cause: error });
  }
  if (proven.release.revocation) refuseLogged(subject, proven, now, pin);
  checkAge(proven, limitAge(maxAge, own, signers), now);
  const freshness = spellFreshness(proven, subject.project);
  const { newer, newerReleases: details } = freshness;
  refuse(requireNewest && newer, "not_newest", `The release was not completed last: ${newer} were completed later`, { details });
  return { freshness, unproven: null };
}

function spellFreshness({ asOf, checkpoint, release, newerPaths, ...proven }, project) {
  const { cosigned, needed, witnesses, replaying, newer, signers } = proven;
  return {
    asOf: asOf === null ? null : toDate(asOf),
    origin: checkpoint.origin,
    cosigned,
    needed,
    witnesses,
    replaying,
    number: release.number,
    newer,
    newerReleases: newerPaths.map((path) => nameOf(path, project)),
    signers,
  };
}
