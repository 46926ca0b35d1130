//! Histories of signers that are long: stored as one file an entry, served as one document and as chains (D42, D45).

use std::time::{Duration, Instant};

use countersign_core::{documents::history::History, rules::chain, values::path::RepoPath};
use serde_json::Value;

use crate::support::{Connection, Reply, SignersFile, World, alice, days_ago};

const SIGNERS_BYTES: usize = 256 * 1024;
const ROTATIONS: i64 = 12;

/// Less than the time after which the server gives up a client that takes nothing of its answer.
const PROMPTLY: Duration = Duration::from_secs(10);

#[test]
fn a_long_history_is_stored_by_entry_served_whole_and_readers_who_do_not_read_keep_no_one_waiting() {
    let alice = alice();
    let world = World::with_project(&SignersFile::dated(days_ago(100)).artifact(1, &[&alice]), &[&alice]);
    let mut governed = Vec::new();
    for n in 0..ROTATIONS {
        governed.push(world.add_signed_release(&format!("acme/app/v{n}"), &[&alice]));
        let next = SignersFile::dated(days_ago(99 - n)).artifact(1, &[&alice]);
        world.rotate("acme/app", &next.padded_to(SIGNERS_BYTES), &[&alice]);
    }
    let entries = usize::try_from(ROTATIONS).unwrap() + 1;
    let document = format!("{}/svc.signers.history.json", world.id("acme/app"));
    let reply = world.file(&document);
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
    world.sign(&alice, &document).refused(400, "does not collect signatures");

    // A chain is the beginning of it, whether it has to be looked for or is at hand.
    let whole: Value = serde_json::from_slice(&reply.body).unwrap();
    let chain_of = |path: &str| world.server.get(&format!("/v1/get_signers_chain/{path}")).ok();
    for _ in 0..2 {
        for (at, index) in governed.iter().enumerate().step_by(4) {
            let entries = &whole["entries"].as_array().unwrap()[..=at];
            assert_eq!(chain_of(index)["history"]["entries"].as_array().unwrap()[..], *entries);
        }
        assert_eq!(chain_of(&world.active_path("acme/app"))["history"], whole);
    }

    // Far more bytes than may be on their way at the same time.
    let index = world.add_signed_release("acme/app/last", &[&alice]);
    let targets = [format!("files/{document}"), format!("get_signers_chain/{index}")];
    let ask = |n: usize| {
        let mut connection = Connection::open(world.server.address());
        connection.write(&format!("GET /v1/{} HTTP/1.1\r\nhost: localhost\r\n\r\n", targets[n % 2]));
        connection
    };
    let mut readers: Vec<Connection> = (0..80).map(ask).collect();
    for _ in 0..20 {
        let asked = Instant::now();
        world.server.get("/healthz").ok();
        world.server.get(&format!("/v1/files/{index}"));
        world.get_as(&alice, "/v1/pending_signatures").ok();
        assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
    }
    // On a busy machine, some of the first are told as well to come back.
    let replies: Vec<Reply> = readers.iter_mut().take(6).map(Connection::read_reply).collect();
    let read = |reply: &Reply| serde_json::from_slice::<Value>(&reply.body).unwrap();
    let served: Vec<_> = replies.iter().filter(|reply| reply.status != 503).map(read).collect();
    assert!(!served.is_empty() && served.iter().all(|answer| *answer == whole || answer["history"] == whole));
}
