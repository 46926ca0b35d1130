//! What a registrar can do, and all that it cannot (D105).

use countersign_core::rules::decide::{
    assets::AssetsRefusal, register::RegisterRefusal, sign::SignRefusal, statement::StatementRefusal,
    update::UpdateRefusal,
};
use countersign_core::rules::{stored::StatusRefusal, stored::file_status};
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, assert_mentions, bob, carol, dave, path, release, signers,
};

/// Alice and bob sign, carol registers.
fn team() -> Signers {
    signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).registrars([&carol()])
}

fn active() -> World {
    World::with(&team(), &[&alice(), &bob()])
}

#[test]
fn a_registrar_registers_a_new_release() {
    let mut world = active();
    assert_eq!(world.add_release(&release("v1", "one"), &carol()), Ok(path(INDEX)));
    assert_mentions(&world.last.message, &[&carol().public_key().to_string()]);
    world.sign_all(INDEX, &[&alice(), &bob()]);
    let again = world.add_release(&release("v1", "two"), &carol());
    assert_eq!(again, Err(AssetsRefusal::AlreadyRegistered(path(INDEX))), "a complete one stays");
}

#[test]
fn a_registrar_does_not_correct_a_release() {
    let mut world = active();
    world.add_release(&release("v1", "one"), &carol()).unwrap();
    world.sign(INDEX, &alice()).unwrap();
    let same = world.add_release(&release("v1", "one"), &carol());
    assert_eq!(same, Err(AssetsRefusal::AlreadyRegistered(path(INDEX))), "a job that runs again is told so");
    let refusal = world.add_release(&release("v1", "two"), &carol()).unwrap_err();
    let expected = AssetsRefusal::RegistrarCannotCorrect {
        key: carol().public_key(),
        project: path(PROJECT),
        index: path(INDEX),
    };
    assert_eq!(refusal, expected);
    assert_mentions(
        &refusal.to_string(),
        &["registrar", "A signer of the project can", "signatures are then dropped"],
    );
    world.sign(INDEX, &bob()).expect("alice's signature is still there, so that this one completes it");
    assert!(world.repo.has(&format!("{INDEX}.signatures.json")));
}

#[test]
fn a_registrar_signs_nothing() {
    let mut world = active();
    world.add_release(&release("v1", "one"), &carol()).unwrap();
    assert!(matches!(world.sign(INDEX, &carol()), Err(SignRefusal::NotAllowed { .. })));
    let next = signers("2026-01-31T11:00:00Z").artifact(1, [&alice(), &bob()]).registrars([&carol()]);
    world.update(&next, &alice()).unwrap();
    assert!(matches!(world.sign(PENDING, &carol()), Err(SignRefusal::NotAllowed { .. })));
}

#[test]
fn a_registrar_proposes_and_revokes_nothing_and_asks_for_no_state() {
    let mut world = active();
    let next = signers("2026-01-31T11:00:00Z").artifact(1, [&alice(), &bob()]).registrars([&carol()]);
    assert!(matches!(world.update(&next, &carol()), Err(UpdateRefusal::NotListed { .. })));
    world.release_signed_by(&[&alice(), &bob()]);
    let request = world.revoke_request(&world.revocation_document("a bad build"), &carol());
    assert!(matches!(world.revoke(&request), Err(StatementRefusal::MayNotRevoke { .. })));
    let asked = file_status(&world.repo, &path(INDEX), &carol().public_key());
    assert!(matches!(asked, Err(StatusRefusal::NotASigner { .. })));
    assert!(matches!(World::new().register(&team(), &carol()), Err(RegisterRefusal::NotListed(_))));
}

#[test]
fn registrars_come_and_go_by_a_rotation_and_are_not_asked() {
    let mut world = active();
    let next = signers("2026-01-31T11:00:00Z").artifact(2, [&alice(), &bob()]).registrars([&dave()]);
    world.rotate(&next, &[&alice(), &bob()]);
    let old = world.add_release(&release("v1", "one"), &carol());
    assert!(matches!(old, Err(AssetsRefusal::NotASigner { .. })));
    world.add_release(&release("v1", "one"), &dave()).expect("the new registrar");
}

#[test]
fn a_rotation_keeps_what_a_registrar_registered() {
    let mut world = active();
    world.add_release(&release("v1", "one"), &carol()).unwrap();
    let next = signers("2026-01-31T11:00:00Z").artifact(2, [&alice(), &bob()]);
    world.rotate(&next, &[&alice(), &bob()]);
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert!(world.repo.has(&format!("{INDEX}.signatures.json")));
}

#[test]
fn a_registrar_that_becomes_a_signer_agrees_like_any_new_key() {
    let mut world = active();
    let next = signers("2026-01-31T11:00:00Z").artifact(2, [&alice(), &bob(), &carol()]);
    world.update(&next, &alice()).unwrap();
    world.sign_all(PENDING, &[&alice(), &bob()]);
    assert!(world.repo.has(PENDING), "carol has not agreed yet");
    world.sign(PENDING, &carol()).unwrap();
    assert!(!world.repo.has(PENDING));
}
