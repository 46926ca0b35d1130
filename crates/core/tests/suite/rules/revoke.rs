//! Revoking a complete file (spec §4.9; D20).

use countersign_core::documents::signed_request::SignedRequest;
use countersign_core::documents::statement::{Revocation, StatementKind};
use countersign_core::rules::decide::statement::StatementRefusal;
use countersign_core::values::{digest::Sha512, key::SecretKey};
use countersign_testing::signing::{
    RECORDED, REVOKED, complete, names, post, refusal, set, team, two_of_three,
};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PROJECT, World, alice, assert_mentions, at, bob, carol, dave, key, mallory, path,
    public, revocation_text, signed_request, signers,
};

fn without_subject(world: &World, reason: &str) -> String {
    let timestamp = world.now;
    revocation_text(&Revocation {
        reason: reason.to_owned(),
        timestamp,
        subject_digest: None,
        initiator: None,
    })
}

fn with_initiator(world: &World, initiator: &SecretKey) -> String {
    let document =
        Revocation::parse(world.revocation_document("by its initiator").as_bytes()).expect("a revocation");
    revocation_text(&Revocation { initiator: Some(initiator.public_key()), ..document })
}

#[test]
fn a_revoked_file_keeps_its_signatures_under_another_name() {
    let mut world = complete();
    world.now = at("2026-02-01T13:00:00.75Z");
    let signatures = world.repo.text(&format!("{INDEX}.signatures.json"));
    // The exact text is signed and kept, whatever its spaces.
    let document = world.revocation_document("a bad build").replace("  ", "\t");
    assert_eq!(post(&mut world, &document, &alice()), REVOKED);
    assert_eq!(
        names(&world),
        [
            "", ".revocation.json", ".revocation.json.signatures.json", ".revocation.json.signers.json",
            ".signatures.json.revoked", ".signers.json",
        ]
    );
    assert_eq!(world.repo.text(&format!("{INDEX}.signatures.json.revoked")), signatures);
    assert_eq!(world.repo.text(&format!("{INDEX}.revocation.json")), document);
    assert_eq!(world.repo.text(&format!("{INDEX}.revocation.json.signers.json")), team().text());
    let set = set(&world, ".revocation.json.signatures.json");
    assert_eq!(set.verify(document.as_bytes()), Ok(public([&alice()])));
    assert_eq!(set.entries[&alice().public_key()].collected_at, at("2026-02-01T13:00:00Z"));
    assert_mentions(&world.last.message, &["evoke", INDEX, &alice().public_key().to_string()]);
}

#[test]
fn others_than_the_revocation_role_may_not_revoke() {
    let document = complete().revocation_document("x");
    for admin in [alice(), bob()] {
        assert_eq!(
            post(&mut complete(), &document, &admin),
            REVOKED,
            "one is enough without revocation keys"
        );
    }
    for outsider in [dave(), mallory()] {
        let expected = StatementRefusal::MayNotRevoke { key: outsider.public_key(), project: path(PROJECT) };
        assert_eq!(refusal(&mut complete(), &document, &outsider), expected);
    }
    let mut explicit = two_of_three();
    let document = explicit.revocation_document("x");
    for outsider in [alice(), bob(), dave(), mallory()] {
        let refused = refusal(&mut explicit, &document, &outsider);
        assert_mentions(&refused.to_string(), &["Revocation authorization failed"]);
    }
}

#[test]
fn the_current_signers_file_decides_who_may_revoke() {
    let mut world = complete();
    world.rotate(
        &signers("2026-02-01T09:00:00Z").artifact(1, [&carol()]).master(1, [&dave()]),
        &[&dave(), &carol()],
    );
    let document = world.revocation_document("x");
    assert!(matches!(refusal(&mut world, &document, &alice()), StatementRefusal::MayNotRevoke { .. }));
    assert_eq!(post(&mut world, &document, &carol()), REVOKED);
    assert_eq!(
        world.repo.text(&format!("{INDEX}.signers.json")),
        team().text(),
        "the governing copy never changes"
    );
    assert_eq!(
        world.repo.text(&format!("{INDEX}.revocation.json.signers.json")),
        world.repo.text(ACTIVE),
        "and the one that authorised the revocation is kept, too"
    );
}

