//! A damaged file in one project: an error there, and nowhere else.

use std::path::Path;

use serde_json::json;

use crate::support::{Git, Reply, SignersFile, World, alice, bob, days_ago};

/// A project of Alice and Bob, with a signed release and collecting ones that Alice has signed.
fn add_project(world: &World, project: &str, collecting: usize) {
    let (alice, bob) = (alice(), bob());
    world.activate(project, &SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    world.add_signed_release(&format!("{project}/v1"), &[&alice, &bob]);
    for n in 0..collecting {
        let index = world.add_release(&alice, &format!("{project}/v{}", n + 2));
        world.sign(&alice, &index).ok();
    }
}

/// Everything that can be done with a project works in the sound one.
#[track_caller]
fn assert_sound_project_works(world: &World) {
    let (alice, bob) = (alice(), bob());
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
fn a_broken_file_breaks_what_needs_it_and_nothing_else() {
    let (alice, bob) = (alice(), bob());
    let mut world = World::start();
    add_project(&world, "broken", 6);
    for project in ["signers", "proposal", "sound"] {
        add_project(&world, project, 1);
    }
    let release = |n: usize| world.index_path(&format!("broken/v{n}"));
    let (index, copy, active) = (release(6), release(7), world.active_path("signers"));
    let (first, signatures) = (release(1), [2, 3, 4, 5].map(release));
    let pending = world.pending_path("proposal");
    let entry = format!("{}/svc.signers.history/000001.json", world.id("broken"));
    let strange = format!("{}/svc.signers.pending", world.id("stranger"));
    world.server.stop();
    let damage = |path: &str, bytes: &[u8]| Git::at(world.server.repository()).commit_file(path, bytes);
    let texts = [&b"not json"[..], b"{}", b"", br#"{"entries": {"svc-pub:x": {}}}"#];
    for (index, bytes) in signatures.iter().zip(texts) {
        damage(&format!("{index}.signatures.json.pending"), bytes);
    }
    damage(&index, b"not json");
    damage(&format!("{copy}.signers.json"), b"{}");
    damage(&entry, b"[]");
    damage(&active, b"not json");
    damage(&pending, b"not json");
    damage(&strange, b"a file where a directory belongs");
    world.server.start_again();

    for broken in signatures.iter().chain([&copy]) {
        let message = world.sign(&bob, broken).error(500);
        assert!(!message.contains(world.server.data_dir().to_str().unwrap()), "{message}");
    }
    assert!(world.is_complete(&alice, &first), "its other releases are sound");
    world.file(&format!("{}/svc.signers.history.json", world.id("broken"))).refused(500, &entry);
    world.server.get(&format!("/v1/get_signers_chain/{first}")).error(500);
    world.status(&alice, &world.index_path("signers/v1")).error(500);
    let url = world.publish_checksums("signers/v9", &format!("{}  app\n", "a".repeat(64)));
    world.register_assets(&alice, &[&url]).error(500);
    world.status(&alice, &pending).error(500);
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
fn assert_no_place_on_disk(world: &World, reply: &Reply) -> String {
    let message = reply.error(500);
    let data_dir = world.server.data_dir();
    for place in [data_dir.to_str().unwrap(), "repo.git", "objects", "/tmp"] {
        assert!(!message.contains(place), "{message}");
    }
    message
}

#[test]
fn what_is_lost_is_an_error_that_names_it_and_every_route_keeps_the_disk_to_itself() {
    let (alice, bob) = (alice(), bob());
    let mut world = World::start();
    for project in ["removed", "garbled", "lost", "sound"] {
        add_project(&world, project, 1);
    }
    for (project, harm) in ["removed", "garbled"].into_iter().zip(HARMS) {
        let paths = [
            world.active_path(project),
            world.index_path(&format!("{project}/v1")),
            format!("{}.signatures.json.pending", world.index_path(&format!("{project}/v2"))),
            format!("{}/svc.signers.history/000001.json", world.id(project)),
        ];
        for path in &paths {
            lose(&mut world, path, harm);
        }
        for path in &paths {
            let message = assert_no_place_on_disk(&world, &world.file(path));
            assert!(message.contains(path.as_str()), "{message}");
        }
    }
    let (v1, v2) = (world.index_path("lost/v1"), world.index_path("lost/v2"));
    let body = world.signature_body(&bob, &v2);
    let document = world.revocation_of(&v1, "key leaked");
    let checksums = world.publish_checksums("lost/v9", &format!("{}  app\n", "a".repeat(64)));
    let history = format!("{}/svc.signers.history/000001.json", world.id("lost"));
    let active = world.active_path("lost");
    for path in [&active, &history] {
        lose(&mut world, path, HARMS[1]);
    }
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice]);
    for reply in [
        world.server.get(&format!("/v1/get_signers/{v1}")),
        world.server.get(&format!("/v1/get_signers_chain/{v1}")),
        world.file(&format!("{}/svc.signers.history.json", world.id("lost"))),
        world.get_as(&alice, &format!("/v1/files-to-sign/{active}")),
        world.status(&alice, &v1),
        world.submit(&bob, &body),
        world.revoke_with(&alice, &v1, &document),
        world.register_assets(&alice, &[&checksums]),
        world.propose(&alice, "lost", &next),
    ] {
        assert_no_place_on_disk(&world, &reply);
    }
    assert_sound_project_works(&world);
}
