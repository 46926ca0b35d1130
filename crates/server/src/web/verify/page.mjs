// The page: finds the releases of files, and says what was checked.

import { findReleases, gatherEvidence, readFacts } from "./evidence.mjs";
import { checkFreshness } from "./freshness.mjs";
import { hasEd25519 } from "./keys.mjs";
import { judgeReproduction, refuseLacking, spellBuilder, spellReproduction } from "./reproduction.mjs";
import { checkFile, refuseIf, verifyEvidence } from "./rules.mjs";
import { quoted, releaseOf, shownName, shownText, urlOf } from "./values.mjs";
import { spellDoubt, spellSigners, spellVerdict, weighDoubts } from "./verdict.mjs";

const [input, result, form] = ["file", "result", "ask"].map((id) => document.getElementById(id));
const given = [...document.querySelectorAll("[data-index]")].map((item) => item.dataset);
let runs = 0;

// Text only, never markup.
const element = (tag, text = "", className = "") =>
  Object.assign(document.createElement(tag), { textContent: shownText(text), className });

function listLines(lines) {
  const all = element("ul");
  for (const [mark, text, details = []] of lines) {
    const item = element("li", `${mark} ${text}`, mark === "✓" ? "passed" : "failed");
    item.append(...details.map((detail) => element("small", detail)));
    all.append(item);
  }
  return all;
}

// The worst of several comes first.
const OUTCOMES = ["refused", "doubted", "asking", "unsettled", "busy", "verified"];

// `plain` is for people; `lines` is all that was checked, folded away if it passed.
function show(place, outcome, heading, { about = "", plain = [], lines = [], link } = {}) {
  const folded = element("details");
  folded.open = outcome === "refused";
  folded.append(element("summary", "What was checked"), listLines(lines));
  const parts = [element("h2", heading), about && element("p", about), plain[0] && listLines(plain), link, lines[0] && folded];
  place.className = outcome;
  place.replaceChildren(...parts.filter(Boolean));
  const outcomes = [...result.children].map((child) => child.className);
  result.className = OUTCOMES.find((known) => outcomes.includes(known));
}

// Letters that can look like others (D228).
const hex = (c) => c.codePointAt().toString(16).toUpperCase().padStart(4, 0);
const marked = (name) => name + [...new Set(name.match(/[^ -~]/gu))].map((c) => ` (U+${hex(c)})`).join("");

// Anyone can list any digest.
function askWhich(place, file, found) {
  show(place, "asking", `Several projects list ${file.name}`, { about: "Which one did you get it from?" });
  for (const one of found) {
    const button = element("button", marked(one.index));
    button.addEventListener("click", () => verify(place, file, [one]));
    place.append(button);
  }
}

// Since when this browser knows the project, whose first signers never change (D239).
function remember(project, { links }) {
  const [name, first] = [`signers of ${project}`, links[0].digest];
  const known = JSON.parse(localStorage.getItem(name));
  if (known) refuseIf(known.first !== first, `The project had other first signers when this browser saw it on ${known.at}`);
  else localStorage.setItem(name, JSON.stringify({ first, at: new Date().toISOString().slice(0, 10) }));
  return known?.at;
}

function spellMemory(project, verified) {
  try {
    const since = remember(project, verified);
    return since ? `, known to this browser since ${since}` : ", which this browser has not seen before";
  } catch (error) {
    if (error.details) throw error;
    return ", which this browser cannot remember";
  }
}

function spellDoubts({ begun, different, objections }) {
  const waits = begun ? [["!", spellDoubt({ begun })]] : [];
  const others = different.map((builder) => ["!", spellBuilder(builder, called), [builder.key]]);
  const said = objections.map(({ text, ...signer }) => ["!", `Objection by ${called(signer)}: ${quoted(`${text}`)}`, [signer.key]]);
  return [...waits, ...others, ...said];
}

const shorten = (key) => `${key.slice(0, 14)}…${key.slice(-6)}`;
const called = ({ key, name }) => name ? shownName(name) : shorten(key);

function tellBuilt(judged, file) {
  if (!judged) return [];
  const isBuilt = judged.covered.includes(file);
  const text = spellReproduction(judged, called, file);
  return [[isBuilt && judged.isReproduced ? "✓" : "!", isBuilt ? text.replace("r", "R") : text]];
}

