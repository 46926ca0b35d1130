//! A revoker is no oracle (D34): what is not a revocation of this release gets no signature.

use std::collections::BTreeSet;

use countersign_core::documents::{history::History, statement::StatementKind};
use countersign_core::proof::to_sign::{Subject, ToSignError};
use countersign_core::proof::to_state::{StatementRequest, ToStateError};
use countersign_core::values::{digest::Sha512, json::Json, key::SecretKey, key::Signature};
use countersign_testing::evidence::{
    good, index_path, index_text, last_signers, release_index, revocation_document, rotated, signed_by,
};
use countersign_testing::{INDEX, PROJECT, alice, bob, mallory, path, revocation_text};

/// A new revocation of the release, under the signers of now.
fn request() -> StatementRequest {
    about(INDEX, good().index, good().history)
}

/// A new revocation of the release, shown with another path, index or history.
fn about(file: &str, index: String, history: History) -> StatementRequest {
    let digest = Sha512::of(good().index.as_bytes());
    let text = revocation_text(&revocation_document(Some(digest)));
    StatementRequest::of_release(StatementKind::Revocation, path(file), index, history, text)
}

#[track_caller]
fn refusal(request: &StatementRequest) -> ToStateError {
    request.check().expect_err("it would be signed")
}

fn sign(key: &SecretKey) -> impl FnOnce(&Sha512) -> Result<Signature, ()> + '_ {
    |digest| Ok(key.sign(digest))
}

#[test]
fn a_revocation_of_this_release_is_signed_and_nothing_but_it() {
    let request = request();
    let to_revoke = request.check().expect("a revocation");
    assert_eq!(to_revoke.path(), &path(INDEX));
    let is_release = |subject: &Subject| matches!(subject, Subject::Release { index, .. } if *index == release_index("v1"));
    assert!(is_release(&to_revoke.subject.subject));
    let body = to_revoke.sign(alice().public_key(), sign(&alice())).expect("a signature");
    assert_eq!(body.text, request.text);
    let digest = Sha512::of(request.text.as_bytes());
    alice().public_key().verify(&digest, &body.signature).expect("over the document");
    // No revocation keys are listed, so that the admins revoke.
    let admins = BTreeSet::from([alice().public_key(), bob().public_key()]);
    assert_eq!(to_revoke.accepted_signers(), admins);
    assert_eq!(to_revoke.chain().last().digest, last_signers(&good()));
}

#[test]
fn what_is_no_revocation_of_this_release_is_not_signed() {
    let of = |text: &str| StatementRequest { text: text.to_owned(), ..request() };
    let other = Sha512::of(b"another index");
    for revocation in
        [revocation_text(&revocation_document(Some(other))), revocation_text(&revocation_document(None))]
    {
        assert!(matches!(refusal(&of(&revocation)), ToStateError::OtherFile { .. }), "{revocation}");
    }
    for text in ["", "{}", "2026-01-31T10:00:00+00:00##9f0e##{}", &good().index] {
        assert!(matches!(refusal(&of(text)), ToStateError::Document { .. }), "{text}");
    }
}

#[test]
fn the_index_must_be_that_of_its_path_and_its_history_must_hold() {
    let elsewhere = about(&index_path("v2"), good().index, good().history);
    assert!(matches!(refusal(&elsewhere), ToStateError::Subject(ToSignError::Place { .. })));
    let signers = format!("{PROJECT}/svc.signers/svc.signers.json");
    let signers = about(&signers, good().index, good().history);
    assert!(matches!(refusal(&signers), ToStateError::NotRevocable(_)));
    let none = about(INDEX, "{}".to_owned(), good().history);
    assert!(matches!(refusal(&none), ToStateError::Subject(ToSignError::Index { .. })));
    let changed = about(INDEX, index_text(&release_index("v1")) + " ", good().history);
    assert!(matches!(refusal(&changed), ToStateError::OtherFile { .. }), "a byte more is another index");
    let mut cut = request();
    cut.subject.history = rotated(PROJECT).history;
    cut.subject.history.entries.remove(0);
    assert!(matches!(refusal(&cut), ToStateError::Subject(ToSignError::History(_))));
}

#[test]
fn a_revocation_that_others_are_said_to_have_signed_must_be_begun_by_a_revoker() {
    let begun = |by: &SecretKey| {
        let request = request();
        StatementRequest { collected: signed_by(&request.text, &[by]), ..request }
    };
    assert!(begun(&alice()).check().expect("alice may revoke").signed.contains(&alice().public_key()));
    assert!(matches!(refusal(&begun(&mallory())), ToStateError::NotBegun));
    let over_other = StatementRequest { collected: signed_by("something else", &[&alice()]), ..request() };
    assert!(matches!(refusal(&over_other), ToStateError::NotBegun));
}

#[test]
fn a_request_is_read_strictly() {
    let text = serde_json::to_string(&request()).expect("JSON");
    let parse = |text: &str| {
        let json = Json::parse(text.as_bytes()).expect("JSON");
        StatementRequest::parse_field(StatementKind::Revocation, &json.root())
    };
    assert_eq!(parse(&text), Ok(request()));
    for (from, to) in [
        ("\"index\":", "\"extra\": 1, \"index\":"),
        ("\"collected\":", "\"signed\":"),
        ("\"file_path\":\"https/github.com/443", "\"file_path\":\"https/github.com"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(parse(&changed).is_err(), "{to}");
    }
}
