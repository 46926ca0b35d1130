//! Request authentication (spec §5, D31, D40).

use countersign_core::documents::signed_request::{Nonce, SignedRequest};
use countersign_core::rules::auth::{
    AuthHeaders, AuthRefusal, Overtaken, VerifiedRequest, check_carried, nonce_expiry, sign_request,
    verify_request,
};
use countersign_core::values::{key::KeyError, key::SecretKey, key::encode_base64, time::Timestamp};
use countersign_testing::{NONCE, alice, at, bob, shifted, shifted_seconds, signed_request, steady};
use proptest::prelude::*;

const BODY: &str = r#"{"file_path": "a"}"#;

/// A request as it goes over the wire.
#[derive(Debug, Clone)]
struct Request {
    timestamp: String,
    nonce: String,
    signature: String,
    public_key: String,
    body: String,
}

impl Request {
    /// Signs exactly these strings, whatever their form.
    fn signed(key: &SecretKey, timestamp: &str, nonce: &str, body: &str) -> Self {
        let canonical = format!("{timestamp}##{nonce}##{body}");
        Self {
            timestamp: timestamp.to_owned(),
            nonce: nonce.to_owned(),
            signature: key
                .sign(&countersign_core::values::digest::Sha512::of(canonical.as_bytes()))
                .to_header(),
            public_key: key.public_key().to_string(),
            body: body.to_owned(),
        }
    }

    fn verify(&self, now: Timestamp) -> Result<VerifiedRequest, AuthRefusal> {
        let headers = AuthHeaders {
            timestamp: &self.timestamp,
            nonce: &self.nonce,
            signature: &self.signature,
            public_key: &self.public_key,
        };
        verify_request(&headers, self.body.as_bytes(), now)
    }
}

fn now() -> Timestamp {
    at("2026-02-01T12:00:00Z")
}

fn request() -> Request {
    Request::signed(&alice(), &now().to_header(), NONCE, BODY)
}

fn with_nonce(nonce: &str) -> Result<VerifiedRequest, AuthRefusal> {
    Request::signed(&alice(), &now().to_header(), nonce, BODY).verify(now())
}

/// What becomes of a request that was signed this much before `now`, in nanoseconds.
fn aged(nanos: i128) -> Result<Timestamp, AuthRefusal> {
    let signed_at = shifted(now(), -nanos);
    Request::signed(&alice(), &signed_at.to_header(), NONCE, BODY)
        .verify(now())
        .map(|verified| verified.timestamp)
}

#[test]
fn a_signed_request_proves_who_calls_with_padded_headers_and_without_a_body_too() {
    let verified = request().verify(now()).unwrap();
    assert_eq!(verified.public_key, alice().public_key());
    assert_eq!(verified.timestamp, now());
    assert_eq!(verified.signature.to_header(), request().signature);
    let signature = sign_request(&alice(), now(), NONCE, BODY.as_bytes());
    assert_eq!(signature.to_header(), request().signature);
    assert!(Request::signed(&alice(), &now().to_header(), NONCE, "").verify(now()).is_ok());
    let mut padded = request();
    padded.signature += "==";
    padded.public_key += "=";
    assert!(padded.verify(now()).is_ok());
}

#[test]
fn a_request_is_accepted_from_ten_seconds_ahead_until_just_under_six_minutes() {
    const MINUTE: i128 = 60_000_000_000;
    assert!(aged(5 * MINUTE).is_ok());
    assert!(aged(6 * MINUTE - 1_000_000).is_ok());
    assert!(aged(6 * MINUTE - 1).is_ok());
    assert_eq!(aged(6 * MINUTE), Err(AuthRefusal::TooOld));
    assert_eq!(aged(6 * MINUTE + 1), Err(AuthRefusal::TooOld));
    const SECOND: i128 = 1_000_000_000;
    assert!(aged(-10 * SECOND).is_ok());
    assert_eq!(aged(-10 * SECOND - 1), Err(AuthRefusal::TooFarAhead));
}

