// The page that verifies files: on good ones, on bad ones, and on answers that were changed on their way.

import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { insecureServer, launch, open, root, server, site, withPage, work } from "./browser.mjs";
import { judge, judgeValues } from "./judge.mjs";
import { assertValues, assertVerdicts, readVectors } from "./vectors.mjs";

const index = (release) => `${root}/acme/${release}/svc.index.json`;
const verifyAt = (release) => `/verify?path=${encodeURIComponent(index(release))}`;
const published = (path) => `${work}/site/acme/${path}`;
const good = published("app/1.0/app.tar.gz");
const ask = async (path) => (await fetch(`${server}/v1/${path}`)).text();

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

// Gives the page a file, and waits for what it says: its heading and its lines.
async function verify(page, file) {
  await page.locator("#result").evaluate((result) => result.removeAttribute("class"));
  await page.locator("#file:enabled").setInputFiles([]);
  await page.locator("#file").setInputFiles(file);
  await page.locator("#result.verified, #result.doubted, #result.refused, #result.unsettled").waitFor();
  const lines = await page.locator("#result li").allTextContents();
  return { outcome: await page.locator("#result").getAttribute("class"), lines, first: lines[0] };
}

const withVerify = (path, use, options, expected) =>
  withPage(browser, options ?? {}, async (page) => {
    await open(page, path);
    await use(page);
  }, expected);

function assertVerified({ outcome, lines }) {
  assert.equal(outcome, "verified", lines.join("\n"));
  assert.ok(lines.length >= 7 && lines.every((line) => line.startsWith("✓ ")), lines.join("\n"));
}

// What failed comes first.
function assertRefused({ outcome, lines, first }, why) {
  assert.equal(outcome, "refused", lines.join("\n"));
  assert.match(first, /^✗ /);
  assert.match(first, why);
}

test("a good file is verified, and the page says what it checked", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    const said = await verify(page, good);
    assertVerified(said);
    for (const part of [
      /belongs where it lies, at .*\/acme\/app\/1\.0\/svc\.index\.json$/,
      /Everyone in the project's first signers file, of 20\S+, has signed it$/,
      /Signers files after it: 1, each agreed to by those before and after it$/,
      /byte for byte$/,
      /: 2 of 2 signatures, any 2 of 3 keys$/,
      /Signed by alicesvc-pub:\S{43}$/,
      /Signed by carolsvc-pub:\S{43}$/,
      /no revocation$/,
      /The file is app\.tar\.gz of the signed index: bytes 31, sha256 [0-9a-f]{64}$/,
    ]) assert.ok(said.lines.some((line) => part.test(line)), `${part}\n${said.lines.join("\n")}`);
    const heading = `Verified app.tar.gz: 1.0 of ${site}/acme/app`;
    assert.equal(await page.locator("#result h2").textContent(), `${heading}, which this browser has not seen before`);
    assert.equal(await page.locator("#result").getAttribute("role"), "status");
    // The reasons are sentences for people. What was checked in detail is folded away.
    const plain = await page.locator("#result article > ul > li").allTextContents();
    assert.equal(plain[0], "✓ 2 of the 3 people who can release acme/app signed this file: alice and carol");
    assert.match(plain[1], /^✓ Everyone in its first signers file agreed to it, and enough signers to the change since$/);
    assert.ok(await page.getByText("belongs where it lies").isHidden());
    await verify(page, good);
    const today = new Date().toISOString().slice(0, 10);
    assert.equal(await page.locator("#result h2").textContent(), `${heading}, known to this browser since ${today}`);
  }));

test("a project that is shown with other first signers than before is refused", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    assertVerified(await verify(page, good));
    await page.evaluate((name) => localStorage.setItem(name, JSON.stringify({ first: "0", at: "2026-01-31" })), `signers of ${root}/acme/app`);
    assertRefused(await verify(page, good), /other first signers when this browser saw it on 2026-01-31$/);
  }));

