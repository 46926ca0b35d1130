//! Bodies of requests (spec §4). Unknown fields are ignored, duplicates refused (D5).

use std::collections::BTreeMap;

pub use countersign_core::documents::statement::SignedStatement;
pub use countersign_core::documents::withdrawal::WithdrawBody;
use countersign_core::{
    documents::{
        fields::{parse_key, parse_signature},
        other_formats::{FormatTexts, parse_texts},
    },
    rules::decide::sign::Submission,
    values::{
        json::{Field, Json, ParseError},
        key::{PublicKey, Signature},
        path::RepoPath,
    },
};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// The body of `register_repo` and of `update_signers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ProposeBody {
    /// The URL at which the signers file is published: on a branch of a code forge, or on a file server.
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
    /// The signatures by path: of the file itself and, for a signers file, of its metadata.
    pub signatures: BTreeMap<RepoPath, Signature>,
    /// The signer's signatures on the `SHA256SUMS` of a release by format, `minisign` or `ssh`, as those programs write
    /// them. Optional. They count for nothing here.
    #[schema(value_type = BTreeMap<String, String>, nullable = false)]
    #[serde(skip_serializing_if = "FormatTexts::is_empty")]
    pub other_formats: FormatTexts,
}

/// The place at which a release is published. Exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
pub enum AssetsBody {
    /// The page of a release on a code forge.
    #[schema(rename = "forge_release_url")]
    Release(String),
    /// Checksums files, all in one directory of one server.
    #[schema(rename = "csum_files")]
    Checksums(Vec<String>),
}

/// One signature on a revocation document.
// Only the reference has this type and the two that follow: [`SignedStatement`] reads and writes the bodies.
#[derive(Debug, utoipa::ToSchema)]
pub struct RevokeBody {
    /// The complete index that is revoked.
    pub file_path: RepoPath,
    /// The exact text of the revocation document, which is JSON itself.
    pub revocation_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The revoker.
    pub public_key: PublicKey,
}

/// One signature on a veto.
#[derive(Debug, utoipa::ToSchema)]
pub struct VetoBody {
    /// The pending signers file.
    pub file_path: RepoPath,
    /// The exact text of the veto, which is JSON itself.
    pub veto_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The master.
    pub public_key: PublicKey,
}

/// One objection, handed in.
#[derive(Debug, utoipa::ToSchema)]
pub struct ObjectBody {
    /// The index of the release.
    pub file_path: RepoPath,
    /// The exact text of the objection, which is JSON itself.
    pub objection_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The objector, who may be another than the caller.
    pub public_key: PublicKey,
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

    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
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
            other_formats: object
                .optional("other_formats")
                .map(|texts| parse_texts(&texts))
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

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
            (Some(url), None) => Ok(Self::Release(url.string()?.to_owned())),
            (None, Some(list)) => {
                let urls = list.array()?;
                let urls = urls.iter().map(|url| url.string().map(str::to_owned));
                Ok(Self::Checksums(urls.collect::<Result<_, _>>()?))
            }
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
