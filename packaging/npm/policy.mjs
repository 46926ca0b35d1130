// Reads a policy (c2sp.org/tlog-policy, D85): which logs and witnesses count, and how many of them. Comments that begin
// with `#countersign` say which witnesses replay the rules, and how old a proof can be (D215).

import { decodeSource } from "./arguments.mjs";
import { fail } from "./verify/json.mjs";
import { utf8 } from "./verify/keys.mjs";
import { checkIds, once, verifierKey, witnessKey } from "./verify/log.mjs";

const MAX_ENTRIES = 64;
const FORM =
  "a line is `log KEY [URL]`, `witness NAME KEY [URL]`, `group NAME all|any|COUNT MEMBER…` or `quorum NAME`";

class PolicyReader {
  logs = [];
  witnesses = [];
  groups = 0;
  quorum = null;
  maxAge = null;
  #named = new Map();
  #defined = new Map();
  #members = new Set();
  // The group in which each witness counts, by its name (D264).
  #counted = new Map();
  #keys = new Set();

  read(line) {
    if (/[\0-\x08\x0a-\x1f\x7f]/.test(line)) fail("", "a policy has no control characters");
    const [kind, ...words] = line.split(/[ \t]+/).filter(Boolean);
    if (kind === "#countersign") return this.#readOwn(...words);
    if (kind === undefined || kind.startsWith("#")) return;
    if (kind === "log" && [1, 2].includes(words.length)) this.logs.push(this.#key(verifierKey(1), words[0]));
    else if (kind === "witness" && [2, 3].includes(words.length)) this.#addWitness(...words);
    else if (kind === "group" && words.length >= 2) this.#addGroup(...words);
    else if (kind === "quorum" && words.length === 1) this.#setQuorum(words[0]);
    else fail("", FORM);
    const most = Math.max(this.logs.length, this.witnesses.length, this.groups);
    if (most > MAX_ENTRIES) fail("", `a policy has at most ${MAX_ENTRIES} logs, witnesses, or groups`);
  }

  #readOwn(kind, ...words) {
    if (kind === "replaying" && words.length) words.forEach((name) => this.#markReplaying(name));
    else if (kind === "max-age" && words.length === 1) this.#setMaxAge(words[0]);
    else fail("", "a line of ours is `#countersign replaying NAME…` or `#countersign max-age TIME`");
  }

  #markReplaying(name) {
    const witness = this.#named.get(name) ?? fail("", `${name} is not a witness that is defined above`);
    witness.replays = true;
  }

  #setMaxAge(text) {
    const [, number, unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
    const seconds = number * { s: 1, m: 60, h: 3600, d: 86400 }[unit];
    const isAge = this.maxAge === null && seconds >= 60 && seconds <= 315_360_000 && number < 2 ** 32;
    if (!isAge) fail("", "a maximum age is one time from 60s to 3650d, as in 90m, 24h or 7d");
    this.maxAge = seconds;
  }

  #key(read, spelled) {
    const key = { ...read(spelled, ""), spelled };
    const short = `${key.name}+${key.id}`;
    if (this.#keys.has(key.key) || this.#keys.has(short)) fail("", `the key of ${key.name} occurs twice`);
    this.#keys.add(key.key).add(short);
    return key;
  }

  #define(name, node) {
    if (name === "none" || this.#defined.has(name)) fail("", `the name ${name} is taken`);
    this.#defined.set(name, node);
  }

  #find(name) {
    return this.#defined.get(name) ?? fail("", `the name ${name} is not defined above`);
  }

  #addWitness(name, spelled) {
    const key = this.#key(witnessKey, spelled);
    this.#define(name, key);
    this.#named.set(name, key);
    this.witnesses.push(key);
  }

  #addGroup(name, word, ...members) {
    const keys = members.map((member) => {
      const node = this.#find(member);
      if (this.#members.has(member)) fail("", `${member} is a member already, and can count only once`);
      this.#members.add(member);
      const group = node.name === undefined ? name : this.#counted.get(node.name) ?? name;
      if (group !== name) fail("", `the witness ${node.name} counts in another group already; all of its keys belong into one group`);
      if (node.name !== undefined) this.#counted.set(node.name, name);
      return node;
    });
    const most = once(keys).length;
    if (!/^(?:all|any|[1-9]\d*|0)$/.test(word)) fail("", FORM);
    const threshold = { any: 1, all: keys.length }[word] ?? Number(word);
    if (threshold < 1 || threshold > most) fail("", `the count must be between 1 and ${most}; the keys of one witness count once`);
    this.#define(name, { threshold, keys });
    this.groups += 1;
  }

  #setQuorum(name) {
    if (this.quorum) fail("", "a policy has exactly one line `quorum`");
    this.quorum = name === "none" ? { threshold: 0, keys: [] } : this.#find(name);
  }
}

// Returns the logs, the witnesses and the quorum, as `verifyProof` takes them, and how old a proof can be.
export async function readPolicy(source) {
  const text = decodeSource(source);
  if (utf8(text).length > 256 * 1024) fail("", "a policy has at most 256 KiB");
  const reader = new PolicyReader();
  text.split("\n").forEach((line, i) => {
    try {
      reader.read(line);
    } catch (error) {
      throw new Error(`line ${i + 1} of the policy: ${error.message}`);
    }
  });
  const { logs, witnesses, quorum, maxAge } = reader;
  if (!quorum) fail("", "a policy has exactly one line `quorum`");
  await checkIds([...logs, ...witnesses]);
  return { logs, witnesses, quorum, maxAge };
}