test("several files are checked at once, each for itself", () =>
  withVerify("/verify", async (page) => {
    await page.locator("#file:enabled").setInputFiles([good, published("app/0.9/app.tar.gz"), published("app/0.8/app.tar.gz")]);
    await page.locator("#result.refused article:nth-child(3).verified").waitFor();
    const outcomes = await page.locator("#result article").evaluateAll((all) => all.map((one) => one.className));
    assert.deepEqual(outcomes, ["verified", "refused", "verified"]);
  }, {}, /404/));

test("a file alone is enough: its release is found by its digest", () =>
  withVerify("/verify", async (page) => {
    assert.ok(await page.getByLabel("Where the file was downloaded from").isHidden());
    assertVerified(await verify(page, good));
    assert.match(await page.locator("#result h2").textContent(), /: 1\.0 of http:.*\/acme\/app, which/);
    assertVerified(await verify(page, published("app/0.8/app.tar.gz")));
    assertRefused(await verify(page, published("app/0.9/app.tar.gz")), /is revoked/);
    // Two listed files that change places are not the same release.
    const swapped = { name: "app.tar.gz", mimeType: "", buffer: Buffer.from("and its plug-in\n") };
    assertRefused(await verify(page, swapped), /not the one that was signed/);
  }, {}, /404/));

test("a file that several projects list is verified for the one that the visitor chooses", () =>
  withVerify("/verify", async (page) => {
    await page.locator("#file:enabled").setInputFiles(published("many/1.1/program"));
    await page.locator("#result.asking").waitFor();
    assert.match(await page.locator("#result h2").textContent(), /^Several projects list program$/);
    await page.getByRole("button", { name: /acme\/tools/ }).click();
    await page.locator("#result.verified").waitFor();
    assert.match(await page.locator("#result h2").textContent(), /: 2\.0 of http:.*\/acme\/tools, which/);
  }));

test("a server that names the wrong release is not believed", () =>
  withVerify("/verify", async (page) => {
    const answer = { releases: [{ index_path: index("app/0.8"), project_id: `${root}/acme/app`, state: "complete" }], more: false };
    await page.route("**/v1/releases?*", (route) => route.fulfill({ json: answer }));
    assertRefused(await verify(page, good), /not the one that was signed/);
  }));

test("a server that has just started is waited for, and the page says so", () =>
  withVerify("/verify", async (page) => {
    let asked = 0;
    const starting = { status: 503, headers: { "retry-after": "1" }, json: { error: "the server has just started" } };
    await page.route("**/v1/releases?*", (route) => ((asked += 1) <= 2 ? route.fulfill(starting) : route.continue()));
    await page.locator("#file:enabled").setInputFiles(good);
    await page.getByRole("heading", { name: "Waiting for the server" }).waitFor();
    await page.locator("#result.verified").waitFor();
    assert.equal(asked, 4, "both digests are asked for again");
  }, {}, /503/));

test("a file that no release lists is refused, and its address is asked for", () =>
  withVerify("/verify", async (page) => {
    const tampered = { name: "plug-in.tar.gz", mimeType: "", buffer: Buffer.from("tampered") };
    assertRefused(await verify(page, tampered), /No complete or revoked release here lists this file.*yours: sha256 [0-9a-f]{64}$/);
    await page.getByLabel("Where the file was downloaded from").fill(`${site}/acme/app/1.0/extra/plug-in.tar.gz`);
    await page.getByRole("button", { name: "Find the release" }).click();
    await page.waitForURL(/\/verify\?url=/);
    assertRefused(await verify(page, tampered), /not the one that was signed/);
    assertVerified(await verify(page, published("app/1.0/extra/plug-in.tar.gz")));
    // The other file of the release is not the one from this address.
    assertRefused(await verify(page, good), /not the one that was signed/);
  }, {}, /404.*\/extra\/svc\.index\.json$/));

