//! The metadata of a signers file (D10): where it came from, whose it is, and what it replaces.

use serde::Serialize;

use crate::documents::fields::parse_path;
use crate::values::bounds::METADATA_BYTES;
use crate::values::digest::Sha512;
use crate::values::path::RepoPath;
use crate::values::time::Timestamp;
use crate::{json_fields, json_words};

const VERSION: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    pub origin: Origin,
    pub project_id: RepoPath,
    pub signers_file_digest: Sha512,
    /// The signers file that this one replaces; `None` for a project's first.
    pub previous: Option<Sha512>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    pub kind: OriginKind,
    /// The URL as the submitter gave it.
    pub url: String,
    /// The URL as requested, not where a redirect led.
    pub retrieval_url: String,
    pub retrieved_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginKind {
    Github,
    Gitlab,
    Forgejo,
    FileServer,
}

json_words!(OriginKind {
    Github = "github", Gitlab = "gitlab", Forgejo = "forgejo", FileServer = "file_server",
} "must be github, gitlab, forgejo or file_server");
json_fields!(document Metadata version VERSION within METADATA_BYTES "metadata have" {
    origin, project_id: with(parse_path), signers_file_digest, previous,
});
json_fields!(object Origin { kind, url, retrieval_url, retrieved_at });
