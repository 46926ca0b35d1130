//! Bodies of requests whose text is evidence (spec §4): the server keeps it, and anyone can check the signature over it again.
//! Unknown fields are ignored, duplicates refused (D5).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::values::{
    json::{Field, Json, ParseError},
    key::{PublicKey, Signature},
    path::RepoPath,
};

/// Body of `register_repo` and of `update_signers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProposeBody {
    /// Where the signers file is published: on a branch of a code forge, or on a file server.
    #[cfg_attr(feature = "openapi", schema(format = "uri"))]
    pub signers_file_url: String,
    /// The submitter: the key that signs the request.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
}

/// One signer's signatures on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignaturesBody {
    /// The file that is signed.
    pub file_path: RepoPath,
    /// The signer, who may be another than the caller.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
    /// By path: the file itself and, for a signers file, its metadata.
    pub signatures: BTreeMap<RepoPath, Signature>,
}

/// One signature on a revocation document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeBody {
    /// The complete index that is withdrawn.
    pub file_path: RepoPath,
    /// The exact text of the revocation document, which is JSON itself.
    pub revocation_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The revoker.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
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
        })
    }
}

impl RevokeBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            file_path: object.required("file_path")?.parsed(RepoPath::parse)?,
            revocation_json: object.required("revocation_json")?.string()?.to_owned(),
            signature: parse_signature(&object.required("signature")?)?,
            public_key: parse_key(&object.required("public_key")?)?,
        })
    }
}

fn parse_key(field: &Field<'_>) -> Result<PublicKey, ParseError> {
    field.parsed(|text| PublicKey::parse(text).map_err(|error| format!("Invalid public key: {error}")))
}

fn parse_signature(field: &Field<'_>) -> Result<Signature, ParseError> {
    field.parsed(|text| Signature::parse(text).map_err(|error| format!("Invalid signature format: {error}")))
}
