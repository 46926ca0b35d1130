//! Answers of the server (spec §4): what the server writes, the client reads with `parse`.
//!
//! A client takes only what it uses; other fields are ignored, and text for people need not be there: no program depends
//! on it.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::documents::{
    fields::parse_by_any_path, history::History, layout, layout::Signable, signers::keys_of,
};
use countersign_core::json_fields;
use countersign_core::rules::snapshot::{ReadError, Snapshot};
use countersign_core::rules::{quorum::Consent, stored, stored::ReleaseState, stored::StoredProposal};
use countersign_core::values::json::{Field, FromField, Json, ParseError};
use countersign_core::values::key::{PublicKey, decode_base64, encode_base64};
use countersign_core::values::{path::RepoPath, time::Timestamp, wire::routes};
use serde::{Serialize, Serializer};

use crate::catalogue::{PendingObjection, WaitingFile, is_zero};
use crate::error_code::ErrorCode;

/// A signers file waits for signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProposedResponse {
    /// Always true.
    pub success: bool,
    /// The normalised path of the project.
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    pub message: String,
    /// The keys that have yet to sign, as padded base64.
    #[schema(value_type = Vec<String>)]
    #[serde(serialize_with = "as_base64")]
    pub required_signers: Vec<PublicKey>,
    /// The URL to which signatures go.
    pub signature_submission_url: &'static str,
}

impl ProposedResponse {
    pub fn new(project_id: RepoPath, required_signers: Vec<PublicKey>, message: impl Into<String>) -> Self {
        Self {
            success: true,
            project_id,
            message: message.into(),
            required_signers,
            signature_submission_url: routes::SIGNATURES,
        }
    }
}

json_fields!(body ProposedResponse {
    required_signers, project_id, message: lenient, success = true, signature_submission_url = routes::SIGNATURES,
});

/// A signature was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SignedResponse {
    /// Whether all signatures that are needed are there now.
    pub is_complete: bool,
    /// The time at which signers that have all signatures take effect. Absent if nothing waits.
    #[schema(value_type = String, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
}

json_fields!(body SignedResponse { is_complete, waits_until: maybe });

/// How far a file has come.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct StatusResponse {
    /// The normalised path of the file.
    #[schema(value_type = String)]
    pub file_path: RepoPath,
    /// Whether all signatures that are needed are there, and the file is not revoked.
    pub is_complete: bool,
    /// Whether the file is revoked. Present only if it is.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<bool>,
    /// The time at which signers that have all signatures take effect. Absent if nothing waits.
    #[schema(value_type = String, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
}

impl StatusResponse {
    pub fn new(file_path: RepoPath, state: ReleaseState) -> Self {
        let revoked = (state == ReleaseState::Revoked).then_some(true);
        Self { file_path, is_complete: state == ReleaseState::Complete, revoked, waits_until: None }
    }

    /// Signers that have all signatures and take effect only then.
    pub fn waiting(file_path: RepoPath, until: Timestamp) -> Self {
        Self { file_path, is_complete: true, revoked: None, waits_until: Some(until) }
    }
}

/// What there is to sign for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct FilesToSignResponse {
    /// The content by path, as padded base64: the file itself and, for a signers file, its metadata.
    #[schema(value_type = BTreeMap<String, String>)]
    #[serde(serialize_with = "texts_as_base64")]
    pub files: BTreeMap<RepoPath, String>,
}

json_fields!(body FilesToSignResponse { files: with(parse_contents) });

fn parse_contents(field: &Field<'_>) -> Result<BTreeMap<RepoPath, String>, ParseError> {
    parse_by_any_path(field, |content| {
        let text = decode_base64(content.string()?).and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| content.error("must be base64 of UTF-8 text"))
    })
}

/// How the signers of a file came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ChainResponse {
    pub history: History,
}

json_fields!(body ChainResponse { history });

/// A revocation was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RevokedResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
    /// Whether the revocation is in force, or waits for more signatures.
    pub revoked: bool,
}

