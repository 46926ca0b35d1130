// The example of a self-updater, with bundles that the real client makes of releases on a real server.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { cosign, witnessKeys } from "../browser/witness.mjs";

const { COUNTERSIGN: program, COUNTERSIGN_SERVER: server, LOG_KEY: logKey, PACKAGE: packed, SITE: site, WORK: work } = process.env;
const { verifyBundle } = await import(`${pathToFileURL(packed).href}/index.mjs`);
const run = promisify(execFile);
const root = site.replace("http://", "http/").replace(/:(\d+)$/, "/$1");
const directory = (project) => `${work}/site/acme/${project}`;
const client = (...args) => run(program, ["--quiet", "--yes", ...args], { cwd: work });
const sha512 = (path) => `sha512:${createHash("sha512").update(readFileSync(path)).digest("hex")}`;

async function register(project, options = []) {
  mkdirSync(directory(project), { recursive: true });
  const file = `${directory(project)}/svc.signers.json`;
  await client("signers", "new", "--artifact", "alice=alice.pub", "bob=bob.pub", "--threshold", "2", ...options, "-o", file);
  await client("register", `${site}/acme/${project}/svc.signers.json`, "--key", "alice");
  for (const name of ["alice", "bob"]) await client("sign", `${root}/acme/${project}/svc.signers.pending/svc.signers.json`, "--key", name);
}

async function publish(project, version, content) {
  const files = `${directory(project)}/${version}`;
  mkdirSync(files, { recursive: true });
  writeFileSync(`${files}/app`, content);
  writeFileSync(`${files}/SHA256SUMS`, `${createHash("sha256").update(content).digest("hex")}  app\n`);
  await client("release", "--checksums", `${site}/acme/${project}/${version}/SHA256SUMS`, "--key", "alice");
  for (const name of ["alice", "bob"]) await client("sign", `${root}/acme/${project}/${version}/svc.index.json`, "--key", name);
}

// Makes the newest bundle, and puts it where the updater looks.
async function offer(project, version) {
  rmSync(`${work}/${project}-${version}.json`, { force: true });
  await client("bundle", `${site}/acme/${project}/${version}/app`, "-o", `${work}/${project}-${version}.json`);
  cpSync(`${work}/${project}-${version}.json`, `${directory(project)}/latest.bundle.json`);
}

function writeSettings(project, changes = {}) {
  const own = `${work}/${project}-updater`;
  mkdirSync(own, { recursive: true });
  const settings = {
    project: `${root}/acme/${project}`,
    signersDigest: sha512(`${directory(project)}/svc.signers.json`),
    bundle: `${site}/acme/${project}/latest.bundle.json`,
    fileName: "app",
    target: `${own}/app`,
    state: `${own}/state.json`,
    ...changes,
  };
  writeFileSync(`${own}/settings.json`, JSON.stringify(settings));
  return settings;
}

async function update(project) {
  const args = [`${packed}/examples/self-updater.mjs`, `${work}/${project}-updater/settings.json`];
  const done = await run(process.execPath, args).catch((error) => error);
  assert.ok(!existsSync(`${work}/${project}-updater/app.new`), "nothing unverified is left");
  return { code: done.code ?? 0, said: `${done.stdout}${done.stderr}` };
}

before(async () => {
  for (const name of ["alice", "bob"]) await client("keygen", "--out", name, "--no-password");
  await register("app");
  await register("watched", ["--log", logKey, "--witness", ...witnessKeys, "--witness-threshold", "2", "--max-age", "24h"]);
});

test("an updater installs what is signed, and nothing else", async () => {
  const { target, state } = writeSettings("app");
  await publish("app", "1.9", "the first program\n");
  await publish("app", "1.10", "the second program\n");
  await offer("app", "1.9");
  const first = await update("app");
  assert.deepEqual([first.code, first.said], [0, "1.9 is installed, signed by alice, bob\n"]);
  assert.equal(readFileSync(target, "utf8"), "the first program\n");
  assert.equal(JSON.parse(readFileSync(state, "utf8")).pin.history.length, 1);
  assert.match((await update("app")).said, /^1\.9 is installed already$/m);

  await offer("app", "1.10");
  writeFileSync(`${directory("app")}/1.10/app`, "the second_program\n");
  const tampered = await update("app");
  assert.equal(tampered.code, 3);
  assert.match(tampered.said, /^refused \(other_file\): The file is not the one that was signed\n {2}signed: .*\n {2}yours: /);
  writeFileSync(`${directory("app")}/1.10/app`, "the second program, and more than that\n");
  // The index of a checksums file says no size, so all of it is read.
  assert.equal((await update("app")).code, 3);
  assert.equal(readFileSync(target, "utf8"), "the first program\n");
  writeFileSync(`${directory("app")}/1.10/app`, "the second program\n");
  assert.equal((await update("app")).code, 0);
  assert.equal(readFileSync(target, "utf8"), "the second program\n");

  // A server itself is asked for the newest release.
  writeSettings("app", { bundle: `${server}/v1/state/${root}/acme/app?newest=true` });
  assert.match((await update("app")).said, /^1\.10 is installed already$/m);
  const kept = readFileSync(state, "utf8");
  const { pin, ...rest } = JSON.parse(kept);
  const later = { signers_file_digest: `sha512:${"0".repeat(128)}`, metadata_digest: `sha512:${"0".repeat(128)}` };
  writeFileSync(state, JSON.stringify({ ...rest, pin: { ...pin, history: [...pin.history, later] } }));
  assert.match((await update("app")).said, /^refused \(behind\): The server is behind: it shows 1 of the 2 signers files /);
  writeFileSync(state, kept);
  writeSettings("app", { bundle: `${server}/v1/state/${root}/acme/app` });
  assert.match((await update("app")).said, /^refused \(not_complete\): The project had no complete release /);
  writeSettings("app");

  // A host that offers an old release.
  cpSync(`${work}/app-1.9.json`, `${directory("app")}/latest.bundle.json`);
  const old = await update("app");
  assert.deepEqual([old.code, old.said], [3, "refused (other_release): 1.9 is not newer than 1.10, which is installed\n"]);
  // Names that sort behind 1.10 and are not newer.
  for (const [version, reason] of [["1.10-rc1", "is not a version of plain numbers"], ["1.10.0", "is not newer than 1.10"]]) {
    await publish("app", version, "another program\n");
    await offer("app", version);
    const { code, said } = await update("app");
    assert.equal(code, 3);
    assert.match(said, new RegExp(`^refused \\(other_release\\): ${version} ${reason}`));
    assert.equal(readFileSync(target, "utf8"), "the second program\n");
  }
});

