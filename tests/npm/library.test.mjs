// What the npm package adds to the client's rules: the root of trust, the pin, files, ages, and codes for all of it.

import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { readVectors } from "../browser/vectors.mjs";

const base = pathToFileURL(process.env.PACKAGE).href;
const { VerifyError, verifyBundle } = await import(`${base}/index.mjs`);
const { hashChunks, hashFile } = await import(`${base}/node.mjs`);
const { readPolicy } = await import(`${base}/policy.mjs`);

// What stands before the seed of a private key.
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

const bundles = readVectors("bundle");
const staples = readVectors("log");
const now = new Date("2026-02-01T12:00:00Z");
const stapled = bundles["good-with-a-staple.json"];
const { policy } = staples["good-with-all-witnesses.json"];

const verify = ({ bundle, project }, options = {}, file = null) =>
  verifyBundle(JSON.stringify(bundle), file, { project, firstUse: "accept", now, ...options });
const stored = (pin) => JSON.parse(JSON.stringify(pin));
const digestOf = (text) => `sha512:${createHash("sha512").update(text).digest("hex")}`;
const edited = ({ bundle, ...rest }, change) => ({ ...rest, bundle: { ...bundle, ...change } });

async function refusal(work, code, why = /./) {
  const error = await work.then(() => assert.fail(`it is accepted, and not refused as ${code}`), (error) => error);
  assert.ok(error instanceof VerifyError, error.stack);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, why);
  return error;
}

test("the signers need a pin, a digest, or the word that the first are accepted", async () => {
  const vector = bundles["good-after-a-rotation.json"];
  await refusal(verify(vector, { firstUse: undefined }), "unknown_signers");
  const texts = vector.bundle.signers_history.entries.map((entry) => entry.signers_config);
  for (const text of texts) {
    const proven = await verify(vector, { firstUse: undefined, signersDigest: digestOf(text) });
    assert.deepEqual([proven.isFirstUse, proven.signersFiles], [true, 2]);
  }
  await refusal(verify(vector, { signersDigest: digestOf("another") }), "other_signers");
  const { pin } = await verify(vector);
  assert.equal((await verify(vector, { firstUse: undefined, pin: stored(pin) })).isFirstUse, false);
  await refusal(verify(vector, { pin, signersDigest: digestOf("another") }), "other_signers");
});

test("what is shown later continues the pin, or is refused", async () => {
  const [long, short] = ["good-after-a-rotation.json", "good-plain.json"].map((name) => bundles[name]);
  const first = (await verify(short)).pin;
  assert.equal(first.history.length, 1);
  const grown = (await verify(long, { pin: stored(first) })).pin;
  assert.equal(grown.history.length, 2);
  // A bundle can be older than what was seen, and takes nothing away.
  assert.deepEqual((await verify(short, { pin: stored(grown) })).pin, grown);
  // A server that shows less than that is behind. It has not changed the past.
  const current = { requireCurrent: true };
  const said = /^The server is behind: it shows 1 of the 2 signers files of \S+ that were seen\. Try again later, or ask another server$/;
  await refusal(verify(short, { pin: stored(grown), ...current }), "behind", said);
  for (const pin of [first, grown]) assert.equal((await verify(long, { pin: stored(pin), ...current })).signersFiles, 2);
  const changed = stored(grown);
  changed.history[0].metadata_digest = digestOf("another");
  await refusal(verify(short, { pin: changed }), "changed_past", /signers file 1 is not the one/);
  changed.history[0] = grown.history[0];
  changed.history[1].signers_file_digest = digestOf("another");
  assert.ok(await verify(short, { pin: changed }));
  await refusal(verify(long, { pin: changed }), "changed_past", /signers file 2 is not the one/);
  changed.history[0] = { ...grown.history[0], metadata_digest: digestOf("another") };
  await refusal(verify(short, { pin: changed, ...current }), "changed_past", /signers file 1 is not the one/);
  // A revocation counts, wherever it comes from.
  const revoked = bundles["revoked-with-subject-digest.json"];
  const { pin } = await verify(edited(revoked, { revocation: null }));
  pin.history.push({ signers_file_digest: digestOf("later"), metadata_digest: digestOf("later") });
  assert.equal((await refusal(verify(revoked, { pin, ...current }), "revoked")).pin.revocations.length, 1);
});

