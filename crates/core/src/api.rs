//! Bodies of requests and responses (spec §4). Unknown fields of a request are ignored, duplicates refused (D5).

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::{
    event::Event,
    history::History,
    json::{Field, Json, ParseError},
    key::{PublicKey, Signature},
    path::RepoPath,
    time::Timestamp,
};

/// Body of `register_repo` and of `update_signers`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProposeBody {
    /// Where the signers file is published: on a branch of a code forge, or on a file server.
    #[cfg_attr(feature = "openapi", schema(format = "uri"))]
    pub signers_file_url: String,
    /// The submitter: the key that signs the request.
    pub public_key: PublicKey,
}

/// One signer's signatures on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignaturesBody {
    /// The file that is signed.
    pub file_path: RepoPath,
    /// The signer, who may be another than the caller.
    pub public_key: PublicKey,
    /// By path: the file itself and, for a signers file, its metadata.
    pub signatures: BTreeMap<RepoPath, Signature>,
}

/// One signature on a revocation document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeBody {
    /// The complete index that is withdrawn.
    pub file_path: RepoPath,
    /// The exact text of the revocation document, which is JSON itself.
    pub revocation_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The revoker.
    pub public_key: PublicKey,
}

/// Where a release is published. Exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum AssetsBody {
    /// The page of a release on a code forge.
    #[cfg_attr(feature = "openapi", schema(rename = "forge_release_url"))]
    Release(String),
    /// Checksums files, all in one directory of one server.
    #[cfg_attr(feature = "openapi", schema(rename = "csum_files"))]
    Checksums(Vec<String>),
}

impl ProposeBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self {
            signers_file_url: object.required("signers_file_url")?.string()?.to_owned(),
            public_key: parse_key(&object.required("public_key")?)?,
        })
    }
}

impl SignaturesBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        let mut signatures = BTreeMap::new();
        for (path, field) in object.required("signatures")?.entries()? {
            let path = RepoPath::parse(path).map_err(|error| field.error(error))?;
            let signature = parse_signature(&field)?;
            if signatures.insert(path, signature).is_some() {
                return Err(field.error("two spellings of one path"));
            }
        }
        Ok(Self {
            file_path: object.required("file_path")?.parsed(RepoPath::parse)?,
            public_key: parse_key(&object.required("public_key")?)?,
            signatures,
        })
    }
}

impl RevokeBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self {
            file_path: object.required("file_path")?.parsed(RepoPath::parse)?,
            revocation_json: object.required("revocation_json")?.string()?.to_owned(),
            signature: parse_signature(&object.required("signature")?)?,
            public_key: parse_key(&object.required("public_key")?)?,
        })
    }
}

impl AssetsBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let given = |name| object.optional(name).filter(|field| !field.is_null());
        match (given("forge_release_url"), given("csum_files")) {
            (Some(_), Some(_)) => {
                Err(ParseError::new("", "forge_release_url and csum_files are mutually exclusive"))
            }
            (None, None) => Err(ParseError::new("", "one of forge_release_url and csum_files is required")),
            (Some(url), None) => Ok(Self::Release(url.string()?.to_owned())),
            (None, Some(list)) => {
                let urls = list.array()?;
                let urls = urls.iter().map(|url| url.string().map(str::to_owned));
                Ok(Self::Checksums(urls.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl Serialize for ProposeBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("ProposeBody", 2)?;
        body.serialize_field("signers_file_url", &self.signers_file_url)?;
        body.serialize_field("public_key", &self.public_key.to_base64())?;
        body.end()
    }
}

impl Serialize for SignaturesBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let signatures =
            self.signatures.iter().map(|(path, signature)| (path.as_str(), signature.to_base64()));
        let mut body = serializer.serialize_struct("SignaturesBody", 3)?;
        body.serialize_field("file_path", self.file_path.as_str())?;
        body.serialize_field("public_key", &self.public_key.to_base64())?;
        body.serialize_field("signatures", &signatures.collect::<BTreeMap<_, _>>())?;
        body.end()
    }
}

