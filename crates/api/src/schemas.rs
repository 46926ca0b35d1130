//! The schema of the signers file. It is written by hand because the file's own type reads more than it writes.

use countersign_core::values::bounds::{
    REBUILD_PATTERNS, ROTATION_DELAY_HOURS, SIGNER_NAME_CHARS, SIGNERS_FILE_FORMATS, SIGNERS_FILE_REGISTRARS,
};
use serde::Serialize;
use utoipa::ToSchema;

// An attribute takes nothing but a figure.
const _: () = assert!(SIGNER_NAME_CHARS == 64, "the schema of `name` says so");
const _: () = assert!(SIGNERS_FILE_REGISTRARS == 16 && SIGNERS_FILE_FORMATS == 16, "their schemas say so");
const _: () = assert!(REBUILD_PATTERNS == 16 && ROTATION_DELAY_HOURS == 720, "their schemas say so");

/// Who may sign for a project, and how many are needed. Stored as it was published.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersConfig {
    #[schema(minimum = 1, maximum = 1)]
    pub version: u64,
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// Who signs releases. Every group has to agree.
    #[schema(min_items = 1)]
    pub artifact_signers: Vec<SignersGroup>,
    /// Who changes the signers; without it, the artifact signers.
    #[schema(nullable = false, min_items = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_keys: Option<Vec<SignersGroup>>,
    /// Who may replace admins; without it, no one.
    #[schema(nullable = false, min_items = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_keys: Option<Vec<SignersGroup>>,
    /// Who revokes; without it, any admin.
    #[schema(nullable = false, min_items = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_keys: Option<Vec<SignersGroup>>,
    /// Keys that register new releases, and can do nothing else.
    #[schema(nullable = false, min_items = 1, max_items = 16)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registrars: Option<Vec<SignersEntry>>,
    /// The signing servers to ask about this project, the best first.
    #[schema(nullable = false, min_items = 1, max_items = 8)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// The log that proves the newest state of the project; without it, none does.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparency: Option<SignersTransparency>,
    /// Who builds releases anew; without it, no one.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilds: Option<SignersRebuilds>,
    /// Formats in which artifact signers are asked to sign as well, for users who verify with other programs: `ssh`,
    /// `minisign`, `openpgp`, and names that a later version may know.
    #[schema(nullable = false, min_items = 1, max_items = 16)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formats: Option<Vec<String>>,
    /// How long rotations wait that the masters have not agreed to; without it, none waits.
    #[schema(nullable = false, minimum = 1, maximum = 720)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_delay_hours: Option<u64>,
}

/// Who builds releases anew. A builder has no other role in the file.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersRebuilds {
    /// Every group has to get the same files.
    #[schema(min_items = 1)]
    pub builders: Vec<SignersGroup>,
    /// Patterns for the names of files that builders make, in which `*` stands for any text; without them, all files.
    #[schema(nullable = false, min_items = 1, max_items = 16)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// Whether clients refuse a release that is not reproduced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// A log and its witnesses. None of the keys occurs twice, and none is a signer's.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersTransparency {
    /// The verifier key of the log, `NAME+ID+KEY`.
    pub log: String,
    /// Every group has to reach its threshold; without the field, the log's word is enough.
    #[schema(nullable = false, min_items = 1, max_items = 32)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witnesses: Option<Vec<SignersWitnessGroup>>,
    /// How old a proof can be. It is there exactly if there are witnesses.
    #[schema(nullable = false, minimum = 60, maximum = 315_360_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u64>,
}

/// Witnesses, of which `threshold` must have cosigned.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersWitnessGroup {
    #[schema(minimum = 1)]
    pub threshold: u64,
    #[schema(min_items = 1, max_items = 32)]
    pub keys: Vec<SignersWitness>,
}

/// A verifier key, `NAME+ID+KEY`, or an object with the key of a witness that replays the rules.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SignersWitness {
    Key(String),
    Replaying(ReplayingWitness),
}

/// A witness that repeats every commit by the rules before it cosigns, by the word of the admins.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReplayingWitness {
    /// A verifier key, `NAME+ID+KEY`.
    pub key: String,
    /// Always true.
    #[schema(default = true)]
    pub replaying: bool,
}

/// A group of distinct keys, of which `threshold` must sign.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersGroup {
    #[schema(minimum = 1)]
    pub threshold: u64,
    #[schema(min_items = 1)]
    pub signers: Vec<SignersEntry>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersEntry {
    /// Always `key`.
    pub kind: String,
    pub data: SignersKey,
    /// A label for people, never to be shown without the key.
    #[schema(nullable = false, max_length = 64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SignersKey {
    /// The public key, in any spelling.
    pub pubkey: String,
    /// `ed25519`, or `sk-ssh-ed25519` for a FIDO key.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}