test("a pin that cannot be read is no new beginning", async () => {
  const vector = bundles["good-plain.json"];
  const { pin } = await verify(vector);
  const damaged = [
    { ...pin, version: 2 }, { ...pin, history: [] }, { ...pin, more: 1 }, { ...pin, project: "https/github.com/443/acme/other" },
    { ...pin, history: undefined }, JSON.stringify(pin), { ...pin, revocations: [{}] }, [], {},
  ];
  for (const [i, value] of damaged.entries()) await refusal(verify(vector, { pin: value }), "bad_pin", /./).catch((error) => assert.fail(`${i}: ${error}`));
});

test("a revocation that was seen once is remembered by path and by content", async () => {
  const revoked = bundles["revoked-with-subject-digest.json"];
  const error = await refusal(verify(revoked), "revoked", /^v1 of https:\/\/github\.com\/acme\/app was revoked on 2026-/);
  const [seen] = error.pin.revocations;
  assert.equal(seen.index_path, revoked.bundle.index_path);
  assert.equal(seen.index_digest, digestOf(revoked.bundle.index));
  const hidden = edited(revoked, { revocation: null });
  assert.ok(await verify(hidden), "without the memory nothing is wrong with it");
  const pin = stored(error.pin);
  assert.match((await refusal(verify(hidden, { pin }), "revoked")).message, /as was seen before; the bundle does not know of it/);
  const elsewhere = stored(pin);
  elsewhere.revocations[0].index_path = elsewhere.revocations[0].index_path.replace("/v1/", "/v2/");
  await refusal(verify(hidden, { pin: elsewhere }), "revoked");
  elsewhere.revocations[0].index_digest = digestOf("another");
  assert.ok(await verify(hidden, { pin: elsewhere }));
  // A stranger's revocation is not the project's word.
  assert.equal((await refusal(verify(revoked, { firstUse: undefined }), "unknown_signers")).pin, null);
});

test("a file is the one that is signed, by all that is signed of it", async () => {
  const vector = bundles["good-plain.json"];
  const [{ file_name: fileName, size, digests }] = JSON.parse(vector.bundle.index).published_files;
  const facts = { size, ...digests };
  const proven = await verify(vector, { fileName }, facts);
  assert.deepEqual(proven.file, { name: fileName, size, ...digests, source: proven.file.source });
  assert.deepEqual([proven.release, proven.groups], ["v1", [{ threshold: 2, size: 3, signed: 2 }]]);
  assert.equal((await verify(vector, {}, facts)).file.name, fileName);
  assert.equal((await verify(vector)).file, null);
  for (const wrong of [{ size: 3 }, { sha256: "0".repeat(64) }, { sha512: "0".repeat(128) }]) {
    await refusal(verify(vector, { fileName }, { ...facts, ...wrong }), "other_file", /not the one that was signed/);
    await refusal(verify(vector, {}, { ...facts, ...wrong }), "other_file");
  }
  await refusal(verify(vector, { fileName: "other.tar.gz" }, facts), "other_file", /has no file "other.tar.gz"/);
  await refusal(verify(vector, { fileName: "other.tar.gz" }), "other_file");
  assert.ok(await verify(vector, { release: "v1" }));
  await refusal(verify(vector, { release: "v2" }), "other_release", /of the release "v1", and not of "v2"/);
  await refusal(verify({ ...vector, project: `${vector.project}x` }), "other_project");
  // Bytes are hashed, in every form that they come in.
  for (const bytes of [Buffer.from("no"), new Uint8Array(2), new ArrayBuffer(2), new Blob(["no"]), new Uint8Array(9).subarray(2, 4)]) {
    await refusal(verify(vector, {}, bytes), "other_file");
  }
  const found = "v1";
  for (const bytes of [Buffer.from(found), Uint8Array.from(Buffer.from(found)).buffer, new Blob([found])]) {
    assert.equal((await verify(vector, {}, bytes)).file.name, fileName);
  }
});

