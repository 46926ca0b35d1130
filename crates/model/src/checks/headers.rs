//! The headers that prove who calls (spec §5).
//!
//! An input has five parts with line ends between them: timestamp, nonce, signature, public key, and the body with the
//! rest. If the signature is `sign:` and a digit, the valid signature of a fixed key replaces it.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use countersign_core::{
    rules::auth::{AuthHeaders, nonce_expiry, request_digest, verify_request},
    values::{
        key::{PublicKey, SecretKey, Signature},
        time::Timestamp,
        wire,
    },
};
use countersign_server::auth::single_header;

use super::promises::assert_shown;

/// The server's clock.
pub const NOW: &str = "2026-02-01T12:00:00.5Z";

pub fn check(data: &[u8]) {
    check_single(data);
    let mut parts = data.splitn(5, |byte| *byte == b'\n');
    let mut line = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
    let (Some(timestamp), Some(nonce), Some(signature), Some(public_key)) = (line(), line(), line(), line())
    else {
        return;
    };
    let body = parts.next().unwrap_or_default();
    let mut headers = AuthHeaders { timestamp, nonce, signature, public_key };
    let (mut made_signature, mut made_key) = (String::new(), String::new());
    if let Some(seed) = signature.strip_prefix("sign:").and_then(|rest| rest.parse::<u8>().ok()) {
        let secret = SecretKey::from_seed(&[seed; 32]);
        made_signature = secret.sign(&request_digest(timestamp, nonce, body)).to_header();
        made_key = secret.public_key().to_string();
    }
    if !made_signature.is_empty() {
        headers.signature = &made_signature;
        headers.public_key = if public_key.is_empty() { &made_key } else { public_key };
    }
    check_request(&headers, body);
}

fn check_request(headers: &AuthHeaders<'_>, body: &[u8]) {
    let now = Timestamp::parse(NOW).expect("a timestamp");
    let verified = match verify_request(headers, body, now) {
        Ok(verified) => verified,
        Err(refusal) => {
            assert_shown(&refusal);
            return;
        }
    };
    let time = Timestamp::parse(headers.timestamp).expect("a verified time is a time");
    assert_eq!((time.to_header().as_str(), time), (headers.timestamp, verified.timestamp), "D40");
    let age = now.nanos_since(time);
    assert!((-10_000_000_000..360_000_000_000).contains(&age), "{age}");
    assert!(is_uuid_4(headers.nonce), "{}", headers.nonce);
    let hex: String = verified.nonce.0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(headers.nonce.replace('-', "").to_ascii_lowercase(), hex);
    assert_eq!(PublicKey::parse_prefixed(headers.public_key), Ok(verified.public_key));
    assert_eq!(Signature::parse(headers.signature), Ok(verified.signature));
    let text = [headers.timestamp.as_bytes(), b"##", headers.nonce.as_bytes(), b"##", body].concat();
    let digest = countersign_core::values::digest::Sha512::of(&text);
    assert!(verified.public_key.verify(&digest, &verified.signature).is_ok());
    // The server remembers a nonce for as long as the request could be repeated, and a minute more (D31).
    let kept = nonce_expiry(verified.timestamp).nanos_since(time);
    assert_eq!(kept, 420_000_000_000);
    let changed = [body, b"x"].concat();
    assert!(verify_request(headers, &changed, now).is_err(), "the signature holds for one body only");
}

/// A header that is given twice is refused. Each line of the input is one value.
fn check_single(data: &[u8]) {
    let mut headers = HeaderMap::new();
    let values =
        data.split(|byte| *byte == b'\n').take(3).filter_map(|line| HeaderValue::from_bytes(line).ok());
    for value in values {
        headers.append(wire::HEADER_NONCE, value);
    }
    let given: Vec<&HeaderValue> = headers.get_all(wire::HEADER_NONCE).iter().collect();
    match single_header(&headers, wire::HEADER_NONCE) {
        Ok(value) => assert!(given.len() == 1 && given[0].as_bytes() == value.as_bytes()),
        Err(error) => {
            assert_eq!(error.status(), StatusCode::UNAUTHORIZED);
            assert!(given.len() != 1 || given[0].to_str().is_err());
        }
    }
}

fn is_uuid_4(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'4',
            19 => b"89abAB".contains(byte),
            _ => byte.is_ascii_hexdigit(),
        })
}