json_fields!(body RevokedResponse { revoked, message: lenient, success = true });

/// A change was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ChangedResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
}

impl ChangedResponse {
    pub fn new(message: impl Into<String>) -> Self {
        Self { success: true, message: message.into() }
    }
}

json_fields!(body ChangedResponse { message: lenient, success = true });

/// A veto was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VetoedResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
    /// Whether the proposal is gone, or the veto waits for more signatures.
    pub vetoed: bool,
}

json_fields!(body VetoedResponse { vetoed, message: lenient, success = true });

/// A rebuild was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RebuildResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
    /// Whether the builder got the same files.
    pub is_same: bool,
}

json_fields!(body RebuildResponse { is_same, message: lenient, success = true });

impl RebuildResponse {
    pub fn new(is_same: bool) -> Self {
        let message = match is_same {
            true => "Rebuild recorded: the same files",
            false => "Rebuild recorded: it differs from the release, and everyone sees that",
        };
        Self { success: true, message: message.to_owned(), is_same }
    }
}

/// A release has an index, which waits for signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct AssetsResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
    /// The path of the index.
    #[schema(value_type = String)]
    pub index_file_path: RepoPath,
    /// The index that this one replaced, which was still collecting signatures. Absent if it replaced none.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedIndex>,
}

/// An index that made way for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ReplacedIndex {
    /// The keys whose signatures it had. They have to sign again.
    #[schema(value_type = Vec<String>)]
    pub signatures: Vec<PublicKey>,
}

json_fields!(body AssetsResponse { index_file_path, replaced: maybe, message: lenient, success = true });
json_fields!(part ReplacedIndex { signatures });

/// What waits for the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PendingResponse {
    /// The paths of the files, sorted.
    #[schema(value_type = Vec<String>)]
    pub file_paths: Vec<RepoPath>,
    /// How many more there are than the list has room for. First registrations are left out before anything else.
    #[schema(value_type = Option<usize>, nullable = false)]
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Begun revocations that the caller can join, the oldest first, at most 100. Absent if there are none.
    #[schema(value_type = Option<Vec<WaitingFile>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revocations: Vec<WaitingFile>,
    /// Releases that the caller is asked to build, the oldest first, at most 100. Absent if there are none.
    #[schema(value_type = Option<Vec<WaitingFile>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rebuilds: Vec<WaitingFile>,
    /// What signers object to in the files of the list, at most 100 objections. Absent if there are none. Show them before
    /// anything else.
    #[schema(value_type = Option<Vec<PendingObjection>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<PendingObjection>,
}

json_fields!(body PendingResponse {
    file_paths, left_out: or_default, revocations: or_default, rebuilds: or_default, objections: or_default,
});

/// The server is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PingResponse {
    /// Always `pong`.
    pub message: &'static str,
    pub auth: PingAuth,
}

/// Whether the authentication headers of a request would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum PingAuth {
    /// The request has no authentication headers.
    Unauthenticated,
    /// The headers are right, and the nonce is used up.
    Success {
        #[schema(value_type = String)]
        public_key: PublicKey,
    },
    /// The headers are refused. `public_key` is null if the header does not hold a valid key.
    Failed {
        #[schema(value_type = Option<String>, required)]
        public_key: Option<PublicKey>,
        reason: String,
    },
}

impl PingResponse {
    pub fn new(auth: PingAuth) -> Self {
        Self { message: "pong", auth }
    }
}

json_fields!(body PingResponse {
    message: text(|text| (text == "pong").then_some("pong").ok_or("must be \"pong\"")), auth,
});

impl FromField for PingAuth {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let auth = field.open_object()?;
        let status = auth.required("status")?;
        match status.string()? {
            "unauthenticated" => Ok(Self::Unauthenticated),
            "success" => Ok(Self::Success { public_key: auth.get("public_key")? }),
            "failed" => {
                Ok(Self::Failed { public_key: auth.lenient("public_key")?, reason: auth.get("reason")? })
            }
            _ => Err(status.error("must be unauthenticated, success or failed")),
        }
    }
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

