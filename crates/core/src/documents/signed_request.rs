//! A signed request, kept so that anyone can re-verify that this key asked for this (D14, D20).

use serde::Serialize;

use crate::values::{
    bounds::KEPT_REQUEST_BYTES,
    json::{self, Field, Json, ParseError},
    key::{PublicKey, Signature},
    nonce::parse_nonce,
    time::Timestamp,
};

/// A signed request. Timestamp and nonce are the exact header strings, the payload the exact body: what was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignedRequest {
    pub timestamp: String,
    pub nonce: String,
    pub payload: String,
    pub public_key: PublicKey,
    pub signature: Signature,
}

impl SignedRequest {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["timestamp", "nonce", "payload", "public_key", "signature"])?;
        Ok(Self {
            timestamp: object.required("timestamp")?.parsed(parse_canonical_time)?,
            nonce: object.required("nonce")?.parsed(check_nonce)?,
            payload: object.required("payload")?.parsed(check_payload)?,
            public_key: object.required("public_key")?.parsed(PublicKey::parse_prefixed)?,
            signature: object.required("signature")?.parsed(Signature::parse)?,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }
}

fn parse_canonical_time(text: &str) -> Result<String, &'static str> {
    match Timestamp::parse(text) {
        Ok(time) if time.to_header() == text => Ok(text.to_owned()),
        _ => Err("must be an RFC 3339 time in canonical form"),
    }
}

fn check_nonce(text: &str) -> Result<String, &'static str> {
    parse_nonce(text).map(|_| text.to_owned()).ok_or("must be a UUID of version 4")
}

/// Bounds the payload. Escaping JSON in JSON doubles it at most, so that the stored document is far below the bound of
/// a file.
fn check_payload(text: &str) -> Result<String, String> {
    if text.len() > KEPT_REQUEST_BYTES {
        return Err(format!("must have at most {KEPT_REQUEST_BYTES} bytes"));
    }
    Ok(text.to_owned())
}