#[test]
fn only_a_complete_file_is_revoked_whatever_the_document() {
    let mut world = World::with(&team(), &[&alice(), &bob(), &dave()]);
    world.release_signed_by(&[&alice()]);
    let refused = refusal(&mut world, "nonsense", &mallory());
    assert_eq!(refused.to_string(), format!("File has not been fully signed: {INDEX}"));
    let mut request = world.revoke_request("nonsense", &mallory());
    request.statement.file_path = path(&format!("{PROJECT}/releases/tag/v9/svc.index.json"));
    assert_eq!(world.revoke(&request), Err(StatementRefusal::NotFound(request.statement.file_path.clone())));
}

#[test]
fn a_file_is_revoked_once() {
    let mut world = complete();
    world.revoke_index(&alice());
    let document = world.revocation_document("again");
    for key in [bob(), mallory()] {
        assert_eq!(refusal(&mut world, &document, &key), StatementRefusal::AlreadyRevoked(path(INDEX)));
    }
}

#[test]
fn signers_files_are_rotated_and_not_revoked() {
    let mut world = complete();
    world.update(&signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]), &alice()).unwrap();
    for file in [ACTIVE.to_owned(), PENDING.to_owned(), format!("{ACTIVE}.metadata.json")] {
        let mut request = world.revoke_request(&without_subject(&world, "x"), &alice());
        request.statement.file_path = path(&file);
        assert_eq!(world.revoke(&request), Err(StatementRefusal::NotRevocable(path(&file))));
    }
}

#[test]
fn a_document_that_is_no_revocation_is_refused() {
    for document in ["", "{}", r#"{"reason": "", "timestamp": 0}"#] {
        let refused = refusal(&mut complete(), document, &alice());
        assert!(matches!(refused, StatementRefusal::InvalidDocument { .. }), "{document}");
    }
}

#[test]
fn the_subject_digest_is_that_of_the_file() {
    let mut world = complete();
    let digest = Sha512::of(&world.repo.bytes(INDEX)).to_prefixed();
    let other = world.revocation_document("x").replace(&digest, &Sha512::of(b"other").to_prefixed());
    let refused = refusal(&mut world, &other, &alice());
    assert_eq!(refused, StatementRefusal::DigestMismatch(path(INDEX)));
    assert_mentions(&refused.to_string().to_lowercase(), &["digest mismatch"]);
}

#[test]
fn a_signature_over_other_text_is_refused() {
    let mut world = complete();
    let mut request = world.revoke_request(&world.revocation_document("x"), &alice());
    request.statement.text.push('\n');
    assert_eq!(world.revoke(&request), Err(StatementRefusal::BadSignature(StatementKind::Revocation)));
    let mut posed = world.revoke_request(&world.revocation_document("x"), &mallory());
    posed.statement.public_key = alice().public_key();
    assert_eq!(world.revoke(&posed), Err(StatementRefusal::BadSignature(StatementKind::Revocation)));
}

#[test]
fn a_document_without_a_subject_is_posted_by_the_revoker_and_the_request_is_kept() {
    let mut world = complete();
    let document = without_subject(&world, "x");
    let mut relayed = world.revoke_request(&document, &alice());
    relayed.request = signed_request(&bob(), world.now, "{}");
    assert_eq!(world.revoke(&relayed), Err(StatementRefusal::NotCaller));
    assert_eq!(post(&mut world, &document, &alice()), REVOKED);
    // One that names its subject can be relayed.
    let mut other = complete();
    let mut request = other.revoke_request(&other.revocation_document("x"), &alice());
    request.request = signed_request(&mallory(), other.now, "{}");
    assert_eq!(other.revoke(&request), REVOKED);
    assert!(!other.repo.has(&format!("{INDEX}.revocation.json.request.json")));
    let kept =
        SignedRequest::parse(&world.repo.bytes(&format!("{INDEX}.revocation.json.request.json"))).unwrap();
    assert_eq!((kept.public_key, kept.verify()), (alice().public_key(), Ok(())));
}