// A revoked release leads to a better one, by the page of its project.
function linkToNewest(project) {
  const href = `/p/${project.split("/").map(encodeURIComponent).join("/")}`;
  const paragraph = element("p");
  paragraph.append(Object.assign(element("a", `The newest release of ${marked(urlOf(project))}`), { href }));
  return paragraph;
}

async function verify(place, file, places) {
  const run = runs;
  const [lines, plain] = [[], []];
  const passed = (text, ...details) => lines.push(["✓", text, details]);
  let [outcome, heading, about, link, evidence] = ["verified", "", ""];
  const showNow = (...shown) => run === runs && show(place, ...shown);
  showNow("busy", `Checking ${file.name} …`);
  try {
    const facts = await readFacts(file);
    const tell = () => showNow("busy", "Waiting for the server …");
    const found = places.length ? places : await findReleases(facts, tell);
    if (run !== runs) return;
    if (!found.length) form.hidden = false;
    refuseIf(!found.length, "No complete or revoked release here lists this file", `yours: sha256 ${facts.sha256}`);
    if (found.some(({ project }) => project !== found[0].project)) return askWhich(place, file, found);
    evidence = await gatherEvidence(found, tell);
    if (evidence.why) return showNow("unsettled", `Not verified: ${file.name}`, { about: evidence.why });
    const path = evidence.index_path;
    about = `Release: ${marked(path.replace(/\/[^/]*$/, ""))}`;
    const signed = await verifyEvidence(evidence, passed);
    const verified = { ...signed, reproduction: await judgeReproduction(evidence, signed) };
    refuseLacking(verified.reproduction, called);
    const { index, governing, signedBy, links } = verified;
    for (const key of signedBy) passed(`Signed by ${shownName(governing.names.get(key))}`, key);
    const { file_name: listed } = checkFile(facts, index.published_files, evidence.name, passed);
    await checkFreshness(evidence, verified, (text) => void (passed(text), plain.push(["✓", text])));
    const doubts = await weighDoubts(evidence, evidence.files, verified);
    const seen = spellMemory(index.project_id, verified);
    const [said, of = ""] = spellVerdict(file.name, doubts, { index, path }).map(marked);
    [heading, about] = of ? [said, of + seen] : [said + seen, ""];
    if (doubts.begun || doubts.different[0] || doubts.objections[0]) outcome = "doubted";
    const changes = links.length - 1;
    const since = changes === 1 ? "the change" : `each of the ${changes} changes`;
    const history = `Everyone in its first signers file agreed to it${changes ? `, and enough signers to ${since} since` : ""}`;
    plain.unshift(...spellDoubts(doubts), ...spellSigners(verified, shorten).map((text) => ["✓", text]), ["✓", history]);
    plain.push(...tellBuilt(verified.reproduction, listed));
  } catch (error) {
    [outcome, heading] = ["refused", `Do not use ${file.name}`];
    plain.length = 0;
    if (error.revoked) {
      const project = JSON.parse(evidence.index).project_id;
      heading += `: ${marked(releaseOf(evidence.index_path, project))} ${error.revoked}`;
      [about, link] = ["", linkToNewest(project)];
    }
    lines.unshift(["✗", `${error.name === "Error" ? "" : "It could not be checked. "}${error.message}`, error.details]);
  }
  showNow(outcome, heading, { about, plain, lines, link });
}

function verifyAll(files) {
  runs += 1;
  form.hidden = true;
  const places = files.map(() => element("article"));
  result.replaceChildren(...places);
  files.forEach((file, i) => verify(places[i], file, given));
}

if (await hasEd25519().catch(() => null)) {
  input.disabled = false;
  result.replaceChildren();
  // The same file may be chosen again.
  input.addEventListener("click", () => (input.value = ""));
  input.addEventListener("change", () => input.files[0] && verifyAll([...input.files]));
} else {
  const why = isSecureContext ? "It does not offer Ed25519" : "This page did not come over https";
  result.replaceChildren(element("article"));
  show(result.firstChild, "refused", "This browser cannot verify here", { lines: [["✗", `${why}. Use the command line instead`]] });
}
