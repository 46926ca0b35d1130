// Every page, in both colour schemes, on a wide screen and on a phone: it renders, asks no one else for anything, can be
// used by everyone, and has its picture taken.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { launch, open, root, screenshots, site, withPage } from "./browser.mjs";

const app = `/p/${root}/acme/app`;
const verifyAt = (release) => `/verify?path=${encodeURIComponent(`${root}/acme/${release}/svc.index.json`)}`;

const PAGES = {
  landing: "/",
  projects: "/projects",
  "search-with-a-result": "/projects?q=tools",
  "search-without-one": "/projects?q=nothing-like-this",
  "search-for-a-digest": "/projects?q=c2d4e6c06eb3a1c86a3b1d7a2f4ab3c2f1a7a5e3a8d4f7b8c9d0e1f2a3b4c5d6",
  project: app,
  "project-with-many-releases": `/p/${root}/acme/many`,
  "project-filtered": `/p/${root}/acme/many?state=complete&q=1.2`,
  "project-without-releases": `/p/${root}/acme/empty`,
  "project-that-waits": `/p/${root}/acme/new`,
  "release-complete": `${app}/1.0/svc.index.json`,
  "release-collecting": `${app}/1.1/svc.index.json`,
  "release-revoked": `${app}/0.9/svc.index.json`,
  "release-with-a-begun-revocation": `/p/${root}/acme/many/1.3/svc.index.json`,
  "release-with-builders": `/p/${root}/acme/built/1.0/svc.index.json`,
  "release-with-odd-names": `/p/${root}/acme/tools/2.0/svc.index.json`,
  "signers-pending": `${app}/svc.signers.pending/svc.signers.json`,
  "first-signers-pending": `/p/${root}/acme/new/svc.signers.pending/svc.signers.json`,
  history: `${app}/svc.signers.history.json`,
  "project-activity": `${app}/svc.activity`,
  activity: "/activity",
  "activity-filtered": "/activity?type=complete",
  log: "/log",
  help: "/help",
  client: "/client",
  docs: "/docs",
  "docs-of-a-group": "/docs/reading",
  verify: "/verify",
  "verify-a-release": verifyAt("app/1.0"),
  "verify-a-revoked-release": verifyAt("app/0.9"),
  "verify-a-begun-revocation": verifyAt("many/1.3"),
  "verify-an-address": `/verify?url=${encodeURIComponent(`${site}/acme/app/1.0/extra/plug-in.tar.gz`)}`,
};

const DEVICES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 800 } };

const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

let browser;
before(async () => {
  browser = await launch();
  // The page of a key has the key in its address.
  await withPage(browser, {}, async (page) => {
    await open(page, app);
    PAGES.key = await page.locator("a.key").first().getAttribute("href");
  });
});
after(() => browser.close());

// The reference is long, and its picture takes a while.
const takePicture = (page, name) =>
  page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true, timeout: 60_000 });

// WCAG 2.2, levels A and AA, as far as a program can tell: contrast, labels, landmarks, names of links and fields.
async function assertAccessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() =>
    window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"] }));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
  assert.deepEqual(found, [], name);
}

