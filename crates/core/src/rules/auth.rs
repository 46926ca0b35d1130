//! Request authentication (spec §5): the signed string, the time window, and the proof of who calls.

use std::time::Duration;

use thiserror::Error;

use crate::documents::signed_request::{Nonce, SignedRequest, parse_nonce};
use crate::values::key::{BadSignature, KeyError, PublicKey, SecretKey, Signature};
use crate::values::{digest::Sha512, time::Timestamp, wire};

/// A timestamp is refused once its age, truncated to whole minutes, exceeds this.
pub const MAX_AGE_MINUTES: u64 = 5;
const TOO_OLD: Duration = Duration::from_secs((MAX_AGE_MINUTES + 1) * 60);
pub const MAX_REQUEST_LEAD_SECONDS: u64 = 10;
const MAX_REQUEST_LEAD: Duration = Duration::from_secs(MAX_REQUEST_LEAD_SECONDS);
/// How long after its timestamp a request is carried out at the latest (D192). The server may have fetched for it, or its
/// clock was set meanwhile.
pub const MAX_CARRY: Duration = Duration::from_secs(70 * 60);
/// How long before its timestamp a request can be carried out, after the clock was set back.
pub const MAX_SET_BACK: Duration = Duration::from_secs(10 * 60);
/// How long a nonce is remembered beyond the last instant at which its request could be accepted (D31).
const NONCE_MARGIN: Duration = Duration::from_secs(60);

/// The four headers as received.
#[derive(Debug, Clone, Copy)]
pub struct AuthHeaders<'a> {
    pub timestamp: &'a str,
    pub nonce: &'a str,
    pub signature: &'a str,
    pub public_key: &'a str,
}

/// A request whose signature verified. Whether its nonce is new, the caller must still find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedRequest {
    pub public_key: PublicKey,
    pub signature: Signature,
    pub nonce: Nonce,
    pub timestamp: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuthRefusal {
    #[error("the timestamp header is not an RFC 3339 time")]
    TimestampFormat,
    #[error("the timestamp header is not in canonical form; write it as {0}")]
    TimestampNotCanonical(String),
    #[error("the timestamp is too old: {} minutes or more behind the server's clock", MAX_AGE_MINUTES + 1)]
    TooOld,
    #[error("the timestamp is more than {MAX_REQUEST_LEAD_SECONDS} seconds ahead of the server's clock")]
    TooFarAhead,
    #[error("the nonce header is not a UUID of version 4 in its hyphenated form")]
    NonceFormat,
    #[error("the public key header is invalid: {0}")]
    PublicKey(KeyError),
    #[error("the signature header is not base64 of 64 bytes, or of the 69 of a FIDO key")]
    SignatureFormat,
    #[error("the request signature does not verify")]
    BadSignature,
}

/// The clock moved too far while a request waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the server's clock was set while this request waited, and nothing was changed. Sign the request again"
)]
pub struct Overtaken;

/// Whether a request that was accepted can be carried out at `now`. A follower accepts no other one (D192).
pub fn check_carried(timestamp: Timestamp, now: Timestamp) -> Result<(), Overtaken> {
    let is_late = now.ahead_of(timestamp).is_some_and(|wait| wait > MAX_CARRY);
    let is_early = timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_SET_BACK);
    if is_late || is_early { Err(Overtaken) } else { Ok(()) }
}

/// The time from which on the timestamp alone gets a request refused.
pub fn request_expiry(timestamp: Timestamp) -> Timestamp {
    timestamp.later(TOO_OLD)
}

/// The time from which on the nonce of a request with this timestamp may be forgotten.
pub fn nonce_expiry(timestamp: Timestamp) -> Timestamp {
    timestamp.later(TOO_OLD + NONCE_MARGIN)
}

/// A request whose headers were checked. Its signature was not: that takes the payload.
#[derive(Debug, Clone, Copy)]
pub struct ClaimedRequest<'a> {
    headers: AuthHeaders<'a>,
    claim: VerifiedRequest,
}

/// Proves who signed the request, at the time `now`.
pub fn verify_request(
    headers: &AuthHeaders<'_>,
    payload: &[u8],
    now: Timestamp,
) -> Result<VerifiedRequest, AuthRefusal> {
    check_headers(headers, now)?.verify(payload)
}

/// The first half of `verify_request`: what it refuses needs no payload to be read.
pub fn check_headers<'a>(
    headers: &AuthHeaders<'a>,
    now: Timestamp,
) -> Result<ClaimedRequest<'a>, AuthRefusal> {
    let claim = VerifiedRequest {
        timestamp: check_timestamp(headers.timestamp, now)?,
        nonce: parse_nonce(headers.nonce).ok_or(AuthRefusal::NonceFormat)?,
        public_key: PublicKey::parse_prefixed(headers.public_key).map_err(AuthRefusal::PublicKey)?,
        signature: Signature::parse(headers.signature).map_err(|_| AuthRefusal::SignatureFormat)?,
    };
    Ok(ClaimedRequest { headers: *headers, claim })
}

impl ClaimedRequest<'_> {
    /// The second half: proves the claim.
    pub fn verify(&self, payload: &[u8]) -> Result<VerifiedRequest, AuthRefusal> {
        let digest = request_digest(self.headers.timestamp, self.headers.nonce, payload);
        let VerifiedRequest { public_key, signature, .. } = &self.claim;
        public_key.verify(&digest, signature).map_err(|_| AuthRefusal::BadSignature)?;
        Ok(self.claim)
    }
}

impl SignedRequest {
    /// Checks the signature. The time window is not checked: that was done when the request arrived.
    pub fn verify(&self) -> Result<(), BadSignature> {
        let digest = request_digest(&self.timestamp, &self.nonce, self.payload.as_bytes());
        self.public_key.verify(&digest, &self.signature)
    }
}

/// Signs a request as a client does. `nonce` must be new and random.
pub fn sign_request(key: &SecretKey, timestamp: Timestamp, nonce: &str, payload: &[u8]) -> Signature {
    key.sign(&request_digest(&timestamp.to_header(), nonce, payload))
}

/// The digest of `{timestamp}##{nonce}##{payload}`, which a client signs: timestamp and nonce as in the headers.
pub fn request_digest(timestamp: &str, nonce: &str, payload: &[u8]) -> Sha512 {
    let separator = wire::REQUEST_SEPARATOR.as_bytes();
    let parts = [timestamp.as_bytes(), separator, nonce.as_bytes(), separator, payload];
    Sha512::of(&parts.concat())
}

fn check_timestamp(text: &str, now: Timestamp) -> Result<Timestamp, AuthRefusal> {
    let timestamp = Timestamp::parse(text).map_err(|_| AuthRefusal::TimestampFormat)?;
    let canonical = timestamp.to_header();
    if canonical != text {
        return Err(AuthRefusal::TimestampNotCanonical(canonical));
    }
    if timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_REQUEST_LEAD) {
        return Err(AuthRefusal::TooFarAhead);
    }
    if now.ahead_of(timestamp).is_some_and(|age| age >= TOO_OLD) {
        return Err(AuthRefusal::TooOld);
    }
    Ok(timestamp)
}
