//! Bodies of requests (spec §4). Unknown fields are ignored, duplicates refused (D5).

use std::collections::BTreeMap;

use countersign_core::documents::fields::{parse_by_any_path, parse_key, parse_signature};
use countersign_core::documents::other_formats::{FormatTexts, parse_texts};
pub use countersign_core::documents::{
    objections::ObjectBody, revocation::RevokeBody, veto::VetoBody, withdrawal::WithdrawBody,
};
use countersign_core::json_fields;
use countersign_core::rules::decide::sign::Submission;
use countersign_core::values::json::{FromField as _, Json, ParseError};
use countersign_core::values::key::{PublicKey, Signature};
use countersign_core::values::path::RepoPath;
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// Body of `register_repo` and of `update_signers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProposeBody {
    /// Where the signers file is published: on a branch of a code forge, or on a file server.
    #[schema(format = "uri")]
    pub signers_file_url: String,
    /// The submitter: the key that signs the request.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
}

/// One signer's signatures on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SignaturesBody {
    /// The file that is signed.
    pub file_path: RepoPath,
    /// The signer, who may be another than the caller.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
    /// By path: the file itself and, for a signers file, its metadata.
    pub signatures: BTreeMap<RepoPath, Signature>,
    /// By format, `minisign` or `ssh`: the signer's signatures on the `SHA256SUMS` of a release, as those programs write
    /// them. Optional. They count for nothing here.
    #[schema(value_type = BTreeMap<String, String>, nullable = false)]
    #[serde(skip_serializing_if = "FormatTexts::is_empty")]
    pub other_formats: FormatTexts,
}

/// Where a release is published. Exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
pub enum AssetsBody {
    /// The page of a release on a code forge.
    #[schema(rename = "forge_release_url")]
    Release(String),
    /// Checksums files, all in one directory of one server.
    #[schema(rename = "csum_files")]
    Checksums(Vec<String>),
}

json_fields!(body ProposeBody { signers_file_url, public_key: with(parse_key) });
json_fields!(body SignaturesBody {
    signatures: with(|field| parse_by_any_path(field, parse_signature)), file_path, public_key: with(parse_key),
    other_formats: or_default_with(parse_texts),
});

impl From<Submission> for SignaturesBody {
    fn from(Submission { file, signer, signatures, other_formats }: Submission) -> Self {
        Self { file_path: file, public_key: signer, signatures, other_formats }
    }
}

impl From<SignaturesBody> for Submission {
    fn from(SignaturesBody { file_path, public_key, signatures, other_formats }: SignaturesBody) -> Self {
        Self { file: file_path, signer: public_key, signatures, other_formats }
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
            (Some(url), None) => Ok(Self::Release(String::parse_field(&url)?)),
            (None, Some(list)) => Ok(Self::Checksums(Vec::parse_field(&list)?)),
        }
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
