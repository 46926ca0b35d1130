// Runs test vectors through the script of the page. This function uses nothing from outside itself, so that a browser
// can be given it as well; `base` is where the modules are.

export async function judge({ base, kind, vectors }) {
  const { history, readShown } = await import(`${base}/documents.mjs`);
  const { parseJson } = await import(`${base}/json.mjs`);
  const { judgeReproduction, refuseLacking } = await import(`${base}/reproduction.mjs`);
  const { verifyChain, verifyEvidence } = await import(`${base}/rules.mjs`);

  const read = (shape, document) => {
    try {
      return shape(JSON.stringify(document));
    } catch (error) {
      throw new Error(`Not a ${kind}: ${error.message}`);
    }
  };
  const verify = {
    bundle: async (vector) => {
      const { bundle } = read(readShown, vector.bundle);
      const verified = await verifyEvidence(bundle, () => {});
      refuseLacking(await judgeReproduction(bundle, verified), ({ key }) => key);
    },
    chain: (vector) => verifyChain(read((source) => history(parseJson(source), ""), vector.history), vector.project),
  }[kind];

  const verdicts = {};
  for (const [name, vector] of Object.entries(vectors)) {
    verdicts[name] = await verify(vector).then(() => "verified", (error) => error.message);
  }
  return verdicts;
}

// What the script makes of each value, in the form of the vectors. As self-contained as `judge`.
export async function judgeValues({ base, files }) {
  const { readIndex, readRebuild, readSigners, signatures } = await import(`${base}/documents.mjs`);
  const { parseJson } = await import(`${base}/json.mjs`);
  const { hash, isSignedBy, parseKey, parseSignature, utf8 } = await import(`${base}/keys.mjs`);
  const { checkPlace } = await import(`${base}/place.mjs`);
  const { isCovered, parseAssetName, parsePath, parsePattern, parseTime } = await import(`${base}/values.mjs`);

  const orNull = async (read) => {
    try {
      return await read();
    } catch {
      return null;
    }
  };
  const spellBuilders = ({ builders, files = [], required = false }) => {
    const groups = builders.map((group) => ` ${group.threshold}/${group.signers.length}`).join("");
    return `, builders${groups}, patterns ${files.length}${required ? ", required" : ""}`;
  };
  const spellSigners = ({ keys, registrars, log, rebuilds }) => {
    const machines = registrars.length ? `, registrars ${registrars.length}` : "";
    const replay = (group) => group.keys.filter((key) => key.replays).length;
    const marks = (group) => (replay(group) ? ` (${replay(group)} replay)` : "");
    const groups = log?.groups.map((group) => ` ${group.threshold}/${group.keys.length}${marks(group)}`).join("");
    const built = rebuilds ? spellBuilders(rebuilds) : "";
    return `${keys.size}${machines}${built}${log ? `, log ${log.key.name}, witnesses${groups}, age ${log.age ?? "none"}` : ""}`;
  };
  const faults = {
    "this is not the path of an index": "not an index",
    "it is of another project": "other project",
    "it is of another release": "other release",
    "a file in it comes from another place": "other source",
  };
  const content = await hash("SHA-512", utf8("content"));
  const read = {
    keys: ({ text }) => ({ text, reads_as: parseKey(text).key }),
    times: ({ text }) => ({ text, reads_as: parseTime(text)?.toString() ?? null }),
    paths: ({ text }) => ({ text, reads_as: parsePath(text) }),
    names: ({ text }) => ({ text, reads_as: parseAssetName(text) }),
    patterns: ({ text, name }) => ({ text, name, fits: parsePattern(text) === null ? null : isCovered(name, text) }),
    json: async ({ text }) => ({ text, reads_as: await orNull(() => `${signatures(parseJson(text), "").size}`) }),
    signers: async ({ text }) => ({ text, reads_as: await orNull(() => readSigners(text).then(spellSigners)) }),
    rebuilds: async ({ text }) => ({ text, reads_as: await orNull(() => `${readRebuild(text).files.length}`) }),
    indexes: async ({ text }) => ({ text, reads_as: await orNull(() => `${readIndex(text).published_files.length}`) }),
    signatures: async ({ key, signature }) => {
      const bytes = parseSignature(signature);
      return { key, signature, verifies: bytes !== null && await isSignedBy(key, content, bytes) };
    },
    places: ({ path, index }) =>
      ({ path, index, fault: faults[checkPlace(readIndex(JSON.stringify(index)), path)] ?? null }),
  };
  const judged = {};
  for (const [name, { cases }] of Object.entries(files)) {
    judged[name] = await Promise.all(cases.map(read[name.replace(".json", "")]));
  }
  return judged;
}

