// What the page says of the log: the server has one, and witnesses are played here.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open, root, server, withPage, work } from "./browser.mjs";
import { judgeStaples } from "./judge.mjs";
import { assertStaples, readVectors } from "./vectors.mjs";
import { cosign } from "./witness.mjs";

const index = (release) => `${root}/acme/${release}/svc.index.json`;
const ask = async (path) => (await fetch(`${server}/v1/${path}`)).text();
const now = () => Math.floor(Date.now() / 1000);

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

// Verifies a file; `change` is what becomes of the bundle and of what is said of the log on their way.
async function verify(page, file, change = () => {}) {
  const isState = ({ pathname }) => pathname.startsWith("/v1/state/");
  await page.route(isState, async (route) => {
    const response = await route.fetch();
    assert.equal(response.status(), 200);
    const answer = await response.json();
    await change(answer.bundle, answer.log);
    return route.fulfill({ json: answer });
  });
  await page.locator("#result").evaluate((result) => result.removeAttribute("class"));
  await page.locator("#file:enabled").setInputFiles([]);
  await page.locator("#file").setInputFiles(`${work}/site/acme/${file}`);
  await page.locator("#result.verified, #result.refused").waitFor();
  await page.unroute(isState);
  const lines = await page.locator("#result li").allTextContents();
  return { outcome: await page.locator("#result").getAttribute("class"), lines };
}

// Changes the staple alone.
const inStaple = (change) => async (bundle) => {
  bundle.staple = await change(bundle.staple);
};

const withVerify = (release, use, expected) =>
  withPage(browser, {}, async (page) => {
    await open(page, `/verify?path=${encodeURIComponent(index(release))}`);
    await use(page);
  }, expected);

function assertSaid({ outcome, lines }, last) {
  assert.equal(outcome, "verified", lines.join("\n"));
  assert.match(lines.at(-1), last);
}

function assertRefused({ outcome, lines }, why) {
  assert.equal(outcome, "refused", lines.join("\n"));
  assert.match(lines[0], why);
}

const FRESH = String.raw`^✓ Fresh as of \d{4}-\d\d-\d\d \d\d:\d\d UTC, by`;

test("a state that witnesses have seen is shown as fresh", async () => {
  await withVerify("logged/1.1", async (page) => {
    const said = await verify(page, "logged/1.1/watched", inStaple((staple) => cosign(staple, [now() - 7200, now() - 3600])));
    assertSaid(said, new RegExp(`${FRESH} 2 of 3 witnesses; the release completed last; not revoked$`));
    // The state is as old as the older of the two that are needed.
    const time = new Date((now() - 7200) * 1000).toISOString().slice(0, 13).replace("T", " ");
    assert.ok(said.lines.at(-1).includes(`as of ${time}`), `${said.lines.at(-1)}, not ${time}`);
  });
  await withVerify("logged/1.0", async (page) => {
    const said = await verify(page, "logged/1.0/watched", inStaple((staple) => cosign(staple, [now(), now(), now()])));
    assertSaid(said, new RegExp(`${FRESH} 3 of 3 witnesses; 1 release was completed later: 1\\.1; not revoked$`));
  });
});

