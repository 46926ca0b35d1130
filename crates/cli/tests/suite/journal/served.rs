//! D67, D68: the journal of a running server.

use std::thread;

use tempfile::TempDir;

use super::{head_of, id, import, new_copy, read_journal, start_with_commits};
use crate::support::{Git, Person, Request, SignersFile, TestServer, World, http, metrics};

/// Longer than a test waits for an answer.
const WAIT: &str = "wait=60";

fn world() -> (World, Person) {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_signed_release("acme/app/v1", &[&alice]);
    (world, alice)
}

#[test]
fn git_imports_it_and_gets_the_same_commits() {
    let (world, alice) = world();
    let dir = TempDir::new().unwrap();
    let copy = new_copy(dir.path());
    let whole = world.server.get("/v1/journal");
    assert_eq!(whole.status, 200);
    assert_eq!(whole.header("content-type"), Some("application/x-git-fast-import"));
    assert_eq!(whole.header("cache-control"), Some("no-store"));
    assert_eq!(whole.header("transfer-encoding"), Some("chunked"));
    let first = head_of(&world.server);
    assert_eq!(whole.header("x-svc-commit"), Some(first.as_str()));
    import(&copy, &whole.body);
    assert_eq!(copy.run(&["rev-parse", "main"]), first);

    // More follows, in a second run.
    world.add_signed_release("acme/app/v2", &[&alice]);
    world.revoke(&alice, &world.index_path("acme/app/v1")).ok();
    let rest = world.server.get(&format!("/v1/journal?after={}", first.to_uppercase()));
    import(&copy, &rest.body);
    assert_eq!(copy.run(&["rev-parse", "main"]), head_of(&world.server));
    assert_eq!(read_journal(&rest.body).first().unwrap().parent, Some(id(&first)));
    copy.assert_sound();
    assert_eq!(copy.paths(), world.git().paths());

    // The newest commit has nothing after it.
    let head = head_of(&world.server);
    for target in ["", "&wait=0", "&wait=1"] {
        let reply = world.server.get(&format!("/v1/journal?after={head}{target}"));
        assert_eq!((reply.status, reply.text()), (200, String::new()));
        assert_eq!(reply.header("x-svc-commit"), Some(head.as_str()));
        assert_eq!(reply.header("content-length"), Some("0"));
    }
}

#[test]
fn what_is_not_stored_by_a_server_breaks_it_off() {
    let mut server = start_with_commits([("notes/a", b"a".to_vec())]);
    let before = head_of(&server);
    server.stop();
    Git::at(server.repository()).commit_file("notes/b\\c", b"b");
    server.start_again();
    let after = format!("/v1/journal?after={before}");
    let broken = http::try_send(server.address(), &Request::get(&after));
    assert!(broken.is_err() || broken.is_ok_and(|reply| reply.body.is_empty()));
    let log = server.stop_and_read_log();
    assert!(log.contains("followers get no further") && log.contains("no path can spell this name"), "{log}");
}

#[test]
fn a_follower_that_waits_hears_of_the_next_commit() {
    let (world, alice) = world();
    let head = head_of(&world.server);
    thread::scope(|scope| {
        let followers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| world.server.get(&format!("/v1/journal?after={head}&{WAIT}"))))
            .collect();
        world.add_release(&alice, "acme/app/v2");
        for follower in followers {
            let reply = follower.join().unwrap();
            let told = read_journal(&reply.body);
            assert_eq!(told.first().unwrap().parent, Some(id(&head)));
            assert_eq!(reply.header("x-svc-commit"), Some(told.last().unwrap().id.to_string().as_str()));
        }
    });
    // One that is behind waits for nothing.
    assert_eq!(
        read_journal(&world.server.get(&format!("/v1/journal?{WAIT}")).body).len(),
        world.git().commit_count()
    );
}

#[test]
fn followers_are_counted_and_those_that_wait_hold_up_no_stop() {
    let mut server = TestServer::start_with(|launch| launch.arg("--dev").with_metrics());
    let (address, metrics_address) = (server.address(), server.metrics_address());
    let head = head_of(&server);
    let request = Request::get(format!("/v1/journal?after={head}&{WAIT}"));
    let follower = thread::spawn(move || http::send(address, &request));
    http::send(server.address(), &Request::get("/v1/journal"));
    metrics::await_value(metrics_address, "countersign_journal_commits_sent_total", 1.0);
    metrics::await_value(metrics_address, "countersign_journal_followers{state=\"reading\"}", 0.0);
    let waiting = "countersign_journal_followers{state=\"waiting\"}";
    metrics::await_value(metrics_address, waiting, 1.0);
    assert_eq!(server.stop().code(), Some(0));
    let reply = follower.join().unwrap();
    assert_eq!((reply.status, reply.text()), (200, String::new()));
}
