//! A mirror goes on after every interruption: of itself, of its origin, of the way between them.

use std::{sync::mpsc, time::Duration};

use countersign_testing::literals::FIRST;
use tempfile::TempDir;

use crate::store::kills_load::{Client, Course};
use crate::support::hostile::{AfterHalf, HostileServer, Lie};
use crate::support::http::{Request, send};
use crate::support::mirrors::{
    await_readyz, await_same, commits_of, launch_impatient, prepare_impatient, start_mirror, start_origin,
    tip_of, url_of,
};
use crate::support::server::{Launch, TestServer};
use crate::support::{Git, Person, SignersFile, World, fsck::fsck, waiting::wait_until};

const ROWS: usize = 4;

/// A world in which people have taken some projects through their whole life, side by side.
pub(super) fn lively_origin(commits: usize) -> World {
    let world = World::start();
    let client = Client { address: world.server.address(), files: &world.files, ahead: 0 };
    std::thread::scope(|scope| {
        for row in 0..ROWS {
            let (done, _heard) = mpsc::channel();
            scope.spawn(move || Course::new(row).run(client, commits / ROWS, &done));
        }
    });
    world
}

#[test]
fn a_mirror_that_is_killed_while_it_catches_up_goes_on_from_there() {
    let world = lively_origin(400);
    let origin = url_of(&world.server);
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(&origin, dir));
    let (mut reached, total) = (Vec::new(), world.git().commit_count());
    for round in 0..12 {
        mirror.start_and_kill(Duration::from_millis(60 + 40 * round));
        reached.push(commits_of(&mirror));
        if reached.last() == Some(&total) {
            break;
        }
    }
    assert!(reached.is_sorted(), "a mirror never goes back: {reached:?}");
    mirror.start_again();
    await_same(&mirror, &world.server);
    println!("killed after {reached:?} of {total} commits");
    mirror.stop();
    Git::at(mirror.repository()).assert_sound();
    assert_eq!(Some(fsck(&mirror.data_dir(), &[]).is_clean()), tip_of(&world.server));
}

/// The store takes groups of commits. What is left of an answer when a group is full has arrived, too.
#[test]
fn a_long_answer_that_ends_in_order_is_no_failure() {
    const BEGIN: &[u8] = b"\ncommit refs/heads/";
    let world = lively_origin(320);
    let journal = send(world.server.address(), &Request::get("/v1/journal")).body;
    let ends: Vec<usize> =
        (0..journal.len()).filter(|&at| journal[at..].starts_with(BEGIN)).map(|at| at + 1).collect();
    assert_eq!(ends.len() + 1, world.git().commit_count(), "an end for each commit but the last");
    // Somewhere here a group becomes full with the last bytes of the answer.
    for commits in (258..ends.len()).step_by(8) {
        let hostile = HostileServer::alone();
        let part = journal[..ends[commits - 1]].to_vec();
        hostile.lie(move |asked| (!asked.path.contains("after=")).then(|| Lie::journal(part.clone())));
        let mut mirror = start_mirror(&hostile.url());
        wait_until(&format!("{commits} commits arrive"), || commits_of(&mirror) == commits);
        let log = mirror.stop_and_read_log();
        assert!(!log.contains("in the middle of a commit"), "{commits} commits: {log}");
    }
}

/// The first half of the journal arrives, then the connection breaks; then the mirror is killed; then it goes on.
#[test]
fn what_came_before_a_break_is_kept() {
    let world = lively_origin(80);
    let journal = send(world.server.address(), &Request::get("/v1/journal")).body;
    let hostile = HostileServer::alone();
    let half = journal[..journal.len() / 2].to_vec();
    hostile.lie(move |asked| {
        let is_first = !asked.path.contains("after=");
        is_first.then(|| Lie::HalfJournal(half.clone(), AfterHalf::End))
    });
    let mut mirror = prepare_impatient(&hostile.url(), 10);
    mirror.start_again();
    mirror.await_log("cannot follow", 1);
    wait_until("half arrives", || commits_of(&mirror) > 10);
    mirror.get("/readyz").refused(503, "is still copying");
    mirror.kill9();
    let half_way = commits_of(&mirror);
    assert!(half_way < world.git().commit_count(), "{half_way}");
    let origin = url_of(&world.server);
    mirror.change_launch(|dir| Launch::mirror(&origin, dir));
    mirror.start_again();
    mirror.await_log("follows another address", 1);
    await_same(&mirror, &world.server);
}

