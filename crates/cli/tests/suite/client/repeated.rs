//! Requests that are sent again where that does no harm (D63).

use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};

use countersign_api::error_code::ErrorCode;

use crate::support::hostile::{Asked, HostileServer, Lie};
use crate::support::{Person, SignersFile, World, client::Computer, client::put_release};

/// A project of alice and bob with an unsigned release, and a server in between.
#[track_caller]
fn collecting() -> (World, Computer, HostileServer, String) {
    let (alice, bob) = (Person::named("alice"), Person::named("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let sums = put_release(&world.files, "acme/app/1.0", &[("app", b"content")]);
    world.register_assets(&alice, &[&sums]).ok();
    let index = world.index_path("acme/app/1.0");
    let between = HostileServer::before(&world.server);
    let computer = Computer::of(&world.server);
    (world, computer, between, index)
}

/// Lies the first `times` times that this path is asked for.
fn lie_at_first(server: &HostileServer, path: &str, times: usize, lie: Lie) {
    let (path, told) = (path.to_owned(), Arc::new(AtomicUsize::new(0)));
    server.lie(move |asked| {
        let is_meant = is_at(asked, &path) && told.fetch_add(1, Ordering::Relaxed) < times;
        is_meant.then(|| lie.clone())
    });
}

fn count(server: &HostileServer, path: &str) -> usize {
    server.asked().iter().filter(|asked| is_at(asked, path)).count()
}

fn is_at(asked: &Asked, path: &str) -> bool {
    asked.path.split('?').next() == Some(path)
}

#[test]
fn a_question_is_asked_three_times() {
    let (_world, computer, between, index) = collecting();
    let file = format!("/v1/state/{index}");
    let lies = [Lie::HungUp, Lie::error(502, "x"), Lie::error(503, "x"), Lie::error(504, "x")];
    for lie in lies {
        let before = count(&between, &file);
        lie_at_first(&between, &file, 2, lie);
        computer.run(&["status", &index, "--server", &between.url()]).ok().says(&["has 0 of 2; 2 more from"]);
        assert!(count(&between, &file) >= before + 3);
        between.be_honest();
    }
    between.answer("/v1/ping", Lie::error(503, "the server is busy"));
    computer.run(&["ping", "--server", &between.url()]).failed(5).says(&["the server is busy"]);
    assert_eq!(count(&between, "/v1/ping"), 3, "and no more");
}

#[test]
fn a_stream_of_events_is_begun_in_three_tries() {
    let (world, computer, between, index) = collecting();
    let stream = Lie::bytes(": a sign of life\n\n").with_header("content-type", "text/event-stream");
    for lie in [Lie::HungUp, Lie::error(502, "x"), Lie::error(503, "x").with_header("retry-after", "1")] {
        between.answer("/v1/events", stream.clone());
        lie_at_first(&between, "/v1/events", 2, lie);
        let running = computer.start(&["watch", "--server", &between.url()]);
        running.await_note("Watching http://");
        between.be_honest();
    }
    world.sign_all(&index, &[&Person::named("alice"), &Person::named("bob")]);
    between.lie(move |asked| is_at(asked, "/v1/events").then(|| stream.clone()));
    lie_at_first(&between, "/v1/events", 2, Lie::HungUp);
    computer.run(&["status", "--wait", &index, "--server", &between.url()]).ok().says(&["complete"]);
    between.be_honest();
    let before = count(&between, "/v1/events");
    between.answer("/v1/events", Lie::error(503, "too many others listen"));
    computer.run(&["watch", "--server", &between.url()]).failed(5).says(&["too many others listen"]);
    assert_eq!(count(&between, "/v1/events"), before + 3, "and no more");
}

/// So soon after its start, a server with many files cannot find any of them by their digests.
#[test]
fn a_pause_that_the_server_asks_for_is_told() {
    let (world, computer, between, index) = collecting();
    world.sign_all(&index, &[&Person::named("alice"), &Person::named("bob")]);
    computer.write("app", "content");
    let starting = Lie::error(503, "the server has just started").with_header("retry-after", "1");
    lie_at_first(&between, "/v1/releases", 1, starting.clone());
    let told = ["the server has just started. Asking again in 1 s.", "Verified app"];
    computer.run(&["verify", "app", "--yes", "--server", &between.url()]).ok().says(&told);
    between.be_honest();
    lie_at_first(&between, "/v1/releases", 1, starting);
    let quiet = computer.run(&["verify", "app", "--quiet", "--server", &between.url()]).ok();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn a_long_pause_is_left_to_the_user_and_other_errors_are_not_repeated() {
    let (_world, computer, between, _) = collecting();
    between.answer("/v1/ping", Lie::error(503, "later").with_header("retry-after", "60"));
    computer.run(&["ping", "--server", &between.url()]).failed(5).says(&["later"]);
    assert_eq!(count(&between, "/v1/ping"), 1);
    for status in [400, 404, 429, 500] {
        let before = count(&between, "/v1/ping");
        between.answer("/v1/ping", Lie::error(status, "no"));
        computer.run(&["ping", "--server", &between.url()]);
        assert_eq!(count(&between, "/v1/ping"), before + 1, "{status}");
    }
}

#[test]
fn a_signature_that_was_taken_although_the_answer_was_lost_is_a_success() {
    let (world, computer, between, index) = collecting();
    let sign = |name: &str| {
        let args = ["sign", &index, "--yes", "--json", "--server", &between.url()];
        computer.run_as(name, &args).ok().json()
    };
    lie_at_first(&between, "/v1/signatures", 1, Lie::Swallowed);
    assert_eq!(sign("alice")["signed"][0]["is_complete"], false);
    assert_eq!(between.posts().len(), 2, "it was sent again");
    between.be_honest();
    lie_at_first(&between, "/v1/signatures", 1, Lie::Swallowed);
    assert_eq!(sign("bob")["signed"][0]["is_complete"], true);
    assert!(world.is_complete(&Person::named("alice"), &index));

    between.be_honest();
    lie_at_first(&between, "/v1/revoke", 1, Lie::Swallowed);
    let args = ["revoke", &index, "--reason", "bad build", "--yes", "--server", &between.url()];
    computer.run_as("alice", &args).ok().says(&["Revoked"]);
}

#[test]
fn signers_that_came_into_force_although_the_answer_was_lost_are_in_force() {
    let alice = Person::named("alice");
    let world = World::start();
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let between = HostileServer::before(&world.server);
    lie_at_first(&between, "/v1/signatures", 1, Lie::Swallowed);
    let pending = world.pending_path("acme/app");
    let computer = Computer::of(&world.server);
    let signed = computer.json_as("alice", &["sign", &pending, "--yes", "--server", &between.url()]);
    assert_eq!(signed["signed"][0]["is_complete"], true);
}

#[test]
fn a_registration_is_repeated_only_if_the_server_did_nothing() {
    let (world, computer, between, _) = collecting();
    let sums = put_release(&world.files, "acme/app/2.0", &[("app", b"new")]);
    let args = ["release", "--checksums", &sums, "--server", &between.url()];
    let unknown = Lie::refusal(ErrorCode::OutcomeUnknown, "it may be done").with_header("retry-after", "1");
    let silent = Lie::Answer { status: 503, headers: vec![], body: vec![] };
    for lie in [Lie::HungUp, Lie::error(504, "x"), silent, unknown] {
        let before = between.posts().len();
        between.answer("/v1/assets", lie);
        computer.run_as("alice", &args).failed(5);
        assert_eq!(between.posts().len(), before + 1);
        between.be_honest();
    }
    lie_at_first(&between, "/v1/assets", 1, Lie::error(503, "busy").with_header("retry-after", "1"));
    computer.run_as("alice", &args).ok().says(&["Registered"]);
}
