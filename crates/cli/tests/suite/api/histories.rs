//! Histories of signers: stored as one file an entry, served as one document and as chains (D42), however long (D45).

use std::time::{Duration, Instant};

use countersign_core::{documents::history::History, rules::chain, values::path::RepoPath};
use serde_json::Value;

use crate::support::{Connection, Person, Request, SignersFile, World, days_ago};

const SIGNERS_BYTES: usize = 256 * 1024;
const ROTATIONS: i64 = 12;

/// What an honest request may take meanwhile, on a machine that is busy with other tests.
const PROMPTLY: Duration = Duration::from_secs(5);

/// A project whose signers were replaced by files of the largest size.
fn rotated() -> (World, Person) {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::dated(days_ago(100)).artifact(1, &[&alice]), &[&alice]);
    for n in 0..ROTATIONS {
        let next = SignersFile::dated(days_ago(99 - n)).artifact(1, &[&alice]);
        world.rotate("acme/app", &next.padded_to(SIGNERS_BYTES), &[&alice]);
    }
    (world, alice)
}

fn document_of(world: &World) -> String {
    format!("{}/svc.signers.history.json", world.id("acme/app"))
}

#[test]
fn a_history_is_stored_by_entry_and_served_whole() {
    let (world, alice) = rotated();
    let entries = usize::try_from(ROTATIONS).unwrap() + 1;
    let reply = world.file(&document_of(&world));
    let length = reply.header("content-length").and_then(|length| length.parse::<usize>().ok());
    assert_eq!(length, Some(reply.body.len()));
    assert!(reply.body.len() > SIGNERS_BYTES * (entries - 1), "{length:?}");
    let history = History::parse(&reply.body).expect("the document of the specification");
    assert_eq!(history.entries.len(), entries);
    assert_eq!(history.write(), reply.body, "written as every other document");
    chain::verify(&history, &RepoPath::parse(&world.id("acme/app")).unwrap()).unwrap();

    for (number, entry) in (1..).zip(&history.entries) {
        let path = format!("{}/svc.signers.history/{number:06}.json", world.id("acme/app"));
        assert_eq!(world.read(&path), entry.write());
    }
    let dir = format!("/v1/files/{}/svc.signers.history", world.id("acme/app"));
    world.server.get(&dir).refused(400, "directory");
    world.file(&format!("{}/svc.signers.history.json", world.id("acme/none"))).error(404);
    world.get_as(&alice, &format!("/v1/files-to-sign/{}", document_of(&world))).error(404);
    world.sign(&alice, &document_of(&world)).refused(400, "does not collect signatures");
}

#[test]
fn a_history_that_the_client_has_is_not_sent_again() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::dated(days_ago(9)).artifact(1, &[&alice]), &[&alice]);
    let target = format!("/v1/files/{}", document_of(&world));
    let tag = world.server.get(&target).header("etag").expect("a tag").to_owned();
    let ask = || world.server.send(&Request::get(&target).with_header("if-none-match", &tag));
    let kept = ask();
    assert_eq!((kept.status, kept.body.len()), (304, 0));
    let head = world.server.send(&Request::head(&target));
    assert_eq!(head.header("content-length"), world.server.get(&target).header("content-length"));

    world.rotate("acme/app", &SignersFile::dated(days_ago(8)).artifact(1, &[&alice]), &[&alice]);
    let changed = ask();
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[test]
fn a_chain_is_the_beginning_of_the_history_whether_it_is_short_or_long() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::dated(days_ago(100)).artifact(1, &[&alice]), &[&alice]);
    let mut governed = Vec::new();
    for n in 0..4 {
        governed.push(world.add_signed_release(&format!("acme/app/v{n}"), &[&alice]));
        let next = SignersFile::dated(days_ago(99 - n)).artifact(1, &[&alice]);
        let length = if n == 2 { SIGNERS_BYTES } else { 0 };
        world.rotate("acme/app", &next.padded_to(length), &[&alice]);
    }
    let history = world.read_json(&document_of(&world));
    let entries = history["entries"].as_array().unwrap();
    // Twice: what has to be looked for, and what is at hand.
    for _ in 0..2 {
        for (at, index) in governed.iter().enumerate() {
            let answer = world.server.get(&format!("/v1/get_signers_chain/{index}"));
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.ok()["history"]["entries"].as_array().unwrap()[..], entries[..=at]);
            let other_name = world.server.get(&format!("/v1/get_artifact_signers_chain/{index}"));
            assert_eq!(other_name.ok(), answer.ok());
        }
        let active = world.server.get(&format!("/v1/get_signers_chain/{}", world.active_path("acme/app")));
        assert_eq!(active.ok()["history"], history);
    }
}

#[test]
fn readers_of_a_long_history_who_do_not_read_keep_no_one_else_waiting() {
    let (world, alice) = rotated();
    let index = world.add_signed_release("acme/app/v1", &[&alice]);
    let targets = [format!("files/{}", document_of(&world)), format!("get_signers_chain/{index}")];
    let ask = |n: usize| {
        let mut connection = Connection::open(world.server.address());
        connection.write(&format!("GET /v1/{} HTTP/1.1\r\nhost: localhost\r\n\r\n", targets[n % 2]));
        connection
    };
    // Far more bytes than may be on their way at the same time.
    let mut readers: Vec<Connection> = (0..80).map(ask).collect();
    for _ in 0..20 {
        let asked = Instant::now();
        world.server.get("/healthz").ok();
        world.server.get(&format!("/v1/files/{index}"));
        world.get_as(&alice, "/v1/pending_signatures").ok();
        assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
    }
    let whole = world.read_json(&document_of(&world));
    for reader in readers.iter_mut().take(6) {
        let answer: Value = serde_json::from_slice(&reader.read_reply().body).unwrap();
        assert!(answer == whole || answer["history"] == whole);
    }
}
