// The rules in the page's script, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { judge, judgeStaples, judgeValues } from "./judge.mjs";
import { assertStaples, assertValues, assertVerdicts, readVectors } from "./vectors.mjs";

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
  const accepted = await Promise.all(cases.map(isAccepted));
  const [right, withLargeS, , , , , ...rest] = accepted;
  assert.deepEqual([right, withLargeS, rest.slice(0, 17).some(Boolean)], [true, false, false], "S, and points of small order");
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
