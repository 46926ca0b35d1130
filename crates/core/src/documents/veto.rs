//! The veto (D135): that the masters do not want a proposed signers file in force, and why. And the request that hands it in.

use serde::Serialize;

use crate::{
    documents::fields::{parse_digest, parse_key, parse_path, parse_reason, parse_signature},
    values::{
        bounds::VETO_BYTES,
        digest::Sha512,
        json::{self, Field, Json, ParseError},
        key::{PublicKey, Signature},
        path::RepoPath,
        shown::shown_bytes,
        time::Timestamp,
    },
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Veto {
    /// The reason.
    pub veto: String,
    pub project_id: RepoPath,
    /// The proposed signers file.
    pub signers_file_digest: Sha512,
    /// The signers file in force, whose masters speak: under another one the same words say nothing.
    pub previous: Sha512,
    pub timestamp: Timestamp,
}

/// One signature on a veto.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VetoBody {
    /// The pending signers file.
    pub file_path: RepoPath,
    /// The exact text of the veto, which is JSON itself.
    pub veto_json: String,
    /// Over the SHA-512 digest of that text.
    pub signature: Signature,
    /// The master.
    #[serde(serialize_with = "PublicKey::serialize_base64")]
    pub public_key: PublicKey,
}

impl Veto {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > VETO_BYTES {
            return Err(ParseError::new("", format!("a veto has at most {}", shown_bytes(VETO_BYTES))));
        }
        let json = Json::parse(bytes)?;
        let fields = ["veto", "project_id", "signers_file_digest", "previous", "timestamp"];
        let object = json.root().object(&fields)?;
        Ok(Self {
            veto: object.required("veto")?.parsed(parse_reason)?,
            project_id: parse_path(&object.required("project_id")?)?,
            signers_file_digest: object.required("signers_file_digest")?.parsed(parse_digest)?,
            previous: object.required("previous")?.parsed(parse_digest)?,
            timestamp: object.required("timestamp")?.parsed(Timestamp::parse)?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl VetoBody {
    /// Unknown fields are ignored, as in all bodies of requests (D5).
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            file_path: object.required("file_path")?.parsed(RepoPath::parse)?,
            veto_json: object.required("veto_json")?.string()?.to_owned(),
            signature: parse_signature(&object.required("signature")?)?,
            public_key: parse_key(&object.required("public_key")?)?,
        })
    }
}
