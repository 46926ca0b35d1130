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
pub struct ProposeBody {
    pub signers_file_url: String,
    pub public_key: PublicKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignaturesBody {
    pub file_path: RepoPath,
    pub public_key: PublicKey,
    pub signatures: BTreeMap<RepoPath, Signature>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeBody {
    pub file_path: RepoPath,
    pub revocation_json: String,
    pub signature: Signature,
    pub public_key: PublicKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssetsBody {
    Release(String),
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

#[derive(Debug, Clone, Serialize)]
pub struct ProposedResponse {
    pub success: bool,
    pub project_id: String,
    pub message: &'static str,
    pub required_signers: Vec<String>,
    pub signature_submission_url: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub struct SignedResponse {
    pub is_complete: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct StatusResponse {
    pub file_path: String,
    pub is_complete: bool,
    /// Present only where it is true (D18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<bool>,
}

#[derive(Debug, Clone, Serialize)]
pub struct FilesToSignResponse {
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ChainResponse {
    pub history: History,
}

#[derive(Debug, Clone, Serialize)]
pub struct RevokedResponse {
    pub success: bool,
    pub message: &'static str,
    pub revoked: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct AssetsResponse {
    pub success: bool,
    pub message: &'static str,
    pub index_file_path: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct PendingResponse {
    pub file_paths: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PingResponse {
    pub message: &'static str,
    pub auth: PingAuth,
}

#[derive(Debug, Clone, Serialize)]
pub struct HealthResponse {
    pub status: &'static str,
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum PingAuth {
    Unauthenticated,
    Success { public_key: String },
    Failed { public_key: Option<String>, reason: String },
}

/// One event, in a stream of them and in the body of a webhook.
#[derive(Debug, Clone, Serialize)]
pub struct EventBody {
    pub r#type: &'static str,
    pub path: String,
    /// Whose request it was, where the commit says so.
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

#[derive(Debug, Clone, Serialize)]
pub struct ErrorResponse {
    pub error: String,
}
