// The rules in the page's script, without a browser.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { judge, judgeStaples, judgeValues } from "./judge.mjs";
import { assertStaples, assertValues, assertVerdicts, readVectors } from "./vectors.mjs";
import { cosign, witnessKeys } from "./witness.mjs";

const base = new URL("../../crates/server/src/web/verify", import.meta.url).href;

for (const kind of ["bundle", "chain"]) {
  test(`every ${kind} of the client's vectors is judged as the client does`, async () => {
    const good = assertVerdicts(kind, await judge({ base, kind, vectors: readVectors(kind) }));
    assert.ok(good >= 5, "some must be accepted, or this shows nothing");
  });
}

test("every staple of the client's vectors is judged as the client does", async () => {
  const good = assertStaples(await judgeStaples({ base, vectors: readVectors("log") }));
  assert.ok(good >= 10, "some must be accepted, or this shows nothing");
});

test("every value at the edge of what is accepted is read as the client does", async () => {
  assertValues(await judgeValues({ base, files: readVectors("values") }));
});

test("what the strict rules refuse is refused whatever the browser would accept", async (t) => {
  t.mock.method(crypto.subtle, "verify", async () => true);
  const { "signatures.json": { cases } } = readVectors("values");
  const { hash, isSignedBy, parseSignature, utf8 } = await import(`${base}/keys.mjs`);
  const content = await hash("SHA-512", utf8("content"));
  const isAccepted = ({ key, signature }) => isSignedBy(key, content, parseSignature(signature));
  const accepted = await Promise.all(cases.slice(0, 24).map(isAccepted));
  const [right, withLargeS, , , , , ...rest] = accepted;
  assert.deepEqual([right, withLargeS, rest.slice(0, 17).some(Boolean)], [true, false, false], "S, and points of small order");
  const isUntouched = ({ signature }) => parseSignature(signature)?.length === 69 && !(parseSignature(signature)[64] & 1);
  const untouched = await Promise.all(cases.filter(isUntouched).map(isAccepted));
  assert.deepEqual([untouched.length > 1, untouched.some(Boolean)], [true, false], "a FIDO key that no one touched");
});

test("signers files are limited in size", async () => {
  const { readSigners } = await import(`${base}/documents.mjs`);
  const { "signers.json": { cases } } = readVectors("values");
  const good = cases[0].text;
  assert.equal((await readSigners(good + " ".repeat(256 * 1024 - good.length))).keys.size, 2);
  await assert.rejects(readSigners(good + " ".repeat(256 * 1024 - good.length + 1)), /at most 256 KiB/);
  const group = JSON.stringify(JSON.parse(good).artifact_signers[0]);
  const groups = (count) => good.replace(group, Array(count).fill(group).join(","));
  assert.equal((await readSigners(groups(500))).artifact.length, 500);
  await assert.rejects(readSigners(groups(501)), /more than 1,000/);
});

test("indexes and sets of signatures are limited as the client limits them", async () => {
  const { readIndex, readMetadata, signatures } = await import(`${base}/documents.mjs`);
  const { "indexes.json": { cases }, "json.json": { cases: [{ text }] } } = readVectors("values");
  const good = cases[0].text;
  assert.equal(readIndex(good + " ".repeat(2 ** 21 - good.length)).published_files.length, 1);
  assert.throws(() => readIndex(good + " ".repeat(2 ** 21 - good.length + 1)), /at most 2048 KiB/);
  const index = JSON.parse(good);
  const [file] = index.published_files;
  const segments = `${"a".repeat(199)}/`.repeat(5);
  const named = (length, i) => ({ ...file, file_name: `${`${i}`.padStart(3, "0")}/${segments}${"b".repeat(length - 1004)}` });
  const names = (lengths) => JSON.stringify({ ...index, published_files: lengths.map(named) });
  assert.equal(readIndex(names(Array(512).fill(1024))).published_files.length, 512);
  assert.throws(() => readIndex(names([...Array(511).fill(1024), 1023, 1005])), /at most 512 KiB/);
  const entry = Object.values(JSON.parse(text).entries)[0];
  const key = (i) => `svc-pub:${btoa(String.fromCharCode(i >> 8, i & 255, ...Array(30).fill(0))).replace("=", "")}`;
  const set = (count) => ({ entries: Object.fromEntries(Array.from({ length: count }, (_, i) => [key(i), entry])) });
  assert.equal(signatures(set(2000), "").size, 2000);
  assert.throws(() => signatures(set(2001), ""), /more than 2,000/);
  assert.throws(() => readMetadata(" ".repeat(16 * 1024 + 1)), /at most 16 KiB/);
});

