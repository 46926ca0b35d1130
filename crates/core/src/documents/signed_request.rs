//! A signed request, kept so that anyone can re-verify that this key asked for this (D14, D20).

use serde::Serialize;

use crate::json_fields;
use crate::values::bounds::KEPT_REQUEST_BYTES;
use crate::values::key::{PublicKey, Signature};
use crate::values::nonce::parse_nonce;
use crate::values::time::Timestamp;

/// A signed request. Timestamp and nonce are the exact header strings, the payload the exact body: what was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignedRequest {
    pub timestamp: String,
    pub nonce: String,
    pub payload: String,
    pub public_key: PublicKey,
    pub signature: Signature,
}

json_fields!(document SignedRequest {
    timestamp: text(parse_canonical_time), nonce: text(check_nonce), payload: text(check_payload),
    public_key: text(PublicKey::parse_prefixed), signature,
});

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