impl Serialize for RevokeBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("RevokeBody", 4)?;
        body.serialize_field("file_path", self.file_path.as_str())?;
        body.serialize_field("revocation_json", &self.revocation_json)?;
        body.serialize_field("signature", &self.signature.to_base64())?;
        body.serialize_field("public_key", &self.public_key.to_base64())?;
        body.end()
    }
}

impl Serialize for AssetsBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("AssetsBody", 1)?;
        match self {
            Self::Release(url) => body.serialize_field("forge_release_url", url)?,
            Self::Checksums(urls) => body.serialize_field("csum_files", urls)?,
        }
        body.end()
    }
}

fn parse_key(field: &Field<'_>) -> Result<PublicKey, ParseError> {
    field.parsed(|text| PublicKey::parse(text).map_err(|error| format!("Invalid public key: {error}")))
}

fn parse_signature(field: &Field<'_>) -> Result<Signature, ParseError> {
    field.parsed(|text| Signature::parse(text).map_err(|error| format!("Invalid signature format: {error}")))
}

/// A signers file waits for signatures.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignedResponse {
    /// Whether all signatures that are needed are there now.
    pub is_complete: bool,
}

/// How far a file has come.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatusResponse {
    /// Normalised.
    pub file_path: String,
    /// Whether all signatures that are needed are there, and the file is not revoked.
    pub is_complete: bool,
    /// Present only where it is true.
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<bool>,
}

/// What there is to sign for a file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FilesToSignResponse {
    /// The content by path, as padded base64: the file itself and, for a signers file, its metadata.
    pub files: BTreeMap<String, String>,
}

/// How the signers of a file came to be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainResponse {
    pub history: History,
}

/// A revocation was taken.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokedResponse {
    /// Always true.
    pub success: bool,
    pub message: &'static str,
    /// Whether the revocation is in force, or waits for more signatures.
    pub revoked: bool,
}

/// A release has an index, which waits for signatures.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssetsResponse {
    /// Always true.
    pub success: bool,
    pub message: &'static str,
    /// The path of the index.
    pub index_file_path: String,
}

/// What waits for the caller.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PendingResponse {
    /// Sorted.
    pub file_paths: Vec<String>,
    /// How many more there are than the list has room for. First registrations are left out before anything else.
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

/// The server is there.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PingResponse {
    /// Always `pong`.
    pub message: &'static str,
    pub auth: PingAuth,
}

/// The server is well.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HealthResponse {
    /// `ok` or `ready`.
    pub status: &'static str,
    /// `failing` while log lines are lost because they cannot be written. Changes are accepted all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<&'static str>,
}

/// Whether the authentication headers of a request would be accepted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum PingAuth {
    /// There are none.
    Unauthenticated,
    /// They are right, and the nonce is used up.
    Success { public_key: String },
    /// `public_key` is null where the header does not hold a valid key.
    Failed {
        #[cfg_attr(feature = "openapi", schema(required))]
        public_key: Option<String>,
        reason: String,
    },
}

/// One event, in a stream of them and in the body of a webhook.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventBody {
    pub r#type: &'static str,
    pub path: String,
    /// Whose request it was, where the commit says so.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub key: Option<String>,
    pub time: String,
    pub commit: String,
}

impl EventBody {
    /// `commit` is the id of the commit that made it happen, in hexadecimal digits.
    pub fn new(event: &Event, time: Timestamp, commit: String) -> Self {
        Self {
            r#type: event.kind.name(),
            path: event.path.to_string(),
            key: event.key.map(|key| key.to_string()),
            time: time.to_string(),
            commit,
        }
    }

    /// On one line, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("our documents have string keys only")
    }
}

/// Every error, whatever its status.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorResponse {
    /// For people: what is wrong, and what helps.
    pub error: String,
}
