//! A process that is stopped in the middle of its work, and a clock that is set meanwhile: every commit is still one
//! that the rules give (D191, D192).

use std::sync::{atomic::AtomicBool, atomic::AtomicI64, atomic::Ordering, mpsc};
use std::{thread, time::Duration};

use serde_json::json;

use super::kills_load::{Client, Course};
use crate::support::{
    Answer, FileServer, Git, Person, Request, SignersFile, TestServer, fsck::fsck,
    machine_clock::MachineClock,
};

/// How many pauses; the long run takes 200.
const PAUSES: &str = "COUNTERSIGN_PAUSES";
/// Seconds that the clock is ahead after each pause, in turns: more than a follower lets two times of a commit differ.
const AHEAD: [i64; 6] = [900, 0, -900, 1_800, 900, -600];
const ROWS: usize = 4;
/// How long to wait for a step. A server that has forgotten nonces while its clock was ahead accepts no request that is
/// signed before that, and in a long run it has.
const TIMEOUT: Duration = Duration::from_secs(1);

#[test]
fn a_server_that_is_paused_while_its_clock_is_set_writes_only_what_the_rules_give() {
    let Some(clock) = MachineClock::new() else { return };
    let pauses = std::env::var(PAUSES).map_or(6, |text| text.parse().expect("a number"));
    let mut server = TestServer::start_with(|launch| clock.give_to(launch.arg("--dev")));
    let files = FileServer::start();
    let (ahead, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let address = server.address();
    let client = || {
        let client = Client { address, files: &files, ahead: ahead.load(Ordering::Relaxed) };
        (!is_over.load(Ordering::Relaxed)).then_some(client)
    };
    thread::scope(|scope| {
        let (done, steps) = mpsc::channel();
        for row in 1..=ROWS {
            let done = done.clone();
            scope.spawn(move || Course::new(row).insist(client, &done));
        }
        let await_steps = || (0..2 * ROWS).map_while(|_| steps.recv_timeout(TIMEOUT).ok()).count();
        let mut count = 0;
        for seconds in AHEAD.iter().cycle().take(pauses) {
            count += await_steps();
            server.signal("STOP");
            clock.set(*seconds);
            ahead.store(*seconds, Ordering::Relaxed);
            server.signal("CONT");
        }
        count += await_steps();
        assert!(count > pauses, "{count} steps");
        is_over.store(true, Ordering::Relaxed);
    });
    server.stop();
    fsck(&server.data_dir(), &[]).is_clean();
    let times = Git::at(server.repository()).run(&["log", "--reverse", "--format=%ct"]);
    let times: Vec<i64> = times.lines().map(|time| time.parse().expect("seconds")).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_clock_that_is_set_while_a_file_is_fetched_makes_no_commit_that_the_rules_refuse() {
    let Some(clock) = MachineClock::new() else { return };
    let mut server = TestServer::start_with(|launch| clock.give_to(launch.arg("--dev")));
    let (files, alice) = (FileServer::start(), Person::named("alice"));
    for (name, ahead, is_made) in [("a", 900, true), ("b", -900, true), ("c", 3 * 3_600, false)] {
        let path = format!("/{name}/svc.signers.json");
        let (answer, keeper) = Answer::held(SignersFile::of(1, &[&alice]).bytes());
        files.set(&path, answer);
        let body = json!({ "signers_file_url": files.url(&path), "public_key": alice.body_key() });
        clock.set(0);
        let request = alice.sign(Request::post("/v1/register_repo", &body));
        let reply = thread::scope(|scope| {
            let reply = scope.spawn(|| server.send(&request));
            keeper.await_request();
            clock.set(ahead);
            keeper.release();
            reply.join().expect("an answer")
        });
        match is_made {
            true => drop(reply.ok()),
            false => reply.refused(503, "the server's clock was set while this request waited"),
        }
    }
    server.stop();
    fsck(&server.data_dir(), &[]).is_clean();
}