test("a file that was renamed is known by what it is", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    const copy = { name: "app (1).tar.gz", mimeType: "", buffer: Buffer.from("pretend that this is a program\n") };
    assertVerified(await verify(page, copy));
  }));

test("a file may be dropped on the field", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    const { x, y, width, height } = await page.locator("#file:enabled").boundingBox();
    assert.ok(width > 250 && height > 80, "there is room to drop a file");
    const session = await page.context().newCDPSession(page);
    const data = { items: [], files: [good], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) {
      await session.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2, data });
    }
    await page.locator("#result.verified").waitFor();
  }));

test("a file is chosen with the keyboard", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    await page.locator("#file:enabled").waitFor();
    let chooser = page.waitForEvent("filechooser");
    const focused = () => page.evaluate(() => document.activeElement.id);
    for (let i = 0; i < 20 && (await focused()) !== "file"; i += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await (await chooser).setFiles(good);
    await page.locator("#result.verified").waitFor();
    // The same file once more: it may have been replaced meanwhile.
    chooser = page.waitForEvent("filechooser");
    await page.locator("#result").evaluate((result) => result.removeAttribute("class"));
    await page.keyboard.press("Enter");
    await (await chooser).setFiles(good);
    await page.locator("#result.verified").waitFor();
  }));

test("tampered files are refused, and the page says why", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    const named = (text) => ({ name: "app.tar.gz", mimeType: "", buffer: Buffer.from(text) });
    for (const text of ["pretend that this is a prograM\n", "pretend that this is a program", ""]) {
      const said = await verify(page, named(text));
      const facts = `yours: bytes ${text.length}, sha256 [0-9a-f]{64}$`;
      assertRefused(said, new RegExp(`not the one that was signedsigned: sha256 [0-9a-f]{64}${facts}`));
      assert.match(await page.locator("#result h2").textContent(), /^Do not use app\.tar\.gz$/);
    }
    assertVerified(await verify(page, good));
  }));

test("a file of more than 1 GiB is left to the command line", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    writeFileSync(`${work}/large`, "");
    truncateSync(`${work}/large`, 2 ** 30 + 1);
    assertRefused(await verify(page, `${work}/large`), /1 GiB.*command line/);
  }));

test("a revoked release is refused, with its reason", () =>
  withVerify(verifyAt("app/0.9"), async (page) => {
    assertRefused(await verify(page, published("app/0.9/app.tar.gz")), /is revoked: "a flaw\\u\{202e\} in <b>everything<\/b>"$/);
    const headline = `Do not use app.tar.gz: 0.9 of ${site}/acme/app is revoked: "a flaw\\u{202e} in <b>everything</b>"`;
    assert.equal(await page.locator("#result h2").textContent(), headline);
    assert.equal(await page.locator("#result b").count(), 0);
    const newest = page.getByRole("link", { name: `The newest release of ${site}/acme/app` });
    assert.equal(await newest.getAttribute("href"), `/p/${root}/acme/app`);
  }));

test("what is not complete, withdrawn or not there is said to be so, and no one is accused", async () => {
  for (const [release, file, why] of [
    ["app/1.1", "app/1.1/app.tar.gz", /^Not enough people have signed the release yet$/],
    ["app/1.2", "app/1.2/app.tar.gz", /^The release was withdrawn$/],
    ["app/7.0", "app/1.0/app.tar.gz", /^This server has no release that lists the file$/],
  ]) {
    const ways = [verifyAt(release), `/verify?url=${encodeURIComponent(`${site}/acme/${release}/app.tar.gz`)}`];
    for (const path of ways) {
      await withVerify(path, async (page) => {
        const { outcome, lines } = await verify(page, published(file));
        assert.deepEqual([outcome, lines], ["unsettled", []], release);
        assert.equal(await page.locator("#result h2").textContent(), "Not verified: app.tar.gz");
        assert.match(await page.locator("#result p").textContent(), why);
      }, {}, /404/);
    }
  }
});

