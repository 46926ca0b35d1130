//! How much may wait or change at a time, as far as the operator allows.

use std::sync::LazyLock;

use countersign_core::values::{key::SecretKey, time::Timestamp};
use countersign_server::{http::error::ApiError, operate::config::ServiceLimits};
use countersign_testing::*;

const HOUR: i128 = 60 * 60;
const DAY: i128 = 24 * HOUR;

static CAPS: LazyLock<ServiceLimits> = LazyLock::new(|| ServiceLimits {
    registrations_per_host: 4,
    registrations_per_owner: 2,
    superseded_per_project: 2,
    rotations_per_day: 2,
    ..Default::default()
});

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

fn check_register(world: &World, project: &str, now: Timestamp) -> Result<(), ApiError> {
    CAPS.check_register(&world.repo, &path(project), FOURTEEN_DAYS, now)
}

#[test]
fn one_owner_cannot_have_more_registrations_pending_than_allowed_and_others_can() {
    let mut world = World::new();
    begin(&mut world, "https/github.com/443/acme/a");
    assert!(check_register(&world, "https/github.com/443/acme/b", world.now).is_ok());
    begin(&mut world, "https/github.com/443/acme/b");
    let refusal = check_register(&world, "https/github.com/443/acme/c", world.now).unwrap_err();
    assert_mentions(
        &refusal.message,
        &["2 registrations", "https/github.com/443/acme", "registrations_per_owner"],
    );
    assert!(check_register(&world, "https/github.com/443/other/c", world.now).is_ok());
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
        &refusal.message,
        &["4 registrations", "https/github.com/443 ", "registrations_per_host"],
    );
    assert!(check_register(&world, "https/gitlab.com/443/c/1", world.now).is_ok());
    // A host whose root is the project has no owner above it.
    assert!(check_register(&world, "https/files.example.org/443", world.now).is_ok());
}

#[test]
fn what_is_complete_dropped_or_expired_makes_room() {
    let mut world = World::new();
    world.register(&only(&alice(), 0), &alice()).unwrap();
    begin(&mut world, "https/github.com/443/acme/b");
    let third = "https/github.com/443/acme/c";
    assert!(check_register(&world, third, world.now).is_err());
    assert!(check_register(&world, third, shifted_seconds(world.now, 14 * DAY - 1)).is_err());
    assert!(check_register(&world, third, shifted_seconds(world.now, 14 * DAY)).is_ok());
    let mut dropped = world.clone();
    dropped.drop_pending().unwrap();
    assert!(check_register(&dropped, third, world.now).is_ok());
    world.sign_all(PENDING, &[&alice()]);
    assert!(check_register(&world, third, world.now).is_ok());
}

#[test]
fn signers_change_only_so_often_a_day_and_the_refusal_says_when_again() {
    let mut world = World::with(&only(&alice(), 0), &[&alice()]);
    let project = path(PROJECT);
    for minute in 1..=2 {
        assert!(CAPS.check_rotations(&world.repo, &project, world.now).is_ok());
        world.rotate(&only(&alice(), minute), &[&alice()]);
        world.pass(HOUR);
    }
    let refusal = CAPS.check_rotations(&world.repo, &project, world.now).unwrap_err();
    assert_mentions(&refusal.message, &["changed 2 times"]);
    let wait = i128::from(refusal.retry_after.unwrap());
    assert_eq!(wait, 22 * HOUR + 1, "the first was two hours ago");
    let proposal = world.proposal(&only(&alice(), 3), &alice());
    let same = CAPS.check_update(&world.repo, &proposal, world.now).unwrap_err();
    assert_eq!(same.message, refusal.message);
    let later = shifted_seconds(world.now, wait);
    assert!(CAPS.check_update(&world.repo, &proposal, later).is_ok());
}

#[test]
fn proposals_are_replaced_only_so_often_and_those_replaced_may_always_come_back() {
    let mut world = World::with(&only(&alice(), 0), &[&alice()]);
    let check = |world: &World, minute| {
        let proposal = world.proposal(&only(&alice(), minute), &alice());
        CAPS.check_update(&world.repo, &proposal, world.now)
    };
    for minute in 1..=3 {
        assert!(check(&world, minute).is_ok());
        world.update(&only(&alice(), minute), &alice()).unwrap();
    }
    assert_mentions(&check(&world, 4).unwrap_err().message, &["2 proposals", PROJECT]);
    assert!(check(&world, 3).is_ok(), "it is the pending one");
    assert!(check(&world, 1).is_ok(), "it was replaced, and comes back");
    world.sign_all(PENDING, &[&alice()]);
    assert!(check(&world, 4).is_ok(), "an activation removes those replaced");
}

// A thief of one admin key replaces proposals until no more may be replaced. The others can still propose (D171).

/// Bob and Carol administrate, Dave is the master.
fn team(second: usize) -> Signers {
    let time = format!("2026-02-01T09:{:02}:{:02}Z", second / 60, second % 60);
    signers(&time).artifact(1, [&alice()]).admin(2, [&bob(), &carol()]).master(1, [&dave()])
}

/// Proposes new signers as the server does, which checks the caps before it follows the rules.
fn propose(world: &mut World, caps: &ServiceLimits, second: usize, by: &SecretKey) -> Result<(), ApiError> {
    let proposal = world.proposal(&team(second), by);
    caps.check_update(&world.repo, &proposal, world.now)?;
    world.update(&team(second), by).expect("a proposal");
    Ok(())
}

#[test]
fn one_thief_does_not_use_up_what_the_others_may_propose() {
    let mut world = World::with(&team(0), &[&alice(), &bob(), &carol(), &dave()]);
    let caps = ServiceLimits { superseded_per_project: 6, ..CAPS.clone() };
    let mut second = 0;
    let mut next = || {
        second += 1;
        second
    };
    // One more than the cap, because the last one is pending.
    for _ in 0..=caps.superseded_per_project {
        propose(&mut world, &caps, next(), &bob()).expect("room");
    }
    let refused = propose(&mut world, &caps, next(), &bob()).expect_err("no room for the thief");
    assert_mentions(&refused.message, &["6 proposals", "limits.superseded_per_project"]);
    // Six for three leaders are two for each. The thief replaces each of them with what is known.
    for honest in [carol(), dave()] {
        for _ in 0..2 {
            propose(&mut world, &caps, next(), &honest).expect("a share of its own");
            propose(&mut world, &caps, next(), &bob()).expect_err("no room for the thief");
            let known = 1 + usize::from(world.repo.text(PENDING) == team(1).text());
            propose(&mut world, &caps, known, &bob()).expect("what is known comes back");
        }
        propose(&mut world, &caps, next(), &honest).expect_err("the share is used up");
    }
}
