// Headless Chromium, watched: nothing may go wrong in the console, and no one else may be asked for anything.

import assert from "node:assert/strict";

import { chromium } from "playwright-core";

export const { COUNTERSIGN_SERVER: server, SITE: site, WORK: work, SCREENSHOTS: screenshots } = process.env;

// Where the file server's files lie on the signing server.
export const root = site.replace("://", "/").replace(/:(\d+)$/, "/$1");

// A name for this computer with which pages are not taken for safe, as they are on the loopback address.
export const insecureServer = server.replace("127.0.0.1", "sign.test");

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--host-resolver-rules=MAP sign.test 127.0.0.1",
    ],
  });

// Opens a page, hands it to `use`, and checks what it did meanwhile. `expected` are console messages that may come.
export async function withPage(browser, options, use, expected = /^$/) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const troubles = watch(page, expected);
  try {
    await use(page, troubles);
    assert.deepEqual(troubles, []);
  } finally {
    await context.close();
  }
}

function watch(page, expected) {
  page.setDefaultTimeout(10_000);
  const troubles = [];
  page.on("console", (message) => {
    const text = `${message.text()} ${message.location().url}`;
    const isBad = ["error", "warning"].includes(message.type()) && !expected.test(text);
    if (isBad) troubles.push(`console: ${text}`);
  });
  page.on("pageerror", (error) => troubles.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (![server, insecureServer].includes(origin)) troubles.push(`request to ${origin}`);
  });
  return troubles;
}

export async function open(page, path) {
  const response = await page.goto(server + path);
  assert.equal(response.status(), 200, path);
}
