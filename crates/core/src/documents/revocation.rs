//! The revocation document (spec §2.5, D20): why and when a file is withdrawn.

use serde::Serialize;

use crate::{
    documents::metadata::parse_digest,
    values::{
        bounds::REVOCATION_BYTES,
        digest::Sha512,
        json::{self, Field, Json, ParseError},
        key::PublicKey,
        time::Timestamp,
    },
};

const MAX_REASON_CHARS: usize = 1_000;

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

impl Revocation {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > REVOCATION_BYTES {
            return Err(ParseError::new("", "a revocation document has at most 16 KiB"));
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

fn parse_reason(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=MAX_REASON_CHARS => Ok(text.to_owned()),
        _ => Err(format!("must have 1 to {MAX_REASON_CHARS} characters")),
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
