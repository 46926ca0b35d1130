//! Answers of the server (spec §4): what the server writes, the client reads with `parse`.
//!
//! A client takes only what it uses; other fields are ignored, and text for people need not be there.

use std::collections::BTreeMap;

use countersign_core::{
    documents::history::History,
    rules::stored::ReleaseState,
    values::{
        json::{Field, Json, Object, ParseError},
        key::{PublicKey, decode_base64, encode_base64},
        path::RepoPath,
        time::Timestamp,
        wire::routes,
    },
};
use serde::{Serialize, Serializer};

use crate::{catalogue::WaitingFile, error_code::ErrorCode, objected::PendingObjection};

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

    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let signers = object.required("required_signers")?.array()?;
        let project_id = object.required("project_id")?.parsed(RepoPath::parse)?;
        let signers = signers.iter().map(|key| key.parsed(PublicKey::parse)).collect::<Result<_, _>>()?;
        Ok(Self::new(project_id, signers, message_of(&object)))
    }
}

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

impl SignedResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self {
            is_complete: object.required("is_complete")?.boolean()?,
            waits_until: object.optional("waits_until").map(|f| f.parsed(Timestamp::parse)).transpose()?,
        })
    }
}

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

impl FilesToSignResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let mut files = BTreeMap::new();
        for (name, content) in json.root().open_object()?.required("files")?.entries()? {
            let path = RepoPath::parse(name).map_err(|error| content.error(error))?;
            let text = decode_base64(content.string()?).and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.ok_or_else(|| content.error("must be base64 of UTF-8 text"))?;
            if files.insert(path, text).is_some() {
                return Err(content.error("two spellings of one path"));
            }
        }
        Ok(Self { files })
    }
}

/// How the signers of a file came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ChainResponse {
    pub history: History,
}

impl ChainResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let history = History::parse_field(&json.root().open_object()?.required("history")?)?;
        Ok(Self { history })
    }
}

/// A revocation was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RevokedResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
    /// Whether the revocation is in force, or waits for more signatures.
    pub revoked: bool,
}

impl RevokedResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let revoked = object.required("revoked")?.boolean()?;
        Ok(Self { success: true, message: message_of(&object), revoked })
    }
}

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

    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        Ok(Self::new(message_of(&json.root().open_object()?)))
    }
}

/// A veto was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VetoedResponse {
    /// Always true.
    pub success: bool,
    pub message: String,
    /// Whether the proposal is gone, or the veto waits for more signatures.
    pub vetoed: bool,
}

impl VetoedResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let vetoed = object.required("vetoed")?.boolean()?;
        Ok(Self { success: true, message: message_of(&object), vetoed })
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

impl AssetsResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let index_file_path = object.required("index_file_path")?.parsed(RepoPath::parse)?;
        let replaced = object.optional("replaced").map(|replaced| ReplacedIndex::parse_field(&replaced));
        let replaced = replaced.transpose()?;
        Ok(Self { success: true, message: message_of(&object), index_file_path, replaced })
    }
}

impl ReplacedIndex {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let keys = field.open_object()?.required("signatures")?.array()?;
        let signatures = keys.iter().map(|key| key.parsed(PublicKey::parse)).collect::<Result<_, _>>()?;
        Ok(Self { signatures })
    }
}

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
    /// What signers object to in the files of the list, at most 100 objections. Absent if there are none. Show them before
    /// anything else.
    #[schema(value_type = Option<Vec<PendingObjection>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<PendingObjection>,
}

impl PendingResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let paths = object.required("file_paths")?.array()?;
        let left_out = object.optional("left_out").map(|count| count.integer()).transpose()?;
        let revocations = object.optional("revocations").map(|list| list.array()).transpose()?;
        let revocations = revocations.unwrap_or_default();
        let objections = object.optional("objections").map(|list| list.array()).transpose()?;
        let objections = objections.unwrap_or_default();
        Ok(Self {
            file_paths: paths.iter().map(|path| path.parsed(RepoPath::parse)).collect::<Result<_, _>>()?,
            left_out: left_out.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX)),
            revocations: revocations.iter().map(WaitingFile::parse_field).collect::<Result<_, _>>()?,
            objections: objections.iter().map(PendingObjection::parse_field).collect::<Result<_, _>>()?,
        })
    }
}

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

    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let message = object.required("message")?;
        if message.string()? != "pong" {
            return Err(message.error("must be \"pong\""));
        }
        PingAuth::parse_field(&object.required("auth")?).map(Self::new)
    }
}

impl PingAuth {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let auth = field.open_object()?;
        let status = auth.required("status")?;
        match status.string()? {
            "unauthenticated" => Ok(Self::Unauthenticated),
            "success" => {
                Ok(Self::Success { public_key: auth.required("public_key")?.parsed(PublicKey::parse)? })
            }
            "failed" => {
                let public_key =
                    auth.optional("public_key").and_then(|key| key.parsed(PublicKey::parse).ok());
                Ok(Self::Failed { public_key, reason: auth.required("reason")?.string()?.to_owned() })
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
pub struct ToldError {
    /// The sentence for people.
    pub error: String,
    /// The code; `None` from a server before D230, and from a proxy. A newer server has codes that this version does
    /// not know.
    pub code: Option<String>,
}

impl ToldError {
    /// Reads an error; `None` if the answer has no text of one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let json = Json::parse(bytes).ok()?;
        let object = json.root().open_object().ok()?;
        let error = object.required("error").ok()?.string().ok()?.to_owned();
        let code = object.optional("code").and_then(|code| code.string().ok().map(str::to_owned));
        Some(Self { error, code: code.filter(|code| ErrorCode::is_well_formed(code)) })
    }

    pub fn known_code(&self) -> Option<ErrorCode> {
        self.code.as_deref().and_then(ErrorCode::parse)
    }
}

/// The message, which is for people, so that no client depends on it.
fn message_of(object: &Object<'_>) -> String {
    let message = object.optional("message");
    message.and_then(|message| message.string().ok().map(str::to_owned)).unwrap_or_default()
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

fn is_zero(count: &usize) -> bool {
    *count == 0
}
