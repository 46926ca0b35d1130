//! Clocks that are wrong (D50), with the real program and a clock of the test's own.

use countersign_core::values::time::Timestamp;
use serde_json::{Value, json};

use crate::support::{
    Request, SignersFile, TestServer, World, alice, machine_clock::MachineClock, people::new_nonce,
    seconds_from_now,
};

const DAY: i64 = 86_400;

fn pending() -> Request {
    Request::get("/v1/pending_signatures")
}

/// A request that was signed so many seconds from now.
fn signed(seconds: i64) -> Request {
    alice().sign_at(pending(), seconds_from_now(seconds), &new_nonce())
}

#[test]
fn a_clock_that_is_set_back_to_1970_is_no_reason_not_to_answer() {
    let Some(clock) = MachineClock::new() else { return };
    let mut world = World::start_with(|launch, _| clock.give_to(launch.arg("--dev")));
    assert!(world.server.get("/v1/ping").header("date").is_some_and(|date| date.ends_with(" GMT")));
    let since_1970 = seconds_from_now(0).unix_seconds();
    // No system sets its clock further back.
    clock.set(-since_1970);
    for (target, status) in
        [("/healthz", 200), ("/readyz", 503), ("/v1/ping", 200), ("/p/nowhere", 404), ("/", 200)]
    {
        let reply = world.server.get(target);
        assert_eq!(reply.status, status, "{target}: {}", reply.text());
        assert!(reply.header("x-request-id").is_some(), "{target}");
        assert!(reply.header("date").is_some_and(|date| date.contains("1970")), "{target}");
    }
    world.server.send(&alice().sign(pending())).refused(401, "ahead of the server's clock");
    // At the time at which the clock stands, where Git's calendar begins.
    let url = world.publish("acme/app", &SignersFile::of(1, &[&alice()]));
    let body = json!({ "signers_file_url": url, "public_key": alice().body_key() });
    let request = Request::post("/v1/register_repo", &body);
    let at = Timestamp::from_unix_seconds(0).unwrap();
    world
        .server
        .send(&alice().sign_at(request, at, &new_nonce()))
        .refused(503, "the newest change was made at");
    let forgotten = alice().sign_at(pending(), at, &new_nonce());
    world.server.send(&forgotten).ok();
    world.git().assert_sound();

    clock.set(0);
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    world.server.restart();
    world.server.send(&signed(0)).ok();
    clock.set(-since_1970);
    world.server.send(&forgotten).refused(401, "used before");
    let log = world.server.stop_and_read_log();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn a_server_does_not_start_before_1970() {
    let Some(clock) = MachineClock::new() else { return };
    let server = TestServer::prepare(|launch| clock.give_to(launch));
    let since_1970 = seconds_from_now(0).unix_seconds();
    clock.set(-since_1970 - 60);
    let said = server.launch().refusal();
    assert!(said.contains("before 1970") && said.contains("set it"), "{said}");
    assert!(!server.data_dir().exists());
    clock.set(-since_1970 + 60);
    let mut server = server;
    server.start_again();
    server.get("/v1/ping").ok();
}

#[test]
fn a_clock_that_was_a_day_ahead_leaves_fresh_requests_accepted() {
    let Some(clock) = MachineClock::new() else { return };
    let mut server = TestServer::start_with(|launch| clock.give_to(launch.arg("--dev")));
    let mut used = vec![signed(0)];
    server.send(&used[0]).ok();
    for ahead in [DAY, DAY + 500, DAY + 1_000] {
        clock.set(ahead);
        let request = signed(ahead);
        server.send(&request).ok();
        used.push(request);
    }
    clock.set(0);
    for _ in 0..2 {
        // In another second than those that were forgotten.
        let fresh = signed(5);
        server.send(&fresh).ok();
        used.push(fresh);
        server.restart();
    }
    for (ahead, request) in [0, DAY, DAY + 500, DAY + 1_000, 0, 0].into_iter().zip(&used) {
        clock.set(ahead);
        server.send(request).refused(401, "used before");
    }
}

#[test]
fn an_operator_can_reset_what_a_wrong_clock_has_left() {
    let Some(clock) = MachineClock::new() else { return };
    let mut server = TestServer::start_with(|launch| clock.give_to(launch.arg("--dev")));
    let reset = |server: &TestServer, options: &[&str]| {
        clock.give_to(server.admin(&[&["reset-nonces"], options].concat())).output()
    };
    let used = signed(0);
    server.send(&used).ok();
    server.stop();
    // As after a restore, at a time that is still to come.
    std::fs::remove_file(server.data_dir().join("nonces.sqlite")).unwrap();
    clock.set(DAY);
    server.start_again();
    clock.set(0);
    server.send(&signed(0)).refused(401, "if that time is still to come, the operator can help");
    server.restart();
    server.send(&signed(0)).refused(401, "if that time is still to come, the operator can help");

    assert_eq!(reset(&server, &["--yes"]).status.code(), Some(1), "the server runs");
    server.stop();
    let asked = reset(&server, &[]);
    assert_eq!(asked.status.code(), Some(2));
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(said.contains("This machine's clock says") && said.contains("--yes"), "{said}");
    let done = reset(&server, &["--yes", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(done["floor_before"].as_str().unwrap() > done["floor"].as_str().unwrap(), "{done}");

    server.start_again();
    server.send(&signed(2)).ok();
    server.send(&used).refused(401, "before this server was restored");
}
