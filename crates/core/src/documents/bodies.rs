//! The body of a request to revoke (spec §4.9). The server keeps it where it is the only evidence of which file is meant
//! (D20). Unknown fields are ignored, duplicates refused (D5).

use serde::Serialize;

use crate::values::{
    json::{Field, Json, ParseError},
    key::{PublicKey, Signature},
    path::RepoPath,
};

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

/// The key of a request body.
pub fn parse_key(field: &Field<'_>) -> Result<PublicKey, ParseError> {
    field.parsed(|text| PublicKey::parse(text).map_err(|error| format!("Invalid public key: {error}")))
}

/// A signature in a request body.
pub fn parse_signature(field: &Field<'_>) -> Result<Signature, ParseError> {
    field.parsed(|text| Signature::parse(text).map_err(|error| format!("Invalid signature format: {error}")))
}
