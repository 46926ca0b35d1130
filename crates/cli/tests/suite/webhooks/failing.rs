//! Webhooks whose receivers fail, and servers that are killed: nothing is lost, and no one waits.

use std::{collections::HashSet, time::Duration, time::Instant};

use crate::support::receiver::{Delivery, Manner, Receiver};
use crate::support::webhooks::{HookedWorld, SECRET, webhook, webhook_to};

/// Far less than what a try may take here, and far more than what does not wait for one.
const PROMPTLY: Duration = Duration::from_secs(60);

#[test]
fn whatever_way_a_receiver_fails_all_events_arrive_in_order_when_it_works_again() {
    let ways = [
        Manner::Fail(500),
        Manner::Fail(404),
        Manner::Fail(410),
        Manner::Redirect,
        Manner::HangUp,
        Manner::Silent,
        Manner::Accept,
    ];
    let receiver = Receiver::start(ways[0]);
    let hooked = HookedWorld::start(&webhook("ci", &receiver, "timeout_seconds = 1"));
    let alice = hooked.activate();
    for (way, manner) in ways.into_iter().enumerate() {
        receiver.behave(manner);
        hooked.world.add_signed_release(&format!("acme/app/v{way}"), &[&alice]);
        if manner != Manner::Accept {
            receiver.await_tries(1);
        }
    }
    let expected = hooked.history();
    let deliveries = receiver.await_accepted(expected.len());
    assert_eq!(deliveries.iter().map(Delivery::event).collect::<Vec<_>>(), expected, "once each");
    let tries = receiver.tries();
    assert!(tries.iter().all(|delivery| delivery.heard.target == "/hook"), "no redirect was followed");
    let failed = &tries[..tries.len() - deliveries.len()];
    assert!(failed.iter().all(|delivery| delivery.id() == tries[0].id()), "later ones wait behind the first");
    assert!(
        tries.iter().all(|delivery| {
            delivery.header("X-svc-Signature-256") == delivery.expected_signature(SECRET)
        })
    );
}

#[test]
fn nothing_is_lost_when_the_server_is_stopped_and_killed_while_the_receiver_fails() {
    let receiver = Receiver::start(Manner::Accept);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, "timeout_seconds = 1"));
    let alice = hooked.activate();
    receiver.await_accepted(1);
    for round in 0..4 {
        receiver.behave(if round % 2 == 0 { Manner::Fail(503) } else { Manner::Silent });
        hooked.world.add_signed_release(&format!("acme/app/v{round}"), &[&alice]);
        receiver.await_tries(1);
        if round < 2 {
            hooked.world.server.crash_and_restart()
        } else {
            hooked.world.server.restart()
        }
        hooked.world.add_signed_release(&format!("acme/app/v{round}-again"), &[&alice]);
        receiver.behave(Manner::Accept);
        // The server may end, or be killed, at any point of this.
        receiver.await_accepted(4 + 6 * round);
        hooked.world.server.crash_and_restart();
    }
    let expected = hooked.history();
    let deliveries = receiver.await_distinct(expected.len());
    let mut seen = HashSet::new();
    let first = deliveries.iter().filter(|delivery| seen.insert(delivery.id().to_owned()));
    assert_eq!(first.map(Delivery::event).collect::<Vec<_>>(), expected);
}

#[test]
fn what_was_received_but_not_recorded_comes_again_under_the_same_name() {
    let receiver = Receiver::start(Manner::Silent);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, "timeout_seconds = 600"));
    hooked.activate();
    // The receiver has it, and says nothing before the server is gone.
    receiver.await_total(1);
    hooked.world.server.kill9();
    receiver.behave(Manner::Accept);
    hooked.world.server.start_again();
    let deliveries = receiver.await_accepted(3);
    let tries = receiver.tries();
    assert_eq!((tries[0].id(), &tries[0].heard.body), (deliveries[0].id(), &deliveries[0].heard.body));
    assert_eq!(tries.len(), 4);
    // Both events of a commit have names of their own, and the second is not sent again without the first.
    let commit = &deliveries[1].event()[2];
    assert_eq!([deliveries[1].id(), deliveries[2].id()], [format!("{commit}.0"), format!("{commit}.1")]);
}

#[test]
fn what_was_recorded_does_not_come_again() {
    let receiver = Receiver::start(Manner::Accept);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, ""));
    let alice = hooked.activate();
    receiver.await_accepted(3);
    hooked.await_recorded("ci");
    hooked.world.server.restart();
    receiver.behave(Manner::Fail(500));
    hooked.world.add_release(&alice, "acme/app/v1");
    receiver.await_tries(1);
    receiver.behave(Manner::Accept);
    receiver.await_accepted(4);
    hooked.await_recorded("ci");
    hooked.world.server.restart();
    hooked.world.add_release(&alice, "acme/app/v2");
    let deliveries = receiver.await_accepted(5);
    assert_eq!(deliveries.iter().map(Delivery::event).collect::<Vec<_>>(), hooked.history(), "once each");
    // Events that need no delivery are done with when the server stops.
    hooked.configure(&webhook("ci", &receiver, "types = [\"activated\"]"));
    hooked.world.server.restart();
    hooked.world.sign_all(&hooked.world.index_path("acme/app/v1"), &[&alice]);
    hooked.world.server.restart();
    hooked.world.server.stop();
    let newest = hooked.world.git().run(&["rev-parse", "main"]);
    assert_eq!(std::fs::read_to_string(hooked.progress_file("ci")).unwrap(), format!("{newest}\n"));
    assert_eq!(receiver.accepted().len(), 5);
}

