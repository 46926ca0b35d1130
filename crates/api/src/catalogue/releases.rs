//! Lists of releases and of projects.

use countersign_core::{
    rules::{stored::ReleaseState, tally::Tally},
    values::{
        json::{Field, Json, ParseError},
        path::RepoPath,
        time::Timestamp,
    },
};
use serde::Serialize;

use super::fields::{count, list, more, text, time};

/// Signatures that count, and signatures that are needed. Each group of signers counts up to its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SignatureCount {
    pub collected: usize,
    pub needed: usize,
}

impl From<Tally> for SignatureCount {
    fn from(Tally { collected, needed }: Tally) -> Self {
        Self { collected, needed }
    }
}

impl SignatureCount {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self { collected: count(&object, "collected")?, needed: count(&object, "needed")? })
    }
}

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
    pub revocation_begun: Option<SignatureCount>,
    /// The signatures on the release itself.
    pub signatures: SignatureCount,
    /// How many signers object to it. Absent if none does.
    #[schema(value_type = Option<usize>, nullable = false)]
    #[serde(skip_serializing_if = "is_zero")]
    pub objections: usize,
}

impl ListedRelease {
    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        let begun = object.optional("revocation_begun");
        Ok(Self {
            index_path: object.required("index_path")?.parsed(RepoPath::parse)?,
            project_id: object.required("project_id")?.parsed(RepoPath::parse)?,
            tag: text(&object, "tag")?,
            state: object.required("state")?.parsed(ReleaseState::parse)?,
            file_name: text(&object, "file_name")?,
            registered_at: object.required("registered_at")?.parsed(Timestamp::parse)?,
            completed_at: time(&object, "completed_at")?,
            revoked_at: time(&object, "revoked_at")?,
            revocation_reason: text(&object, "revocation_reason")?,
            revocation_begun: begun.map(|begun| SignatureCount::parse_field(&begun)).transpose()?,
            signatures: SignatureCount::parse_field(&object.required("signatures")?)?,
            objections: object.optional("objections").map_or(Ok(0), |_| count(&object, "objections"))?,
        })
    }
}

/// Releases, as many as one answer has room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ReleasesResponse {
    pub releases: Vec<ListedRelease>,
    /// Whether there are more. Ask again with `after` and the last `index_path`.
    pub more: bool,
}

impl ReleasesResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self { releases: list(&object, "releases", ListedRelease::parse_field)?, more: more(&object)? })
    }
}

/// The projects of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProjectsResponse {
    #[schema(value_type = Vec<String>)]
    pub projects: Vec<RepoPath>,
    /// Whether there are more than one answer lists.
    pub more: bool,
}

impl ProjectsResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let projects = list(&object, "projects", |project| project.parsed(RepoPath::parse))?;
        Ok(Self { projects, more: more(&object)? })
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
