//! Rotations that wait (D130–D134): what waits, from when, until when, and what the history says of it.

use countersign_core::documents::{history::Agreement, layout, signatures::SignatureSet};
use countersign_core::rules::chain;
use countersign_core::rules::decide::{activate::ActivateRefusal, sign::Signed, update::UpdateRefusal};
use countersign_core::values::{key::SecretKey, time::Timestamp};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PROJECT, Signers, World, alice, assert_mentions, bob, carol, dave, key, path,
    release, shifted_seconds, signers,
};

const HOUR: i128 = 3_600;
const DELAY: i128 = 48 * HOUR;

/// Alice signs releases. Two of Bob, Carol and key 5 administrate. Both Dave and key 6 are masters.
fn team() -> Signers {
    signers("2026-01-31T10:00:00Z")
        .artifact(1, [&alice()])
        .admin(2, [&bob(), &carol(), &key(5)])
        .master(2, [&dave(), &key(6)])
        .delay(48)
}

/// The team without key 5.
fn next() -> Signers {
    signers("2026-02-01T09:00:00Z")
        .artifact(1, [&alice()])
        .admin(2, [&bob(), &carol()])
        .master(2, [&dave(), &key(6)])
        .delay(48)
}

fn everyone() -> [SecretKey; 6] {
    [alice(), bob(), carol(), key(5), dave(), key(6)]
}

fn world_of(team: &Signers) -> World {
    World::with(team, &everyone().iter().collect::<Vec<_>>())
}

/// Bob proposed this, and these people signed it.
fn proposed(file: &Signers, by: &[&SecretKey]) -> World {
    let mut world = world_of(&team());
    world.update(file, &bob()).expect("an update");
    world.sign_all(PENDING, by);
    world
}

fn waiting(file: &Signers) -> World {
    let world = proposed(file, &[&bob(), &carol()]);
    assert!(agreement(&world).is_some(), "it does not wait");
    world
}

fn agreement(world: &World) -> Option<Agreement> {
    let path = layout::agreement_of(&path(PENDING));
    world.repo.has(path.as_str()).then(|| Agreement::parse(&world.repo.bytes(path.as_str())).unwrap())
}

fn after(time: Timestamp, seconds: i128) -> Timestamp {
    shifted_seconds(time, seconds)
}

#[track_caller]
fn assert_in_force(world: &World, file: &Signers) {
    assert_eq!(world.repo.text(ACTIVE), file.text());
    assert!(!world.repo.has(PENDING) && agreement(world).is_none());
    chain::verify(&world.repo.history(PROJECT), &path(PROJECT)).expect("a history that holds");
}

#[test]
fn a_rotation_by_admins_waits_and_takes_force_when_its_time_has_come() {
    let mut world = proposed(&next(), &[&bob()]);
    world.pass(60);
    let (agreed, due) = (world.now, after(world.now, DELAY));
    let signed = world.sign(PENDING, &carol());
    assert_eq!(signed, Ok(Signed { is_complete: true, waits_until: Some(due) }));
    assert_eq!(
        world.last.message,
        format!("Agree to the signers of {PROJECT}\n\nBy: {}\nDue: {due}\n", carol().public_key())
    );
    assert_eq!(agreement(&world), Some(Agreement { agreed_at: agreed, due_at: due }));
    assert_eq!(world.repo.text(ACTIVE), team().text());
    for seconds in [0, DELAY - 1] {
        let mut early = world.clone();
        early.pass(seconds);
        let until = due;
        assert_eq!(early.activate_due(), Err(ActivateRefusal::NotDue { project: path(PROJECT), until }));
    }
    // A server that was away does it later.
    let mut away = world.clone();
    away.pass(10 * DELAY);
    away.activate_due().expect("it is due");
    assert_in_force(&away, &next());
    assert_eq!(away.repo.history(PROJECT).entries[1].timestamp, away.now);
    world.pass(DELAY);
    world.activate_due().expect("it is due");
    assert_in_force(&world, &next());
    let entry = world.repo.history(PROJECT).entries.pop().unwrap();
    assert_eq!((entry.agreed_at, entry.timestamp), (Some(agreed), due));
    assert_eq!(world.activate_due(), Err(ActivateRefusal::NothingWaits(path(PROJECT))));
}

