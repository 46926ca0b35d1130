// A self-updater: node self-updater.mjs SETTINGS.json
//
// Settings: `project`, `signersDigest`, `bundle` (the address of the newest bundle; or of a signing server, which
// answers with it: SERVER/v1/state/PROJECT?newest=true), `fileName`, `target` (the file to replace) and `state` (the
// file to remember in). Exit code: 0 installed or up to date, 3 refused, 4 revoked, 1 otherwise.

import { open, readFile, rename, rm, writeFile } from "node:fs/promises";

import { verifyBundle, VerifyError } from "countersign-verify";
import { hashChunks } from "countersign-verify/node";

// Far more than our bundles have. Each signature in a bundle costs a millisecond or two.
const MAX_BUNDLE_BYTES = 2 ** 20;
const MAX_FILE_BYTES = 2 ** 31;

const settings = JSON.parse(await readFile(process.argv[2], "utf8"));

// A state that cannot be read is an error: without it, an attacker could begin anew.
async function readState() {
  const text = await readFile(settings.state, "utf8").catch((error) => {
    if (error.code === "ENOENT") return '{"release":null,"pin":null}';
    throw error;
  });
  return JSON.parse(text);
}

// A crash leaves the old state or the new one.
async function writeState(state) {
  await writeFile(`${settings.state}.new`, JSON.stringify(state), { mode: 0o600, flush: true });
  await rename(`${settings.state}.new`, settings.state);
}

// Passes on what an address sends, up to a bound.
async function* load(url, bound) {
  const response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(600_000) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > bound) throw new Error(`${url} sends more than ${bound} bytes`);
    yield chunk;
  }
}

// Only names of plain numbers, as in v1.10.2, have one order. Whether v1.0-rc1 comes before v1.0 depends on who reads it.
function readVersion(name) {
  if (!/^v?\d{1,9}(\.\d{1,9}){0,4}$/.test(name)) {
    throw new VerifyError("other_release", `${name} is not a version of plain numbers`);
  }
  return name.replace("v", "").split(".").map(Number);
}

function isNewer(name, installed) {
  const [left, right] = [readVersion(name), readVersion(installed)];
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

async function update() {
  const state = await readState();
  const { project, signersDigest, fileName } = settings;
  const chunks = [];
  for await (const chunk of load(settings.bundle, MAX_BUNDLE_BYTES)) chunks.push(chunk);
  const bundle = Buffer.concat(chunks);
  const known = { project, signersDigest, fileName, maxAge: "signers", requireCurrent: true };
  const verify = (file) => verifyBundle(bundle, file, { ...known, pin: state.pin });
  const remember = (error) => {
    if (error.pin) state.pin = error.pin;
    return writeState(state).then(() => Promise.reject(error));
  };
  // Before the download: who signed, and what.
  const offered = await verify(null).catch(remember);
  state.pin = offered.pin;
  await writeState(state);
  if (state.release === offered.release) return `${offered.release} is installed already`;
  readVersion(offered.release);
  // An old bundle is as well signed as a new one.
  if (state.release !== null && !isNewer(offered.release, state.release)) {
    throw new VerifyError("other_release", `${offered.release} is not newer than ${state.release}, which is installed`);
  }
  const unverified = `${settings.target}.new`;
  const file = await open(unverified, "w", 0o755);
  try {
    const bound = offered.file.size ?? MAX_FILE_BYTES;
    const facts = await hashChunks(load(offered.file.source, bound), async (chunk) => file.writeFile(chunk));
    await file.sync();
    await verify(facts);
    await rename(unverified, settings.target);
  } finally {
    await file.close();
    await rm(unverified, { force: true });
  }
  await writeState({ ...state, release: offered.release });
  const names = offered.signedBy.map(({ name, key }) => name ?? key).join(", ");
  return `${offered.release} is installed, signed by ${names}`;
}

try {
  console.log(await update());
} catch (error) {
  const isRefused = error instanceof VerifyError;
  console.error(isRefused ? `refused (${error.code}): ${error.message}` : `failed: ${error.message}`);
  for (const line of error.details ?? []) console.error(`  ${line}`);
  process.exitCode = isRefused ? (error.code === "revoked" ? 4 : 3) : 1;
}
