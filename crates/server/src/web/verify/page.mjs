// The page: finds a file's release, and says what was checked.

import { findReleases, gatherEvidence, readFacts } from "./evidence.mjs";
import { checkFreshness } from "./freshness.mjs";
import { hasEd25519 } from "./keys.mjs";
import { checkFile, refuseIf, verifyEvidence } from "./rules.mjs";
import { quoted, shownName, shownText } from "./values.mjs";

const [input, result, form] = ["file", "result", "ask"].map((id) => document.getElementById(id));
const given = [...document.querySelectorAll("[data-index]")].map((item) => item.dataset);
let runs = 0;

// Text only, never markup.
const element = (tag, text, className = "") =>
  Object.assign(document.createElement(tag), { textContent: shownText(text), className });

function show(outcome, heading, about = "", lines = []) {
  const list = element("ul", "");
  for (const [mark, text, details = []] of lines) {
    const item = element("li", `${mark} ${text}`, mark === "✓" ? "passed" : "failed");
    item.append(...details.map((detail) => element("small", detail)));
    list.append(item);
  }
  result.className = outcome;
  result.replaceChildren(element("h2", heading), element("p", about), list);
}

// Letters that can look like others (D228).
const hex = (c) => c.codePointAt().toString(16).toUpperCase().padStart(4, 0);
const marked = (name) => name + [...new Set(name.match(/[^ -~]/gu))].map((c) => ` (U+${hex(c)})`).join("");

// Anyone can list any digest.
function askWhich(file, places) {
  show("asking", `Several projects list ${file.name}`, "Which one did you get it from?");
  for (const place of places) {
    const button = element("button", marked(place.index));
    button.addEventListener("click", () => verify(file, [place]));
    result.append(button);
  }
}

// What speaks against a release (D185).
function listDoubts({ begun, objections }, { links }) {
  const doubts = [];
  const add = (what, text, ...keys) => doubts.push(["!", `${what}: ${quoted(`${text}`)}`, keys]);
  if (begun) add("A revocation waits for more signatures", JSON.parse(begun).reason);
  for (const [key, { document }] of Object.entries(JSON.parse(objections ?? null)?.objections ?? {})) {
    const text = JSON.parse(document).objection;
    if (text !== null) add(`Objection by ${shownName(links.at(-1).signers.names.get(key))}`, text, key);
  }
  return doubts;
}

async function verify(file, places) {
  const run = ++runs;
  const lines = [];
  const passed = (text, ...details) => lines.push(["✓", text, details]);
  let [outcome, heading, about] = ["verified", `Verified: ${file.name}`];
  show("busy", `Checking ${file.name} …`);
  try {
    const facts = await readFacts(file);
    const tell = () => run === runs && show("busy", "Waiting for the server …");
    const found = places.length ? places : await findReleases(facts, tell);
    if (run !== runs) return;
    form.hidden = found.length;
    refuseIf(!found.length, "No complete or revoked release here lists this file", `yours: sha256 ${facts.sha256}`);
    if (found.some(({ project }) => project !== found[0].project)) return askWhich(file, found);
    const evidence = await gatherEvidence(found, tell);
    if (evidence.why) return run === runs && show("unsettled", `Not verified: ${file.name}`, evidence.why);
    about = `Release: ${marked(evidence.index_path.replace(/\/[^/]*$/, ""))}`;
    const verified = await verifyEvidence(evidence, passed);
    const { index, governing, signedBy } = verified;
    for (const key of signedBy) passed(`Signed by ${shownName(governing.names.get(key))}`, key);
    checkFile(facts, index.published_files, evidence.name, passed);
    await checkFreshness(evidence, verified, passed);
    const doubts = listDoubts(evidence, verified);
    if (doubts[0]) [outcome, heading] = ["doubted", `Verified, but signers object: ${file.name}`];
    if (evidence.begun) heading = `Do not use ${file.name} yet: its revocation has begun`;
    lines.unshift(...doubts);
  } catch (error) {
    [outcome, heading] = ["refused", `Do not use ${file.name}`];
    lines.unshift(["✗", `${error.name === "Error" ? "" : "It could not be checked. "}${error.message}`, error.details]);
  }
  if (run === runs) show(outcome, heading, about, lines);
}

if (await hasEd25519().catch(() => null)) {
  input.disabled = false;
  result.replaceChildren();
  // The same file may be chosen again.
  input.addEventListener("click", () => (input.value = ""));
  input.addEventListener("change", () => input.files[0] && verify(input.files[0], given));
} else {
  const why = isSecureContext ? "It does not offer Ed25519" : "This page did not come over https";
  show("refused", "This browser cannot verify here", "", [["✗", `${why}. Use the command line instead`]]);
}
