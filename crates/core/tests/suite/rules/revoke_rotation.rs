//! A rotation while a revocation collects signatures: the role of today counts (D20).

use countersign_core::rules::decide::statement::StatementRefusal;
use countersign_core::values::{bounds::SIGNATURES, digest::Sha512, key::SecretKey};
use countersign_testing::signing::{RECORDED, REVOKED, full_set, names, post, refusal, set, two_of_three};
use countersign_testing::{
    INDEX, PROJECT, Signers, World, alice, bob, carol, dave, key, path, public, signers,
};

/// `two_of_three` after Carol's signature and a rotation to these revocation keys.
fn rotated(revocation: impl FnOnce(Signers) -> Signers, by: &[&SecretKey]) -> (World, String) {
    let mut world = two_of_three();
    let document = world.revocation_document("x");
    assert_eq!(post(&mut world, &document, &carol()), RECORDED);
    world.rotate(&revocation(new_file()), by);
    (world, document)
}

fn new_file() -> Signers {
    signers("2026-02-01T09:00:00Z").artifact(2, [&alice(), &bob()]).master(1, [&dave()])
}

#[test]
fn signatures_are_counted_against_the_role_of_today() {
    let (mut world, document) = rotated(|file| file.revocation(2, [&key(5), &key(6)]), &[&dave()]);
    assert_eq!(post(&mut world, &document, &key(5)), RECORDED, "Carol's signature counts no more");
    assert_eq!(post(&mut world, &document, &key(6)), REVOKED);
    let recorded = set(&world, ".revocation.json.signatures.json").signers();
    assert!(recorded.is_superset(&public([&key(5), &key(6)])));
}

#[test]
fn a_pending_document_without_a_counted_signature_may_be_replaced() {
    let (mut world, document) = rotated(|file| file.revocation(2, [&key(5), &key(6)]), &[&dave()]);
    let other = world.revocation_document("a better reason");
    assert_eq!(post(&mut world, &other, &key(5)), RECORDED);
    assert_eq!(set(&world, ".revocation.json.signatures.json.pending").signers(), public([&key(5)]));
    assert!(matches!(refusal(&mut world, &document, &key(6)), StatementRefusal::OtherPending { .. }));
    assert_eq!(post(&mut world, &other, &key(6)), REVOKED);
    assert_eq!(world.repo.text(&format!("{INDEX}.revocation.json")), other);
}

#[test]
fn a_replacing_document_that_is_complete_at_once_leaves_nothing_pending() {
    let (mut world, _) = rotated(|file| file.revocation(1, [&key(5)]), &[&dave()]);
    let other = world.revocation_document("a better reason");
    assert_eq!(post(&mut world, &other, &key(5)), REVOKED);
    assert!(names(&world).iter().all(|name| !name.ends_with(".pending")));
    assert_eq!(set(&world, ".revocation.json.signatures.json").signers(), public([&key(5)]));
}

#[test]
fn a_pending_document_with_a_counted_signature_stays() {
    let (mut world, _) = rotated(|file| file.revocation(2, [&carol(), &key(7)]), &[&dave(), &key(7)]);
    let other = world.revocation_document("a better reason");
    assert!(matches!(refusal(&mut world, &other, &key(7)), StatementRefusal::OtherPending { .. }));
}

#[test]
fn a_rotation_that_makes_the_signatures_enough_lets_one_who_gave_one_carry_it_out() {
    let new_roles: [fn(Signers) -> Signers; 3] = [
        |file| file.revocation(1, [&carol()]),
        |file| file.revocation(1, [&carol(), &key(5), &key(6)]),
        // Without explicit revocation keys, one admin key is enough.
        |file| file.admin(1, [&carol()]),
    ];
    for new_role in new_roles {
        let (mut world, document) = rotated(new_role, &[&dave()]);
        let first = set(&world, ".revocation.json.signatures.json.pending");
        world.pass(3_600);
        assert_eq!(post(&mut world, &document, &carol()), REVOKED);
        assert_eq!(world.repo.text(&format!("{INDEX}.revocation.json")), document);
        let signed = set(&world, ".revocation.json.signatures.json");
        assert_eq!(signed.verify(document.as_bytes()), Ok(public([&carol()])));
        assert_eq!(signed, first, "her first signature stays");
        assert!(names(&world).iter().all(|name| !name.ends_with(".pending")), "nothing pending is left");
    }
}

#[test]
fn somebody_new_may_carry_out_what_is_enough_already() {
    let (mut world, document) = rotated(|file| file.revocation(1, [&carol(), &key(5)]), &[&dave()]);
    assert_eq!(post(&mut world, &document, &key(5)), REVOKED);
    assert_eq!(set(&world, ".revocation.json.signatures.json").signers(), public([&carol(), &key(5)]));
}

#[test]
fn while_the_signatures_are_not_enough_the_same_key_again_is_refused() {
    let (mut world, document) = rotated(|file| file.revocation(2, [&carol(), &key(5)]), &[&dave()]);
    assert_eq!(
        refusal(&mut world, &document, &carol()),
        StatementRefusal::AlreadySigned(carol().public_key())
    );
    assert_eq!(post(&mut world, &document, &key(5)), REVOKED);
}

#[test]
fn one_who_lost_the_role_cannot_carry_out_what_others_signed() {
    let (mut world, document) = rotated(|file| file.revocation(1, [&carol()]), &[&dave()]);
    let refused = refusal(&mut world, &document, &key(5));
    assert_eq!(refused, StatementRefusal::MayNotRevoke { key: key(5).public_key(), project: path(PROJECT) });
}

#[test]
fn an_initiator_may_carry_out_the_document_that_names_it() {
    let mut world = two_of_three();
    let digest = Sha512::of(&world.repo.bytes(INDEX)).to_prefixed();
    let initiator = carol().public_key();
    let document = format!(
        r#"{{"reason": "x", "timestamp": 0, "subject_digest": "{digest}", "initiator": "{initiator}"}}"#
    );
    assert_eq!(post(&mut world, &document, &carol()), RECORDED);
    world.rotate(&new_file().revocation(1, [&carol(), &key(5)]), &[&dave()]);
    assert_eq!(post(&mut world, &document, &carol()), REVOKED);
}

/// Rotations may leave signatures that count no more. They stay until there is no room for another one.
#[test]
fn signatures_that_count_no_more_go_when_a_set_is_full() {
    for (others, left) in [(SIGNATURES - 2, SIGNATURES), (SIGNATURES - 1, 2)] {
        let (mut world, document) =
            rotated(|file| file.revocation(3, [&carol(), &key(5), &key(6)]), &[&dave()]);
        let pending = format!("{INDEX}.revocation.json.signatures.json.pending");
        let full = full_set(&set(&world, ".revocation.json.signatures.json.pending"), others + 1);
        world.repo.put(&path(&pending), full.as_bytes());
        assert_eq!(set(&world, ".revocation.json.signatures.json.pending").entries.len(), others + 1);
        assert_eq!(post(&mut world, &document, &key(5)), RECORDED);
        let kept = set(&world, ".revocation.json.signatures.json.pending");
        assert_eq!(kept.entries.len(), left);
        assert!(kept.signers().is_superset(&public([&carol(), &key(5)])));
    }
}
