// The npm package, as it is packed: the client's vectors, and what the package adds to them. PACKAGE is where it was built.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { judge, judgeValues } from "../browser/judge.mjs";
import { assertStaples, assertValues, assertVerdicts, readVectors } from "../browser/vectors.mjs";

const base = pathToFileURL(process.env.PACKAGE).href;
const root = new URL("../../", import.meta.url);
const { VerifyError, verifyBundle } = await import(`${base}/index.mjs`);
const { readPolicy } = await import(`${base}/policy.mjs`);
const { verifyProof } = await import(`${base}/verify/freshness.mjs`);
const { readStaple } = await import(`${base}/bundle.mjs`);

const bundles = readVectors("bundle");
const accepting = { firstUse: "accept", now: new Date("2026-02-02T00:00:00Z") };
const verify = ({ bundle, project }) => verifyBundle(JSON.stringify(bundle), null, { project, ...accepting });
async function refusal(work, code) {
  const error = await work.then(() => assert.fail(`it is accepted, and not refused as ${code}`), (error) => error);
  assert.ok(error instanceof VerifyError, error.stack);
  assert.equal(error.code, code, error.message);
  return error;
}

test("npm packs these files and no others", () => {
  const options = { cwd: process.env.PACKAGE, encoding: "utf8", env: { ...process.env, npm_config_cache: `${process.env.PACKAGE}/../cache`, npm_config_offline: "true" } };
  const [{ files, version }] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], options));
  assert.deepEqual(files.map(({ path }) => path).sort(), [
    "LICENSE-APACHE", "LICENSE-MIT", "README.md", "arguments.mjs", "bundle.mjs", "examples/self-updater.mjs", "index.d.ts", "index.mjs", "ml-dsa.mjs", "node.d.ts",
    "node.mjs", "package.json", "pin.mjs", "policy.mjs", "refusal.mjs", "revocation.mjs", "state.mjs", "verify/documents.mjs", "verify/freshness.mjs",
    "verify/json.mjs", "verify/keys.mjs", "verify/log.mjs", "verify/place.mjs", "verify/reproduction.mjs", "verify/rules.mjs", "verify/staple.mjs", "verify/values.mjs", "verify/verdict.mjs",
  ]);
  const { dependencies, scripts, ...about } = JSON.parse(readFileSync(`${process.env.PACKAGE}/package.json`, "utf8"));
  assert.deepEqual([dependencies, scripts], [undefined, undefined]);
  assert.equal(about.version, version);
  assert.ok(readFileSync(new URL("Cargo.toml", root), "utf8").includes(`\nversion = "${version}"\n`), "the version of the program");
});

test("the package has the page's modules, byte for byte, and loads nothing from outside but what Node has", () => {
  for (const name of readdirSync(`${process.env.PACKAGE}/verify`)) {
    const own = readFileSync(new URL(`crates/server/src/web/verify/${name}`, root), "utf8");
    assert.equal(readFileSync(`${process.env.PACKAGE}/verify/${name}`, "utf8"), own, name);
  }
  for (const name of readdirSync(process.env.PACKAGE, { recursive: true }).filter((name) => name.endsWith(".mjs") && !name.startsWith("examples"))) {
    const text = readFileSync(`${process.env.PACKAGE}/${name}`, "utf8");
    for (const [, from] of text.matchAll(/ from "([^"]*)"|import\("/g)) assert.match(from, name === "node.mjs" ? /^node:/ : /^\.\//, name);
    assert.ok(!/\b(fetch|eval|Function|process|require)\b\(|node_modules/.test(text), name);
  }
});

const LACKING = /^v1 of https:\/\/\S+ is not reproduced: it has (\d of \d; \d more(, and 1 builder got something else: [^,]+)?|no file that builders make), and its project wants that before anyone uses it$/;

