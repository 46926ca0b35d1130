//! When a proposal takes effect, and what happens to files that are collecting (D15, D16).

use serde_json::json;

use crate::support::{Person, SignersFile, World, days_ago};

fn person(name: &str) -> Person {
    Person::named(name)
}

fn later(days: i64) -> SignersFile {
    SignersFile::dated(days_ago(days))
}

#[test]
fn the_current_admins_the_new_admins_and_every_added_key_must_agree() {
    let (alice, bob, carol, dave) = (person("alice"), person("bob"), person("carol"), person("dave"));
    let file = SignersFile::of(1, &[&alice]).admin(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let pending = world.pending_path("acme/app");
    let next = later(5).artifact(1, &[&alice, &dave]).admin(1, &[&carol]);
    world.propose(&alice, "acme/app", &next).ok();
    // Added: Carol (who is also the new admin) and Dave. Alice and Bob are the current admins.
    world.sign_all(&pending, &[&carol, &dave, &alice, &bob]);
    assert_eq!(world.read(&world.active_path("acme/app")), next.bytes());
}

#[test]
fn an_added_key_alone_can_hold_a_rotation_up() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let next = later(5).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    world.sign_all(&world.pending_path("acme/app"), &[&alice, &bob]);
}

#[test]
fn the_current_admins_alone_can_hold_a_rotation_up() {
    let (alice, bob, carol) = (person("alice"), person("bob"), person("carol"));
    let file = SignersFile::of(2, &[&alice, &bob, &carol]);
    let world = World::with_project(&file, &[&alice, &bob, &carol]);
    let next = later(5).artifact(1, &[&alice]);
    world.propose(&alice, "acme/app", &next).ok();
    world.sign_all(&world.pending_path("acme/app"), &[&alice, &carol]);
}

#[test]
fn every_group_of_a_role_must_reach_its_own_threshold() {
    let (alice, bob, carol) = (person("alice"), person("bob"), person("carol"));
    let file = SignersFile::of(1, &[&alice]).admin(1, &[&alice, &bob]).admin(1, &[&carol]);
    let world = World::with_project(&file, &[&alice, &bob, &carol]);
    world.propose(&alice, "acme/app", &file.clone().redated(days_ago(5))).ok();
    world.sign_all(&world.pending_path("acme/app"), &[&alice, &bob, &carol]);
}

#[test]
fn master_keys_may_stand_in_for_the_admins() {
    let (alice, bob, mary) = (person("alice"), person("bob"), person("mary"));
    let file = SignersFile::of(1, &[&alice]).admin(1, &[&alice]).master(1, &[&mary]);
    let world = World::with_project(&file, &[&alice, &mary]);
    // Alice has lost her key: the master key replaces her by Bob.
    let next = later(5).artifact(1, &[&bob]).master(1, &[&mary]);
    world.propose(&mary, "acme/app", &next).ok();
    world.sign_all(&world.pending_path("acme/app"), &[&mary, &bob]);
    assert_eq!(world.read(&world.active_path("acme/app")), next.bytes());
}

#[test]
fn no_one_else_may_sign_a_proposal() {
    let (alice, bob, carol, dave) = (person("alice"), person("bob"), person("carol"), person("dave"));
    let file = SignersFile::of(1, &[&alice, &bob]).admin(1, &[&alice]).revocation(1, &[&dave]);
    let world = World::with_project(&file, &[&alice, &bob, &dave]);
    world.propose(&alice, "acme/app", &file.clone().redated(days_ago(5))).ok();
    let pending = world.pending_path("acme/app");
    for outsider in [&bob, &carol, &dave] {
        world.sign(outsider, &pending).error(403);
    }
    assert_eq!(world.sign(&alice, &pending).ok(), json!({ "is_complete": true }));
}

#[test]
fn the_pending_path_is_gone_once_it_is_active() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let pending = world.pending_path("acme/app");
    let next = later(5).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    let late = world.signature_body(&alice, &pending);
    world.sign_all(&pending, &[&alice, &bob]);
    world.submit(&alice, &late).refused(400, &format!("File not found: {pending}"));
    world.status(&alice, &pending).error(404);
    world.get_as(&alice, &format!("/v1/files-to-sign/{pending}")).refused(404, "File not found: ");
}

#[test]
fn a_rotation_makes_collecting_files_pending_for_everyone_again() {
    let (alice, bob, carol) = (person("alice"), person("bob"), person("carol"));
    let file = SignersFile::of(2, &[&alice, &bob]);
    let world = World::with_project(&file, &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/v1");
    world.sign(&alice, &index).ok();
    assert_eq!(world.pending(&alice), [""; 0]);

    // One signature was enough under the new file; it must be given under the new file.
    let next = later(5).artifact(1, &[&alice, &carol]).admin(2, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    let pending = world.pending_path("acme/app");
    world.sign_all(&pending, &[&alice, &bob, &carol]);

    assert!(!world.is_complete(&alice, &index), "nothing becomes complete except by a signature");
    assert_eq!(world.read(&format!("{index}.signers.json")), next.bytes());
    assert_eq!(world.read_json(&format!("{index}.signatures.json.pending")), json!({ "entries": {} }));
    assert_eq!(world.pending(&alice), [index.as_str()]);
    assert_eq!(world.pending(&carol), [index.as_str()]);
    assert_eq!(world.pending(&bob), [""; 0], "Bob signs no artifacts any more");
    world.sign(&bob, &index).error(403);
    assert_eq!(world.sign(&carol, &index).ok(), json!({ "is_complete": true }));
}

#[test]
fn a_rotation_leaves_complete_files_as_they_are() {
    let (alice, bob) = (person("alice"), person("bob"));
    let file = SignersFile::of(1, &[&alice]);
    let world = World::with_project(&file, &[&alice]);
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    let signatures = world.read(&format!("{index}.signatures.json"));
    world.rotate("acme/app", &later(5).artifact(1, &[&bob]), &[&alice, &bob]);

    assert_eq!(world.read(&format!("{index}.signers.json")), file.bytes());
    assert_eq!(world.read(&format!("{index}.signatures.json")), signatures);
    assert!(world.is_complete(&bob, &index));
    world.status(&alice, &index).error(403);
    world.sign(&bob, &index).error(409);
}

#[test]
fn an_activation_is_one_commit() {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_release(&alice, "acme/app/v1");
    world.propose(&alice, "acme/app", &later(5).artifact(1, &[&alice, &bob])).ok();
    world.sign(&alice, &world.pending_path("acme/app")).ok();
    let before = world.git().commit_count();
    world.sign(&bob, &world.pending_path("acme/app")).ok();
    assert_eq!(world.git().commit_count(), before + 1);
}

#[test]
fn a_proposal_may_be_signed_by_keys_of_both_files_and_seen_by_them() {
    let (alice, bob, carol) = (person("alice"), person("bob"), person("carol"));
    let world =
        World::with_project(&SignersFile::of(1, &[&alice, &bob]).admin(1, &[&alice]), &[&alice, &bob]);
    world.propose(&alice, "acme/app", &later(5).artifact(1, &[&carol])).ok();
    let pending = world.pending_path("acme/app");
    for reader in [&alice, &bob, &carol] {
        assert!(!world.is_complete(reader, &pending));
    }
    world.status(&person("mallory"), &pending).error(403);
}
