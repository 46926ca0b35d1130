//! A mirror has what its origin has, and serves it in the same way.

use tempfile::TempDir;

use crate::support::client::{Computer, add_files};
use crate::support::metrics::{Page, free_address};
use crate::support::mirrors::{await_readyz, await_same, start_mirror, start_origin, tip_of, url_of};
use crate::support::server::{Launch, TestServer};
use crate::support::{
    EventStream, Git, Person, Request, SignersFile, World, alice, fsck::fsck, waiting::wait_until,
};

/// A project with a complete release, a collecting one and a pending proposal.
fn origin() -> World {
    let (alice, bob) = (alice(), Person::named("bob"));
    let world = start_origin();
    world.activate("acme/app", &SignersFile::of(1, &[&alice, &bob]), &[&alice, &bob]);
    add_files(&world, "acme/app/1.0", &[("app.tar.gz", b"content")], &[&alice]);
    world.add_release(&alice, "acme/app/1.1");
    world.register(&alice, "acme/new", &SignersFile::of(1, &[&alice])).ok();
    world
}

#[test]
fn a_mirror_answers_like_its_origin_and_refuses_what_is_signed() {
    let world = origin();
    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    let (id, key) = (world.id("acme/app"), alice().key().replace('/', "%2F").replace('+', "%2B"));
    for target in [
        format!("/v1/files/{id}/1.0/svc.index.json"),
        format!("/v1/files/{id}/svc.signers.history.json"),
        format!("/v1/files/{id}/nothing"),
        format!("/v1/get_signers/{id}/1.1"),
        format!("/v1/get_signers_chain/{id}/1.0/svc.index.json"),
        format!("/v1/releases?project={id}"),
        "/v1/projects?name=app".to_owned(),
        format!("/v1/keys/{key}"),
        format!("/v1/keys/{key}/pending"),
        format!("/badge/{id}/1.0/svc.index.json"),
        "/v1/journal".to_owned(),
        "/openapi.json".to_owned(),
        // D232.
        format!("/v1/state/{id}/1.0/svc.index.json"),
        format!("/v1/state/{id}?newest=true"),
        format!("/v1/state/{id}?tag=1.0"),
        format!("/v1/state/{id}"),
    ] {
        let (theirs, ours) = (world.server.get(&target), mirror.get(&target));
        assert_eq!((theirs.status, theirs.text()), (ours.status, ours.text()), "{target}");
        assert_eq!(theirs.header("etag"), ours.header("etag"), "{target}");
    }
    for target in ["/", "/projects", "/activity", "/activity.atom", "/verify", "/docs", &format!("/p/{id}")] {
        assert_eq!(mirror.get(target).status, 200, "{target}");
    }
    assert_eq!(await_readyz(&mirror, 200).json()["status"], "ready");
    assert_eq!(mirror.get("/healthz").status, 200);
    Git::at(mirror.repository()).assert_sound();
    assert_eq!(Some(fsck(&mirror.data_dir(), &[]).is_clean()), tip_of(&world.server));
    assert!(!mirror.data_dir().join("nonces.sqlite").exists(), "a mirror has no use for nonces");

    // Its journal is a repository for Git.
    let dir = TempDir::new().unwrap();
    let git = Git::init_bare(&dir.path().join("copy.git"));
    git.bytes(&["fast-import", "--quiet"], &mirror.get("/v1/journal").body);
    assert_eq!(Some(git.run(&["rev-parse", "main"])), tip_of(&world.server));
    git.assert_sound();

    // Everything signed is refused, and names the origin.
    let alice = alice();
    let words = format!("mirror of {}", url_of(&world.server));
    for route in ["register_repo", "update_signers", "signatures", "revoke", "assets"] {
        let request = Request::post(format!("/v1/{route}"), &serde_json::json!({}));
        mirror.send(&alice.sign(request.clone())).refused(403, &words);
        // It does not even look who asks.
        mirror.send(&request).refused(403, &words);
    }
    let release = format!("{id}/1.0/svc.index.json");
    for target in [
        "/v1/pending_signatures".to_owned(),
        format!("/v1/signatures/{release}"),
        format!("/v1/files-to-sign/{release}"),
    ] {
        mirror.send(&alice.sign(Request::get(target))).refused(403, &words);
    }
    let ping = mirror.send(&alice.sign(Request::get("/v1/ping"))).ok();
    assert!(ping["auth"].to_string().contains(&words), "{ping}");
    assert_eq!(tip_of(&mirror), tip_of(&world.server), "nothing was changed");
}

