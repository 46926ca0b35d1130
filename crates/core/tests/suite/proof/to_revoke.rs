//! A revoker is no oracle (D34): what is not a revocation of this release gets no signature.

use std::collections::BTreeSet;

use countersign_core::{
    documents::signatures::SignatureSet,
    proof::{
        shown_release::ShownReleaseError,
        to_revoke::{RevocationRequest, ToRevokeError},
    },
    values::{
        digest::Sha512,
        json::Json,
        key::{SecretKey, Signature},
    },
};
use countersign_testing::{
    INDEX, PROJECT, alice, bob,
    evidence::{
        good, index_path, index_text, last_signers, release_index, revocation_document, rotated, signed_by,
    },
    mallory, path, revocation_text,
};

/// A new revocation of the release, under the signers of now.
fn request() -> RevocationRequest {
    let index = good().index;
    let digest = Sha512::of(index.as_bytes());
    RevocationRequest {
        path: path(INDEX),
        revocation: revocation_text(&revocation_document(Some(digest))),
        index,
        history: good().history,
        collected: SignatureSet::default(),
    }
}

#[track_caller]
fn refusal(request: &RevocationRequest) -> ToRevokeError {
    request.check().expect_err("it would be signed")
}

fn sign(key: &SecretKey) -> impl FnOnce(&Sha512) -> Result<Signature, ()> + '_ {
    |digest| Ok(key.sign(digest))
}

#[test]
fn a_revocation_of_this_release_is_signed_and_nothing_but_it() {
    let request = request();
    let to_revoke = request.check().expect("a revocation");
    assert_eq!((to_revoke.path(), &to_revoke.index), (&path(INDEX), &release_index("v1")));
    let body = to_revoke.sign(alice().public_key(), sign(&alice())).expect("a signature");
    assert_eq!(body.revocation_json, request.revocation);
    let digest = Sha512::of(request.revocation.as_bytes());
    alice().public_key().verify(&digest, &body.signature).expect("over the document");
    // No revocation keys are listed, so that the admins revoke.
    let admins = BTreeSet::from([alice().public_key(), bob().public_key()]);
    assert_eq!(to_revoke.accepted_signers(), admins);
    assert_eq!(to_revoke.chain.last().digest, last_signers(&good()));
}

#[test]
fn what_is_no_revocation_of_this_release_is_not_signed() {
    let of = |text: &str| RevocationRequest { revocation: text.to_owned(), ..request() };
    let other = Sha512::of(b"another index");
    for revocation in
        [revocation_text(&revocation_document(Some(other))), revocation_text(&revocation_document(None))]
    {
        assert!(matches!(refusal(&of(&revocation)), ToRevokeError::OtherFile(_)), "{revocation}");
    }
    for text in ["", "{}", "2026-01-31T10:00:00+00:00##9f0e##{}", &request().index] {
        assert!(matches!(refusal(&of(text)), ToRevokeError::Document(_)), "{text}");
    }
}

#[test]
fn the_index_must_be_that_of_its_path_and_its_history_must_hold() {
    let elsewhere = RevocationRequest { path: path(&index_path("v2")), ..request() };
    assert!(matches!(refusal(&elsewhere), ToRevokeError::Release(ShownReleaseError::Place { .. })));
    let signers =
        RevocationRequest { path: path(&format!("{PROJECT}/svc.signers/svc.signers.json")), ..request() };
    assert!(matches!(refusal(&signers), ToRevokeError::NotRevocable(_)));
    let none = RevocationRequest { index: "{}".to_owned(), ..request() };
    assert!(matches!(refusal(&none), ToRevokeError::Release(ShownReleaseError::Index { .. })));
    let changed = RevocationRequest { index: index_text(&release_index("v1")) + " ", ..request() };
    assert!(matches!(refusal(&changed), ToRevokeError::OtherFile(_)), "a byte more is another index");
    let mut cut = request();
    cut.history = rotated(PROJECT).history;
    cut.history.entries.remove(0);
    assert!(matches!(refusal(&cut), ToRevokeError::Release(ShownReleaseError::History(_))));
}

#[test]
fn a_revocation_that_others_are_said_to_have_signed_must_be_begun_by_a_revoker() {
    let begun = |by: &SecretKey| {
        let request = request();
        RevocationRequest { collected: signed_by(&request.revocation, &[by]), ..request }
    };
    assert!(begun(&alice()).check().expect("alice may revoke").signed.contains(&alice().public_key()));
    assert!(matches!(refusal(&begun(&mallory())), ToRevokeError::NotBegun));
    let over_other = RevocationRequest { collected: signed_by("something else", &[&alice()]), ..request() };
    assert!(matches!(refusal(&over_other), ToRevokeError::NotBegun));
}

#[test]
fn a_request_is_read_strictly() {
    let text = serde_json::to_string(&request()).expect("JSON");
    let parse =
        |text: &str| RevocationRequest::parse_field(&Json::parse(text.as_bytes()).expect("JSON").root());
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