#[test]
fn the_masters_let_it_take_force_at_once_before_or_during_the_wait() {
    let mut before = proposed(&next(), &[&dave(), &bob()]);
    before.sign(PENDING, &key(6)).expect("a signature");
    assert_in_force(&before, &next());
    assert_eq!(before.repo.history(PROJECT).entries[1].agreed_at, None);

    let mut during = waiting(&next());
    during.pass(HOUR);
    let due = agreement(&during).unwrap().due_at;
    // One master is not enough, and changes nothing about the time.
    let signed = during.sign(PENDING, &dave());
    assert_eq!(signed, Ok(Signed { is_complete: true, waits_until: Some(due) }));
    assert_eq!(agreement(&during).unwrap().due_at, due);
    during.sign(PENDING, &key(6)).expect("a signature");
    assert_in_force(&during, &next());
    assert_eq!(during.repo.history(PROJECT).entries[1].agreed_at, None);
}

#[test]
fn those_who_may_sign_can_still_sign_while_it_waits() {
    let mut world = waiting(&next());
    world.pass(60);
    let due = agreement(&world).unwrap().due_at;
    let signed = world.sign(PENDING, &key(5));
    assert_eq!(signed, Ok(Signed { is_complete: true, waits_until: Some(due) }));
    assert!(world.last.message.starts_with("Sign "), "{}", world.last.message);
    world.pass(DELAY);
    world.activate_due().expect("it is due");
    assert_in_force(&world, &next());
    assert_eq!(world.repo.history(PROJECT).entries[1].signatures.entries.len(), 3);
}

#[test]
fn a_first_registration_does_not_wait_nor_does_the_file_that_brings_the_delay() {
    assert_in_force(&world_of(&team()), &team());
    let without = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).master(1, [&dave()]);
    let mut world = World::with(&without, &[&alice(), &dave()]);
    let with = signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]).master(1, [&dave()]).delay(720);
    world.rotate(&with, &[&alice()]);
    assert_in_force(&world, &with);
}

#[test]
fn the_delay_in_force_counts_for_a_lower_delay_for_none_and_for_other_masters() {
    let lower = next().delay(1);
    let none = signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]).admin(2, [&bob(), &carol()]);
    for file in [lower, none] {
        let mut world = waiting(&file);
        world.pass(DELAY - 1);
        assert!(matches!(world.activate_due(), Err(ActivateRefusal::NotDue { .. })));
        world.pass(1);
        world.activate_due().expect("it is due");
        assert_in_force(&world, &file);
    }
    // The masters of the new file are none of those who must agree.
    let theirs = signers("2026-02-01T09:00:00Z").artifact(1, [&alice()]).master(1, [&key(9)]).delay(48);
    let mut world = proposed(&theirs, &[&bob(), &carol()]);
    let signed = world.sign(PENDING, &key(9)).expect("a signature");
    assert!(signed.is_complete && signed.waits_until.is_some(), "{signed:?}");
}

#[test]
fn a_project_without_masters_can_wait_as_well() {
    let alone = |time| signers(time).artifact(1, [&alice()]).delay(1);
    let mut world = World::with(&alone("2026-01-31T10:00:00Z"), &[&alice()]);
    world.update(&alone("2026-02-01T09:00:00Z"), &alice()).expect("an update");
    assert!(world.sign(PENDING, &alice()).unwrap().waits_until.is_some());
    world.pass(HOUR);
    world.activate_due().expect("it is due");
}

