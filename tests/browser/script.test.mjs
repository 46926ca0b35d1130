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
