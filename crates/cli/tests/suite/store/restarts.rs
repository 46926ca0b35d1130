//! D32: stopped or killed in the middle of each flow, the server goes on where it was.

use serde_json::json;

use crate::support::{Person, SignersFile, TestServer, World, days_ago, world::checksums};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

/// Runs a whole life of a project; `interrupt` happens between any two steps.
fn live_through(interrupt: fn(&mut TestServer)) {
    let (alice, bob) = people();
    let mut world = World::start();
    let first = SignersFile::of(2, &[&alice, &bob]);
    interrupt(&mut world.server);

    world.register(&alice, "acme/app", &first).ok();
    interrupt(&mut world.server);
    world.register(&alice, "acme/app", &first).error(409);
    let pending = world.pending_path("acme/app");
    assert_eq!(world.sign(&alice, &pending).ok(), json!({ "is_complete": false }));
    interrupt(&mut world.server);
    world.sign(&alice, &pending).error(409);
    assert_eq!(world.sign(&bob, &pending).ok(), json!({ "is_complete": true }));
    interrupt(&mut world.server);
    assert_eq!(world.read(&world.active_path("acme/app")), first.bytes());

    let index = world.add_release(&alice, "acme/app/v1");
    interrupt(&mut world.server);
    world.register_assets(&alice, &[&world.files.url("/acme/app/v1/SHA256SUMS")]).error(409);
    assert_eq!(world.pending(&bob), [index.as_str()]);
    world.sign(&bob, &index).ok();
    interrupt(&mut world.server);
    world.sign(&bob, &index).error(409);
    assert_eq!(world.sign(&alice, &index).ok(), json!({ "is_complete": true }));
    interrupt(&mut world.server);
    assert!(world.is_complete(&alice, &index));
    world.sign(&alice, &index).error(409);

    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice, &bob]);
    world.propose(&alice, "acme/app", &next).ok();
    interrupt(&mut world.server);
    world.sign(&alice, &pending).ok();
    interrupt(&mut world.server);
    assert_eq!(world.sign(&bob, &pending).ok(), json!({ "is_complete": true }));
    interrupt(&mut world.server);
    assert_eq!(world.read(&world.active_path("acme/app")), next.bytes());

    world.revoke(&bob, &index).ok();
    interrupt(&mut world.server);
    world.revoke(&bob, &index).error(400);
    assert_eq!(world.status(&alice, &index).ok()["revoked"], json!(true));
    world.git().assert_sound();
    // Register, two signatures, assets, two signatures, propose, two signatures, revoke; and the format marker.
    assert_eq!(world.git().commit_count(), 11);
}

#[test]
fn every_flow_goes_on_after_a_stop() {
    live_through(TestServer::restart);
}

#[test]
fn every_flow_goes_on_after_a_kill() {
    live_through(TestServer::crash_and_restart);
}

#[test]
fn a_kill_under_load_loses_nothing_that_was_acknowledged() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let bodies: Vec<_> = (0..24)
        .map(|n| {
            let index = world.add_release(&alice, &format!("acme/app/v{n}"));
            let body = world.signature_body(&alice, &index);
            (index, body)
        })
        .collect();
    let (done, heard) = std::sync::mpsc::channel();
    let address = world.server.address();
    let workers: Vec<_> = bodies
        .chunks(3)
        .map(|chunk| {
            let requests: Vec<_> = chunk
                .iter()
                .map(|(index, body)| {
                    let request = crate::support::Request::post("/v1/signatures", body);
                    (index.clone(), Person::named("alice").sign(request))
                })
                .collect();
            let done = done.clone();
            std::thread::spawn(move || {
                for (index, request) in requests {
                    // The server is killed meanwhile: no answer is no acknowledgement.
                    if let Ok(reply) = crate::support::http::try_send(address, &request) {
                        assert_eq!(reply.status, 200, "{}", reply.text());
                        done.send(index).expect("the test listens");
                    }
                }
            })
        })
        .collect();
    drop(done);
    let mut acknowledged: Vec<String> = heard.iter().take(6).collect();
    world.server.kill9();
    acknowledged.extend(heard.iter());
    workers.into_iter().for_each(|worker| worker.join().unwrap());

    world.git().assert_sound();
    world.server.start_again();
    for index in &acknowledged {
        assert!(world.is_complete(&alice, index), "{index} was acknowledged");
    }
    for (index, body) in &bodies {
        let survived = world.is_complete(&alice, index);
        assert_ne!(
            world.exists(&format!("{index}.signatures.json.pending")),
            survived,
            "no half-made change"
        );
        assert_eq!(world.exists(&format!("{index}.signatures.json")), survived, "no half-made change");
        assert_eq!(world.submit(&alice, body).status, if survived { 409 } else { 200 });
    }
    world.git().assert_sound();
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