#[test]
fn a_nonce_is_remembered_until_its_request_is_too_old_and_one_minute_more() {
    let verified = request().verify(now()).unwrap();
    assert_eq!(nonce_expiry(verified.timestamp), shifted_seconds(now(), 7 * 60));
}

#[test]
fn a_changed_part_breaks_the_signature() {
    let broken = |change: fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        request.verify(now())
    };
    let other_time = broken(|r| r.timestamp = "2026-02-01T12:00:01+00:00".to_owned());
    assert_eq!(other_time, Err(AuthRefusal::BadSignature));
    let other_nonce = broken(|r| r.nonce = NONCE.replacen('8', "9", 1));
    assert_eq!(other_nonce, Err(AuthRefusal::BadSignature));
    assert_eq!(broken(|r| r.nonce = NONCE.to_uppercase()), Err(AuthRefusal::BadSignature));
    assert_eq!(broken(|r| r.body.push(' ')), Err(AuthRefusal::BadSignature));
    assert_eq!(broken(|r| r.body.clear()), Err(AuthRefusal::BadSignature));
    assert_eq!(broken(|r| r.public_key = bob().public_key().to_string()), Err(AuthRefusal::BadSignature));
    let others_signature =
        broken(|r| r.signature = Request::signed(&bob(), &r.timestamp, &r.nonce, &r.body).signature);
    assert_eq!(others_signature, Err(AuthRefusal::BadSignature));
}

#[test]
fn the_digest_is_signed_and_not_the_string() {
    let mut request = request();
    let canonical = format!("{}##{NONCE}##{BODY}", request.timestamp);
    let raw =
        ed25519_dalek::Signer::sign(&ed25519_dalek::SigningKey::from_bytes(&[1; 32]), canonical.as_bytes());
    request.signature = encode_base64(&raw.to_bytes());
    assert_eq!(request.verify(now()), Err(AuthRefusal::BadSignature));
}

#[test]
fn a_nonce_is_its_sixteen_bytes_in_any_letter_case() {
    let (small, capital) =
        (with_nonce(NONCE).unwrap().nonce, with_nonce(&NONCE.to_uppercase()).unwrap().nonce);
    assert_eq!(small, capital);
    let bytes =
        [0x8c, 0x2b, 0x5d, 0x4e, 0x6f, 0x70, 0x4a, 0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0x09];
    assert_eq!(small, Nonce(bytes));
}

#[test]
fn only_a_hyphenated_uuid_of_version_4_is_a_nonce() {
    for nonce in [
        String::new(),
        NONCE.replace('-', ""),
        format!("{{{NONCE}}}"),
        format!("urn:uuid:{NONCE}"),
        format!(" {NONCE}"),
        format!("{NONCE} "),
        NONCE.replacen("-4", "-1", 1),
        NONCE.replacen("-4", "-7", 1),
        NONCE.replacen("-9", "-7", 1),
        NONCE.replacen("-9", "-c", 1),
        NONCE.replacen('8', "g", 1),
        "00000000-0000-0000-0000-000000000000".to_owned(),
        "8c2b5d4e6f70-4a81-92a3-b4c5d6e7f8-09".to_owned(),
        format!("{}0", &NONCE[..35]).replace("-4a81", "4-a81"),
    ] {
        assert_eq!(with_nonce(&nonce), Err(AuthRefusal::NonceFormat), "{nonce}");
    }
}

#[test]
fn malformed_keys_and_signatures_are_named() {
    let mut unprefixed = request();
    unprefixed.public_key = alice().public_key().to_base64();
    assert_eq!(unprefixed.verify(now()), Err(AuthRefusal::PublicKey(KeyError::MissingPrefix)));
    let mut weak = request();
    weak.public_key = format!("svc-pub:{}", encode_base64(&[0; 32]));
    assert_eq!(weak.verify(now()), Err(AuthRefusal::PublicKey(KeyError::Weak)));
    for signature in ["", "AAAA", "%%%"] {
        let mut request = request();
        request.signature = signature.to_owned();
        assert_eq!(request.verify(now()), Err(AuthRefusal::SignatureFormat));
    }
}

