// What the server shows, and the facts of a file.

import { history, readIndex, signatures } from "./documents.mjs";
import { parseJson } from "./json.mjs";
import { decodeText, hash, toHex } from "./keys.mjs";
import { attempt, digestOf, refuseIf } from "./rules.mjs";

// `null` if there is nothing. A busy server asks us to wait.
async function ask(target, tell, more = 2) {
  const options = { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(6e4) };
  const response = await fetch(`/v1/${target}`, options);
  const pause = response.headers.get("retry-after") * 1e3;
  if (more && pause && pause < 9e3) {
    tell?.();
    await new Promise((go) => setTimeout(go, pause));
    return ask(target, tell, more - 1);
  }
  if (response.status === 404) return null;
  refuseIf(!response.ok, `The server answers ${response.status} for ${target}`);
  const bytes = await response.arrayBuffer();
  return attempt(target, () => decodeText(bytes));
}

const askAt = (route, path) => ask(`${route}/${path.split("/").map(encodeURIComponent).join("/")}`);

// Where to look; nothing of it is believed.
export async function findReleases(digests, tell) {
  const find = (kind) => ask(`releases?${kind}=${digests[kind]}`, tell);
  const answers = await Promise.all(["sha256", "sha512"].map(find));
  const releases = answers.flatMap((answer) => JSON.parse(answer).releases);
  releases.sort((a, b) => (a.state === "revoked") - (b.state === "revoked"));
  return releases.map(({ index_path: index, project_id: project }) => ({ index, project }));
}

export async function gatherEvidence(places) {
  for (const { index: path, name, only } of places) {
    const index = await askAt("files", path);
    if (index === null) continue;
    const { published_files: files, project_id: project } = await attempt("The index", () => readIndex(index));
    const isListed = !name || files.some((file) => file.file_name === name);
    if (isListed) return { name, path, index, ...(await gatherFor(path, project)) };
    if (only) break;
  }
  throw new Error("This server has no index that lists the file");
}

async function gatherFor(path, project) {
  const shown = (suffix) => askAt("files", path + suffix);
  const [copy, complete, revocation, begun, objections] = await Promise.all(
    [".signers.json", ".signatures.json", ".revocation.json", ".revocation.json.pending", ".objections.json"].map(shown));
  const signed = complete ?? (await shown(".signatures.json.revoked"));
  refuseIf(signed === null, "Not enough people have signed the release yet");
  refuseIf(complete === null && revocation === null, "It is revoked, but the server does not show why");
  // Before the chain, which can then only be newer.
  const staple = await askAt("proof", path).catch((error) => error);
  const chain = await askAt("get_signers_chain", `${project}/svc.signers/svc.signers.json`);
  return {
    signatures: await attempt("The list of signatures", () => signatures(parseJson(signed), "")),
    governedBy: await digestOf(copy ?? ""),
    history: await attempt("The signers chain", () => history(parseJson(chain).history, "history")),
    ...{ revocation, begun, objections, staple },
  };
}

export async function readFacts(file) {
  refuseIf(file.size > 2 ** 30, "More than 1 GiB is too much for a browser: use the command line");
  const [{ name, size }, bytes] = [file, await file.arrayBuffer()];
  const digest = async (kind) => toHex(await hash(kind, bytes));
  return { name, size, sha256: await digest("SHA-256"), sha512: await digest("SHA-512") };
}
