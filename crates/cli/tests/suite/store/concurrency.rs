//! Many at once: each exactly once, none lost.

use std::sync::Barrier;

use serde_json::json;

use crate::support::{Person, Request, SignersFile, World};

/// Sends all requests at the same moment; the statuses in the same order.
fn all_at_once(world: &World, requests: &[Request]) -> Vec<(u16, String)> {
    let start = Barrier::new(requests.len());
    std::thread::scope(|scope| {
        let sent: Vec<_> = requests
            .iter()
            .map(|request| {
                scope.spawn(|| {
                    start.wait();
                    let reply = world.server.send(request);
                    (reply.status, reply.text())
                })
            })
            .collect();
        sent.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn count(replies: &[(u16, String)], status: u16) -> usize {
    replies.iter().filter(|(held, _)| *held == status).count()
}

#[test]
fn thirty_two_signers_of_one_file_are_each_counted_once() {
    let people: Vec<_> = (0..32).map(|n| Person::named(&format!("signer {n}"))).collect();
    let everyone: Vec<_> = people.iter().collect();
    let mut world = World::start();
    world.register(everyone[0], "acme/app", &SignersFile::of(32, &everyone)).ok();
    for path in [world.pending_path("acme/app"), world.index_path("acme/app/v1")] {
        if path.ends_with("svc.index.json") {
            world.add_release(everyone[0], "acme/app/v1");
        }
        let commits = world.git().commit_count();
        let requests: Vec<_> = people
            .iter()
            .map(|person| person.sign(Request::post("/v1/signatures", &world.signature_body(person, &path))))
            .collect();
        let replies = all_at_once(&world, &requests);
        assert_eq!(count(&replies, 200), 32, "{replies:?}");
        let completing = replies.iter().filter(|(_, body)| body.contains("true")).count();
        assert_eq!(completing, 1, "one of them completes the file: {replies:?}");
        assert_eq!(world.git().commit_count(), commits + 32, "one commit per signature");
    }
    let signatures = format!("{}.signatures.json", world.index_path("acme/app/v1"));
    let stored = world.read_json(&signatures);
    let mut keys: Vec<_> = people.iter().map(Person::key).collect();
    keys.sort();
    assert_eq!(stored["entries"].as_object().unwrap().keys().cloned().collect::<Vec<_>>(), keys);
    let text = String::from_utf8(world.read(&signatures)).unwrap();
    assert!(
        keys.iter().map(|key| text.find(key.as_str()).unwrap()).is_sorted(),
        "keys are written sorted: {text}"
    );
    world.git().assert_sound();
    world.server.crash_and_restart();
    assert_eq!(world.read_json(&signatures), stored);
}

#[test]
fn a_key_that_signs_64_times_at_once_is_answered_200_once() {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let index = world.add_release(&alice, "acme/app/v1");
    let mut body = world.signature_body(&alice, &index);
    let spellings = [alice.body_key(), alice.key(), alice.ssh_key()];
    let requests: Vec<_> = (0..64)
        .map(|n| {
            body["public_key"] = json!(spellings[n % 3]);
            alice.sign(Request::post("/v1/signatures", &body))
        })
        .collect();
    let replies = all_at_once(&world, &requests);
    assert_eq!((count(&replies, 200), count(&replies, 409)), (1, 63), "{replies:?}");
    assert!(!world.is_complete(&alice, &index));
}

#[test]
fn a_file_takes_no_signature_beyond_its_threshold() {
    let people: Vec<_> = (0..12).map(|n| Person::named(&format!("signer {n}"))).collect();
    let everyone: Vec<_> = people.iter().collect();
    let world = World::with_project(&SignersFile::of(3, &everyone), &everyone);
    let index = world.add_release(everyone[0], "acme/app/v1");
    let requests: Vec<_> = people
        .iter()
        .map(|person| person.sign(Request::post("/v1/signatures", &world.signature_body(person, &index))))
        .collect();
    let replies = all_at_once(&world, &requests);
    assert_eq!((count(&replies, 200), count(&replies, 409)), (3, 9), "{replies:?}");
    let stored = world.read_json(&format!("{index}.signatures.json"));
    assert_eq!(stored["entries"].as_object().unwrap().len(), 3);
}

#[test]
fn of_the_same_and_nested_projects_registered_at_once_one_gets_in() {
    let alice = Person::named("alice");
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]);
    let requests: Vec<_> = ["acme", "acme/app", "acme/app", "acme/app/sub", "ACME"]
        .iter()
        .map(|project| {
            let body =
                json!({ "signers_file_url": world.publish(project, &file), "public_key": alice.body_key() });
            alice.sign(Request::post("/v1/register_repo", &body))
        })
        .collect();
    let replies = all_at_once(&world, &requests);
    assert_eq!((count(&replies, 200), count(&replies, 409)), (1, 4), "{replies:?}");
}
