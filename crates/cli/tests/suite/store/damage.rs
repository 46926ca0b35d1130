//! A damaged file in one project: an error there, and nowhere else.

use std::path::Path;

use serde_json::json;

use crate::support::{Git, Person, Reply, SignersFile, World, days_ago};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

/// Two projects of Alice and Bob; each with a collecting release that Alice has signed, and a signed one.
fn two_projects() -> World {
    let (alice, bob) = people();
    let world = World::start();
    for project in ["broken", "sound"] {
        world.activate(project, &SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
        world.add_signed_release(&format!("{project}/v1"), &[&alice, &bob]);
        let index = world.add_release(&alice, &format!("{project}/v2"));
        world.sign(&alice, &index).ok();
    }
    world
}

fn damage(world: &mut World, path: &str, bytes: &[u8]) {
    world.server.stop();
    Git::at(world.server.repository()).commit_file(path, bytes);
    world.server.start_again();
}

/// Everything that can be done with a project works in the sound one.
#[track_caller]
fn assert_sound_project_works(world: &World) {
    let (alice, bob) = people();
    let (v1, v2) = (world.index_path("sound/v1"), world.index_path("sound/v2"));
    assert!(world.is_complete(&alice, &v1));
    assert!(!world.is_complete(&alice, &v2));
    assert!(world.pending(&bob).contains(&v2), "{:?}", world.pending(&bob));
    world.server.get(&format!("/v1/get_signers_chain/{v1}")).ok();
    let v3 = world.add_release(&alice, "sound/v3");
    assert_eq!(world.sign(&bob, &v2).ok(), json!({ "is_complete": true }));
    world.revoke(&alice, &v2).ok();
    world.sign(&alice, &v3).ok();
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]).admin(1, &[&alice, &bob]);
    world.propose(&bob, "sound", &next).ok();
    world.sign_all(&world.pending_path("sound"), &[&alice, &bob]);
    world.activate("third", &SignersFile::of(1, &[&bob]), &[&bob]);
}

#[test]
fn a_broken_signatures_file_breaks_its_own_release_only() {
    let (alice, bob) = people();
    for bytes in [&b"not json"[..], b"{}", b"", br#"{"entries": {"svc-pub:x": {}}}"#] {
        let mut world = two_projects();
        let broken = world.index_path("broken/v2");
        damage(&mut world, &format!("{broken}.signatures.json.pending"), bytes);
        let message = world.sign(&bob, &broken).error(500);
        assert!(!message.contains(world.server.data_dir().to_str().unwrap()), "{message}");
        assert!(world.is_complete(&alice, &world.index_path("broken/v1")), "its other releases are sound");
        assert_sound_project_works(&world);
    }
}

#[test]
fn a_broken_index_breaks_its_own_release_only() {
    let mut world = two_projects();
    let broken = world.index_path("broken/v2");
    damage(&mut world, &broken, b"not json");
    assert_sound_project_works(&world);
}

#[test]
fn a_broken_signers_file_breaks_its_own_project_only() {
    let (alice, _) = people();
    let mut world = two_projects();
    let active = world.active_path("broken");
    damage(&mut world, &active, b"not json");
    world.status(&alice, &world.index_path("broken/v1")).error(500);
    let url = world.publish_checksums("broken/v9", &format!("{}  app\n", "a".repeat(64)));
    world.register_assets(&alice, &[&url]).error(500);
    assert_sound_project_works(&world);
}

#[test]
fn a_broken_governing_copy_breaks_its_own_release_only() {
    let (_, bob) = people();
    let mut world = two_projects();
    let broken = world.index_path("broken/v2");
    damage(&mut world, &format!("{broken}.signers.json"), b"{}");
    world.sign(&bob, &broken).error(500);
    assert_sound_project_works(&world);
}