// Found by the file alone, by its address and by its path.
const waysTo = (release) =>
  ["/verify", verifyAt(release), `/verify?url=${encodeURIComponent(`${site}/acme/${release}/program`)}`];

test("a begun revocation comes before everything else, however the release was found", async () => {
  for (const path of waysTo("many/1.3")) {
    await withVerify(path, async (page) => {
      const { outcome, lines, first } = await verify(page, published("many/1.3/program"));
      assert.equal(outcome, "doubted", path);
      assert.equal(first, '! 1 of 2 revokers want it revoked: "wrong build"');
      assert.equal(await page.locator("#result h2").textContent(), 'Verified, but 1 of 2 revokers want it revoked: "wrong build"');
      assert.match(await page.locator("#result p").textContent(), /^program: 1\.3 of http:.*\/acme\/many, which this browser has not seen before$/);
      assert.ok(!lines.some((line) => /no revocation/.test(line)), lines.join("\n"));
      assert.ok(lines.slice(1).every((line) => line.startsWith("✓ ")), lines.join("\n"));
    });
  }
});

test("what its project wants reproduced is refused, with who got something else", () =>
  withVerify(verifyAt("built/1.0"), async (page) => {
    assertRefused(await verify(page, published("built/1.0/rebuilt")), /is not reproduced: it has 1 of 2; 1 more, and 1 builder got something else: rebuilt, and its project wants that/);
  }));

test("objections that stand are shown, however the release was found", async () => {
  for (const path of waysTo("many/1.4")) {
    await withVerify(path, async (page) => {
      const { outcome, lines, first } = await verify(page, published("many/1.4/program"));
      assert.equal(outcome, "doubted", path);
      assert.match(first, /^! Objection by bob: "not <b>my<\/b> build"svc-pub:\S{43}$/);
      assert.equal(await page.locator("#result h2").textContent(), `Verified, but 1 signer objects: "not <b>my</b> build"`);
      assert.ok(lines.some((line) => /no revocation$/.test(line)) && !lines.some((line) => /nor mine/.test(line)), lines.join("\n"));
    });
  }
});

test("what speaks against a release and cannot be read is no good sign", () =>
  withVerify("/verify", async (page) => {
    for (const [suffix, why] of [
      [".revocation.json.pending", /The begun revocation is not valid/],
      [".objections.json", /The list of objections is not valid/],
    ]) {
      const restore = await changeState(page, ({ path, files }) => void (files[path + suffix] = "not JSON"));
      assertRefused(await verify(page, good), why);
      await restore();
    }
  }));

test("an older release is verified by the signers of its time", () =>
  withVerify(verifyAt("app/0.8"), async (page) => assertVerified(await verify(page, published("app/0.8/app.tar.gz")))));

test("names that try to be more are shown as what they are", () =>
  withVerify(verifyAt("tools/2.0"), async (page) => {
    const said = await verify(page, published("tools/2.0/tools <script>alert(1)<script>.zip"));
    assertVerified(said);
    assert.ok(said.lines.some((line) => /^✓ Signed by "<img src=x onerror=alert\(1\)>"svc-pub:\S{43}$/.test(line)));
    assert.equal(await page.locator("#result img, #result script").count(), 0);
  }));

const firstKey = (entries) => Object.keys(entries)[0];
const bundleOf = async (release) => JSON.parse(await ask(`state/${index(release)}`)).bundle;

// Gives the page another answer about a release, and no more than one.
async function changeState(page, change) {
  const matches = ({ pathname }) => pathname.startsWith("/v1/state/");
  let asked = 0;
  await page.route(matches, async (route) => {
    asked += 1;
    if (change === null) return route.abort();
    const response = await route.fetch();
    const answer = await response.json();
    const changed = (await change(answer)) ?? answer;
    const body = typeof changed === "string" || Buffer.isBuffer(changed) ? changed : JSON.stringify(changed);
    return route.fulfill({ response, body, headers: { "content-type": "application/json" } });
  });
  return async () => {
    await page.unroute(matches);
    return asked;
  };
}

