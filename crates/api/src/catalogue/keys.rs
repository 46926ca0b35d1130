//! What waits for a key, and what is known of it.

use countersign_core::documents::signers::Role;
use countersign_core::rules::stored::ReleaseState;
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_core::{json_fields, json_words};
use serde::Serialize;

use crate::objected::ListedObjection;

/// What a file that waits for signatures is. In the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum WaitingKind {
    /// A revocation that was begun and needs more signatures.
    Revocation,
    /// A proposed signers file.
    Signers,
    /// The index of a release.
    Release,
}

json_words!(WaitingKind {
    Revocation = "revocation", Signers = "signers", Release = "release",
} "must be revocation, signers or release");

/// Something that waits for a key's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct WaitingFile {
    pub kind: WaitingKind,
    /// The index to sign or to revoke, or the proposed signers file.
    #[schema(value_type = String)]
    pub file_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Signatures that count so far.
    pub collected: usize,
    pub needed: usize,
    /// The roles in which the key is asked to sign: `artifact`, `admin`, `master` or `revocation`.
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<Role>,
    pub since: Timestamp,
    /// The key that registered the release, proposed the signers file or began the revocation. Absent if the server no
    /// longer knows.
    #[schema(value_type = Option<String>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<PublicKey>,
    /// The reason of a revocation.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What signers object to in a release, the oldest first. Absent if nothing. Show it before anything else.
    #[schema(value_type = Option<Vec<ListedObjection>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ListedObjection>,
    /// The time at which a signers file that has all signatures takes effect, unless the masters veto it.
    #[schema(value_type = Option<String>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Whether this key's signature is all that is missing. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub completes: bool,
}

json_fields!(part WaitingFile {
    kind, file_path, project_id, tag: maybe, collected, needed, roles, since, by: maybe, reason: maybe,
    objections: or_default, waits_until: maybe, completes: or_default,
});

/// What waits for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyPendingResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// The files: begun revocations first, then signers files, then releases; of each kind the oldest first.
    pub pending: Vec<WaitingFile>,
    /// Whether more waits than one answer lists. First registrations are left out before anything else.
    pub more: bool,
}

json_fields!(body KeyPendingResponse { public_key, pending, more });

/// A project whose signers file in force lists a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyListing {
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    /// The roles as the signers file lists them: `artifact`, `admin`, `master` or `revocation`.
    #[schema(value_type = Vec<String>)]
    pub roles: Vec<Role>,
    /// The name that this signers file gives the key.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the key can register new releases and has no role. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub registrar: bool,
}

json_fields!(part KeyListing { project_id, roles, name: maybe, registrar: or_default });

/// A release that a key has signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SignedRelease {
    #[schema(value_type = String)]
    pub index_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    pub state: ReleaseState,
    pub signed_at: Timestamp,
    /// Whether it is or was complete, and without this signature it would not have been. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub decisive: bool,
}

json_fields!(part SignedRelease {
    index_path, project_id, tag: maybe, state, signed_at, decisive: or_default,
});

/// Releases that a key has signed, as many as one answer has room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeySignedResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// The releases, the newest signature first.
    pub signed: Vec<SignedRelease>,
    /// Whether there are more. Ask again with `after` and the last `index_path`.
    pub more: bool,
}

json_fields!(body KeySignedResponse { public_key, signed, more });

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// Signers files in force that list it.
    pub listed: Vec<KeyListing>,
    /// Whether more list it than one answer has room for.
    pub listed_more: bool,
    /// Projects of which it signed a signers file that took effect, and whose signers file in force does not list it.
    /// At most 100.
    #[schema(value_type = Vec<String>)]
    pub formerly: Vec<RepoPath>,
    /// The time at which it last signed a release, a signers file that took effect, or a revocation in force, anywhere
    /// on this server. Absent if it never did.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_signed_at: Option<Timestamp>,
    /// How many releases carry its signature.
    pub signed_count: usize,
    /// The last of them, the newest signature first.
    pub signed: Vec<SignedRelease>,
    /// Revocations that it signed and that wait for the signatures of others.
    pub begun: Vec<WaitingFile>,
}

json_fields!(body KeyResponse {
    public_key, listed, listed_more, formerly, last_signed_at: maybe, signed_count, signed, begun,
});

fn is_false(flag: &bool) -> bool {
    !*flag
}
