//! Request bodies (spec §4, D1, D5): duplicates are refused, unknown fields ignored.

use countersign_api::answers::StatusResponse;
use countersign_api::requests::{AssetsBody, ProposeBody, SignaturesBody, SignedStatement};
use countersign_core::documents::statement::StatementKind;
use countersign_core::values::{digest::Sha512, json::ParseError};
use countersign_testing::{alice, assert_mentions, path};
use serde_json::json;

fn signature() -> String {
    alice().sign(&Sha512::of(b"x")).to_base64()
}

fn signatures_body(signatures: &str) -> Result<SignaturesBody, ParseError> {
    let key = alice().public_key().to_base64();
    let text = format!(
        r#"{{"file_path": "HTTPS/GitHub.com/acme/", "public_key": "{key}", "signatures": {signatures}}}"#
    );
    SignaturesBody::parse(text.as_bytes())
}

#[test]
fn unknown_fields_are_ignored_and_every_spelling_of_a_key_is_accepted() {
    let key = alice().public_key();
    for spelling in [key.to_base64(), key.to_string()] {
        let body = json!({ "signers_file_url": "u", "public_key": spelling, "more": { "a": [1.5, null] } });
        let parsed = ProposeBody::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!((parsed.signers_file_url.as_str(), parsed.public_key), ("u", key));
    }
}

#[test]
fn a_name_that_occurs_twice_is_refused_at_every_depth() {
    let key = alice().public_key().to_base64();
    for body in [
        format!(r#"{{"signers_file_url": "u", "signers_file_url": "u", "public_key": "{key}"}}"#),
        format!(r#"{{"signers_file_url": "u", "public_key": "{key}", "x": 1, "x": 1}}"#),
        format!(r#"{{"signers_file_url": "u", "public_key": "{key}", "x": [{{"y": 1, "\u0079": 1}}]}}"#),
    ] {
        assert!(ProposeBody::parse(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn paths_of_signatures_are_normalised_and_two_spellings_of_one_are_refused() {
    let signature = signature();
    let body = signatures_body(&format!(r#"{{"Https/GitHub.com/acme": "{signature}"}}"#)).unwrap();
    assert_eq!(body.file_path, path("https/github.com/443/acme"));
    assert!(body.signatures.contains_key(&body.file_path));
    let both =
        format!(r#"{{"https/github.com/acme": "{signature}", "https/github.com/443/acme": "{signature}"}}"#);
    assert!(signatures_body(&both).is_err());
}

#[test]
fn malformed_parts_are_refused_by_name() {
    for (signatures, part) in [
        ("[]", "signatures"),
        (r#"{"a/../b": "AAAA"}"#, "path traversal"),
        (r#"{"a": "AAAA"}"#, "signature"),
        (r#"{"a": 1}"#, "signatures"),
    ] {
        assert_mentions(&signatures_body(signatures).unwrap_err().to_string(), &[part]);
    }
    let key = alice().public_key().to_base64();
    let empty_path = json!({ "file_path": "", "public_key": key, "signatures": {} }).to_string();
    assert_mentions(
        &SignaturesBody::parse(empty_path.as_bytes()).unwrap_err().to_string(),
        &["file_path", "empty"],
    );
    let bad_key = json!({ "signers_file_url": "u", "public_key": "AAAA" }).to_string();
    assert_mentions(
        &ProposeBody::parse(bad_key.as_bytes()).unwrap_err().to_string(),
        &["Invalid public key"],
    );
}

#[test]
fn a_revocation_document_is_kept_as_its_exact_text() {
    let document = "{ \"reason\":\t\"x\" }\n";
    let key = alice().public_key().to_string();
    let body =
        json!({ "file_path": "a", "revocation_json": document, "signature": signature(), "public_key": key });
    let parsed = SignedStatement::parse(StatementKind::Revocation, body.to_string().as_bytes()).unwrap();
    assert_eq!(parsed.text, document);
    assert_eq!(parsed.file_path, path("a"));
}

#[test]
fn assets_come_from_a_release_or_from_checksums_files() {
    let parse = |body: serde_json::Value| AssetsBody::parse(body.to_string().as_bytes());
    assert_eq!(parse(json!({ "forge_release_url": "u" })), Ok(AssetsBody::Release("u".to_owned())));
    assert_eq!(
        parse(json!({ "csum_files": ["a", "b"] })),
        Ok(AssetsBody::Checksums(vec!["a".to_owned(), "b".to_owned()]))
    );
    let both = parse(json!({ "forge_release_url": "u", "csum_files": ["a"] })).unwrap_err();
    assert_mentions(&both.to_string(), &["forge_release_url and csum_files are mutually exclusive"]);
    assert!(parse(json!({})).is_err());
    assert!(parse(json!({ "csum_files": "a" })).is_err());
    assert!(parse(json!({ "csum_files": [1] })).is_err());
}

#[test]
fn a_status_says_revoked_only_where_it_is() {
    let status = |revoked| {
        let response =
            StatusResponse { file_path: path("a"), is_complete: false, revoked, waits_until: None };
        serde_json::to_value(response).unwrap()
    };
    assert_eq!(status(None), json!({ "file_path": "a", "is_complete": false }));
    assert_eq!(status(Some(true)), json!({ "file_path": "a", "is_complete": false, "revoked": true }));
}