#[test]
fn a_broken_history_breaks_its_own_chain_only() {
    let mut world = two_projects();
    let entry = format!("{}/svc.signers.history/000001.json", world.id("broken"));
    damage(&mut world, &entry, b"[]");
    let history = format!("{}/svc.signers.history.json", world.id("broken"));
    world.file(&history).refused(500, &entry);
    world.server.get(&format!("/v1/get_signers_chain/{}", world.index_path("broken/v1"))).error(500);
    assert_sound_project_works(&world);
}

#[test]
fn a_broken_proposal_breaks_its_own_project_only() {
    let (alice, _) = people();
    let mut world = two_projects();
    let pending = world.pending_path("broken");
    damage(&mut world, &pending, b"not json");
    world.status(&alice, &pending).error(500);
    assert_sound_project_works(&world);
}

#[test]
fn a_strange_file_in_one_project_does_not_matter() {
    let mut world = two_projects();
    let strange = format!("{}/svc.signers.pending", world.id("stranger"));
    damage(&mut world, &strange, b"a file where a directory belongs");
    assert_sound_project_works(&world);
}

/// What befalls an object on disk.
type Harm = fn(&Path);

const HARMS: [Harm; 2] = [
    |object| std::fs::remove_file(object).unwrap(),
    |object| {
        std::fs::remove_file(object).unwrap();
        std::fs::write(object, "not deflated").unwrap();
    },
];

/// Commits the file anew, as a loose object of its own, which then comes to harm.
fn lose(world: &mut World, path: &str, harm: Harm) {
    let bytes = [&world.read(path)[..], b" \n"].concat();
    world.server.stop();
    let git = Git::at(world.server.repository());
    git.commit_file(path, &bytes);
    harm(&git.loose_object(path));
    world.server.start_again();
}

/// A failure of ours, which says nothing about where on disk it happened.
#[track_caller]
fn assert_no_place_on_disk(world: &World, reply: &Reply) {
    let message = reply.error(500);
    let data_dir = world.server.data_dir();
    for place in [data_dir.to_str().unwrap(), "repo.git", "objects", "/tmp"] {
        assert!(!message.contains(place), "{message}");
    }
}

#[test]
fn a_file_whose_content_is_lost_is_an_error_that_names_it_and_no_place_on_disk() {
    for harm in HARMS {
        let mut world = two_projects();
        let paths = [
            world.active_path("broken"),
            world.index_path("broken/v1"),
            format!("{}.signatures.json.pending", world.index_path("broken/v2")),
            format!("{}/svc.signers.history/000001.json", world.id("broken")),
        ];
        for path in &paths {
            lose(&mut world, path, harm);
        }
        for path in &paths {
            let reply = world.file(path);
            assert_no_place_on_disk(&world, &reply);
            reply.refused(500, path);
        }
        assert_sound_project_works(&world);
    }
}

#[test]
fn every_route_that_needs_lost_content_keeps_the_disk_to_itself() {
    let (alice, bob) = people();
    let mut world = two_projects();
    let (v1, v2) = (world.index_path("broken/v1"), world.index_path("broken/v2"));
    let body = world.signature_body(&bob, &v2);
    let document = world.revocation_of(&v1, "key leaked");
    let checksums = world.publish_checksums("broken/v9", &format!("{}  app\n", "a".repeat(64)));
    let history = format!("{}/svc.signers.history/000001.json", world.id("broken"));
    let active = world.active_path("broken");
    for path in [&active, &history] {
        lose(&mut world, path, HARMS[1]);
    }
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]);
    for reply in [
        world.server.get(&format!("/v1/get_signers/{v1}")),
        world.server.get(&format!("/v1/get_signers_chain/{v1}")),
        world.file(&format!("{}/svc.signers.history.json", world.id("broken"))),
        world.get_as(&alice, &format!("/v1/files-to-sign/{active}")),
        world.status(&alice, &v1),
        world.submit(&bob, &body),
        world.revoke_with(&alice, &v1, &document),
        world.register_assets(&alice, &[&checksums]),
        world.propose(&alice, "broken", &next),
    ] {
        assert_no_place_on_disk(&world, &reply);
    }
    assert_sound_project_works(&world);
}