#[test]
fn a_receiver_that_hangs_holds_up_neither_requests_nor_other_webhooks_nor_the_stop() {
    let (silent, fine) = (Receiver::start(Manner::Silent), Receiver::start(Manner::Accept));
    let config = [webhook("silent", &silent, "timeout_seconds = 600"), webhook("fine", &fine, "")].concat();
    let mut hooked = HookedWorld::start(&config);
    let alice = hooked.activate();
    let begun = Instant::now();
    for version in 0..5 {
        hooked.world.add_signed_release(&format!("acme/app/v{version}"), &[&alice]);
    }
    fine.await_accepted(hooked.history().len());
    assert_eq!(silent.tries().len(), 1);
    assert_eq!(hooked.world.server.stop().code(), Some(0));
    assert!(begun.elapsed() < PROMPTLY, "it took {:?}", begun.elapsed());
}

#[test]
fn a_receiver_can_say_when_it_wants_to_be_asked_again() {
    let receiver = Receiver::start(Manner::Busy(3));
    let hooked = HookedWorld::start(&webhook_to("ci", &receiver.url(), "retry_max_seconds = 5"));
    hooked.activate();
    let tries = receiver.await_total(2);
    assert!(tries[1].at - tries[0].at >= Duration::from_secs(3));
}

#[test]
fn the_log_tells_once_that_a_webhook_fails_and_that_it_works_again_and_no_secret() {
    let receiver = Receiver::start(Manner::Fail(500));
    let url = format!("{}/t0ken-in-the-path?key=t0ken-in-the-query", receiver.url());
    let config = webhook_to("ci", &url, "retry_max_seconds = 1");
    let mut hooked = HookedWorld::start_with(&config, &["--dev", "--log-level", "debug"]);
    hooked.activate();
    receiver.await_tries(3);
    receiver.behave(Manner::Accept);
    receiver.await_accepted(3);
    receiver.behave(Manner::Fail(410));
    hooked.world.add_release(&crate::support::Person::named("alice"), "acme/app/v1");
    receiver.await_tries(2);
    let log = hooked.world.server.stop_and_read_log();
    let count = |words: &str| log.matches(words).count();
    assert_eq!(count("the webhook fails"), 2, "{log}");
    assert_eq!(count("the webhook works again"), 1, "{log}");
    assert_eq!(count("gone for good"), 1, "{log}");
    assert!(count("the webhook still fails") >= 2 && log.contains("status 500"), "{log}");
    assert!(!log.contains(SECRET) && !log.contains("t0ken"), "{log}");
}

#[test]
fn a_repository_that_does_not_know_the_last_commit_begins_anew_at_its_newest() {
    let receiver = Receiver::start(Manner::Accept);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, ""));
    let alice = hooked.activate();
    receiver.await_accepted(3);
    hooked.world.server.stop();
    std::fs::write(hooked.progress_file("ci"), format!("{}\n", "1".repeat(40))).unwrap();
    hooked.world.server.start_again();
    hooked.world.add_release(&alice, "acme/app/v1");
    let deliveries = receiver.await_accepted(4);
    assert_eq!(deliveries.iter().map(Delivery::event).collect::<Vec<_>>(), hooked.history());
    let log = hooked.world.server.stop_and_read_log();
    assert!(log.contains("is not in the repository"), "{log}");
    // Progress that cannot be read keeps the server from starting.
    std::fs::write(hooked.progress_file("ci"), "").unwrap();
    let said = hooked.world.server.launch().refusal();
    assert!(said.contains("webhooks/ci") && said.contains("remove it"), "{said}");
}

#[test]
fn a_webhook_goes_on_where_its_progress_cannot_be_stored_and_repeats_itself_after_a_restart() {
    let receiver = Receiver::start(Manner::Accept);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, ""));
    // In the place of the file that is to be written.
    let obstacle = hooked.progress_file("ci.new");
    std::fs::create_dir(&obstacle).unwrap();
    hooked.activate();
    receiver.await_accepted(3);
    let log = hooked.world.server.stop_and_read_log();
    assert_eq!(log.matches("cannot be stored").count(), 1, "{log}");
    std::fs::remove_dir(&obstacle).unwrap();
    hooked.world.server.start_again();
    let deliveries = receiver.await_accepted(6);
    let ids: Vec<_> = deliveries.iter().map(Delivery::id).collect();
    assert_eq!(ids[..3], ids[3..]);
}

/// More commits than the server keeps in memory, made as a long time with a webhook that fails would.
#[test]
fn a_webhook_that_is_far_behind_reads_the_history_back() {
    const COMMITS: usize = 12_345;
    const EVERY: usize = 1_000;
    let receiver = Receiver::start(Manner::Accept);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, "types = [\"revoked\"]"));
    let alice = hooked.activate();
    hooked.world.server.stop();
    let index = hooked.world.index_path("acme/app/v1");
    let mut stream = String::new();
    for number in 0..COMMITS {
        let title = if number % EVERY == 0 { "Revoke" } else { "Sign" };
        let message = format!("{title} {index}\n\nBy: {}\n", alice.key());
        stream += &format!(
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\n",
            1_700_000_000 + number
        );
        stream += &format!("data {}\n{message}", message.len());
        if number == 0 {
            stream += "from refs/heads/main^0\n";
        }
        stream += "\n";
    }
    hooked.world.git().run_with_input(&["fast-import", "--quiet"], stream.as_bytes());
    hooked.world.server.start_again();
    let expected: Vec<_> = hooked.history().into_iter().filter(|event| event[0] == "revoked").collect();
    assert_eq!(expected.len(), COMMITS.div_ceil(EVERY));
    let deliveries = receiver.await_accepted(expected.len());
    assert_eq!(deliveries.iter().map(Delivery::event).collect::<Vec<_>>(), expected);
}