// What becomes of the staple, and what the page says.
const LIES = {
  "no witness": [(staple) => staple, /too few witnesses have cosigned its checkpoint: 0 of 3, and at least 2 are needed$/],
  "one witness": [(staple) => cosign(staple, [now()]), /too few witnesses.*: 1 of 3/],
  "an old proof": [(staple) => cosign(staple, [now(), now() - 86_500]), /newest proof .* is from .* UTC; the signers allow 24 hourscheck this computer's clock/],
  "a time to come": [(staple) => cosign(staple, [now(), now() + 900]), /the time of the witness witness2\.test is more than five minutes ahead/],
  "another leaf": [(staple) => cosign({ ...staple, leaf: staple.leaf.replace(/commit ./, (line) => (line.endsWith("0") ? "commit 1" : "commit 0")) }, [now(), now()]), /its leaf is not in the log$/],
  "another record": [(staple) => cosign({ ...staple, project: { ...staple.project, record: staple.project.record.replace("history 1", "history 2") } }, [now(), now()]), /the record of the project is not in its status map$/],
  "the cosignatures of another checkpoint": [(staple) => {
    const { proof } = cosign({ ...staple, proof: staple.proof.replace(/\n\n.*\n/, "\n\nother.test\n") }, [now(), now()]);
    return { ...staple, proof: staple.proof + proof.slice(proof.indexOf("— witness1")) };
  }, /the signature of witness1\.test on its checkpoint does not verify$/],
  "the staple of another release": [async () => cosign(JSON.parse(await ask(`state/${index("logged/1.0")}`)).bundle.staple, [now(), now()]), /it is about another release$/],
  "a field too many": [(staple) => ({ ...staple, note: "" }), /The server's answer is not valid: field `bundle\.staple\.note`: unknown field$/],
  "no staple": [() => null, /signers want a log to prove that the release is not revoked, but the server shows no proofit keeps no log$/],
};

test("a staple that does not prove the state is a failure", () =>
  withVerify("logged/1.1", async (page) => {
    for (const [name, [change, why]] of Object.entries(LIES)) {
      const said = await verify(page, "logged/1.1/watched", inStaple(change));
      assert.equal(said.outcome, "refused", name);
      assertRefused(said, why);
    }
    const stopped = await verify(page, "logged/1.1/watched", (bundle, log) => {
      bundle.staple = null;
      log.no_staple = "the log has stopped";
    });
    assertRefused(stopped, /the server shows no proofthe log has stopped$/);
  }));

test("where the signers name no log, the state is the server's word", async () => {
  await withVerify("app/1.0", async (page) => {
    const file = "app/1.0/app.tar.gz";
    assertSaid(await verify(page, file), /^✓ By the server's word alone; the release completed last; not revoked$/);
    // A server without a log, or one that has no checkpoint yet.
    assertSaid(await verify(page, file, inStaple(() => null)), /^✓ The file is app\.tar\.gz/);
    // A lie is one all the same.
    assertRefused(await verify(page, file, inStaple((staple) => ({ ...staple, leaf: "" }))), /field `bundle\.staple\.leaf`: must be a leaf/);
  });
  await withVerify("app/0.8", async (page) =>
    assertSaid(await verify(page, "app/0.8/app.tar.gz"), /^✓ By .*; 2 releases were completed later: 1\.0, 0\.9; not revoked$/));
  await withVerify("many/1.0", async (page) =>
    assertSaid(await verify(page, "many/1.0/program"), /; 26 releases were completed later, the last of them 1\.26, (\S+, ){6}1\.19; not/));
});

test("a revocation that only the log shows is one that the server hides", () =>
  withVerify("app/0.9", async (page) => {
    const hide = (bundle) => void (bundle.revocation = null);
    assertRefused(await verify(page, "app/0.9/app.tar.gz", hide), /The server hides that the release is revoked, by the server's word alone$/);
  }));

test("signers that only the log shows are ones that the server hides", () =>
  withVerify("app/0.8", async (page) => {
    const hide = (bundle) => void bundle.signers_history.entries.pop();
    assertRefused(await verify(page, "app/0.8/app.tar.gz", hide), /hides a change of signers: it shows 1 of the 2 signers files in its log, by/);
  }));

test("a release that the log does not cover yet is waited for", () =>
  withVerify("app/1.0", async (page) => {
    let asked = 0;
    const said = await verify(page, "app/1.0/app.tar.gz", (bundle, log) => {
      asked += 1;
      if (asked > 1) return;
      bundle.staple = null;
      log.is_soon = true;
    });
    assert.equal(asked, 2);
    assertSaid(said, /By the server's word alone/);
  }));

test("every staple of the client's vectors is judged in the browser as the client does", () =>
  withVerify("app/1.0", async (page) => {
    assertStaples(await page.evaluate(judgeStaples, { base: "/assets/verify", vectors: readVectors("log") }));
  }));
