//! An objector is no oracle (D34): what is not an objection to this release gets no signature.

use countersign_core::documents::history::History;
use countersign_core::documents::statement::{Objection, Rebuild, StatementKind};
use countersign_core::proof::to_sign::SigningRequest;
use countersign_core::proof::to_state::{StatementRequest, ToStateError};
use countersign_core::rules::stored;
use countersign_core::values::{digest::Sha512, json};
use countersign_testing::evidence::good;
use countersign_testing::signing::{files_of, index_request};
use countersign_testing::{INDEX, PROJECT, alice, at, bob, documents, path, rebuild_of};

fn request(text: Option<&str>) -> StatementRequest {
    about(INDEX, good().index, good().history, text)
}

fn about(file: &str, index: String, history: History, text: Option<&str>) -> StatementRequest {
    let subject_digest = Sha512::of(index.as_bytes());
    let timestamp = at("2026-02-01T12:00:00.5Z");
    let document = Objection { text: text.map(str::to_owned), subject_digest, timestamp };
    let text = String::from_utf8(document.write()).expect("our documents are text");
    StatementRequest::of_release(StatementKind::Objection, path(file), index, history, text)
}

#[track_caller]
fn refusal(request: &StatementRequest) -> ToStateError {
    request.check().expect_err("it would be signed")
}

#[test]
fn an_objection_to_this_release_is_signed_and_nothing_but_it() {
    for text in [Some("linux-arm64 does not match my build"), None] {
        assert_eq!(request(text).reason().as_deref(), text);
        let to_object = request(text).check().expect("an objection");
        assert_eq!(to_object.document.reason(), text);
        assert_eq!(to_object.accepted_signers(), to_object.signers().keys(), "every listed key can object");
        let body =
            to_object.sign(bob().public_key(), |digest| Ok::<_, ()>(bob().sign(digest))).expect("signed");
        let document = Objection::parse(body.text.as_bytes()).expect("an objection");
        assert_eq!(document.text.as_deref(), text);
        assert_eq!(document.subject_digest, Sha512::of(good().index.as_bytes()));
        let digest = Sha512::of(body.text.as_bytes());
        bob().public_key().verify(&digest, &body.signature).expect("over the document");
        assert_eq!((body.file_path, body.public_key), (path(INDEX), bob().public_key()));
    }
}

#[test]
fn a_rebuild_is_of_this_release_and_its_files() {
    let (index, right) = (path(INDEX), rebuild_of(&path(INDEX), &good().index));
    let elsewhere = Rebuild { rebuild_of: path(&INDEX.replace("v1", "v2")), ..right.clone() };
    let of_others = Rebuild { subject_digest: Sha512::of(b"another index"), ..right.clone() };
    for (document, is_right) in [(right, true), (elsewhere, false), (of_others, false)] {
        let text = String::from_utf8(document.write()).expect("our documents are text");
        let (history, text_of_index) = (good().history, good().index);
        let request =
            StatementRequest::of_release(StatementKind::Rebuild, index.clone(), text_of_index, history, text);
        match request.check() {
            Ok(_) => assert!(is_right),
            Err(error) => assert!(!is_right && matches!(error, ToStateError::OtherFile { .. }), "{error}"),
        }
    }
}

#[test]
fn the_text_has_one_to_a_thousand_characters() {
    for text in ["", &"x".repeat(1_001)] {
        assert!(matches!(refusal(&request(Some(text))), ToStateError::Document { .. }));
    }
    // Control characters take the most bytes of all characters.
    for character in ["x", "\u{1f}", "\u{1f600}", "\""] {
        let text = character.repeat(1_000);
        assert!(request(Some(&text)).check().is_ok(), "{character:?}");
    }
}

/// What a path, an index and a history have to be, `to_revoke` tests.
#[test]
fn only_to_a_release_is_objected_and_to_this_content() {
    let signers = format!("{PROJECT}/svc.signers/svc.signers.json");
    let signers = about(&signers, good().index, good().history, None);
    assert!(matches!(refusal(&signers), ToStateError::NotARelease(_)));
    let mut later = request(None);
    later.subject = about(INDEX, good().index + " ", good().history, None).subject;
    assert!(matches!(refusal(&later), ToStateError::OtherFile { .. }), "a byte more is another index");
}

#[test]
fn a_signer_is_shown_the_objections_that_verify_for_this_index() {
    let index = good().index;
    let mut request = index_request(&index);
    let about = |text: &str, subject_digest| {
        let text = Objection { text: Some(text.to_owned()), subject_digest, ..documents::objection() };
        let mut entry = documents::objections().entries[&alice().public_key()].clone();
        entry.text = String::from_utf8(text.write()).unwrap();
        entry.signature = alice().sign(&Sha512::of(entry.text.as_bytes()));
        entry.document = text;
        entry
    };
    let right = about("no", Sha512::of(index.as_bytes()));
    request.objections.entries.insert(alice().public_key(), right.clone());
    // In another's name, and about another index.
    request.objections.entries.insert(bob().public_key(), right);
    let shown = |request: &SigningRequest| {
        stored::objections(&files_of(request), &request.path).expect("an objections file")
    };
    let file = shown(&request);
    let standing: Vec<_> = file.standing().iter().map(|shown| shown.key).collect();
    assert_eq!(standing, [alice().public_key()]);
    let other = about("no", Sha512::of(b"another index"));
    request.objections.entries = [(alice().public_key(), other)].into();
    assert!(shown(&request).is_empty());
}

#[test]
fn a_request_travels_with_its_objections() {
    let mut request = index_request(&good().index);
    let rewrite =
        |request: &SigningRequest| json::read::<SigningRequest>(&json::write(request)).expect("a request");
    assert_eq!(rewrite(&request), request);
    request.objections = documents::objections();
    assert_eq!(rewrite(&request), request);
    request.earlier = documents::earlier_objections();
    assert_eq!(rewrite(&request), request);
    let shown = stored::earlier_objections(&files_of(&request), &request.path).expect("an objections file");
    assert_eq!(shown, request.earlier, "they are about another content, and verify");
}