const replaceIn = (name, ...pairs) => (staple) => {
  const edited = pairs.reduce((text, [from, to]) => text.replace(from, to), staple[name]);
  assert.notEqual(edited, staple[name], `${pairs[0][0]}`);
  return { ...staple, [name]: edited };
};
const inRecord = (name, from, to) => (staple) => ({ ...staple, [name]: replaceIn("record", [from, to])(staple[name]) });
const inProof = (from, to) => replaceIn("proof", [from, to]);
const HASH = `${"A".repeat(43)}=`;
const hashes = (count) => inProof(/(index \d+)\n[^]*?\n\n/, `$1\n${`${HASH}\n`.repeat(count)}\n`);
const strangers = (count) => inProof(/— [^]*$/, `— stranger AAAAAAA=\n`.repeat(count));
const newest = (lines) => inRecord("project", /newest [^]*$/, lines);

test("a staple has one form, and bounds", async () => {
  const { parseJson } = await import(`${base}/json.mjs`);
  const { staple: shape } = await import(`${base}/staple.mjs`);
  const { staple } = readVectors("log")["good-with-newer-releases.json"];
  const read = (change) => shape(parseJson(JSON.stringify(change(staple))), "");
  const good = { hashes: hashes(63), none: hashes(0), signatures: strangers(100), newest: inRecord("project", "history 1\n", "history 4294967295\n") };
  for (const change of Object.values(good)) assert.ok(read(change));
  const bad = {
    proof: [
      hashes(64), strangers(101), inProof(/\n$/, ""), inProof(/$/, "\n"), inProof("—", "-"), inProof("\n— ", "\n—  "),
      inProof("index 13", "index 013"), inProof("index 13", "index 9223372036854775808"), inProof("index 13", "index -13"),
      inProof("index 13", "index"), inProof("\n71Ml", "\n71M"), inProof("uKg=", "uKh="), inProof("uKg=", "uKg"),
      inProof("uKg=", "uKgA"), inProof("uKg=", "ug=="), inProof("uKg=", " uKg="), inProof("example.com/log\n14", "example.com/log\t\n14"),
      inProof(/— [^]*$/, "— stranger AAAAAA==\n"), inProof(/— [^]*$/, "— str+anger AAAAAAA=\n"), inProof(/— [^]*$/, ""),
      inProof("\n\n", "\n"), inProof("@v1", "@v2"),
    ],
    "release.record": [
      inRecord("release", "number 5", "number 0"), inRecord("release", "number 5", "number 05"),
      inRecord("release", "number 5", "number 4294967296"), inRecord("release", "path https", "path HTTPS"),
      inRecord("release", /\n$/, ""), inRecord("release", "complete", "completed"), inRecord("release", "complete", "revoked"),
    ],
    "project.record": [
      inRecord("project", "history 1", "history 0"), inRecord("project", "completed 7", "completed 8"), newest(""),
      inRecord("project", "newest 5", "newest 05"), inRecord("project", /newest 1 .*\n/, ""),
      inRecord("project", "newest 7 https", "newest 7 .."), inRecord("project", /\n$/, "\n\n"),
    ],
    leaf: [replaceIn("leaf", ["leaf/v1", "leaf/v2"]), replaceIn("leaf", [/\n$/, "\n\n"]), replaceIn("leaf", [/object ./, "object "])],
    "project.siblings[0]": [(staple) => ({ ...staple, project: { ...staple.project, siblings: [`0  ${HASH}`] } })],
  };
  for (const [field, changes] of Object.entries(bad)) {
    for (const [i, change] of changes.entries()) {
      assert.throws(() => read(change), ({ message }) => message.startsWith(`field \`${field}\`: must be `), `${field}, ${i}`);
    }
  }
  // Nine releases, of which a record names eight.
  const line = (number) => `newest ${number} a/${number}/svc.index.json\n`;
  const nine = (count) => (staple) => newest([9, 8, 7, 6, 5, 4, 3, 2, 1].slice(0, count).map(line).join(""))(inRecord("project", "completed 7", "completed 9")(staple));
  assert.equal(read(nine(8)).project.record.newest.length, 8);
  for (const count of [7, 9]) assert.throws(() => read(nine(count)), /project\.record/);
});