#[test]
fn a_time_that_is_not_canonical_is_refused_however_well_it_is_signed() {
    for spelling in [
        "2026-02-01T12:00:00Z", "2026-02-01T12:00:00.0+00:00", "2026-02-01T12:00:00.500+00:00",
        "2026-02-01T12:00:00.000000000+00:00", "2026-02-01T12:00:00.0000000001+00:00",
        "2026-02-01T12:00:00-00:00", "2026-02-01T13:00:00+01:00", "2026-02-01T12:00:00+00:00 ",
        " 2026-02-01T12:00:00+00:00", "2026-02-01t12:00:00+00:00", "2026-02-01 12:00:00+00:00", "1769947200",
    ] {
        let refusal = Request::signed(&alice(), spelling, NONCE, BODY).verify(now()).unwrap_err();
        let is_about_time =
            matches!(refusal, AuthRefusal::TimestampNotCanonical(_) | AuthRefusal::TimestampFormat);
        assert!(is_about_time, "{spelling:?}: {refusal}");
    }
}

#[test]
fn the_refusal_of_a_spelling_shows_the_right_one() {
    let refusal =
        Request::signed(&alice(), "2026-02-01T12:00:00.50Z", NONCE, BODY).verify(now()).unwrap_err();
    countersign_testing::assert_mentions(&refusal.to_string(), &["2026-02-01T12:00:00.5+00:00"]);
}

#[test]
fn a_kept_request_can_be_verified_again_at_any_time() {
    let kept = signed_request(&alice(), now(), BODY);
    assert!(kept.verify().is_ok());
    let changes: [fn(&mut SignedRequest); 4] = [
        |r| r.payload.push(' '),
        |r| r.nonce = NONCE.replacen('8', "9", 1),
        |r| r.timestamp = "2026-02-01T12:00:01+00:00".to_owned(),
        |r| r.public_key = bob().public_key(),
    ];
    for change in changes {
        let mut changed = kept.clone();
        change(&mut changed);
        assert!(changed.verify().is_err());
    }
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn only_the_canonical_spelling_of_a_time_is_accepted(
        nanos in prop_oneof![Just(0_i128), 0_i128..1_000_000_000],
        zeros in 0_usize..3,
        offset in prop_oneof![Just("+00:00"), Just("-00:00"), Just("Z")],
    ) {
        let time = shifted(now(), nanos);
        let canonical = time.to_header();
        let bare = canonical.strip_suffix("+00:00").expect("an offset");
        let point = if zeros > 0 && !bare.contains('.') { "." } else { "" };
        let spelling = format!("{bare}{point}{}{offset}", "0".repeat(zeros));
        let verified = Request::signed(&alice(), &spelling, NONCE, BODY).verify(now());
        prop_assert_eq!(verified.is_ok(), spelling == canonical, "{}", spelling);
    }

    #[test]
    fn any_headers_are_judged_without_a_panic(
        timestamp in any::<String>(), nonce in any::<String>(), signature in any::<String>(), public_key in any::<String>(),
    ) {
        let request = Request { timestamp, nonce, signature, public_key, body: BODY.to_owned() };
        prop_assert!(request.verify(now()).is_err());
    }
}

#[test]
fn a_request_is_carried_out_70_minutes_after_its_time_or_10_before_and_not_beyond() {
    let at = |seconds: i64| Timestamp::from_unix_seconds(now().unix_seconds() + seconds).unwrap();
    for (seconds, carried) in
        [(0, Ok(())), (4_200, Ok(())), (4_201, Err(Overtaken)), (-600, Ok(())), (-601, Err(Overtaken))]
    {
        assert_eq!(check_carried(at(0), at(seconds)), carried, "{seconds}");
    }
}