/// Every error, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ErrorResponse {
    /// A sentence for people: what is wrong, and what helps.
    pub error: String,
    /// A code for programs.
    pub code: ErrorCode,
}

/// An error as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    /// The sentence for people.
    pub error: String,
    /// The code; `None` from a server before D230, and from a proxy. A newer server has codes that this version does
    /// not know.
    pub code: Option<String>,
}

impl ErrorBody {
    /// Reads an error; `None` if the answer has no text of one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let json = Json::parse(bytes).ok()?;
        let object = json.root().open_object().ok()?;
        let code: Option<String> = object.lenient("code").ok()?;
        let code = code.filter(|code| ErrorCode::is_well_formed(code));
        Some(Self { error: object.get("error").ok()?, code })
    }

    pub fn known_code(&self) -> Option<ErrorCode> {
        self.code.as_deref().and_then(ErrorCode::parse)
    }
}

fn as_base64<S: Serializer>(keys: &[PublicKey], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys.iter().map(|key| key.to_base64()))
}

fn texts_as_base64<S: Serializer>(
    files: &BTreeMap<RepoPath, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(files.iter().map(|(path, text)| (path, encode_base64(text.as_bytes()))))
}

// What waits for whose signature (D18, D21).

/// Who may still sign a file that collects signatures, and who has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collecting {
    pub accepted: BTreeSet<PublicKey>,
    pub signed: BTreeSet<PublicKey>,
}

/// The collection at `path`; `None` if no file there collects signatures, or does so no longer.
pub fn collecting(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Collecting>, ReadError> {
    match layout::signable(path) {
        Some(Signable::Index) => {
            let found = stored::index_signatures(snapshot, path)?;
            let Some((ReleaseState::Collecting, set)) = found else { return Ok(None) };
            let copy = stored::signers_copy(snapshot, path)?;
            let accepted = keys_of(copy.file.artifact_groups()).collect();
            Ok(Some(Collecting { accepted, signed: set.signers() }))
        }
        Some(Signable::PendingSigners { project }) => {
            let Some(proposal) = StoredProposal::load(snapshot, path)? else { return Ok(None) };
            let current = stored::active_signers(snapshot, &project)?.map(|active| active.file);
            let consent = Consent { current: current.as_deref(), proposed: &proposal.signers };
            let accepted = consent.accepted_signers();
            Ok(Some(Collecting { accepted, signed: proposal.signatures.signers() }))
        }
        None => Ok(None),
    }
}

impl PendingResponse {
    /// Lists what there is room for of all that waits for a key, sorted (D21, D41). Strangers can register projects
    /// that name any key, so first registrations get the room that all else leaves.
    pub fn within<'a>(
        most_bytes: usize,
        snapshot: &impl Snapshot,
        waiting: impl Iterator<Item = &'a RepoPath>,
    ) -> Self {
        let is_first = |path: &RepoPath| match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => {
                !snapshot.contains(&layout::active_signers(&project))
            }
            Some(Signable::Index) | None => false,
        };
        let (first, other): (Vec<&RepoPath>, Vec<&RepoPath>) = waiting.partition(|path| is_first(path));
        let (mut file_paths, mut left_out, mut bytes) = (Vec::new(), 0, 0);
        for path in other.into_iter().chain(first) {
            // In JSON: with quotation marks, a comma, and a backslash before each quotation mark in it.
            bytes += path.as_str().len() + path.as_str().matches('"').count() + 3;
            if bytes <= most_bytes { file_paths.push(path.clone()) } else { left_out += 1 }
        }
        file_paths.sort();
        let objections = PendingObjection::within(snapshot, &file_paths);
        Self { file_paths, left_out, revocations: Vec::new(), rebuilds: Vec::new(), objections }
    }
}
