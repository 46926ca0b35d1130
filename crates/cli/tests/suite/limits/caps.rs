//! How much may wait, as the operator sets it in `[limits]`.

use tempfile::TempDir;

use crate::support::{Person, SignersFile, World, days_ago};

/// A world whose server has these lines in `[limits]`.
fn capped(lines: &str) -> (World, TempDir) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("countersign.toml");
    std::fs::write(&path, format!("[limits]\n{lines}\n")).unwrap();
    let world = World::start_with(|launch, _| launch.arg("--dev").args(["--config", path.to_str().unwrap()]));
    (world, dir)
}

#[test]
fn registrations_that_wait_leave_room_for_only_so_many_more_and_completing_one_makes_room() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let file = SignersFile::of(1, &[&alice, &bob]);
    let (world, _dir) = capped("registrations_per_owner = 2\nregistrations_per_host = 3");
    world.register(&alice, "acme/a", &file).ok();
    world.register(&alice, "acme/b", &file).ok();
    world.register(&alice, "acme/c", &file).refused(409, "registrations_per_owner");
    world.register(&alice, "other/a", &file).ok();
    world.register(&alice, "third/a", &file).refused(409, "registrations_per_host");
    for person in [&alice, &bob] {
        world.sign(person, &world.pending_path("acme/a")).ok();
    }
    world.register(&alice, "acme/c", &file).ok();
    world.register(&alice, "acme/d", &file).refused(409, "registrations_per_owner");
}

#[test]
fn signers_change_only_so_often_a_day() {
    let alice = Person::named("alice");
    let (world, _dir) = capped("rotations_per_day = 1");
    world.register(&alice, "acme/app", &SignersFile::dated(days_ago(9)).artifact(1, &[&alice])).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    world.propose(&alice, "acme/app", &SignersFile::dated(days_ago(8)).artifact(1, &[&alice])).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    let again = SignersFile::dated(days_ago(7)).artifact(1, &[&alice]);
    let refused = world.propose(&alice, "acme/app", &again);
    refused.refused(429, "try again in");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((86_000..=86_401).contains(&seconds), "{seconds}");
}

#[test]
fn proposals_are_replaced_only_so_often_and_those_replaced_may_come_back() {
    let alice = Person::named("alice");
    let (world, _dir) = capped("superseded_per_project = 1");
    let file = |days| SignersFile::dated(days_ago(days)).artifact(1, &[&alice]);
    world.register(&alice, "acme/app", &file(9)).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    world.propose(&alice, "acme/app", &file(8)).ok();
    world.propose(&alice, "acme/app", &file(7)).ok();
    world.propose(&alice, "acme/app", &file(6)).refused(409, "superseded_per_project");
    world.propose(&alice, "acme/app", &file(8)).ok();
}
