// The strict reader of documents (D5).

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"([ \t\n\r]*:)?/g;

export function fail(field, reason) {
  throw new Error(field ? `field \`${field}\`: ${reason}` : reason);
}

// JSON.parse drops one of two equal names: so names are counted.
export function parseJson(source) {
  let [kept, written] = [-1, 0];
  const json = JSON.parse(source, function (name, value) {
    if (typeof value === "string" && /\p{Cs}/u.test(value)) fail("", "half a character");
    kept += !Array.isArray(this);
    return value;
  });
  const rest = source.replace(STRING, (string, colon) => {
    written += !!colon;
    return "";
  });
  if (/[-+.]|\d[eE]/.test(rest)) fail("", "a number is not in plain digits");
  if (kept !== written) fail("", "a name occurs twice in one object");
  return json;
}

export const integer = (value, at) => Number.isSafeInteger(value) ? value : fail(at, "must be a whole number");

export const oneOf = (...values) => (value, at) =>
  values.includes(value) ? value : fail(at, `must be ${values.join(" or ")}`);

export const text = (parse = (string) => string, what = "") => (value, at) => {
  if (typeof value !== "string") fail(at, "must be a string");
  return parse(value) ?? fail(at, `must be ${what}`);
};

export const orNull = (shape) => (value, at) => value === null ? null : shape(value, at);

export const list = (shape) => (value, at) =>
  Array.isArray(value) ? value.map((item, i) => shape(item, `${at}[${i}]`)) : fail(at, "must be a list");

const entriesOf = (value, at) => {
  const isObject = Object(value) === value && !Array.isArray(value);
  return isObject ? Object.entries(value) : fail(at, "must be an object");
};

export const map = (parseName, shape) => (value, at) =>
  new Map(entriesOf(value, at).map(([name, member]) => {
    const named = `${at}[${JSON.stringify(name)}]`;
    return [parseName(name) ?? fail(named, "its name is not valid"), shape(member, named)];
  }));

// Those with a `?` may be missing.
export const object = (shapes) => (value, at) => {
  const unread = new Map(entriesOf(value, at));
  const named = (name) => at ? `${at}.${name}` : name;
  const read = {};
  for (const [key, shape] of Object.entries(shapes)) {
    const name = key.replace("?", "");
    if (unread.delete(name)) read[name] = shape(value[name], named(name));
    else if (name === key) fail(named(name), "missing");
  }
  for (const name of unread.keys()) fail(named(name), "unknown field");
  return read;
};
