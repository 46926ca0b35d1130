// From what is shown to what is proven, as in the crate `core`.

import { keysOf, readIndex, readMetadata, readSigners } from "./documents.mjs";
import { hash, isSignedBy, toHex, utf8 } from "./keys.mjs";
import { checkPlace } from "./place.mjs";
import { quoted } from "./values.mjs";

export function refuseIf(is, sentence, ...details) {
  if (is) throw Object.assign(new Error(sentence), { details });
}

export async function attempt(what, read) {
  try {
    return await read();
  } catch (error) {
    throw new Error(`${what} is not valid: ${error.message}`);
  }
}

export const digestOf = async (text) => toHex(await hash("SHA-512", utf8(text)));

// Over distinct keys.
export const count = (group, signed) => keysOf([group]).filter((key) => signed.has(key)).length;
export const isMet = (groups, signed) => groups.length > 0 && groups.every((group) => count(group, signed) >= group.threshold);

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// Each group counts up to its threshold.
export const tally = (groups, signed) => ({
  collected: sum(groups.map((group) => Math.min(count(group, signed), group.threshold))),
  needed: sum(groups.map((group) => group.threshold)),
});

const approves = (file, signed) => isMet(file.admin, signed) || isMet(file.master, signed);

// Whether those have signed who must (D15).
function isAgreed(current, proposed, signed) {
  const added = [...proposed.keys].filter((key) => !current?.keys.has(key));
  return added.every((key) => signed.has(key)) && (!current || (approves(current, signed) && approves(proposed, signed)));
}

// A signature that does not verify is never passed over.
export async function verifySet(what, text, set) {
  const digest = await hash("SHA-512", utf8(text));
  for (const [key, { signature }] of set) {
    refuseIf(!(await isSignedBy(key, digest, signature)), `${what}: the signature of ${key} does not verify`);
  }
  return new Set(set.keys());
}

// Whether the first is right, only the user knows.
export async function verifyChain(history, project) {
  const links = [];
  for (const entry of history) links.push(await verifyLink(entry, project, links.at(-1), `Signers file ${links.length + 1}`));
  refuseIf(!links[0], "The chain has no signers file");
  return links;
}

async function verifyLink(entry, project, before, what) {
  const signers = await attempt(what, () => readSigners(entry.signers_config));
  const metadata = await attempt(`${what}, its metadata,`, () => readMetadata(entry.metadata));
  const digest = await digestOf(entry.signers_config);
  refuseIf(metadata.project_id !== project, `${what} belongs to another project`);
  refuseIf(metadata.signers_file_digest !== digest, `${what} has the metadata of another`);
  refuseIf(metadata.previous !== (before?.digest ?? null), `${what} does not continue the one before`);
  const isEarly = before?.signers.timestamp >= signers.timestamp || before?.activated > entry.timestamp;
  refuseIf(isEarly, `${what} is not later than the one before`);
  for (const [text, set] of [[entry.signers_config, entry.signatures], [entry.metadata, entry.metadata_signatures]]) {
    const signed = await verifySet(what, text, set);
    refuseIf(!isAgreed(before?.signers, signers, signed), `${what} lacks required signatures`);
  }
  checkDelay(entry, before, signers, what);
  // Clocks are set back (D222).
  refuseIf(metadata.origin.retrieved_at - (entry.agreed_at ?? entry.timestamp) > 600_000_000_000n, `${what} is older than its fetch`);
  return { signers, digest, proposed: metadata.origin.retrieved_at, activated: entry.timestamp };
}

// Whether it waited as demanded, or its masters agreed (D133).
function checkDelay({ agreed_at: agreed, timestamp, ...entry }, before, signers, what) {
  const sets = [entry.signatures, entry.metadata_signatures];
  const { hours, master } = before?.signers ?? {};
  const waits = hours && !sets.every((set) => isMet(master, new Set(set.keys())));
  refuseIf(!waits && agreed !== undefined, `${what} has a needless agreed_at`);
  if (!waits) return;
  refuseIf(agreed === undefined, `${what} lacks agreed_at`);
  refuseIf(agreed < before.activated, `${what} has an agreed_at before the previous one took effect`);
  const isDone = (set) => isAgreed(before.signers, signers, new Set([...set.keys()].filter((key) => set.get(key).collected_at <= agreed)));
  refuseIf(!sets.every(isDone), `${what} lacked required signatures at its agreed_at`);
  refuseIf(timestamp - agreed < BigInt(hours) * 3_600_000_000_000n, `${what} took effect before the previous delay was over`);
}

export async function verifyEvidence({ index_path: path, index: text, signatures, revocation, begun, ...evidence }, passed) {
  const index = await attempt("The index", () => readIndex(text));
  const fault = checkPlace(index, path);
  refuseIf(fault, `The index does not belong where it lies: ${fault}`);
  passed(`The index belongs where it lies, at ${path}`);
  const links = await verifyChain(evidence.signers_history, index.project_id);
  passed(`Everyone in the project's first signers file, of ${links[0].signers.dated}, has signed it`);
  if (links[1]) passed(`Signers files after it: ${links.length - 1}, each agreed to by those before and after it`);
  const governing = links.find((link) => link.digest === evidence.signers_file_digest)?.signers;
  refuseIf(!governing, "The signers file of this release is not in the project's history");
  passed("The signers file of the release is in this history, byte for byte");
  const signed = await verifySet("The index", text, signatures);
  const counts = governing.artifact.map((group) =>
    `${count(group, signed)} of ${group.threshold} signatures, any ${group.threshold} of ${group.signers.length} keys`);
  refuseIf(!isMet(governing.artifact, signed), `Too few of the right keys have signed: ${counts.join("; ")}`);
  passed(`Enough of the right keys have signed: ${counts.join("; ")}`);
  const reason = await attempt("The revocation", () => JSON.parse(revocation?.document ?? null)?.reason);
  const revoked = `is revoked: ${quoted(`${reason}`)}`;
  if (revocation) throw Object.assign(new Error(`The release ${revoked}`), { revoked });
  if (!begun) passed("The server shows no revocation");
  return { index, links, governing, signedBy: keysOf(governing.artifact).filter((key) => signed.delete(key)) };
}

const spell = ({ size, digests }) =>
  Object.entries({ bytes: size, ...digests }).filter((fact) => fact[1] !== null).map((fact) => fact.join(" ")).join(", ");

export function checkFile({ name: own, size, sha256, sha512 }, files, wanted, passed) {
  const isSame = ({ size: listed, digests: { sha256: short = sha256, sha512: long = sha512 } }) =>
    (listed ?? size) === size && short === sha256 && long === sha512;
  const named = files.filter(({ file_name: name }) => (wanted ? name === wanted : name.split("/").at(-1) === own));
  const one = !named[1] && named[0];
  const found = (one ? named : files).find(isSame);
  const yours = spell({ size, digests: one && !one.digests.sha256 ? { sha512 } : { sha256 } });
  const details = [one && `signed: ${spell(one)}`, `yours: ${yours}`].filter(Boolean);
  refuseIf(!found, "The file is not the one that was signed", ...details);
  passed(`The file is ${found.file_name} of the signed index: ${spell({ ...found, size })}`);
  return found;
}
