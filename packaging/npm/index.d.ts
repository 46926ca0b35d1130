/** Why a bundle or a file is refused. New codes can be added: treat one that you do not know as a refusal. */
export type VerifyErrorCode =
  | "bad_pin"
  | "bad_policy"
  | "behind"
  | "changed_past"
  | "false_proof"
  | "no_ed25519"
  | "not_a_bundle"
  | "not_complete"
  | "not_newest"
  | "not_reproduced"
  | "not_verified"
  | "other_file"
  | "other_project"
  | "other_release"
  | "other_signers"
  | "revocation_begun"
  | "revoked"
  | "too_old"
  | "unknown_signers"
  | "unproven";

/** The file must not be used. Every refusal is one of these; wrong arguments are a TypeError. */
export class VerifyError extends Error {
  readonly name: "VerifyError";
  readonly code: VerifyErrorCode;
  /** More lines for people, such as the digests that were signed and found. */
  readonly details: string[];
  /** If it is there, store it: it remembers a revocation. */
  readonly pin: Pin | null;
}

/** What was accepted of a project. Plain JSON: store it as it is, and pass it next time. */
export interface Pin {
  version: 1;
  project: string;
  history: { signers_file_digest: string; metadata_digest: string }[];
  revocations: { index_path: string; index_digest: string; reason: string; revoked_at: string }[];
}

/** What a file is. Digests are lower-case hexadecimal digits. */
export interface FileFacts {
  size: number;
  sha256: string;
  sha512: string;
}

export interface VerifyOptions {
  /** The path of the project, such as `https/github.com/443/acme/app`. */
  project: string;
  /** From the last result or error. */
  pin?: Pin | null;
  /** `sha512:…` of any signers file of the project. Checked beside a pin too. */
  signersDigest?: string | null;
  /** Accept the signers that are shown if there is neither a pin nor a digest. */
  firstUse?: "accept" | null;
  /** The release that you expect, such as `v1.2`. */
  release?: string | null;
  /** The name under which the release lists the file. Without it, it can be any file of the release. */
  fileName?: string | null;
  /** A newer staple than the one in the bundle: its bytes or its text. */
  staple?: Uint8Array | ArrayBuffer | string | null;
  /**
   * A policy file (c2sp.org/tlog-policy): its bytes or its text. Without it, the newest signers file decides. It demands a
   * proof, of at most a day unless it or `maxAge` says otherwise.
   */
  policy?: Uint8Array | ArrayBuffer | string | null;
  /** How old the proof of the state can be, in seconds; `signers`: as the newest signers file says. */
  maxAge?: number | "signers" | null;
  /** Refuse a release if the log knows a newer one. */
  requireNewest?: boolean | null;
  /** Refuse, as `behind`, what shows fewer signers files than the pin. For an answer that a server has just given. */
  requireCurrent?: boolean | null;
  /** Refuse, as `revocation_begun`, a release whose revokers have begun to revoke it. Only an answer of a server tells. */
  strict?: boolean | null;
  /** The time; that of this computer without it. */
  now?: Date | null;
}

/** A file that the index of a release lists. */
export interface ListedFile {
  name: string;
  size: number | null;
  sha256: string | null;
  sha512: string | null;
  /** Where it was when it was signed. */
  source: string;
}

/** What the log proves about the release. */
export interface Freshness {
  /** Enough witnesses had seen no newer state at this time. `null`: by the word of the log or the server alone. */
  asOf: Date | null;
  /** The name of the log. */
  origin: string;
  cosigned: number;
  needed: number;
  witnesses: number;
  /** So many of those that have cosigned replay the rules; `null` if the policy says that of none. */
  replaying: number | null;
  /** It is the n-th release of the project. */
  number: number;
  /** How many releases were completed later, and the names of the last of them. */
  newer: number;
  newerReleases: string[];
  /** `replaced`: the log has newer signers than the bundle shows. `earlier`: the bundle shows newer ones. */
  signers: "newest" | "replaced" | "earlier";
}

/** How far independent builders got the same files from the source, by statements that were verified. */
export interface Reproduction {
  /** The project wants no one to use a release before it is reproduced. Then one that is not is refused. */
  isRequired: boolean;
  isReproduced: boolean;
  /** How far, in the words of the client; of a file that builders do not make, that they do not: show it. */
  said: string;
  /** The names of the files that builders make. It says nothing about the others. */
  covered: string[];
  /** What the least reproduced file has, and what it needs. */
  collected: number;
  needed: number;
  /** What those built who got the same: whole ids of commits. */
  commits: string[];
  /** Those who got something else, with the names of these files. It counts against nothing: show it. */
  different: { key: string; name: string | null; files: string[]; commit: string }[];
}

/** What was proven. */
export interface VerifiedBundle {
  /** The verdict in one line, in the words of the client: show it. */
  headline: string;
  /** A revocation that waits for more signatures. `null` if there is none, and if the bundle is not in an answer. */
  begun: { reason: string; collected: number; needed: number } | null;
  /** What signers hold against the release. Empty if the bundle is not in an answer. */
  objections: { key: string; name: string | null; text: string }[];
  /** How far builders got the same files from the source. `null` if the signers file of the release names no builders. */
  reproduction: Reproduction | null;
  project: string;
  release: string;
  indexPath: string;
  /** `sha512:…` of the index. */
  indexDigest: string;
  /** The file that was verified; without a file, the one that `fileName` names. */
  file: ListedFile | null;
  files: ListedFile[];
  signedBy: { key: string; name: string | null }[];
  groups: { threshold: number; size: number; signed: number }[];
  /** `sha512:…` of the signers file that the release was signed under. */
  signersDigest: string;
  /** How many signers files the project has had. */
  signersFiles: number;
  /** When the commit was made that the evidence is of, as the server says. Nothing proves it. */
  bundledAt: string;
  freshness: Freshness | null;
  /** Why there is no `freshness`. */
  unproven: string | null;
  /** There was no pin. */
  isFirstUse: boolean;
  /** Store it, and pass it next time. */
  pin: Pin;
}

/**
 * Verifies a bundle and a file of its release. Throws a VerifyError, or returns what was proven. The bundle can be
 * alone, or in a saved answer of `GET /v1/state/…`.
 * Pass `null` as the file to learn what the release has before you download it.
 */
export function verifyBundle(
  bundle: Uint8Array | ArrayBuffer | string,
  file: Uint8Array | ArrayBuffer | Blob | FileFacts | null,
  options: VerifyOptions,
): Promise<VerifiedBundle>;
