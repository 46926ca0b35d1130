// What the server shows for a release, and what a file is.

import { history, readIndex, signatures } from "./documents.mjs";
import { parseJson } from "./json.mjs";
import { hash, toHex } from "./keys.mjs";
import { attempt, digestOf, refuseIf } from "./rules.mjs";

// A stored text; `null` where there is none.
async function ask(route, path) {
  const url = `/v1/${route}/${path.split("/").map(encodeURIComponent).join("/")}`;
  const options = { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(60_000) };
  const response = await fetch(url, options);
  if (response.status === 404) return null;
  refuseIf(!response.ok, `The server answers ${response.status} for ${path}`);
  const bytes = await response.arrayBuffer();
  return attempt(path, () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
}

// Of the first place whose index lists the file.
export async function gatherEvidence(places) {
  for (const { index: path, name, only } of places) {
    const index = await ask("files", path);
    if (index === null) continue;
    const { published_files: files } = attempt("The index", () => readIndex(index));
    if (!name || files.some((file) => file.file_name === name)) return { name, ...(await gatherFor(path, index)) };
    if (only) break;
  }
  return refuseIf(true, "The file is not signed: this server has no index that lists it");
}

async function gatherFor(path, index) {
  const shown = (suffix) => ask("files", path + suffix);
  const suffixes = [".signers.json", ".signatures.json", ".revocation.json"];
  const [copy, complete, revocation] = await Promise.all(suffixes.map(shown));
  const signed = complete ?? (await shown(".signatures.json.revoked"));
  refuseIf(signed === null, "Not enough people have signed the release yet");
  refuseIf(complete === null && revocation === null, "The release is revoked, but the server does not show why");
  const chain = await ask("get_signers_chain", path);
  return {
    path,
    index,
    signatures: attempt("The list of signatures", () => signatures(parseJson(signed), "")),
    governedBy: await digestOf(copy ?? ""),
    history: attempt("The signers chain", () => history(parseJson(chain).history, "history")),
    revocation,
  };
}

// Which listed file this one is, by name or by content.
export async function checkFile(file, files, wanted, passed) {
  const { size } = file;
  refuseIf(size > 2 ** 30, "More than 1 GiB is too much for a browser: use the command line");
  const bytes = await file.arrayBuffer();
  const [sha256, sha512] = [toHex(await hash("SHA-256", bytes)), toHex(await hash("SHA-512", bytes))];
  const isSame = ({ size: listed, digests: { sha256: short = sha256, sha512: long = sha512 } }) =>
    (listed ?? size) === size && short === sha256 && long === sha512;
  const named = files.filter(({ file_name: name }) => (wanted ? name === wanted : name.split("/").at(-1) === file.name));
  const found = (named.length === 1 ? named : files).find(isSame);
  refuseIf(!found, `The file is not the one that was signed: it has ${size} bytes and sha256 ${sha256}`);
  const digests = Object.entries(found.digests).map((pair) => pair.join(" ")).join(", ");
  passed(`The file is ${found.file_name} of the signed index: ${size} bytes, ${digests}`);
}