#[test]
fn what_happens_at_the_origin_happens_on_a_mirror_of_a_mirror() {
    let world = origin();
    let first = start_mirror(&url_of(&world.server));
    let second = start_mirror(&url_of(&first));
    await_same(&second, &world.server);
    let mut events = EventStream::at(second.address(), "/v1/events");
    let index = world.index_path("acme/app/1.1");
    world.sign(&alice(), &index).ok();
    let told = events.next_event().data.expect("an event");
    assert_eq!(told["path"], index.as_str(), "{told}");
    await_same(&first, &world.server);
    await_same(&second, &world.server);
    let read = second.get(&format!("/v1/files/{index}"));
    assert_eq!(read.body, world.read(&index));
}

#[test]
fn clients_download_verify_and_ask_through_a_mirror() {
    let world = origin();
    let mirror = start_mirror(&url_of(&world.server));
    await_same(&mirror, &world.server);
    let computer = Computer::of(&mirror);
    let url = world.files.url("/acme/app/1.0/app.tar.gz");
    computer.download(&url).ok().says(&["app.tar.gz"]);
    assert_eq!(computer.read("app.tar.gz"), b"content");
    computer.run(&["verify", "app.tar.gz", "--url", &url]).ok();
    computer.run(&["status", &world.index_path("acme/app/1.0")]).ok();
    computer.run(&["signers", "history", &world.id("acme/app")]).ok();
    // The change goes to the origin, and the mirror says where that is.
    let ran = computer.run_as("alice", &["sign", &world.index_path("acme/app/1.1"), "--yes"]);
    ran.failed(1).says(&["mirror of", &url_of(&world.server)]);
}

#[test]
fn a_mirror_that_has_received_nothing_says_so() {
    let origin = format!("http://{}", free_address());
    let mut mirror = start_mirror(&origin);
    let ready = mirror.get("/readyz");
    ready.refused(503, &format!("received nothing from {origin}"));
    for (target, status) in [
        ("/healthz", 200),
        ("/", 200),
        ("/projects", 200),
        ("/activity", 200),
        ("/activity.atom", 200),
        ("/p/https/github.com/443/acme/app", 404),
        ("/v1/files/https/github.com/443/acme/app/svc.signers/svc.signers.json", 404),
        ("/v1/get_signers/https/github.com/443/acme/app", 404),
        ("/v1/releases?project=https/github.com/443/acme/app", 200),
        ("/v1/projects?name=app", 200),
        ("/v1/journal", 200),
    ] {
        assert_eq!(mirror.get(target).status, status, "{target}");
    }
    assert_eq!(mirror.get("/v1/journal").text(), "");
    drop(EventStream::at(mirror.address(), "/v1/events"));
    mirror.restart();
    assert_eq!(tip_of(&mirror), None, "a mirror makes no commit of its own");
    assert_eq!(mirror.stop().code(), Some(0));
}

#[test]
fn metrics_say_how_far_a_mirror_is() {
    let world = origin();
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(&url_of(&world.server), dir).with_metrics());
    mirror.start_again();
    await_same(&mirror, &world.server);
    let address = mirror.metrics_address();
    let read = || Page::read(address);
    let commits = world.git().commit_count() as f64;
    wait_until("all commits are counted", || read().value("countersign_mirror_commits_total") == commits);
    let page = read();
    assert!(page.value("countersign_mirror_received_bytes_total") > 1_000.0);
    assert_eq!(page.value("countersign_mirror_refused"), 0.0);
    assert!(page.value("countersign_mirror_lag_seconds") < 60.0);
    assert!(page.value("countersign_mirror_newest_commit_seconds") > 1.7e9);
    assert!(!page.0.contains("countersign_nonces"), "a mirror keeps no nonces");
    let origin = Page::read(start_with_metrics().metrics_address());
    assert!(!origin.0.contains("countersign_mirror"), "only a mirror has these");
}

fn start_with_metrics() -> TestServer {
    TestServer::start_with(|launch| launch.arg("--dev").with_metrics())
}
