//! A signed request, kept so that anyone can re-verify that this key asked for this (D14, D20): withdrawals are such (D120),
//! and the registrant of a release comes from one (D121). Its nonce makes it unique.

use serde::Serialize;
use uuid::{Uuid, Variant};

use crate::values::bounds::{KEPT_REQUEST_BYTES, REASON_CHARS};
use crate::values::json::{Json, ParseError};
use crate::values::{digest::Sha512, key::PublicKey, key::Signature, path::RepoPath, time::Timestamp};
use crate::{documents::fields::parse_digest, documents::fields::parse_reason, json_fields};

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

// Who registered a release (D121), as long as it collects signatures.

/// The key that registered a release. The time of it stands in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registrant {
    #[serde(rename = "registrant")]
    pub key: PublicKey,
}

json_fields!(document Registrant { key as "registrant": text(PublicKey::parse_recorded) });

// A withdrawal (D120, D122): the signed request itself, which says who took back a release, when and why.

// An attribute takes nothing but a figure.
const _: () = assert!(REASON_CHARS == 1_000, "the schema of `reason` says so");

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WithdrawBody {
    /// The index that is taken back. It must still collect signatures.
    pub file_path: RepoPath,
    /// 1 to 1,000 characters.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 1_000))]
    pub reason: String,
    /// The digest of the index that the caller saw, `sha512:` and hexadecimal digits. Optional: with it, no other index is
    /// withdrawn.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, nullable = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_digest: Option<Sha512>,
}

/// A request whose body asks for a withdrawal. Whether its signature verifies, `SignedRequest::verify` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    pub request: SignedRequest,
    pub body: WithdrawBody,
}

impl WithdrawBody {
    /// Unknown fields are ignored, as in all bodies of requests (D5).
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let digest = object.optional("subject_digest").filter(|digest| !digest.is_null());
        Ok(Self {
            file_path: object.get("file_path")?,
            reason: object.text("reason", parse_reason)?,
            subject_digest: digest.map(|digest| digest.parsed(parse_digest)).transpose()?,
        })
    }
}

impl Withdrawal {
    pub fn of(request: SignedRequest) -> Result<Self, ParseError> {
        let body = WithdrawBody::parse(request.payload.as_bytes())?;
        Ok(Self { request, body })
    }

    /// Reads a withdrawal as it is stored.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::of(SignedRequest::parse(bytes)?)
    }
}

// Nonces, which make every request unique.

/// A nonce by its 16 bytes, whatever its letter case was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub [u8; 16]);

/// Parses only the hyphenated form: other spellings of the same bytes would be other signed strings.
pub(crate) fn parse_nonce(text: &str) -> Option<Nonce> {
    const HYPHENATED_LENGTH: usize = 36;
    let uuid = Uuid::try_parse(text).ok().filter(|_| text.len() == HYPHENATED_LENGTH)?;
    let is_random = uuid.get_version_num() == 4 && uuid.get_variant() == Variant::RFC4122;
    is_random.then(|| Nonce(uuid.into_bytes()))
}
