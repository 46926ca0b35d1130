//! Bodies of answers (spec §4).

use std::collections::BTreeMap;

use countersign_core::documents::history::History;
use serde::Serialize;

/// A signers file waits for signatures.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct ProposedResponse {
    /// Always true.
    pub success: bool,
    /// The normalised path of the project.
    pub project_id: String,
    pub message: &'static str,
    /// The keys that have yet to sign, as padded base64.
    pub required_signers: Vec<String>,
    /// Where signatures go.
    pub signature_submission_url: &'static str,
}

/// A signature was taken.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct SignedResponse {
    /// Whether all signatures that are needed are there now.
    pub is_complete: bool,
}

/// How far a file has come.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct StatusResponse {
    /// Normalised.
    pub file_path: String,
    /// Whether all signatures that are needed are there, and the file is not revoked.
    pub is_complete: bool,
    /// Present only where it is true.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<bool>,
}

/// What there is to sign for a file.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct FilesToSignResponse {
    /// The content by path, as padded base64: the file itself and, for a signers file, its metadata.
    pub files: BTreeMap<String, String>,
}

/// How the signers of a file came to be.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct ChainResponse {
    pub history: History,
}

/// A revocation was taken.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct RevokedResponse {
    /// Always true.
    pub success: bool,
    pub message: &'static str,
    /// Whether the revocation is in force, or waits for more signatures.
    pub revoked: bool,
}

/// A release has an index, which waits for signatures.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct AssetsResponse {
    /// Always true.
    pub success: bool,
    pub message: &'static str,
    /// The path of the index.
    pub index_file_path: String,
}

/// What waits for the caller.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct PendingResponse {
    /// Sorted.
    pub file_paths: Vec<String>,
    /// How many more there are than the list has room for. First registrations are left out before anything else.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

/// The server is there.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct PingResponse {
    /// Always `pong`.
    pub message: &'static str,
    pub auth: PingAuth,
}

/// The server is well.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct HealthResponse {
    /// `ok` or `ready`.
    pub status: &'static str,
    /// `failing` while log lines are lost because they cannot be written. Changes are accepted all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<&'static str>,
}

/// Whether the authentication headers of a request would be accepted.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum PingAuth {
    /// There are none.
    Unauthenticated,
    /// They are right, and the nonce is used up.
    Success { public_key: String },
    /// `public_key` is null where the header does not hold a valid key.
    Failed {
        #[schema(required)]
        public_key: Option<String>,
        reason: String,
    },
}

/// Every error, whatever its status.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct ErrorResponse {
    /// For people: what is wrong, and what helps.
    pub error: String,
}
