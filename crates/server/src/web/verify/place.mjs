// Whether an index is about the place where it lies.

import { decodeText } from "./keys.mjs";
import { isDots, isPort, lowerAscii } from "./values.mjs";

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
  const port = PORTS[lowerAscii(scheme)];
  if (!port || /[?#\\\p{White_Space}\p{Cc}]/u.test(authority + path)) return null;
  const [, host, written = port] = /^(.*?)(?::([^:\]]*))?$/.exec(authority);
  if (!HOST.test(host) || !isPort(written)) return null;
  try {
    const segments = path ? path.split("/").map((segment) => decodePercent(segment, true)) : [];
    const server = `${lowerAscii(scheme).slice(0, -1)}/${lowerAscii(host)}/${written}`;
    return segments.some(isDots) ? null : { server, segments };
  } catch {
    return null;
  }
}

function segmentsBelow(url, project) {
  const place = placeOf(url);
  const [scheme, host, port, ...names] = project.split("/");
  const isInside = place?.server === `${scheme}/${host}/${port}` && names.every((name, i) => name === place.segments[i]);
  return isInside ? place.segments.slice(names.length) : [];
}

export function checkPlace(index, path) {
  const { project_id: project, release_url: url, published_files: files } = index;
  const [, dir] = /^([^]*)\/svc\.index\.json$/.exec(path) ?? [];
  if (!dir) return "this is not the path of an index";
  if (!`${dir}/`.startsWith(`${project}/`)) return "it is of another project";
  const [first, second, ...rest] = url === null ? [] : segmentsBelow(url, project);
  const tag = rest.join("/");
  const isPage = ["releases/tag", "-/releases"].includes(`${first}/${second}`);
  const isHere = isPage && !tag.split("/").some(isDots) && dir === `${project}/releases/tag/${tag}`;
  if (url !== null && !isHere) return "it is of another release";
  const isRight = (file) => (url === null ? isBeside(file, dir) : isAsset(file, project, tag));
  return files.every(isRight) ? null : "a file in it comes from another place";
}

function isBeside({ source, file_name: name }, dir) {
  const { server, segments = [] } = placeOf(source) ?? {};
  return [server, ...segments].join("/") === `${dir}/${name}` && !segments.some((segment) => segment.includes("/"));
}

// A link to anywhere; but of the project's own releases, to this one.
function isAsset({ source, file_name: name }, project, tag) {
  if (!mayBeInReleases(source, project)) return true;
  const [first, second, ...rest] = segmentsBelow(source, project);
  const [kind, tail] = [`${first}/${second}`, rest.join("/")];
  if (kind === "releases/download") return tail === `${tag}/${name}`;
  const isDownload = kind === "-/releases" && tail.startsWith(`${tag}/downloads/`);
  return isDownload && rest.at(-1).split("/").at(-1) === name;
}

function mayBeInReleases(url, project) {
  const loose = url.replace(/\p{Cc}/gu, "").trim().replaceAll("\\", "/");
  const [, authority, path] = /^[^:]*:\/*([^/?#]*)([^?#]*)/.exec(loose) ?? [];
  if (authority === undefined) return false;
  const host = authority.split("@").at(-1).replace(/:[^:\]]*$/, "").replace(/\.+$/, "");
  const segments = [];
  for (const segment of lowerAscii(decodePercent(path, false)).split("/")) {
    if (segment === "..") segments.pop();
    else if (!isDots(segment)) segments.push(segment);
  }
  const [, own, , ...names] = lowerAscii(project).split("/");
  const isBelow = (...tail) => [...names, ...tail].every((name, i) => name === segments[i]);
  return own === lowerAscii(host) && (isBelow("releases") || isBelow("-", "releases"));
}