#[test]
fn an_origin_that_is_away_for_a_while_is_waited_for() {
    let alice = Person::named("alice");
    let mut world = start_origin();
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let mut mirror = prepare_impatient(&url_of(&world.server), 2);
    mirror.start_again();
    await_same(&mirror, &world.server);
    assert_eq!(await_readyz(&mirror, 200).status, 200);
    let address = world.server.address();
    world.server.stop();
    let said = await_readyz(&mirror, 503).error(503);
    assert!(said.contains(&address.to_string()) && said.contains("not been up to date"), "{said}");
    let signers = format!("/v1/get_signers/{}", world.id("acme/app"));
    assert_eq!(mirror.get(&signers).status, 200, "reads go on");
    world.server.start_again();
    world.add_release(&alice, "acme/app/1.0");
    await_same(&mirror, &world.server);
    await_readyz(&mirror, 200);
    let log = mirror.stop_and_read_log();
    assert_eq!(log.matches("cannot follow").count(), 1, "it says so once: {log}");
    assert!(log.contains("follows again"), "{log}");
}

#[test]
fn a_connection_that_stalls_is_given_up() {
    let world = lively_origin(20);
    let journal = send(world.server.address(), &Request::get("/v1/journal")).body;
    let hostile = HostileServer::alone();
    let part = journal[..journal.len() / 3].to_vec();
    hostile.lie(move |asked| {
        let sent = if asked.path.contains("after=") { Vec::new() } else { part.clone() };
        Some(Lie::HalfJournal(sent, AfterHalf::Silence))
    });
    let mut mirror = prepare_impatient(&hostile.url(), 10);
    mirror.start_again();
    mirror.await_log("sent nothing for 2 seconds", 1);
    let (kept, asked) = (commits_of(&mirror), hostile.asked().len());
    assert!(kept > 0, "what had arrived is kept");
    wait_until("it asks again", || hostile.asked().len() > asked);
    let tip = tip_of(&mirror).expect("a commit");
    let last = hostile.asked().pop().expect("a question");
    assert!(last.path.contains(&format!("after={tip}")), "{}", last.path);
    let origin = url_of(&world.server);
    mirror.kill9();
    mirror.change_launch(|dir| launch_impatient(&origin, dir, 10));
    mirror.start_again();
    await_same(&mirror, &world.server);
}

#[test]
fn a_busy_origin_is_left_alone_for_as_long_as_it_asks() {
    let hostile = HostileServer::alone();
    hostile.lie(|_| Some(Lie::error(503, "the server is busy").with_header("retry-after", "3600")));
    let mirror = start_mirror(&hostile.url());
    mirror.await_log("the server is busy", 1);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(hostile.asked().len(), 1, "one question in an hour");
}

#[test]
fn what_is_no_journal_is_no_lie() {
    let hostile = HostileServer::alone();
    hostile.lie(|_| Some(Lie::bytes("<html>Please log in</html>").with_header("content-type", "text/html")));
    let mirror = start_mirror(&hostile.url());
    mirror.await_log("something other than a journal", 1);
    assert!(!mirror.data_dir().join("mirror.refused").exists());
}

#[test]
fn an_origin_with_a_certificate_that_is_not_trusted_is_not_followed() {
    let dir = TempDir::new().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().expect("a plain name").to_owned();
    for (name, content) in ["cert.pem", "key.pem"].into_iter().zip(FIRST) {
        std::fs::write(file(name), content).unwrap();
    }
    let origin = TestServer::start_with(|launch| {
        launch.args(["--tls-cert", &file("cert.pem"), "--tls-key", &file("key.pem")])
    });
    let url = format!("https://{}", origin.address());
    let mut mirror = start_mirror(&url);
    mirror.await_log("cannot follow", 1);
    assert_eq!(tip_of(&mirror), None);
    mirror.stop();
    mirror.change_launch(|dir| Launch::mirror(&url, dir).env("SSL_CERT_FILE", &file("cert.pem")));
    mirror.start_again();
    await_same(&mirror, &origin);
}