// The code and the sentence of each rule by which the client refuses.
const RULES = [
  [/^revoked$/, "revoked", () => /^v1 of https:\/\/\S+ was revoked on 20/],
  [/^revocation: document$/, "not_verified", () => /^The revocation is not valid: its document is not valid: /],
  [/^revocation: (.*)$/, "not_verified", ([, fault]) => new RegExp(`^The revocation is not valid: ${{
    "not allowed": "not enough of the keys that can revoke",
    "other file": "it is about another file",
    "no request": "it has no `subject_digest`",
    "unknown governor": "the signers file that allowed it",
    "bad signature": "the signature of svc-pub:",
    "no initiator": "the key in `initiator`",
  }[fault]}`)],
  [/^not reproduced$/, "not_reproduced", () => LACKING],
  [/^not a bundle: (.*)$/, "not_a_bundle", ([, field]) => new RegExp(`^Not a bundle: field \`${field.replace(/[[\].+]/g, "\\$&")}\`: `)],
  [/^/, "not_verified", () => /./],
];

test("every bundle of the client's vectors is judged as the client does, by the same rule", async () => {
  const verdicts = { verified: 0, revoked: 0, refused: 0 };
  const said = {};
  for (const [name, vector] of Object.entries(bundles)) {
    const { expect, rule, bundle } = vector;
    verdicts[expect] += 1;
    if (expect === "verified") {
      const proven = await verify(vector);
      assert.equal(proven.indexPath, bundle.index_path, name);
      assert.ok(proven.signedBy.length > 0 && proven.pin.history.length === bundle.signers_history.entries.length, name);
      said[name] = "verified";
      continue;
    }
    const [pattern, code, sentence] = RULES.find(([pattern]) => pattern.test(rule));
    const error = await refusal(verify(vector), code);
    assert.match(error.message, sentence(pattern.exec(rule)), name);
    said[name] = code === "not_a_bundle" ? error.message : code === "revoked" || /^A revocation/.test(error.message) ? "The release is revoked: " : error.message;
    // The page shows the release beside the sentence.
    said[name] = said[name].replace(/^v1 of \S+ (?=is not reproduced)/, "The release ");
  }
  assert.ok(Object.values(verdicts).every((count) => count >= 4), JSON.stringify(verdicts));
  assertVerdicts("bundle", said);
});

test("every chain, value and staple of the client's vectors is judged as the client does", async () => {
  assertVerdicts("chain", await judge({ base: `${base}/verify`, kind: "chain", vectors: readVectors("chain") }));
  assertValues(await judgeValues({ base: `${base}/verify`, files: readVectors("values") }));
  const judged = {};
  for (const [name, vector] of Object.entries(readVectors("log"))) judged[name] = await judgeStaple(vector);
  assert.ok(assertStaples(judged) >= 10);
});

async function judgeStaple({ staple, subject, policy, log_key: key, now }) {
  const hex = (prefixed) => prefixed.replace("sha512:", "");
  const about = { path: subject.index_path, digest: hex(subject.index_digest), project: subject.project, signers: subject.signers.map(hex), keys: new Set(subject.signer_keys) };
  const trust = policy ?? (key && `log ${key}\nquorum none\n`);
  let read;
  try {
    read = readStaple(JSON.stringify(staple));
  } catch (error) {
    return { said: `Not a staple: ${error.message}`, result: null };
  }
  try {
    const { asOf, checkpoint, release, ...fresh } = await verifyProof(read, about, trust && (await readPolicy(trust)), BigInt(Date.parse(now) / 1e3));
    const result = {
      as_of: asOf === null ? null : new Date(Number(asOf) * 1e3).toISOString().replace(".000", ""),
      cosignatures: fresh.cosignatures.map(({ name, time }) => ({ time: Number(time), witness: name })),
      cosigned: fresh.cosigned,
      log_key: fresh.log?.spelled ?? null,
      needed: fresh.needed,
      newer: fresh.newer,
      newer_indexes: fresh.newerPaths,
      number: release.number,
      origin: checkpoint.origin,
      revocation: release.revocation && `sha512:${release.revocation}`,
      root: Buffer.from(checkpoint.root, "hex").toString("base64"),
      signers: fresh.signers,
      size: Number(checkpoint.size),
      witnesses: fresh.witnesses,
    };
    return { result };
  } catch (error) {
    return { said: error.message, result: null };
  }
}
