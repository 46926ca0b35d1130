// What the server shows, and the facts of a file.

import { readIndex, readShown } from "./documents.mjs";
import { decodeText, hash, toHex } from "./keys.mjs";
import { attempt, refuseIf } from "./rules.mjs";

// `null` if there is nothing. A busy server asks us to wait, and a log needs a moment for what is new.
async function ask(target, tell, read = JSON.parse, more = 3) {
  const signal = AbortSignal.timeout(6e4);
  const response = await fetch(`/v1/${target}`, { cache: "no-store", redirect: "error", signal });
  const receive = async () => read(decodeText(await response.arrayBuffer()));
  const answer = response.ok ? await attempt("The server's answer", receive) : null;
  const pause = answer?.log?.is_soon ? 2e3 : response.headers.get("retry-after") * 1e3;
  if (more && pause && pause < 9e3) {
    tell();
    await new Promise((go) => setTimeout(go, pause));
    return ask(target, tell, read, more - 1);
  }
  refuseIf(!answer && response.status !== 404, `The server answers ${response.status} for ${target}`);
  return answer;
}

// Where to look; nothing of it is believed.
export async function findReleases(digests, tell) {
  const find = (kind) => ask(`releases?${kind}=${digests[kind]}`, tell);
  const answers = await Promise.all(["sha256", "sha512"].map(find));
  const releases = answers.flatMap((answer) => answer.releases);
  releases.sort((a, b) => (a.state === "revoked") - (b.state === "revoked"));
  return releases.map(({ index_path: index, project_id: project }) => ({ index, project }));
}

// The first of these releases with the file, or `why` there is none. An answer is all of one commit (D232).
export async function gatherEvidence(places, tell) {
  let why = "This server has no release that lists the file";
  for (const { index: path, name, only } of places) {
    const answer = await ask(`state/${path.split("/").map(encodeURIComponent).join("/")}`, tell, readShown);
    if (!answer) continue;
    refuseIf(answer.path !== path, "The answer is about another release");
    const { bundle, files, log } = answer;
    const text = bundle?.index ?? files.get(path);
    const index = text && (await attempt("The index", () => readIndex(text)));
    if (!index) why = "The release was withdrawn";
    else if (!name || index.published_files.some((file) => file.file_name === name)) {
      if (!bundle) return { why: "Not enough people have signed the release yet" };
      const begun = files.get(`${path}.revocation.json.pending`);
      return { ...bundle, name, begun, files, noStaple: log.no_staple };
    } else if (only) break;
  }
  return { why };
}

export async function readFacts(file) {
  refuseIf(file.size > 2 ** 30, "More than 1 GiB is too much for a browser: use the command line");
  const [{ name, size }, bytes] = [file, await file.arrayBuffer()];
  const digest = async (kind) => toHex(await hash(kind, bytes));
  return { name, size, sha256: await digest("SHA-256"), sha512: await digest("SHA-512") };
}
