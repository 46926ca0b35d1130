//! Thieves of admin keys against a team with masters and a delay (D130–D136, D170): they put nothing into effect, and
//! cannot keep the masters from it.

use std::time::Duration;

use countersign_core::documents::{history::Agreement, layout};
use countersign_core::{rules::decide::update::UpdateRefusal, values::key::SecretKey};
use countersign_testing::{
    ACTIVE, PENDING, PROJECT, Signers, World, alice, bob, carol, dave, key, path, signers,
};

/// Bob and Carol administrate, and their keys are stolen. Dave and key 6 are masters, of whom both are needed.
fn team_at(time: &str) -> Signers {
    signers(time).artifact(1, [&alice()]).admin(2, [&bob(), &carol()]).master(2, [&dave(), &key(6)]).delay(48)
}

fn active() -> World {
    let people = [alice(), bob(), carol(), dave(), key(6)];
    World::with(&team_at("2026-01-31T10:00:00Z"), &people.iter().collect::<Vec<_>>())
}

/// What the thieves want: their own key everywhere.
fn stolen_at(time: &str) -> Signers {
    signers(time).artifact(1, [&key(9)]).admin(1, [&key(9)])
}

/// What the masters want: Alice administrates.
fn rescue() -> Signers {
    signers("2026-02-01T09:30:00Z")
        .artifact(1, [&alice()])
        .admin(1, [&alice()])
        .master(2, [&dave(), &key(6)])
        .delay(48)
}

fn waits(world: &World) -> bool {
    let path = layout::agreement_of(&path(PENDING));
    world.repo.has(path.as_str()) && Agreement::parse(&world.repo.bytes(path.as_str())).is_ok()
}

fn refused() -> UpdateRefusal {
    UpdateRefusal::MastersPending(path(PROJECT))
}

#[test]
fn admins_do_not_replace_what_a_master_has_proposed() {
    let mut world = active();
    world.update(&stolen_at("2026-02-01T09:00:00Z"), &bob()).expect("an update");
    world.sign_all(PENDING, &[&bob(), &carol(), &key(9)]);
    assert!(waits(&world));
    world.update(&rescue(), &dave()).expect("a master replaces what waits");
    for thief in [bob(), carol()] {
        for file in [stolen_at("2026-02-01T09:00:00Z"), stolen_at("2026-02-01T09:00:01Z")] {
            assert_eq!(world.update(&file, &thief), Err(refused()));
        }
    }
    world.sign_all(PENDING, &[&key(6), &dave()]);
    assert_eq!(world.repo.text(ACTIVE), rescue().text());
}

#[test]
fn admins_do_not_replace_what_a_master_has_signed() {
    let mut world = active();
    world.update(&rescue(), &alice()).expect("an update");
    let mut unsigned = world.clone();
    unsigned.update(&stolen_at("2026-02-01T09:00:00Z"), &bob()).expect("no master has said a word");
    world.sign_all(PENDING, &[&key(6)]);
    assert_eq!(world.update(&stolen_at("2026-02-01T09:00:00Z"), &bob()), Err(refused()));
    // Who is neither is refused as before.
    let other = stolen_at("2026-02-01T09:00:00Z");
    assert_eq!(world.update(&other, &alice()), Err(UpdateRefusal::OtherPending(path(PROJECT))));
    world.sign_all(PENDING, &[&dave()]);
    assert_eq!(world.repo.text(ACTIVE), rescue().text());
}

#[test]
fn another_master_can_replace_it() {
    let mut world = active();
    world.update(&rescue(), &dave()).expect("an update");
    world.sign_all(PENDING, &[&dave()]);
    world.update(&team_at("2026-02-01T09:00:00Z"), &key(6)).expect("a master");
    assert_eq!(world.repo.text(PENDING), team_at("2026-02-01T09:00:00Z").text());
}

#[test]
fn without_a_delay_admins_and_masters_replace_each_other() {
    let undelayed = |time| signers(time).artifact(1, [&alice()]).admin(1, [&bob()]).master(1, [&dave()]);
    let people: [SecretKey; 3] = [alice(), bob(), dave()];
    let first = undelayed("2026-01-31T10:00:00Z").master(1, [&key(6)]);
    let mut world = World::with(&first, &people.iter().chain([&key(6)]).collect::<Vec<_>>());
    world.update(&undelayed("2026-02-01T09:00:00Z"), &dave()).expect("an update");
    world.sign_all(PENDING, &[&dave()]);
    world.update(&undelayed("2026-02-01T09:00:01Z"), &bob()).expect("an admin");
    assert_eq!(world.repo.text(PENDING), undelayed("2026-02-01T09:00:01Z").text());
}

/// A file that needs a key which never signs, and a master who has vanished after signing it.
#[test]
fn admins_are_not_locked_out_by_a_master_who_vanished() {
    let mut world = active();
    let stuck = team_at("2026-02-01T09:30:00Z").artifact(1, [&key(9)]);
    world.update(&stuck, &bob()).expect("an update");
    world.sign_all(PENDING, &[&dave()]);
    let said_at = world.now;
    let another = |time| team_at(time).artifact(1, [&carol()]);
    world.now = said_at.later(Duration::from_secs(48 * 60 * 60 - 1));
    assert_eq!(world.update(&another("2026-02-01T09:40:00Z"), &bob()), Err(refused()));
    world.now = said_at.later(Duration::from_secs(48 * 60 * 60));
    world.update(&another("2026-02-01T09:40:00Z"), &bob()).expect("the delay is over");
    assert_eq!(world.repo.text(PENDING), another("2026-02-01T09:40:00Z").text());
}

#[test]
fn what_a_master_proposed_is_kept_as_long() {
    let mut world = active();
    world.update(&rescue(), &dave()).expect("an update");
    let proposed_at = world.now;
    world.now = proposed_at.later(Duration::from_secs(48 * 60 * 60 - 1));
    assert_eq!(world.update(&stolen_at("2026-02-01T09:00:00Z"), &bob()), Err(refused()));
    world.now = proposed_at.later(Duration::from_secs(48 * 60 * 60));
    world.update(&stolen_at("2026-02-01T09:00:00Z"), &bob()).expect("the delay is over");
}

/// The word of a master is older than the wait here, and counts until its end.
#[test]
fn admins_do_not_replace_what_waits_with_a_master() {
    let mut world = active();
    let next = team_at("2026-02-01T09:30:00Z").artifact(1, [&carol()]);
    world.update(&next, &bob()).expect("an update");
    world.sign_all(PENDING, &[&dave()]);
    let said_at = world.now;
    world.now = said_at.later(Duration::from_secs(40 * 60 * 60));
    world.sign_all(PENDING, &[&bob(), &carol()]);
    assert!(waits(&world));
    world.now = said_at.later(Duration::from_secs(80 * 60 * 60));
    assert_eq!(world.update(&stolen_at("2026-02-01T09:40:00Z"), &bob()), Err(refused()));
}
