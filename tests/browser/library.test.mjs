// The npm package in a browser: the same files as in Node, and the same answers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { launch, open, withPage, work } from "./browser.mjs";
import { readVectors } from "./vectors.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

// Runs in the page.
async function judgeBundles(vectors) {
  const { verifyBundle, VerifyError } = await import("/package/index.mjs");
  const verdicts = {};
  for (const [name, { bundle, project }] of Object.entries(vectors)) {
    const verdict = verifyBundle(new TextEncoder().encode(JSON.stringify(bundle)), null, { project, firstUse: "accept" });
    verdicts[name] = await verdict.then(() => "verified", (error) => {
      if (!(error instanceof VerifyError)) throw error;
      return error.code === "revoked" ? "revoked" : "refused";
    });
  }
  const { bundle, project } = vectors["good-plain.json"];
  const { file } = await verifyBundle(JSON.stringify(bundle), new Blob(["v1"]), { project, firstUse: "accept" });
  return { verdicts, file: file.name };
}

test("the npm package judges every bundle of the client's vectors in the browser as the client does", () =>
  withPage(browser, {}, async (page) => {
    await page.route("**/package/**", (route) => {
      const path = new URL(route.request().url()).pathname;
      return route.fulfill({ body: readFileSync(work + path, "utf8"), contentType: "text/javascript" });
    });
    await open(page, "/verify");
    const vectors = readVectors("bundle");
    const { verdicts, file } = await page.evaluate(judgeBundles, vectors);
    assert.deepEqual(verdicts, Object.fromEntries(Object.entries(vectors).map(([name, { expect }]) => [name, expect])));
    assert.equal(file, "app.tar.gz");
  }));