const inBundle = (change) => async (answer) => void (await change(answer.bundle));
const inIndex = (change) => inBundle(async (bundle) => {
  const index = await change(bundle.index);
  assert.notEqual(index, bundle.index);
  bundle.index = index;
});
const inSignatures = (change) => inBundle(({ signatures: { entries } }) => change(entries));
const inHistory = (change) => inBundle(({ signers_history: { entries } }) => change(entries));

// What is changed on its way, and what the page says.
const MANIPULATIONS = {
  "a digest in the index": [inIndex((text) => text.replace(/("sha256": ")(.)/, (_, name, digit) => name + (digit === "0" ? "1" : "0"))), /index: the signature of \S+ does not verify/],
  "white space in the index": [inIndex((text) => `${text} `), /index: the signature of \S+ does not verify/],
  "a field twice in the index": [inIndex((text) => text.replace('"version": 1', '"version": 1, "version": 1')), /occurs twice/],
  "the index of another release": [inIndex(async () => (await bundleOf("app/0.8")).index), /does not belong where it lies: a file in it comes from another place/],
  "the index of another project": [inIndex(async () => (await bundleOf("tools/2.0")).index), /does not belong where it lies: it is of another project/],
  "an answer that is not text": [() => Buffer.from([0x7b, 0xff, 0x7d]), /is not valid/],
  "an answer that is no answer": [() => "[]", /is not valid/],
  "an answer of another version": [(answer) => ({ ...answer, version: 2 }), /field `version`: must be 1/],
  "a bundle of version 1": [inBundle((bundle) => Object.assign(bundle, { version: 1 })), /field `bundle\.version`: must be 2/],
  "a field too many": [inBundle((bundle) => Object.assign(bundle, { trusted: true })), /field `bundle\.trusted`: unknown field/],
  "the bundle of another release": [async (answer) => ({ ...answer, bundle: await bundleOf("app/0.8") }), /field `path`: must be .*\/0\.8\//],
  "the answer about another release": [() => ask(`state/${index("app/0.8")}`), /answer is about another release/],
  "a signature that is missing": [inSignatures((entries) => delete entries[firstKey(entries)]), /Too few.*: 1 of 2 signatures, any 2 of 3 keys/],
  "all signatures": [inBundle((bundle) => Object.assign(bundle, { signatures: { entries: {} } })), /Too few.*: 0 of 2 signatures, any 2 of 3 keys/],
  "one key in two spellings": [inSignatures((entries) => {
    const [first, second] = Object.keys(entries);
    entries[`${first}=`] = entries[first];
    delete entries[second];
  }), /its name is not valid/],
  "one key twice": [(answer) => {
    const { signatures } = answer.bundle;
    const entry = `"${firstKey(signatures.entries)}":${JSON.stringify(signatures.entries[firstKey(signatures.entries)])}`;
    return JSON.stringify(answer).replace(JSON.stringify(signatures), `{"entries":{${entry},${entry}}}`);
  }, /occurs twice/],
  "the signature of someone else": [inSignatures((entries) => {
    const [first, second] = Object.keys(entries);
    entries[first].signature = entries[second].signature;
  }), /index: the signature of \S+ does not verify/],
  "the signatures of a stranger": [inBundle(async (bundle) => Object.assign(bundle, { signatures: (await bundleOf("tools/2.0")).signatures })), /index: the signature of \S+ does not verify/],
  "a signature with a field too many": [inSignatures((entries) => Object.assign(entries[firstKey(entries)], { note: "" })), /unknown field/],
  "the governing signers file": [inBundle((bundle) => Object.assign(bundle, { signers_file_digest: `sha512:${"0".repeat(128)}` })), /not in the project's history/],
  "the history of another project": [inBundle(async (bundle) => Object.assign(bundle, { signers_history: (await bundleOf("tools/2.0")).signers_history })), /Signers file 1 belongs to another project/],
  "a history without its root": [inHistory((entries) => entries.shift()), /Signers file 1 does not continue the one before/],
  "a history that ends early": [inHistory((entries) => entries.pop()), /not in the project's history/],
  "a history that is empty": [inHistory((entries) => entries.splice(0)), /The chain has no signers file/],
  "a threshold in the history": [inHistory((entries) => {
    entries[1].signers_config = entries[1].signers_config.replace('"threshold": 2', '"threshold": 1');
  }), /Signers file 2 has the metadata of another/],
  "a rotation that nobody agreed to": [inHistory((entries) => {
    entries[1].signatures = { entries: {} };
    entries[1].metadata_signatures = { entries: {} };
  }), /Signers file 2 lacks required signatures/],
  "a splice of two projects": [inHistory(async (entries) => {
    entries.splice(0, 1, (await bundleOf("tools/2.0")).signers_history.entries[0]);
  }), /Signers file 1 belongs to another project/],
  "no answer": [null, /could not be checked/],
};

test("whatever is changed on its way is found", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    for (const [name, [change, why]] of Object.entries(MANIPULATIONS)) {
      const restore = await changeState(page, change);
      const said = await verify(page, good);
      assert.equal(await restore(), 1, `${name}: one question is enough`);
      assert.equal(said.outcome, "refused", name);
      assertRefused(said, why);
    }
    assertVerified(await verify(page, good));
  }, {}, /ERR_FAILED/));

test("all that the page asks about a release is one question", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    assertVerified(await verify(page, good));
    assert.deepEqual(asked.filter((path) => path.startsWith("/v1/")), [`/v1/state/${index("app/1.0")}`]);
  }));

test("an answer that leads elsewhere is not followed", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    await page.route("**/v1/state/**", (route) =>
      route.fulfill({ status: 302, headers: { location: `${server}/healthz` }, body: "" }));
    assertRefused(await verify(page, good), /could not be checked/);
  }, {}, /redirect|ERR_FAILED/));

test("a browser without Ed25519 says so", () =>
  withPage(browser, {}, async (page) => {
    await page.addInitScript(() => {
      SubtleCrypto.prototype.importKey = async () => {
        throw new DOMException("Unrecognized name.", "NotSupportedError");
      };
    });
    await open(page, verifyAt("app/1.0"));
    await page.locator("#result.refused").waitFor();
    assert.match(await page.locator("#result").textContent(), /cannot verify here.*does not offer Ed25519.*command line/);
    assert.ok(await page.locator("#file").isDisabled());
  }));

test("a page that did not come over https says so", () =>
  withPage(browser, {}, async (page) => {
    await page.goto(insecureServer + verifyAt("app/1.0"));
    await page.locator("#result.refused").waitFor();
    assert.match(await page.locator("#result").textContent(), /did not come over https.*command line/);
  }));

test("without scripts the page says what to use instead", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    assert.match(await page.locator("noscript").textContent(), /which your browser does not run/);
    assert.ok(await page.locator("#file").isDisabled());
  }, { javaScriptEnabled: false }));

test("the page says what it does not protect against", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    assert.match(await page.locator(".limits").textContent(), /not protect against this server/);
  }));

for (const kind of ["bundle", "chain"]) {
  test(`every ${kind} of the client's vectors is judged in the browser as the client does`, () =>
    withVerify(verifyAt("app/1.0"), async (page) => {
      assertVerdicts(kind, await page.evaluate(judge, { base: "/assets/verify", kind, vectors: readVectors(kind) }));
    }));
}

test("every value at the edge of what is accepted is read in the browser as the client does", () =>
  withVerify(verifyAt("app/1.0"), async (page) => {
    assertValues(await page.evaluate(judgeValues, { base: "/assets/verify", files: readVectors("values") }));
  }));