#[test]
fn a_dropped_or_replaced_file_loses_its_time_and_waits_anew_when_it_comes_back() {
    let other = signers("2026-02-01T10:00:00Z").artifact(1, [&alice()]).admin(1, [&bob()]);
    let mut world = waiting(&next());
    let mut dropped = world.clone();
    dropped.drop_pending().expect("something to drop");
    assert_eq!(agreement(&dropped), None);
    dropped.pass(DELAY);
    assert_eq!(dropped.activate_due(), Err(ActivateRefusal::NothingWaits(path(PROJECT))));

    // To propose it again changes nothing, and only an admin or master replaces it.
    let before = agreement(&world);
    world.pass(DELAY - 60);
    world.update(&next(), &carol()).expect("nothing to do");
    assert!(world.last.is_empty());
    assert_eq!(world.update(&other, &alice()), Err(UpdateRefusal::OtherPending(path(PROJECT))));
    assert_eq!(agreement(&world), before);
    world.update(&other, &key(5)).expect("an admin replaces it");
    assert_eq!(agreement(&world), None);
    let files = world.repo.names();
    assert!(!files.iter().any(|file| file.contains("agreed")), "{files:?}");
    world.pass(60);
    assert_eq!(world.activate_due(), Err(ActivateRefusal::NothingWaits(path(PROJECT))));

    world.update(&next(), &bob()).expect("it comes back");
    let due = after(world.now, DELAY);
    assert_eq!(agreement(&world), Some(Agreement { agreed_at: world.now, due_at: due }));
    assert!(world.last.message.ends_with(&format!("Due: {due}\n")), "{}", world.last.message);
    world.pass(DELAY);
    world.activate_due().expect("it is due");
    assert_in_force(&world, &next());
}

#[test]
fn collecting_releases_lose_their_signatures_at_the_activation_only() {
    let two = |time| signers(time).artifact(2, [&alice(), &bob()]).delay(1);
    let mut world = World::with(&two("2026-01-31T10:00:00Z"), &[&alice(), &bob()]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world.sign(INDEX, &alice()).expect("a signature");
    world.update(&two("2026-02-01T09:00:00Z"), &alice()).expect("an update");
    world.sign_all(PENDING, &[&alice(), &bob()]);
    assert!(agreement(&world).is_some());
    let pending = layout::pending_signatures_of(&path(INDEX));
    let signed =
        |world: &World| SignatureSet::parse(&world.repo.bytes(pending.as_str())).unwrap().entries.len();
    assert_eq!(signed(&world), 1, "as long as it waits");
    world.pass(HOUR);
    world.activate_due().expect("it is due");
    assert_eq!(signed(&world), 0);
    world.sign_all(INDEX, &[&alice(), &bob()]);
}

#[test]
fn a_file_that_waits_without_consent_or_reason_is_damage() {
    let mut world = proposed(&next(), &[&bob()]);
    let written = Agreement { agreed_at: world.now, due_at: world.now }.write();
    world.repo.put(&layout::agreement_of(&path(PENDING)), &written);
    assert_mentions(&world.activate_due().unwrap_err().to_string(), &["cannot be used"]);

    let mut stale = waiting(&next());
    stale.repo.put(&layout::agreement_of(&path(PENDING)), b"{}");
    assert!(matches!(stale.activate_due(), Err(ActivateRefusal::Stored(_))));
}

#[test]
fn at_the_end_of_the_calendar_no_history_is_made_that_cannot_be_verified() {
    let mut world = world_of(&team());
    world.now = Timestamp::parse("9999-12-31T00:00:00Z").expect("a time");
    world.update(&next(), &bob()).expect("an update");
    world.sign_all(PENDING, &[&bob(), &carol()]);
    world.pass(HOUR);
    assert_mentions(&world.activate_due().unwrap_err().to_string(), &["the calendar ends"]);
    world.sign_all(PENDING, &[&dave(), &key(6)]);
    assert_in_force(&world, &next());
}