#[test]
fn a_threshold_above_1_makes_the_subject_a_must() {
    let mut world = two_of_three();
    let document = without_subject(&world, "x");
    assert_eq!(refusal(&mut world, &document, &carol()), StatementRefusal::SubjectDigestRequired);
    let mut alone = World::with(&team().revocation(1, [&carol()]), &[&alice(), &bob(), &carol(), &dave()]);
    alone.release_signed_by(&[&alice(), &bob()]);
    assert_eq!(post(&mut alone, &document, &carol()), REVOKED);
}

#[test]
fn explicit_revocation_keys_reach_their_threshold_by_co_signing() {
    let mut world = two_of_three();
    let document = world.revocation_document("x");
    assert_eq!(post(&mut world, &document, &carol()), RECORDED);
    assert_eq!(world.repo.text(&format!("{INDEX}.revocation.json.pending")), document);
    assert_eq!(set(&world, ".revocation.json.signatures.json.pending").signers(), public([&carol()]));
    assert!(world.repo.has(&format!("{INDEX}.signatures.json")), "it is not revoked yet");
    let again = StatementRefusal::AlreadySigned(carol().public_key());
    assert_eq!(refusal(&mut world, &document, &carol()), again);
    assert_eq!(post(&mut world, &document, &key(6)), REVOKED);
    let signed_by = set(&world, ".revocation.json.signatures.json").verify(document.as_bytes());
    assert_eq!(signed_by, Ok(public([&carol(), &key(6)])));
    assert!(names(&world).iter().all(|name| !name.ends_with(".pending")), "nothing pending is left");
}

#[test]
fn every_explicit_group_reaches_its_threshold() {
    let file = team().revocation(1, [&carol()]).revocation(1, [&key(5)]);
    let mut world = World::with(&file, &[&alice(), &bob(), &carol(), &dave(), &key(5)]);
    world.release_signed_by(&[&alice(), &bob()]);
    let document = world.revocation_document("x");
    assert_eq!(post(&mut world, &document, &carol()), RECORDED);
    assert_eq!(post(&mut world, &document, &key(5)), REVOKED);
}

#[test]
fn another_document_is_refused_while_one_is_pending_and_told_which() {
    let mut world = two_of_three();
    let pending = world.revocation_document("the first reason");
    assert_eq!(post(&mut world, &pending, &carol()), RECORDED);
    let other = world.revocation_document("the second reason");
    for key in [carol(), key(5)] {
        let refused = refusal(&mut world, &other, &key);
        assert!(matches!(refused, StatementRefusal::OtherPending { .. }), "{refused}");
        assert_mentions(&refused.to_string(), &[INDEX, "the first reason"]);
    }
    let spaced = pending.replace("  ", " ");
    let refused = refusal(&mut world, &spaced, &key(5));
    assert!(matches!(refused, StatementRefusal::OtherPending { .. }), "the same text means the same bytes");
}

#[test]
fn the_initiator_is_the_one_who_posts_first() {
    let mut world = two_of_three();
    let document = with_initiator(&world, &carol());
    assert_eq!(refusal(&mut world, &document, &key(5)), StatementRefusal::NotInitiator);
    assert_eq!(post(&mut world, &document, &carol()), RECORDED);
    assert_eq!(post(&mut world, &document, &key(5)), REVOKED);
    let mut alone = complete();
    let document = with_initiator(&alone, &bob());
    assert_eq!(refusal(&mut alone, &document, &alice()), StatementRefusal::NotInitiator);
    assert_eq!(post(&mut alone, &document, &bob()), REVOKED);
}
