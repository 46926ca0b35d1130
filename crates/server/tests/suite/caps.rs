//! How much may wait or change at a time, as far as the operator allows.

use countersign_core::values::{key::SecretKey, time::Timestamp};
use countersign_server::limits::caps::{CapRefusal, Caps};
use countersign_testing::*;

const HOUR: i128 = 60 * 60;
const DAY: i128 = 24 * HOUR;

const CAPS: Caps = Caps {
    registrations_per_host: 4,
    registrations_per_owner: 2,
    superseded_per_project: 2,
    rotations_per_day: 2,
};

/// A signers file with one signer, of the given minute.
fn only(key: &SecretKey, minute: u32) -> Signers {
    signers(&format!("2026-02-01T11:{minute:02}:00Z")).artifact(1, [key])
}

/// Registers a project that waits for its signatures.
fn begin(world: &mut World, project: &str) {
    let mut proposal = world.proposal(&only(&alice(), 0), &alice());
    proposal.project = path(project);
    world.register_proposal(&proposal).expect("a registration");
}

fn check_register(world: &World, project: &str, now: Timestamp) -> Result<(), CapRefusal> {
    CAPS.check_register(&world.repo, &path(project), FOURTEEN_DAYS, now)
}

#[test]
fn one_owner_cannot_have_more_registrations_pending_than_allowed_and_others_can() {
    let mut world = World::new();
    begin(&mut world, "https/github.com/443/acme/a");
    assert_eq!(check_register(&world, "https/github.com/443/acme/b", world.now), Ok(()));
    begin(&mut world, "https/github.com/443/acme/b");
    let refusal = check_register(&world, "https/github.com/443/acme/c", world.now).unwrap_err();
    assert_mentions(
        &refusal.to_string(),
        &["2 registrations", "https/github.com/443/acme", "registrations_per_owner"],
    );
    assert_eq!(check_register(&world, "https/github.com/443/other/c", world.now), Ok(()));
    let group = check_register(&world, "https/github.com/443/acme/group/c", world.now);
    assert!(group.is_err(), "a group inside is no other owner");
}

#[test]
fn one_host_cannot_have_more_registrations_pending_than_allowed_and_others_can() {
    let mut world = World::new();
    for project in ["a/1", "a/2", "b/1", "b/2"] {
        begin(&mut world, &format!("https/github.com/443/{project}"));
    }
    let refusal = check_register(&world, "https/github.com/443/c/1", world.now).unwrap_err();
    assert_mentions(
        &refusal.to_string(),
        &["4 registrations", "https/github.com/443 ", "registrations_per_host"],
    );
    assert_eq!(check_register(&world, "https/gitlab.com/443/c/1", world.now), Ok(()));
    // A host whose root is the project has no owner above it.
    assert_eq!(check_register(&world, "https/files.example.org/443", world.now), Ok(()));
}

#[test]
fn what_is_complete_dropped_or_expired_makes_room() {
    let mut world = World::new();
    world.register(&only(&alice(), 0), &alice()).unwrap();
    begin(&mut world, "https/github.com/443/acme/b");
    let third = "https/github.com/443/acme/c";
    assert!(check_register(&world, third, world.now).is_err());
    assert!(check_register(&world, third, shifted_seconds(world.now, 14 * DAY - 1)).is_err());
    assert_eq!(check_register(&world, third, shifted_seconds(world.now, 14 * DAY)), Ok(()));
    let mut dropped = world.clone();
    dropped.drop_pending().unwrap();
    assert_eq!(check_register(&dropped, third, world.now), Ok(()));
    world.sign_all(PENDING, &[&alice()]);
    assert_eq!(check_register(&world, third, world.now), Ok(()));
}

#[test]
fn signers_change_only_so_often_a_day_and_the_refusal_says_when_again() {
    let mut world = World::with(&only(&alice(), 0), &[&alice()]);
    let project = path(PROJECT);
    for minute in 1..=2 {
        assert_eq!(CAPS.check_rotations(&world.repo, &project, world.now), Ok(()));
        world.rotate(&only(&alice(), minute), &[&alice()]);
        world.pass(HOUR);
    }
    let refusal = CAPS.check_rotations(&world.repo, &project, world.now).unwrap_err();
    let CapRefusal::Rotations { rotations: 2, wait_seconds, .. } = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(i128::from(wait_seconds), 22 * HOUR + 1, "the first was two hours ago");
    let proposal = world.proposal(&only(&alice(), 3), &alice());
    assert_eq!(CAPS.check_update(&world.repo, &proposal, world.now), Err(refusal));
    let later = shifted_seconds(world.now, i128::from(wait_seconds));
    assert_eq!(CAPS.check_update(&world.repo, &proposal, later), Ok(()));
}

#[test]
fn proposals_are_replaced_only_so_often_and_those_replaced_may_always_come_back() {
    let mut world = World::with(&only(&alice(), 0), &[&alice()]);
    let check = |world: &World, minute| {
        let proposal = world.proposal(&only(&alice(), minute), &alice());
        CAPS.check_update(&world.repo, &proposal, world.now)
    };
    for minute in 1..=3 {
        assert_eq!(check(&world, minute), Ok(()));
        world.update(&only(&alice(), minute), &alice()).unwrap();
    }
    assert_mentions(&check(&world, 4).unwrap_err().to_string(), &["2 proposals", PROJECT]);
    assert_eq!(check(&world, 3), Ok(()), "it is the pending one");
    assert_eq!(check(&world, 1), Ok(()), "it was replaced, and comes back");
    world.sign_all(PENDING, &[&alice()]);
    assert_eq!(check(&world, 4), Ok(()), "an activation removes those replaced");
}