test("a witness counts once with its newest word, and a log cannot choose the form of its tree", async () => {
  const { verifyProof } = await import(`${base}/freshness.mjs`);
  const { verifierKey } = await import(`${base}/log.mjs`);
  const { staple: shape } = await import(`${base}/staple.mjs`);
  const { staple, subject: { index_path: path, index_digest: digest, project, signers }, result } = readVectors("log")["good-newest-release.json"];
  const hex = (prefixed) => prefixed.replace("sha512:", "");
  const subject = { path, digest: hex(digest), project, signers: signers.map(hex), keys: new Set() };
  const witnesses = witnessKeys.map((key) => verifierKey(4)(key, ""));
  const trust = { logs: [verifierKey(1)(result.log_key, "")], witnesses, quorum: { threshold: 1, keys: witnesses } };
  const now = 1_800_000_000;
  const verify = async (staple, whom = trust) => verifyProof(shape(staple, ""), subject, whom, BigInt(now));
  const twice = await verify(cosign(cosign(staple, [now - 10]), [now - 20]));
  assert.deepEqual([twice.asOf, twice.cosigned, twice.witnesses], [BigInt(now - 10), 1, 3]);
  assert.equal((await verify(cosign(staple, [now + 300]))).asOf, BigInt(now + 300));
  await assert.rejects(verify(cosign(staple, [now + 301])), /five minutes ahead/);
  // Without a time, or with more than a time and a signature.
  await assert.rejects(verify(cosign(staple, [0])), /the signature of witness1\.test .* does not verify/);
  const longer = cosign(staple, [now]).proof.replace(/(witness1\.test )(\S+)/, (_, name, encoded) => {
    const bytes = Buffer.from(encoded, "base64");
    return name + Buffer.concat([bytes.subarray(0, 12), Buffer.of(0), bytes.subarray(12)]).toString("base64");
  });
  await assert.rejects(verify({ ...staple, proof: longer }), /the signature of witness1\.test .* does not verify/);
  // The page cannot check ML-DSA-44. It says so, counts no such cosignature, and passes over no malformed one.
  const { witnessKey } = await import(`${base}/log.mjs`);
  const [{ key: spelled }] = readVectors("cosignature")["ml-dsa-44.json"].cases;
  const pq = witnessKey(spelled, "");
  const sign = (seconds, length = 2420) => {
    const bytes = Buffer.alloc(12 + length, 1);
    bytes.write(pq.id, "hex");
    bytes.writeBigUInt64BE(BigInt(seconds), 4);
    const { proof } = cosign(staple, [now - 10]);
    return { ...staple, proof: `${proof}— ${pq.name} ${bytes.toString("base64")}\n` };
  };
  const both = (threshold, ...keys) => ({ ...trust, witnesses: [...witnesses, pq], quorum: { threshold, keys } });
  const alone = await verify(sign(now), both(1, witnesses[0], pq));
  assert.deepEqual([alone.asOf, alone.cosigned, alone.witnesses, alone.note], [BigInt(now - 10), 1, 2, "; ML-DSA-44 cannot be checked here"]);
  assert.deepEqual(alone.cosignatures.map(({ name }) => name), ["witness1.test"]);
  assert.equal(twice.note, "");
  await assert.rejects(verify(sign(now), both(2, witnesses[0], pq)), /1 of 2, and at least 2 are needed; ML-DSA-44 cannot be checked here$/);
  for (const wrong of [sign(0), sign(now, 2419), sign(now, 2421), sign(now, 64)]) {
    await assert.rejects(verify(wrong, both(1, witnesses[0], pq)), /the signature of witness\.example\/w .* does not verify/);
  }
  // Two keys of one name are one witness.
  const same = { ...witnesses[1], name: "witness1.test" };
  const named = { ...trust, witnesses: [witnesses[0], same], quorum: { threshold: 1, keys: [witnesses[0], same] } };
  assert.equal((await verify(cosign(staple, [now]), named)).witnesses, 1);
  await assert.rejects(verify(cosign(staple, [now]), { ...named, quorum: { ...named.quorum, threshold: 2 } }), /1 of 1, and at least/);
  // A tree of two leaves whose root is that of its last one.
  const root = createHash("sha256").update(Buffer.of(0)).update(staple.leaf).digest("base64");
  const single = (size) => ({ ...staple, proof: `c2sp.org/tlog-proof@v1\nindex ${size - 1}\n\nhost/log\n${size}\n${root}\n\n— host/log AAAAAAA=\n` });
  assert.equal((await verify(single(1), null)).checkpoint.size, 1n);
  await assert.rejects(verify(single(2), null), /its leaf is not in the log$/);
  for (const [from, to] of [["host/log\n1", "host\u200b/log\n1"], ["host/log\n1", `${"h".repeat(256)}\n1`], ["\n1\n", "\n01\n"], [`${root}\n`, `${root}\nmore\n`]]) {
    await assert.rejects(verify(inProof(from, to)(single(1)), null), /its checkpoint is malformed$/, to);
  }
});