// What the script makes of each staple, in the form of the vectors' results. As self-contained as `judge`.
export async function judgeStaples({ base, vectors }) {
  const { verifyProof } = await import(`${base}/freshness.mjs`);
  const { parseJson } = await import(`${base}/json.mjs`);
  const { checkIds, verifierKey, witnessKey } = await import(`${base}/log.mjs`);
  const { staple } = await import(`${base}/staple.mjs`);

  const readStaple = (document) => {
    try {
      return staple(parseJson(JSON.stringify(document)), "");
    } catch (error) {
      throw new Error(`Not a staple: ${error.message}`);
    }
  };
  const readKey = async (read, spelled) => {
    const key = { ...read(spelled, "key"), spelled };
    await checkIds([key]);
    return key;
  };
  // A policy file, as far as the vectors need it.
  const readPolicy = async (policy) => {
    const trust = { logs: [], witnesses: [], quorum: undefined };
    const defined = new Map();
    for (const [kind, name, word, ...members] of policy.trim().split("\n").map((line) => line.split(" "))) {
      if (kind === "log") trust.logs.push(await readKey(verifierKey(1), name));
      if (kind === "witness") defined.set(name, trust.witnesses[trust.witnesses.push(await readKey(witnessKey, word)) - 1]);
      const threshold = { any: 1, all: members.length }[word] ?? Number(word);
      if (kind === "group") defined.set(name, { threshold, keys: members.map((member) => defined.get(member)) });
      if (kind === "quorum") trust.quorum = defined.get(name);
    }
    return trust;
  };
  const readTrust = async ({ policy, log_key: key }) => {
    if (policy !== null) return readPolicy(policy);
    return key === null ? null : { logs: [await readKey(verifierKey(1), key)] };
  };
  const spell = ({ asOf, checkpoint: { origin, size, root }, release, ...fresh }) => ({
    as_of: asOf === null ? null : new Date(Number(asOf) * 1e3).toISOString().replace(".000", ""),
    cosignatures: fresh.cosignatures.map(({ name, time }) => ({ time: Number(time), witness: name })),
    cosigned: fresh.cosigned,
    log_key: fresh.log?.spelled ?? null,
    needed: fresh.needed,
    newer: fresh.newer,
    newer_indexes: fresh.newerPaths,
    number: release.number,
    origin,
    revocation: release.revocation && `sha512:${release.revocation}`,
    root: btoa(String.fromCharCode(...root.match(/../g).map((byte) => parseInt(byte, 16)))),
    signers: fresh.signers,
    size: Number(size),
    witnesses: fresh.witnesses,
  });

  const judged = {};
  for (const [name, vector] of Object.entries(vectors)) {
    const { index_path: path, index_digest: digest, project, signers, signer_keys: keys } = vector.subject;
    const hex = (prefixed) => prefixed.replace("sha512:", "");
    const subject = { path, digest: hex(digest), project, signers: signers.map(hex), keys: new Set(keys) };
    const now = BigInt(Date.parse(vector.now) / 1e3);
    const trust = await readTrust(vector);
    const judge = async () => verifyProof(readStaple(vector.staple), subject, trust, now);
    judged[name] = await judge().then((fresh) => ({ result: spell(fresh) }), (error) => ({ said: error.message, result: null }));
  }
  return judged;
}
