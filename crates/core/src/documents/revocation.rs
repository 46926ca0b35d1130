//! The revocation document (spec §2.5, D20): why and when a file is revoked. And the request that hands it in, which the
//! server keeps where nothing else says which file is meant.

use serde::Serialize;

use crate::{
    documents::fields::{parse_digest, parse_key, parse_reason, parse_signature},
    values::{
        bounds::REVOCATION_BYTES,
        digest::Sha512,
        json::{self, Field, Json, ParseError},
        key::{PublicKey, Signature},
        path::RepoPath,
        shown::shown_bytes,
        time::Timestamp,
    },
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revocation {
    pub reason: String,
    pub timestamp: Timestamp,
    /// The file that is meant. Without it the document alone does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_digest: Option<Sha512>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<PublicKey>,
}

/// One signature on a revocation document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeBody {
    /// The complete index that is revoked.
    pub file_path: RepoPath,
    /// The exact text of the revocation document, which is JSON itself.
    pub revocation_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The revoker.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
}

impl Revocation {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > REVOCATION_BYTES {
            return Err(ParseError::new(
                "",
                format!("a revocation document has at most {}", shown_bytes(REVOCATION_BYTES)),
            ));
        }
        let json = Json::parse(bytes)?;
        let object = json.root().object(&["reason", "timestamp", "subject_digest", "initiator"])?;
        Ok(Self {
            reason: object.required("reason")?.parsed(parse_reason)?,
            timestamp: parse_time(&object.required("timestamp")?)?,
            subject_digest: object.optional("subject_digest").map(|f| f.parsed(parse_digest)).transpose()?,
            initiator: object.optional("initiator").map(|f| f.parsed(PublicKey::parse)).transpose()?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl RevokeBody {
    /// Unknown fields are ignored, as in all bodies of requests (D5).
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

/// RFC 3339, or whole seconds since 1970.
fn parse_time(field: &Field<'_>) -> Result<Timestamp, ParseError> {
    if !field.is_integer() {
        return field.parsed(Timestamp::parse);
    }
    let seconds = i64::try_from(field.integer()?).map_err(|error| field.error(error))?;
    Timestamp::from_unix_seconds(seconds).map_err(|error| field.error(error))
}