test("files are hashed piece by piece", async () => {
  const directory = mkdtempSync(`${tmpdir()}/hash-`);
  try {
    const bytes = Buffer.alloc(300_000, "some bytes ");
    writeFileSync(`${directory}/file`, bytes);
    const hashed = (kind) => createHash(kind).update(bytes).digest("hex");
    const facts = { size: 300_000, sha256: hashed("sha256"), sha512: hashed("sha512") };
    assert.deepEqual(await hashFile(`${directory}/file`), facts);
    const seen = [];
    assert.deepEqual(await hashChunks([bytes.subarray(0, 7), bytes.subarray(7)], (chunk) => void seen.push(chunk.length)), facts);
    assert.deepEqual(seen, [7, 299_993]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("wrong arguments are an error of the program, and no check is left out", async () => {
  const vector = bundles["good-plain.json"];
  const options = [
    { maxage: 5 }, { project: "" }, { project: undefined }, { project: "HTTPS/github.com/443/a" }, { signersDigest: "sha256:00" }, { signersDigest: "" }, { firstUse: true },
    { maxAge: "1d" }, { maxAge: -1 }, { maxAge: NaN }, { requireNewest: "yes" }, { requireCurrent: 1 }, { now: 5 }, { now: new Date("no") }, { release: 1 }, { fileName: [] }, { staple: {} }, { policy: 1 }, { toString: 1 },
  ];
  for (const wrong of options) await assert.rejects(verify(vector, wrong), TypeError, JSON.stringify(wrong));
  for (const file of [undefined, "text", {}, { size: 2, sha256: "00" }, { size: 2, sha256: "A".repeat(64), sha512: "a".repeat(128) }, 5]) {
    await assert.rejects(verifyBundle(JSON.stringify(vector.bundle), file, { project: vector.project, firstUse: "accept" }), TypeError);
  }
  await assert.rejects(verifyBundle("{}", null), TypeError);
});

test("a bundle is bytes or text, in UTF-8 and within a bound", async () => {
  const { bundle, project } = bundles["good-plain.json"];
  const text = JSON.stringify(bundle);
  const read = (source) => verifyBundle(source, null, { project, firstUse: "accept" });
  for (const source of [text, Buffer.from(text), Uint8Array.from(Buffer.from(text)).buffer]) assert.equal((await read(source)).release, "v1");
  const cut = Buffer.from(text);
  cut[cut.length - 3] = 0xff;
  const broken = ["", "null", "[]", "{}", `\ufeff${text}`, text.slice(0, -1), `${text} x`, text.replace('"version":2', '"version":2,"version":2'), cut, `"\ud800"`, undefined, 5];
  for (const source of broken) await refusal(read(source), "not_a_bundle", /^Not a bundle: /);
  assert.ok(await read(text + " ".repeat(45 * 2 ** 20 - Buffer.byteLength(text))));
  await refusal(read(text + " ".repeat(45 * 2 ** 20 - Buffer.byteLength(text) + 1)), "not_a_bundle", /at most 47185920 bytes/);
});

test("a saved answer of a server is as good as the bundle in it", async () => {
  const { bundle, project } = stapled;
  const path = bundle.index_path;
  const log = { key: null, no_staple: null, is_soon: false };
  const about = { version: 1, commit: "0".repeat(40), committed_at: bundle.bundled_at, kind: "release", path, project_id: project, log };
  const saved = (change = {}) => JSON.stringify({ ...about, history_after: null, signers_history: null, files: {}, drops: {}, skipped: [], bundle, ...change });
  const read = (source) => verifyBundle(source, null, { project, firstUse: "accept", now, policy, maxAge: 600 });
  const expected = await read(JSON.stringify(bundle));
  for (const source of [saved(), Buffer.from(saved()), saved({ later: 1, files: { [`${path}.objections.json`]: "{}" } })]) {
    assert.deepEqual(await read(source), expected);
  }
  await refusal(read(saved({ bundle: null })), "not_complete", /^The release was not complete when the server answered$/);
  await refusal(read(saved({ bundle: null, kind: "project", path: project })), "not_complete", /^The project had no complete release /);
  const wrong = [
    [{ version: 2 }, "version"], [{ path: project }, "path"], [{ files: [] }, "files"], [{ files: { a: 1 } }, 'files["a"]'],
    [{ history_after: digestOf("known") }, "history_after"], [{ bundle: {} }, "bundle.version"], [{ bundle: { ...bundle, version: 1 } }, "bundle.version"],
    [{ bundle: { ...bundle, staple: {} } }, "bundle.staple.version"], [{ bundle: saved() }, "bundle"],
  ];
  for (const [change, field] of wrong) {
    const { message } = await refusal(read(saved(change)), "not_a_bundle");
    assert.ok(message.startsWith(`Not a bundle: field \`${field}\`: `), message);
  }
  const twice = saved().replace('"skipped":[]', '"skipped":[],"skipped":[]');
  await refusal(read(twice), "not_a_bundle", /occurs twice/);
  const [bound, most] = [45, 77].map((mebibytes) => mebibytes * 2 ** 20);
  assert.ok(await read(saved() + " ".repeat(bound)));
  await refusal(read(saved() + " ".repeat(most)), "not_a_bundle", /at most 80740352 bytes/);
});

test("a begun revocation is in the headline, and refused by those who are strict", async () => {
  const { bundle, project } = stapled;
  const path = bundle.index_path;
  const about = { version: 1, kind: "release", path, log: {}, bundle };
  const document = JSON.stringify({ reason: "wrong build", timestamp: "2026-02-01T11:00:00Z" });
  const [key] = Object.keys(bundle.signatures.entries);
  const seeds = [...Array(20).keys()].map((n) => createPrivateKey({ key: Buffer.concat([PKCS8, Buffer.alloc(32, n)]), format: "der", type: "pkcs8" }));
  const secret = seeds.find((seed) => createPublicKey(seed).export({ format: "jwk" }).x === key.slice(8).replaceAll("+", "-").replaceAll("/", "_"));
  const signature = sign(null, createHash("sha512").update(document).digest(), secret).toString("base64").replaceAll("=", "");
  const read = (entries, options = {}) => {
    const files = { [`${path}.revocation.json.pending`]: document, [`${path}.revocation.json.signatures.json.pending`]: JSON.stringify({ entries }) };
    return verifyBundle(JSON.stringify({ ...about, files }), null, { project, firstUse: "accept", now, policy, maxAge: 600, ...options });
  };
  const collected_at = "2026-02-01T11:00:00Z";
  const signed = await read({ [key]: { signature, collected_at } });
  assert.match(signed.headline, /^Verified, but 1 of \d revokers want it revoked: "wrong build" \(the release: \S+ of https?:\/\/\S+\)$/);
  assert.deepEqual([signed.begun.reason, signed.begun.collected, signed.objections], ["wrong build", 1, []]);
  await refusal(read({ [key]: { signature, collected_at } }, { strict: true }), "revocation_begun", /^\S+ of https?:\/\/\S+: 1 of \d revokers want it revoked: "wrong build"$/);
  await refusal(read({ [key]: { signature: signature.replace(/^./, (c) => (c === "A" ? "B" : "A")), collected_at } }), "not_verified", /begun revocation/);
  const plain = await verify(stapled, { policy, maxAge: 600, strict: true });
  assert.match(plain.headline, /^Verified the release: \S+ of https?:\/\/\S+$/);
  assert.deepEqual([plain.begun, plain.objections], [null, []]);
});

test("what builders got is told, and needed where the signers file says so", async () => {
  const told = async (name) => {
    const { headline, reproduction } = await verify(bundles[`${name}.json`]);
    const { said, covered, ...rest } = reproduction ?? {};
    if (reproduction) assert.match(said, /^reproduced by \d of \d \(any /);
    return [headline, reproduction && rest];
  };
  const plain = "Verified the release: v1 of https://github.com/acme/app";
  const other = "Verified, but 1 builder got something else: app.tar.gz (the release: v1 of https://github.com/acme/app)";
  const commits = ["0123456789abcdef0123456789abcdef01234567"];
  const full = { isRequired: true, isReproduced: true, collected: 2, needed: 2, commits, different: [] };
  assert.deepEqual(await told("good-plain"), [plain, null]);
  for (const name of ["good-reproduced", "good-reproduced-by-fido-keys"]) assert.deepEqual(await told(name), [plain, full]);
  const two = { ...full, commits: [...commits, "ab".repeat(32)] };
  assert.deepEqual(await told("good-reproduced-from-other-commits-and-by-one-digest"), [plain, two]);
  assert.deepEqual(await told("good-reproduced-by-a-builder-of-two-groups"), [plain, { ...full, collected: 3, needed: 3 }]);
  const [said, { different, ...rest }] = await told("good-reproduced-and-one-builder-got-something-else");
  assert.deepEqual([said, { ...rest, different: [] }], [other, full]);
  const [{ key, ...found }, ...others] = different;
  assert.deepEqual([found, others], [{ name: null, files: ["app.tar.gz"], commit: commits[0] }, []]);
  const [lone, { isRequired, isReproduced, collected, needed }] = await told("good-not-reproduced-and-not-required");
  assert.deepEqual([lone, isRequired, isReproduced, collected, needed], [other, false, false, 1, 2]);
  const { reproduction: one } = await verify(bundles["good-reproduced.json"], { fileName: "app.tar.gz" });
  assert.deepEqual([one.said, one.covered], ["reproduced by 2 of 2 (any 2 of 3 builders) from commit 0123456789ab…", ["app.tar.gz"]]);
  const empty = bundles["no-file-that-builders-make.json"];
  await refusal(verify(empty), "not_reproduced", / is not reproduced: it has no file that builders make, and /);
  // It is the project's own wish, so whether this is the project comes first.
  const lacking = bundles["not-reproduced-by-enough.json"];
  const { details } = await refusal(verify(lacking), "not_reproduced", /^v1 of https:\/\/github\.com\/acme\/app is not reproduced: it has 1 of 2; 1 more, and 1 builder got something else: app\.tar\.gz, and its project wants that before anyone uses it$/);
  assert.match(details.join(), /^svc-pub:\S{43} got something else: app\.tar\.gz from commit 0123456789ab…$/);
  await refusal(verify(lacking, { firstUse: undefined }), "unknown_signers");
  await refusal(verify(bundles["revoked-and-not-reproduced.json"]), "revoked");
});

test("what builders got is said in the words of the client", async () => {
  const { judgeReproduction, spellBuilder, spellReproduction } = await import(`${base}/verify/reproduction.mjs`);
  const { verifyEvidence } = await import(`${base}/verify/rules.mjs`);
  const { readShown } = await import(`${base}/verify/documents.mjs`);
  const said = async (name) => {
    const { bundle } = readShown(JSON.stringify(bundles[`${name}.json`].bundle));
    const verified = await verifyEvidence({ ...bundle, revocation: null }, () => {});
    const [{ signers }] = verified.governing.rebuilds.builders;
    const called = ({ key }) => ["carol", "bob", "dave"][signers.findIndex(({ data }) => data.pubkey === key)];
    const judged = await judgeReproduction(bundle, verified);
    return [spellReproduction(judged, called), ...judged.different.map((builder) => spellBuilder(builder, called))];
  };
  const all = "(any 2 of 3 builders) from commit";
  assert.deepEqual(await said("good-reproduced"), [`reproduced by 2 of 2 ${all} 0123456789ab…`]);
  assert.deepEqual(await said("good-reproduced-from-other-commits-and-by-one-digest"), [`reproduced by 2 of 2 ${all}s 0123456789ab…, abababababab…`]);
  assert.deepEqual(await said("not-reproduced-by-enough"), [`reproduced by 1 of 2 ${all} 0123456789ab…; 1 more from dave`, "bob got something else: app.tar.gz from commit 0123456789ab…"]);
  assert.deepEqual(await said("not-reproduced-by-anyone"), ["reproduced by 0 of 2 (any 2 of 3 builders); 2 more from carol, bob or dave"]);
  assert.deepEqual(await said("no-file-that-builders-make"), ["not reproduced: it has no file that builders make"]);
  const missing = [...Array(9).keys()].map((n) => ({ key: `k${n}` }));
  const judged = { builders: [{ threshold: 1, signers: missing }], covered: ["app.gz"], collected: 0, needed: 1, commits: [], missing };
  const spell = (file) => spellReproduction(judged, ({ key }) => key, file);
  assert.equal(spell("app.gz"), "reproduced by 0 of 1 (any 1 of 9 builders); 1 more from k0, k1, k2, k3, k4, k5, k6 or 2 others");
  assert.equal(spell("install.sh"), "install.sh is not a file that builders make");
});

test("the request of a revocation is read strictly", async () => {
  const revoked = bundles["revoked-with-a-stored-request.json"];
  const { revocation } = revoked.bundle;
  const changed = (change) => edited(revoked, { revocation: { ...revocation, request: { ...revocation.request, ...change } } });
  await refusal(verify(revoked), "revoked");
  for (const [field, value] of Object.entries({ nonce: "1", timestamp: "2026-02-01T12:00:00Z", payload: 1, public_key: "", signature: "", more: 1 })) {
    const { message } = await refusal(verify(changed({ [field]: value })), "not_a_bundle");
    assert.ok(message.startsWith(`Not a bundle: field \`revocation.request.${field}\`: `), message);
  }
});

test("the proof of the state counts as the policy says", async () => {
  const proven = await verify(stapled, { policy, maxAge: 600 });
  const { asOf, ...rest } = proven.freshness;
  assert.ok(asOf <= now && now - asOf <= 600_000);
  assert.deepEqual(rest, { origin: "example.com/log", cosigned: 2, needed: 2, witnesses: 3, replaying: null, number: 5, newer: 0, newerReleases: [], signers: "newest" });
  assert.equal(proven.unproven, null);
  const age = (now - asOf) / 1e3;
  assert.ok(await verify(stapled, { policy, maxAge: age }));
  await refusal(verify(stapled, { policy, maxAge: age - 1 }), "too_old");
  // Without a policy it is the server's word, which proves no time.
  assert.equal((await verify(stapled)).freshness.asOf, null);
  await refusal(verify(stapled, { maxAge: 600 }), "unproven", /Nothing proves how old/);
  assert.ok(await verify(stapled, { maxAge: "signers" }), "the signers name no log");
  // More witnesses than have signed: nothing is proven. A policy of one's own demands it.
  const strict = policy.replace("group-1 2 ", "group-1 3 ");
  for (const demand of [{}, { maxAge: 600 }, { maxAge: "signers" }, { requireNewest: true }]) {
    await refusal(verify(stapled, { policy: strict, ...demand }), "unproven", /too few witnesses/);
  }
  const future = new Date(asOf - 301_000);
  await refusal(verify(stapled, { policy, now: future }), "false_proof", /five minutes ahead/);
  await refusal(verify(stapled, { policy: "quorum missing\n" }), "bad_policy", /line 1 of the policy/);
  const { bundle } = bundles["good-plain.json"];
  assert.match((await verify({ ...stapled, bundle })).unproven, /no proof from a log/);
  await refusal(verify({ ...stapled, bundle }, { maxAge: 600 }), "unproven");
  // The signers file names a log and witnesses, and the bundle has no staple.
  const logged = bundles["good-signers-file-with-a-log.json"];
  assert.match((await verify(logged)).unproven, /no proof from a log/);
  await refusal(verify(logged, { maxAge: "signers" }), "unproven");
});

test("a policy of one's own accepts proofs of a day, unless it says otherwise", async () => {
  const { asOf } = (await verify(stapled, { policy })).freshness;
  const after = (seconds) => ({ now: new Date(asOf.getTime() + seconds * 1e3) });
  assert.ok(await verify(stapled, { policy, ...after(86_400) }));
  for (const age of [86_401, 400 * 86_400]) await refusal(verify(stapled, { policy, ...after(age) }), "too_old");
  const week = `${policy}#countersign max-age 7d\n`;
  assert.ok(await verify(stapled, { policy: week, ...after(7 * 86_400) }));
  await refusal(verify(stapled, { policy: week, ...after(7 * 86_400 + 1) }), "too_old");
  assert.ok(await verify(stapled, { policy, maxAge: 500 * 86_400, ...after(400 * 86_400) }));
  await refusal(verify(stapled, { policy: week, maxAge: 60, ...after(61) }), "too_old");
  const { bundle } = bundles["good-plain.json"];
  await refusal(verify({ ...stapled, bundle }, { policy }), "unproven", /no proof from a log/);
  // Without witnesses no proof has a time, and none is demanded.
  const alone = `${policy.split("\n")[0]}\nquorum none\n`;
  assert.equal((await verify(stapled, { policy: alone, ...after(400 * 86_400) })).freshness.asOf, null);
});

test("a policy can say which witnesses replay the rules", async () => {
  const names = policy.match(/^witness \S+/gm).map((line) => line.split(" ")[1]);
  const replaying = async (...marked) => (await verify(stapled, { policy: `${policy}#countersign replaying ${marked.join(" ")}\n` })).freshness.replaying;
  assert.equal(await replaying(...names), 2);
  assert.deepEqual((await Promise.all(names.map((name) => replaying(name)))).sort(), [0, 1, 1]);
});

test("a staple can take the place of the bundle's", async () => {
  const text = (name) => JSON.stringify(staples[name].staple);
  const newer = await verify(stapled, { policy, staple: text("good-with-newer-releases.json") });
  assert.equal(newer.freshness.newer, newer.freshness.newerReleases.length);
  assert.ok(newer.freshness.newer > 0 && !newer.freshness.newerReleases[0].includes("/"));
  const error = await refusal(verify(stapled, { policy, requireNewest: true, staple: text("good-with-newer-releases.json") }), "not_newest");
  assert.deepEqual(error.details, newer.freshness.newerReleases);
  assert.ok(await verify(stapled, { policy, requireNewest: true, staple: Buffer.from(text("good-newest-release.json")) }));
  for (const name of ["stale-leaf-under-a-fresh-checkpoint.json", "checkpoint-with-a-wrong-signature.json", "staple-of-another-release.json", "staple-with-an-unknown-field.json"]) {
    await refusal(verify(stapled, { policy, staple: text(name) }), "false_proof");
  }
  await refusal(verify(stapled, { policy, staple: "" }), "false_proof", /^Not a staple: /);
  const whole = text("good-newest-release.json");
  const padded = (length) => whole + " ".repeat(length - Buffer.byteLength(whole));
  assert.ok(await verify(stapled, { policy, staple: padded(320 * 1024) }));
  await refusal(verify(stapled, { policy, staple: padded(320 * 1024 + 1) }), "false_proof", /at most 320 KiB/);
  // The log knows a revocation that the bundle does not show.
  const revoked = await refusal(verify(stapled, { policy, staple: text("revoked.json") }), "revoked", /by the log example.com\/log/);
  await refusal(verify(stapled, { pin: stored(revoked.pin) }), "revoked", /as was seen before/);
  const word = await refusal(verify(stapled, { staple: text("revoked.json") }), "revoked");
  assert.equal(word.pin.revocations.length, 0, "a word that no witness stands behind is not remembered");
});

// The cases of another program: a key, a note, and whether the key has signed it.
const { cases } = readVectors("cosignature")["ml-dsa-44.json"];
const canCheck = await crypto.subtle.generateKey("ML-DSA-44", false, ["sign", "verify"]).then(() => true, () => false);

test("an ML-DSA-44 signature is judged as another program judges it, or not at all", async () => {
  const { withMlDsa } = await import(`${base}/ml-dsa.mjs`);
  const { checkIds, witnessKey } = await import(`${base}/verify/log.mjs`);
  const judged = { true: 0, false: 0, undefined: 0 };
  for (const { name, expect, key: spelled, note } of cases) {
    const key = witnessKey(spelled, "");
    await checkIds([key]);
    const [text, line] = [note.slice(0, note.lastIndexOf("\n\n") + 1), note.slice(note.lastIndexOf("\n\n") + 2)];
    const bytes = Buffer.from(line.trim().split(" ")[2], "base64");
    // What is wrong with these is no matter of the signature; and the log of a project has no extension lines.
    if (bytes.toString("hex", 0, 4) !== key.id || /^(no-time|time-out|extension)/.test(name)) continue;
    const [{ check }] = withMlDsa({ witnesses: [key] }).witnesses;
    const said = await check(bytes.subarray(4), text);
    judged[said] += 1;
    assert.equal(said, canCheck ? expect === "verified" : undefined, name);
  }
  assert.deepEqual(judged, canCheck ? { true: 3, false: 15, undefined: 0 } : { true: 0, false: 0, undefined: 18 });
});

test("a cosignature that cannot be checked is never counted, and a witness with two keys counts once", async () => {
  const { staple } = staples["good-newest-release.json"];
  const text = `${staple.proof.split("\n\n")[1]}\n`;
  const [log, ...witnesses] = policy.split("\n").filter((line) => /^(log|witness)/.test(line));
  const names = witnesses.map((line) => line.split(" ")[1]);
  const [{ key: frozen }] = cases;
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(now.getTime() / 1e3 - 5));
  const spell = (name, raw) => {
    const typed = Buffer.concat([Buffer.of(6), raw]);
    const id = createHash("sha256").update(`${name}\n`).update(typed).digest("hex").slice(0, 8);
    return { id, key: `${name}+${id}+${typed.toString("base64")}` };
  };
  const cosigned = (name, id, signature) =>
    JSON.stringify({ ...staple, proof: `${staple.proof}— ${name} ${Buffer.concat([Buffer.from(id, "hex"), time, signature]).toString("base64")}\n` });
  const policyOf = (key, threshold, members) =>
    `${[log, ...witnesses, `witness pq ${key}`].join("\n")}\ngroup g ${threshold} ${members.join(" ")}\nquorum g\n`;
  // Signed by no one. Where it can be checked, it is wrong; elsewhere it says nothing.
  const raw = Buffer.from(frozen.split("+").slice(2).join("+"), "base64").subarray(1);
  const other = spell("pq.example", raw);
  const garbage = cosigned("pq.example", other.id, Buffer.alloc(2420, 1));
  const three = { policy: policyOf(other.key, 3, [...names, "pq"]), staple: garbage, requireNewest: true };
  const two = { policy: policyOf(other.key, 2, [...names, "pq"]), staple: garbage };
  if (canCheck) for (const options of [two, three]) await refusal(verify(stapled, options), "false_proof", /signature of pq\.example .* does not verify/);
  else {
    await refusal(verify(stapled, three), "unproven", /2 of 4, and at least 3 are needed; ML-DSA-44 cannot be checked here$/);
    assert.equal((await verify(stapled, two)).freshness.cosigned, 2);
  }
  // Under the name of a witness that has cosigned already.
  const [first] = staple.proof.match(/witness\d\.example/);
  const same = spell(first, raw);
  const own = names.find((name) => name.startsWith(first));
  const counted = await readPolicy(policyOf(same.key, 2, [...names, "pq"]));
  assert.equal(counted.quorum.keys.length, 4);
  for (const [threshold, members] of [["all", [own, "pq"]], [4, [...names, "pq"]]]) {
    await assert.rejects(readPolicy(policyOf(same.key, threshold, members)), /the keys of one witness count once/);
  }
  await assert.rejects(readPolicy(policyOf(same.key, 1, ["pq"]).replace("quorum g", `group h all g ${own}\nquorum h`)), /counts in another group already/);
  if (!canCheck) return;
  const sign = async (name) => {
    const pair = await crypto.subtle.generateKey("ML-DSA-44", false, ["sign", "verify"]);
    const spelled = spell(name, Buffer.from(await crypto.subtle.exportKey("raw-public", pair.publicKey)));
    const [origin, size, root] = text.split("\n");
    const sized = (word) => Buffer.concat([Buffer.of(word.length), Buffer.from(word)]);
    const end = Buffer.alloc(16);
    end.writeBigUInt64BE(BigInt(size), 8);
    const message = Buffer.concat([Buffer.from("subtree/v1\n\0"), sized(name), time, sized(origin), end, Buffer.from(root, "base64")]);
    return { ...spelled, signature: Buffer.from(await crypto.subtle.sign("ML-DSA-44", pair.privateKey, message)) };
  };
  for (const [name, expected] of [["pq.example", [3, 4]], [first, [2, 3]]]) {
    const { id, key, signature } = await sign(name);
    const options = { policy: policyOf(key, 2, [...names, "pq"]), staple: cosigned(name, id, signature) };
    const { cosigned: count, witnesses: all, needed } = (await verify(stapled, options)).freshness;
    assert.deepEqual([count, all, needed], [...expected, 2]);
  }
});

test("a policy is read as strictly as the client reads it", async () => {
  const [log, first, second] = policy.split("\n");
  const key = (line) => line.split(" ").at(-1);
  const read = (...lines) => readPolicy(`${lines.join("\n")}\n`);
  assert.deepEqual((await read(log, "quorum none")).quorum, { threshold: 0, keys: [] });
  const { quorum, witnesses } = await read("# a comment", log + " https://log.example", "", first, `\twitness  w ${key(second)} https://w.example`, `group g all ${first.split(" ")[1]} w`, "quorum g");
  assert.deepEqual([quorum.threshold, quorum.keys.length, witnesses.length], [2, 2, 2]);
  const wrong = [
    [], [log], [log, "quorum none", "quorum none"], [log, "quorum x"], ["log", "quorum none"], [`log ${key(first)}`, "quorum none"], [`${log} a b`, "quorum none"],
    [log, log, "quorum none"], [log, `witness none ${key(first)}`, "quorum none"], [log, `witness a ${key(first)}`, `witness a ${key(second)}`, "quorum a"],
    [log, `witness a ${key(first)}`, `witness b ${key(first)}`, "quorum a"], [log, `witness a ${key(first)}`, "group g 0 a", "quorum g"], [log, `witness a ${key(first)}`, "group g 2 a", "quorum g"],
    [log, `witness a ${key(first)}`, "group g any a a", "quorum g"], [log, `witness a ${key(first)}`, "group g any a", "group h any a", "quorum g"], [log, "group g all", "quorum g"],
    [log, `witness a ${key(first)}`, "group g 01 a", "quorum g"], [log, "more", "quorum none"], [`${log}\u0007`, "quorum none"], [log.replace("+d4", "+d5"), "quorum none"], [log, `#${" ".repeat(2 ** 18)}`, "quorum none"],
    ...["", " replaying", " replaying b", " replay a", " max-age", " max-age 1", " max-age 59s", " max-age 3651d", " max-age 1d 2d", " max-age 1d\n#countersign max-age 1d"].map((own) => [log, `witness a ${key(first)}`, `#countersign${own}`, "quorum a"]),
  ];
  for (const lines of wrong) await assert.rejects(read(...lines), Error, lines.join("|").slice(0, 200));
});

test("no change of a bundle changes what is proven, except what is not signed", async () => {
  const text = JSON.stringify(stapled.bundle);
  const told = ({ bundledAt, ...proven }) => JSON.stringify(proven);
  const demands = { policy, maxAge: 600 };
  const expected = told(await verify(stapled, demands));
  let [refused, same] = [0, 0];
  for (let at = 0; at < text.length; at += 13) {
    const other = text[at] === "A" ? "B" : "A";
    const changed = text.slice(0, at) + other + text.slice(at + 1);
    const outcome = await verifyBundle(changed, null, { project: stapled.project, firstUse: "accept", now, ...demands }).then(told, (error) => error);
    if (outcome instanceof VerifyError) refused += 1;
    else {
      assert.equal(outcome, expected, `at ${at}: ${text.slice(at - 20, at + 20)}`);
      same += 1;
    }
  }
  // Digits of times at which a server says that it got a signature are not hexadecimal, so hardly any change is left.
  assert.ok(refused > 300 && same < refused / 20, `${refused} refused, ${same} the same`);
});
