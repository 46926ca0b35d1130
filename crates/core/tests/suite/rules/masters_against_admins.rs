//! Thieves of admin keys against a team with masters and a delay (D130–D136, D170): they get nothing in force, and cannot
//! keep the masters from putting something in force.

use countersign_core::{
    documents::{agreement::Agreement, layout},
    rules::decide::update::UpdateRefusal,
    values::key::SecretKey,
};
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
