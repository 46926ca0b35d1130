//! Lists of releases and of projects.

use countersign_core::json_fields;
use countersign_core::rules::{stored::ReleaseState, tally::Tally};
use countersign_core::values::{path::RepoPath, time::Timestamp};
use serde::Serialize;

/// A release, in a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ListedRelease {
    #[schema(value_type = String)]
    pub index_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    /// The tag. Absent for a release that was made from checksums files.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    pub state: ReleaseState,
    /// The file that has the digest, the first where there are several. Only where a digest was asked for.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// The time at which the server made the index.
    pub registered_at: Timestamp,
    /// The time of the last signature. Absent while the release collects signatures.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The time of the last signature on the revocation. Present only if the release is revoked.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// The reason of the revocation in force, or of the one that was begun.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_reason: Option<String>,
    /// How far a revocation has come that waits for more signatures. Absent if none was begun.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_begun: Option<Tally>,
    /// On the release itself.
    pub signatures: Tally,
    /// How many signers object to it. Absent if none does.
    #[schema(value_type = Option<usize>, nullable = false)]
    #[serde(skip_serializing_if = "is_zero")]
    pub objections: usize,
}

json_fields!(part ListedRelease {
    index_path, project_id, tag: maybe, state, file_name: maybe, registered_at, completed_at: maybe,
    revoked_at: maybe, revocation_reason: maybe, revocation_begun: maybe, signatures, objections: or_default,
});

/// Releases, as many as one answer has room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ReleasesResponse {
    pub releases: Vec<ListedRelease>,
    /// Whether there are more. Ask again with `after` and the last `index_path`.
    pub more: bool,
}

json_fields!(body ReleasesResponse { releases, more });

/// The projects of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProjectsResponse {
    #[schema(value_type = Vec<String>)]
    pub projects: Vec<RepoPath>,
    /// Whether there are more than one answer lists.
    pub more: bool,
}

json_fields!(body ProjectsResponse { projects, more });

fn is_zero(count: &usize) -> bool {
    *count == 0
}
