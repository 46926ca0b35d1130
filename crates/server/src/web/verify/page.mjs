// The page: verifies a file, and says what was checked.

import { checkFile, gatherEvidence } from "./evidence.mjs";
import { hasEd25519 } from "./keys.mjs";
import { verifyEvidence } from "./rules.mjs";
import { shownSigner, shownText } from "./values.mjs";

const [input, result] = ["file", "result"].map((id) => document.getElementById(id));
const places = [...document.querySelectorAll("[data-index]")].map((item) => item.dataset);
let runs = 0;

// Text only: nothing from outside becomes markup.
const element = (tag, text, className = "") =>
  Object.assign(document.createElement(tag), { textContent: shownText(text), className });

function show(outcome, heading, checks) {
  const list = element("ul", "");
  list.append(...checks.map((text) => element("li", text, text.startsWith("✓") ? "passed" : "failed")));
  result.className = outcome;
  result.replaceChildren(element("h2", heading), list);
}

async function verify(file) {
  const run = ++runs;
  const checks = [];
  const passed = (text) => checks.push(`✓ ${text}`);
  let [outcome, heading] = ["verified", `Verified: ${file.name}`];
  show("busy", `Checking ${file.name} …`, []);
  try {
    const evidence = await gatherEvidence(places);
    const { index, governing, signedBy } = await verifyEvidence(evidence, passed);
    for (const key of signedBy) passed(`Signed by ${shownSigner(key, governing.names.get(key))}`);
    await checkFile(file, index.published_files, evidence.name, passed);
  } catch (error) {
    [outcome, heading] = ["refused", `Not verified, do not use it: ${file.name}`];
    checks.push(`✗ ${error.name === "Error" ? "" : "It could not be checked. "}${error.message}`);
  }
  if (run === runs) show(outcome, heading, checks);
}

if (await hasEd25519()) {
  input.disabled = false;
  result.replaceChildren();
  // The same file may be chosen again.
  input.addEventListener("click", () => (input.value = ""));
  input.addEventListener("change", () => input.files[0] && verify(input.files[0]));
} else {
  const why = isSecureContext ? "It does not offer Ed25519" : "This page did not come over https";
  show("refused", "This browser cannot verify here", [`✗ ${why}. Use the command line instead`]);
}
