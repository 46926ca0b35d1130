//! D32: stopped in the middle of each flow, the server goes on where it was.

use std::collections::BTreeSet;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Git, Person, SignersFile, World, days_ago, world::checksums};

/// A whole life of a project, with a stop between any two steps. `kills` has those with a kill.
#[test]
fn every_flow_goes_on_after_a_stop() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let mut world = World::start();
    let first = SignersFile::of(2, &[&alice, &bob]);
    world.server.restart();

    world.register(&alice, "acme/app", &first).ok();
    world.server.restart();
    world.register(&alice, "acme/app", &first).error(409);
    let pending = world.pending_path("acme/app");
    assert_eq!(world.sign(&alice, &pending).ok(), json!({ "is_complete": false }));
    world.server.restart();
    world.sign(&alice, &pending).error(409);
    assert_eq!(world.sign(&bob, &pending).ok(), json!({ "is_complete": true }));
    world.server.restart();
    assert_eq!(world.read(&world.active_path("acme/app")), first.bytes());

    let index = world.add_release(&alice, "acme/app/v1");
    world.server.restart();
    world.register_assets(&alice, &[&world.files.url("/acme/app/v1/SHA256SUMS")]).error(409);
    assert_eq!(world.pending(&bob), [index.as_str()]);
    world.sign(&bob, &index).ok();
    world.server.restart();
    world.sign(&bob, &index).error(409);
    assert_eq!(world.sign(&alice, &index).ok(), json!({ "is_complete": true }));
    world.server.restart();
    assert!(world.is_complete(&alice, &index));
    world.sign(&alice, &index).error(409);

    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    world.server.restart();
    world.sign(&alice, &pending).ok();
    world.server.restart();
    assert_eq!(world.sign(&bob, &pending).ok(), json!({ "is_complete": true }));
    world.server.restart();
    assert_eq!(world.read(&world.active_path("acme/app")), next.bytes());

    world.revoke(&bob, &index).ok();
    world.server.restart();
    world.revoke(&bob, &index).error(400);
    assert_eq!(world.status(&alice, &index).ok()["revoked"], json!(true));
    world.git().assert_sound();
    // Register, two signatures, assets, two signatures, propose, two signatures, revoke; and the format marker. All by
    // one author, one after the other.
    assert_eq!(world.git().commit_count(), 11);
    assert_eq!(world.git().run(&["rev-list", "--merges", "main"]), "");
    let authors = world.git().run(&["log", "--format=%an <%ae> %cn <%ce>", "main"]);
    assert_eq!(authors.lines().collect::<BTreeSet<_>>().len(), 1, "{authors}");
    // A clone holds the files that the server serves.
    let dir = TempDir::new().unwrap();
    let (clone, from) = (dir.path().join("clone"), world.server.repository());
    Git::at("/").run(&["clone", "--quiet", from.to_str().unwrap(), clone.to_str().unwrap()]);
    let paths = world.git().paths();
    assert!(paths.contains(&index), "{paths:?}");
    for path in paths {
        assert_eq!(std::fs::read(clone.join(&path)).unwrap(), world.read(&path), "{path}");
    }
    assert_eq!(Git::at(&clone).run(&["status", "--porcelain"]), "");
}

#[test]
fn a_stale_lock_after_a_kill_blocks_nothing() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.server.kill9();
    for lock in ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock", "index.lock", "config.lock"] {
        std::fs::write(world.server.repository().join(lock), "").unwrap();
    }
    world.server.start_again();
    world.add_signed_release("acme/app/v1", &[&alice]);
    world.server.restart();
    assert!(world.is_complete(&alice, &world.index_path("acme/app/v1")));
}

#[test]
fn a_change_whose_commit_failed_leaves_no_trace() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let body = world.signature_body(&alice, &index);
    let url = world.publish_checksums("acme/app/v2", &checksums("v2"));

    // No directory, no new object: every commit fails from here on.
    let repository = world.server.repository();
    std::fs::rename(repository.join("objects"), repository.join("away")).unwrap();
    std::fs::rename(repository.join("refs"), repository.join("refs-away")).unwrap();
    std::fs::write(repository.join("objects"), "").unwrap();
    std::fs::write(repository.join("refs"), "").unwrap();
    for reply in [world.submit(&alice, &body), world.register_assets(&alice, &[&url])] {
        let message = reply.error(500);
        let dir = world.server.data_dir();
        assert!(!message.contains(dir.to_str().unwrap()) && !message.contains("repo.git"), "{message}");
    }
    std::fs::remove_file(repository.join("objects")).unwrap();
    std::fs::remove_file(repository.join("refs")).unwrap();
    std::fs::rename(repository.join("away"), repository.join("objects")).unwrap();
    std::fs::rename(repository.join("refs-away"), repository.join("refs")).unwrap();

    world.server.restart();
    assert!(!world.is_complete(&alice, &index));
    assert_eq!(world.pending(&alice), [index.as_str()]);
    world.git().assert_sound();
    assert_eq!(world.submit(&alice, &body).ok(), json!({ "is_complete": true }), "not 409");
}
