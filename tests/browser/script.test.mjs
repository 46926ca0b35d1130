// The rules in the page's script, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { judge, judgeValues } from "./judge.mjs";
import { assertValues, assertVerdicts, readVectors } from "./vectors.mjs";

const base = new URL("../../crates/server/src/web/verify", import.meta.url).href;

for (const kind of ["bundle", "chain"]) {
  test(`every ${kind} of the client's vectors is judged as the client does`, async () => {
    const good = assertVerdicts(kind, await judge({ base, kind, vectors: readVectors(kind) }));
    assert.ok(good >= 5, "some must be accepted, or this shows nothing");
  });
}

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
  assert.equal(readSigners(good + " ".repeat(256 * 1024 - good.length)).keys.size, 2);
  assert.throws(() => readSigners(good + " ".repeat(256 * 1024 - good.length + 1)), /at most 256 KiB/);
  const group = JSON.stringify(JSON.parse(good).artifact_signers[0]);
  const groups = (count) => good.replace(group, Array(count).fill(group).join(","));
  assert.equal(readSigners(groups(500)).artifact.length, 500);
  assert.throws(() => readSigners(groups(501)), /more than 1,000/);
});