async function assertWellFormed(page, name) {
  const seen = await page.evaluate(() => ({
    headings: document.querySelectorAll("h1").length,
    mains: document.querySelectorAll("main").length,
    title: document.title,
    language: document.documentElement.lang,
    inline: document.querySelectorAll("script:not([src]), style, [style], [onclick], [onerror]").length,
    small: [...document.querySelectorAll("pre, code")].filter((code) => parseFloat(getComputedStyle(code).fontSize) < 13).length,
    touching: [...document.querySelectorAll("main .card + .card")].filter((card) => {
      const gap = card.getBoundingClientRect().top - card.previousElementSibling.getBoundingClientRect().bottom;
      return gap >= 0 && gap < 12;
    }).length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  assert.equal(seen.headings, 1, `${name} has one first heading`);
  assert.equal(seen.mains, 1, name);
  assert.match(seen.title, /\S.* · Countersign$/, name);
  assert.equal(seen.language, "en", name);
  assert.equal(seen.inline, 0, `${name} has nothing inline`);
  assert.equal(seen.small, 0, `${name} has commands in letters of less than 13 pixels`);
  assert.equal(seen.touching, 0, `${name} has cards that touch`);
  assert.ok(seen.overflow <= 0, `${name} is ${seen.overflow} pixels too wide`);
}

for (const colorScheme of ["light", "dark"]) {
  for (const [device, viewport] of Object.entries(DEVICES)) {
    test(`every page renders: ${colorScheme}, ${device}`, (t) =>
      withPage(browser, { colorScheme, viewport }, async (page, troubles) => {
        for (const [name, path] of Object.entries(PAGES)) {
          await t.test(name, async () => {
            await open(page, path);
            await assertWellFormed(page, name);
            await takePicture(page, `${name}-${colorScheme}-${device}`);
            if (device === "desktop") await assertAccessible(page, name);
            assert.deepEqual(troubles.splice(0), []);
          });
        }
      }));
  }
}

const file = (text) => ({ name: "app.tar.gz", mimeType: "", buffer: Buffer.from(text) });

for (const [outcome, text] of [["verified", "pretend that this is a program\n"], ["refused", "tampered"]]) {
  test(`what a verification says can be read by everyone: ${outcome}`, async () => {
    for (const colorScheme of ["light", "dark"]) {
      for (const [device, viewport] of Object.entries(DEVICES)) {
        await withPage(browser, { colorScheme, viewport }, async (page) => {
          await open(page, verifyAt("app/1.0"));
          await page.locator("#file:enabled").setInputFiles(file(text));
          await page.locator(`#result.${outcome}`).waitFor();
          await assertWellFormed(page, outcome);
          await takePicture(page, `verify-${outcome}-${colorScheme}-${device}`);
          if (device === "desktop") await assertAccessible(page, outcome);
        });
      }
    }
  });
}

test("search finds projects by what is typed", () =>
  withPage(browser, {}, async (page) => {
    await open(page, "/projects");
    assert.ok(await page.getByRole("link", { name: /acme\/app/ }).first().isVisible());
    const field = page.getByRole("searchbox");
    await field.fill("tools");
    await field.press("Enter");
    await page.waitForURL(/\?q=tools/);
    assert.ok(await page.getByRole("main").getByRole("link", { name: /acme\/tools/ }).first().isVisible());
    assert.equal(await page.getByRole("main").getByRole("link", { name: /acme\/app/ }).count(), 0);
    assert.equal(await page.getByRole("searchbox").inputValue(), "tools");
  }));

test("a release leads to the page that verifies its files", () =>
  withPage(browser, {}, async (page) => {
    await open(page, `${app}/1.0/svc.index.json`);
    await page.getByRole("main").getByRole("link", { name: /check a file/i }).first().click();
    await page.locator("#file:enabled").waitFor();
    assert.match(page.url(), /\/verify\?path=/);
  }));

test("names that try to be more are text on every page", () =>
  withPage(browser, {}, async (page) => {
    for (const path of ["/activity", `/p/${root}/acme/tools`, PAGES["release-with-odd-names"], PAGES["release-revoked"]]) {
      await open(page, path);
      assert.equal(await page.locator("main img[src=x], main script, main b").count(), 0, path);
      assert.doesNotMatch(await page.locator("body").innerText(), /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u3164]/, path);
    }
  }));

test("the first stop of the keyboard skips to the content", () =>
  withPage(browser, {}, async (page) => {
    await open(page, "/");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    assert.ok(await page.evaluate(() => document.activeElement.closest("main") !== null));
  }));

test("pages can be read without scripts", () =>
  withPage(browser, { javaScriptEnabled: false }, async (page) => {
    for (const [name, path] of Object.entries(PAGES)) {
      await open(page, path);
      assert.ok(await page.locator("h1").isVisible(), name);
      assert.equal(await page.locator("button.copy").count(), 0, "no button that does nothing");
    }
    await open(page, app);
    assert.match(await page.locator("time.ago").first().textContent(), /^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
  }));

test("where scripts run, commands are copied and times are said as people do", () =>
  withPage(browser, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    await open(page, `${app}/1.0/svc.index.json`);
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    const command = page.locator(".hero .command").first();
    const button = command.getByRole("button", { name: "Copy the command" });
    await button.click();
    await page.getByText("Copied", { exact: true }).waitFor();
    assert.equal(await copied(), await command.locator("pre").textContent());
    await page.getByRole("button", { name: "Copy the digest", exact: true }).first().click();
    assert.match(await copied(), /^[0-9a-f]{64}$/);
    const time = page.locator("time.ago").first();
    assert.match(await time.textContent(), /ago$|^just now$/);
    assert.match(await time.getAttribute("title"), /^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
  }));

test("keys never break inside their prefix, and lead to their pages", () =>
  withPage(browser, { viewport: { width: 320, height: 600 } }, async (page) => {
    await open(page, `${app}/svc.signers.history.json`);
    for (const key of await page.locator("a.key").all()) {
      assert.match(await key.textContent(), /^svc-pub:\S{6}…\S{6}$/);
      assert.equal(await key.evaluate((link) => link.getClientRects().length), 1);
    }
    await page.locator("a.key").first().click();
    await page.waitForURL(/\/keys\/svc-pub:[\w-]{43}$/);
    assert.match(await page.locator(".whole-key").textContent(), /^svc-pub:\S{43}$/);
    assert.equal(await page.locator(".whole-key .together").evaluate((prefix) => prefix.getClientRects().length), 1);
    await open(page, verifyAt("app/1.0"));
    await page.locator("#file:enabled").setInputFiles(file("pretend that this is a program\n"));
    await page.locator("#result.verified").waitFor();
    await page.getByText("What was checked").click();
    const keys = page.locator("#result small").filter({ hasText: /^svc-pub:/ });
    assert.equal(await keys.count(), 2);
    for (const key of await keys.all()) {
      const lines = await key.evaluate(({ firstChild: text }) => {
        const prefix = document.createRange();
        prefix.setStart(text, 0);
        prefix.setEnd(text, "svc-pub:".length);
        return prefix.getClientRects().length;
      });
      assert.equal(lines, 1);
    }
  }));

test("what is said of a begun revocation has nothing green", () =>
  withPage(browser, {}, async (page) => {
    const begun = "many/1.3/svc.index.json";
    await open(page, `/p/${root}/acme/${begun}`);
    const signed = await page.locator(".hero .people li:not(.missing) a.key").getAttribute("href");
    const asked = await page.locator(".hero .people .missing a.key").getAttribute("href");
    for (const [path, said] of [
      [`/p/${root}/acme/${begun}`, "main > *"],
      [verifyAt("many/1.3"), "main > .card"],
      [`/p/${root}/acme/many`, "main .card:has(.reason)"],
      [`/p/${root}/acme/many`, ".releases tr"],
      [signed, ".releases tr"],
      [asked, ".releases tr"],
    ]) {
      await open(page, path);
      const about = page.locator(said).filter({ hasText: /want it revoked|revocation begun/ });
      assert.ok(await about.count(), path);
      const isGreen = (all) => {
        const probe = document.body.appendChild(Object.assign(document.createElement("i"), { className: "good" }));
        const { color, backgroundColor } = getComputedStyle(probe);
        const used = (one) => ["color", "backgroundColor", "borderLeftColor"].map((name) => getComputedStyle(one)[name]);
        return all.flatMap((one) => [one, ...one.querySelectorAll("*")])
          .filter((one) => used(one).some((found) => [color, backgroundColor].includes(found))).map((one) => one.outerHTML);
      };
      assert.deepEqual(await about.evaluateAll(isGreen), [], path);
    }
  }));

test("no page of a project is longer than it must be", () =>
  withPage(browser, {}, async (page) => {
    await open(page, `/p/${root}/acme/many`);
    assert.equal(await page.locator(".releases tbody tr").count(), 25);
    assert.match(await page.locator(".releases tbody tr").first().textContent(), /1\.3.*revocation begun.*1 of 2 revokers/);
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForURL(/\?page=2$/);
    assert.equal(await page.locator(".releases tbody tr").count(), 2);
    await open(page, `/p/${root}/acme/many`);
    await page.getByRole("link", { name: /^Collecting/ }).click();
    assert.ok(await page.getByText("No release is in this state.").isVisible());
    await page.getByRole("link", { name: "Revocation begun 1" }).click();
    await page.waitForURL(/state=revocation_begun$/);
    assert.equal(await page.locator(".releases tbody tr").count(), 1);
  }));

test("feeds are XML that a browser reads", () =>
  withPage(browser, {}, async (page) => {
    await open(page, "/verify");
    for (const address of ["/activity.atom", `${app}/svc.activity.atom`]) {
      const seen = await page.evaluate(async (target) => {
        const text = await (await fetch(target)).text();
        const feed = new DOMParser().parseFromString(text, "application/xml");
        const entries = [...feed.querySelectorAll("entry")];
        const isWhole = (entry) => ["id", "title", "updated", "link"].every((name) => entry.querySelector(name));
        return [feed.documentElement.namespaceURI, feed.querySelectorAll("parsererror").length, entries.length > 5, entries.every(isWhole)];
      }, address);
      assert.deepEqual(seen, ["http://www.w3.org/2005/Atom", 0, true, true], address);
    }
  }));