test("an updater does not begin with a release that has no place in the order", async () => {
  const { target, state } = writeSettings("app", { target: `${work}/fresh`, state: `${work}/fresh.json` });
  cpSync(`${work}/app-1.10-rc1.json`, `${directory("app")}/latest.bundle.json`);
  assert.equal((await update("app")).code, 3);
  assert.ok(!existsSync(target));
  assert.equal(JSON.parse(readFileSync(state, "utf8")).release, null);
});

test("an updater refuses other signers, another project, and a state that it cannot read", async () => {
  await offer("app", "1.10");
  const { signersDigest, state } = writeSettings("app", { signersDigest: `sha512:${"0".repeat(128)}` });
  assert.match((await update("app")).said, /^refused \(other_signers\)/);
  writeSettings("app", { project: `${root}/acme/other` });
  assert.match((await update("app")).said, /^refused \(other_project\)/);
  writeSettings("app", { signersDigest: undefined, state: `${state}.none` });
  assert.match((await update("app")).said, /^refused \(unknown_signers\)/);
  writeSettings("app");
  const kept = readFileSync(state, "utf8");
  writeFileSync(state, kept.replace('"version":1', '"version":9'));
  assert.match((await update("app")).said, /^refused \(bad_pin\)/);
  writeFileSync(state, kept.slice(1));
  assert.deepEqual([(await update("app")).code, signersDigest.length], [1, 135]);
  writeFileSync(state, kept);
  assert.equal((await update("app")).code, 0);
});

test("a revocation that only the log shows is one", async () => {
  await offer("app", "1.10");
  const index = `${root}/acme/app/1.10/svc.index.json`;
  await client("revoke", index, "--reason", "it eats files", "--key", "bob");
  const bundle = readFileSync(`${work}/app-1.10.json`);
  const staple = await ask(`proof/${index}`, (text) => text.includes("state revoked"));
  const { project, signersDigest } = writeSettings("app");
  const verify = (options) => verifyBundle(bundle, null, { project, signersDigest, ...options });
  assert.equal((await verify()).release, "1.10", "the bundle is of the time before");
  await assert.rejects(verify({ staple }), { code: "revoked" });
  writeFileSync(`${directory("app")}/latest.bundle.json`, JSON.stringify({ ...JSON.parse(bundle), staple: JSON.parse(staple) }));
  const { code, said } = await update("app");
  assert.equal(code, 4);
  assert.match(said, /^refused \(revoked\): 1\.10 of http:\S+\/acme\/app was revoked on .* or before: "by the log sign\.test\/log/);
});

test("with witnesses, the proof must be as young as the signers say", async () => {
  const { target } = writeSettings("watched");
  await publish("watched", "2.0", "a watched program\n");
  const index = `${root}/acme/watched/2.0/svc.index.json`;
  const staple = JSON.parse(await ask(`proof/${index}`, () => true));
  await run(program, ["--quiet", "bundle", `${site}/acme/watched/2.0/app`, "--no-log-check", "-o", `${work}/watched.json`], { cwd: work });
  const bundle = JSON.parse(readFileSync(`${work}/watched.json`, "utf8"));
  const serve = (staple) => writeFileSync(`${directory("watched")}/latest.bundle.json`, JSON.stringify({ ...bundle, staple }));
  const now = Math.floor(Date.now() / 1e3);
  serve(null);
  assert.match((await update("watched")).said, /^refused \(unproven\): .*there is no proof from a log$/m);
  serve(cosign(staple, [now]));
  assert.match((await update("watched")).said, /^refused \(unproven\): .*too few witnesses/m);
  serve(cosign(staple, [now - 90_000, now - 90_000]));
  assert.match((await update("watched")).said, /^refused \(too_old\): /m);
  assert.ok(!existsSync(target));
  serve(cosign(staple, [now - 60, now]));
  assert.deepEqual(await update("watched"), { code: 0, said: "2.0 is installed, signed by alice, bob\n" });
  assert.equal(readFileSync(target, "utf8"), "a watched program\n");
});

// What the server answers, as soon as it is what is waited for: its log follows within a second or two.
async function ask(target, isRight) {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline;) {
    const response = await fetch(`${server}/v1/${target}`);
    const text = await response.text();
    if (response.ok && isRight(text)) return text;
    await new Promise((go) => setTimeout(go, 100));
  }
  return assert.fail(`${target} does not come`);
}
