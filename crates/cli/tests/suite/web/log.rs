//! The page of the log, and the command that says the same (D267).

use countersign_testing::assert_mentions;
use serde_json::{Value, json};

use crate::support::html::open;
use crate::support::mirrors::{start_mirror, url_of};
use crate::support::witnesses::{LogSetup, ORIGIN, TestWitness, log_key_of};
use crate::support::{Request, SignersFile, TestServer, alice, metrics::free_address};
use crate::support::{waiting::wait_until, witnesses::start_witnessed};

fn status(server: &TestServer, more: &[&str]) -> String {
    let output = server.admin(&[&["log", "status"], more].concat()).output();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn status_json(server: &TestServer) -> Value {
    serde_json::from_str(&status(server, &["--json"])).expect("one object")
}

/// What the command says behind this name.
fn value<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim()
}

#[test]
fn the_page_of_the_log_and_the_command_say_the_same() {
    let origin = free_address();
    let mut witness = TestWitness::prepare(origin, "one.example", &[]);
    let mut setup = LogSetup::at(origin).witnessed(&[&witness], &[]);
    setup.witnesses.as_mut().unwrap().push_str("#countersign replaying w0\n");
    let mut world = setup.start();
    witness.server.start_again();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = world.add_signed_release("acme/app/1.0", &[&alice()]);
    let key = log_key_of(&world.server).to_string();
    let size: u64 = world.git().run(&["rev-list", "--count", "main"]).trim().parse().unwrap();
    wait_until("the witness has not cosigned all", || status_json(&world.server)["proven_size"] == size);
    // The minute can end between two looks.
    wait_until("the two say something else", || {
        let (said, page) = (status(&world.server, &[]), open(&world.server, "/log").words);
        ["log", "key", "newest checkpoint", "proofs", "last hour"]
            .iter()
            .all(|name| page.contains(value(&said, name)))
    });
    let page = open(&world.server, "/log");
    page.says(&[
        ORIGIN,
        &key,
        "w0",
        &witness.key.to_string(),
        "replays the rules",
        "Needed for a proof: 1 of w0",
    ]);
    page.says(&["countersign witness http://", "countersign admin witness init"]);
    page.links_to("/log/checkpoint").links_to("/log/key");
    assert!(page.text.contains("role=\"img\" aria-label=\""));
    assert_eq!(page.text.matches(" with a checkpoint, ").count(), 2, "the picture has words");
    let said = status(&world.server, &[]);
    assert_mentions(&said, &[&key, "witness w0", "; replays the rules", "1 of w0"]);
    let summary = status_json(&world.server);
    assert_eq!((&summary["size"], &summary["newest_size"]), (&json!(size), &json!(size)));
    assert_eq!(summary["witnesses"][0]["cosigned_size"], size);
    let minutes = summary["last_hour"]["minutes"].as_array().unwrap();
    assert_eq!(minutes.len(), 60);
    let full = json!({ "has_new_commits": true, "is_cosigned": true });
    assert!(minutes.contains(&full), "{minutes:?}");
    // Every page leads there, and the release from the word of its witnesses.
    open(&world.server, "/").links_to("/log");
    wait_until("the release names no witness", || {
        open(&world.server, &format!("/p/{index}")).text.contains("by 1 of <a href=\"/log\">1 witness</a>")
    });
    // After a restart without the witness, it is known when it cosigned.
    witness.server.stop();
    world.server.kill9();
    world.server.start_again();
    wait_until("the log is not loaded", || status_json(&world.server)["newest_size"] == size);
    let summary = status_json(&world.server);
    assert!(summary["witnesses"][0]["cosigned_at"].is_string(), "{summary}");
    open(&world.server, "/log").says(&["from before this start", "since the start at "]);
}

#[test]
fn a_mirror_says_whose_log_it_copies() {
    let (world, _witness) = start_witnessed();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    let origin = url_of(&world.server);
    let mirror = start_mirror(&origin);
    let page = || mirror.send(&Request::get("/log").with_header("accept", "text/html")).text();
    wait_until("the mirror has no log", || page().contains("It copies the log of"));
    let link = format!("<a href=\"{origin}/log\">");
    assert_mentions(&page(), &["It signs none", &link, &log_key_of(&world.server).to_string()]);
    assert!(!page().contains("Become a witness") && !page().contains("None yet. Proofs"));
    assert_mentions(&status(&mirror, &[]), &["copied from", &origin]);
}
