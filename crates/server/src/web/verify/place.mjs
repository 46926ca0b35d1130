// Whether an index is about the place where it lies.

import { decodeText } from "./keys.mjs";
import { isDots, isPort, lower } from "./values.mjs";

const PORTS = { "http:": "80", "https:": "443" };
const HOST = /^(?:\[[0-9A-Fa-f:.]*\]|[\w-]+(?:\.[\w-]+)*)$/;

function decodePercent(text, fatal) {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) => {
    const bytes = Uint8Array.from(escapes.match(/[^%]{2}/g), (hex) => parseInt(hex, 16));
    return decodeText(bytes, fatal);
  });
}

// A URL that is a place and nothing more.
function placeOf(url) {
  const [, scheme = "", authority, path = ""] = /^(https?:)\/\/([^/]*)(?:\/([^]*?)\/?)?$/i.exec(url) ?? [];
  const port = PORTS[lower(scheme)];
  if (!port || /[?#\\\p{White_Space}\p{Cc}]/u.test(authority + path)) return null;
  const [, host, written = port] = /^(.*?)(?::([^:\]]*))?$/.exec(authority);
  if (!HOST.test(host) || !isPort(written)) return null;
  try {
    const parts = path ? path.split("/").map((segment) => decodePercent(segment, true)) : [];
    const server = `${lower(scheme).slice(0, -1)}/${lower(host)}/${written}`;
    return parts.some(isDots) ? null : { server, parts };
  } catch {
    return null;
  }
}

function below(url, project) {
  const place = placeOf(url);
  const [scheme, host, port, ...names] = project.split("/");
  const isInside = place?.server === `${scheme}/${host}/${port}` && names.every((name, i) => name === place.parts[i]);
  return isInside ? place.parts.slice(names.length) : [];
}

export function checkPlace(index, path) {
  const { project_id: project, release_url: url, published_files: files } = index;
  const [, dir] = /^([^]*)\/svc\.index\.json$/.exec(path) ?? [];
  if (!dir) return "this is not the path of an index";
  if (!`${dir}/`.startsWith(`${project}/`)) return "it is of another project";
  const [first, second, ...rest] = url === null ? [] : below(url, project);
  const tag = rest.join("/");
  const isPage = ["releases/tag", "-/releases"].includes(`${first}/${second}`);
  const isHere = isPage && !tag.split("/").some(isDots) && dir === `${project}/releases/tag/${tag}`;
  if (url !== null && !isHere) return "it is of another release";
  const isRight = (file) => url === null ? isBeside(file, dir) : isAsset(file, project, tag);
  return files.every(isRight) ? null : "a file in it comes from another place";
}

function isBeside({ source, file_name: name }, dir) {
  const { server, parts = [] } = placeOf(source) ?? {};
  return [server, ...parts].join("/") === `${dir}/${name}` && !parts.some((segment) => segment.includes("/"));
}

// A link to anywhere; but of the project's own releases, to this one.
function isAsset({ source, file_name: name }, project, tag) {
  if (!mayBeOurs(source, project)) return true;
  const [first, second, ...rest] = below(source, project);
  const [kind, tail] = [`${first}/${second}`, rest.join("/")];
  if (kind === "releases/download") return tail === `${tag}/${name}`;
  const isDownload = kind === "-/releases" && tail.startsWith(`${tag}/downloads/`);
  return isDownload && rest.at(-1).split("/").at(-1) === name;
}

function mayBeOurs(url, project) {
  const loose = url.replace(/\p{Cc}/gu, "").trim().replaceAll("\\", "/");
  const [, authority, path] = /^[^:]*:\/*([^/?#]*)([^?#]*)/.exec(loose) ?? [];
  if (authority === undefined) return false;
  const host = authority.split("@").at(-1).replace(/:[^:\]]*$/, "").replace(/\.+$/, "");
  const parts = [];
  for (const segment of lower(decodePercent(path, false)).split("/")) {
    if (segment === "..") parts.pop();
    else if (!isDots(segment)) parts.push(segment);
  }
  const [, own, , ...names] = lower(project).split("/");
  const isBelow = (...tail) => [...names, ...tail].every((name, i) => name === parts[i]);
  return own === lower(host) && (isBelow("releases") || isBelow("-", "releases"));
}
