//! `countersign admin` beside a running server (D59): a socket of its own, and blocks.

use std::{io::Read as _, io::Write as _, os::unix::fs::PermissionsExt as _, os::unix::net::UnixStream};

use serde_json::{Value, json};

use crate::support::{Launch, Person, SignersFile, TestServer, World};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

fn admin(server: &TestServer, args: &[&str]) -> Launch {
    let launch = Launch::default().args(["admin"]).args(args.iter().copied());
    launch.args(["--json", "--data-dir", server.data_dir().to_str().unwrap()])
}

#[track_caller]
fn ask(server: &TestServer, args: &[&str]) -> Value {
    let output = admin(server, args).output();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).expect("one JSON object")
}

#[track_caller]
fn refusal(server: &TestServer, args: &[&str]) -> String {
    let output = admin(server, args).output();
    assert!(output.status.code().is_some_and(|code| code != 0));
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_blocked_key_changes_nothing_until_it_is_unblocked_and_everything_is_still_served() {
    let (alice, bob) = people();
    let mut world = World::with_project(&SignersFile::of(1, &[&alice, &bob]), &[&alice, &bob]);
    let complete = world.add_signed_release("acme/app/v1", &[&alice]);
    let collecting = world.add_release(&alice, "acme/app/v2");
    let body = world.signature_body(&alice, &collecting);
    ask(&world.server, &["block", &alice.key()]);
    for restart in [false, true] {
        if restart {
            world.server.restart();
        }
        let words = format!("refuses changes of the key `{}`", alice.key());
        world.submit(&alice, &body).refused(403, &words);
        // Others cannot send its signatures either.
        world.submit(&bob, &body).refused(403, &words);
        world.revoke(&alice, &complete).refused(403, &words);
        world.register(&alice, "acme/two", &SignersFile::of(1, &[&alice])).refused(403, &words);
        let next = SignersFile::of(1, &[&alice]);
        world.propose(&alice, "acme/app", &next).refused(403, &words);
        let url = world.publish_checksums("acme/app/v3", &crate::support::world::checksums("v3"));
        world.register_assets(&alice, &[&url]).refused(403, &words);
        assert!(world.exists(&complete));
        assert_eq!(world.pending(&alice), std::slice::from_ref(&collecting));
        let blocks = ask(&world.server, &["blocks"]);
        assert_eq!(blocks, json!({ "blocks": [{ "kind": "key", "blocked": alice.key() }] }));
    }
    assert!(refusal(&world.server, &["block", &alice.key()]).contains("is blocked already"));
    ask(&world.server, &["unblock", &alice.key()]);
    assert!(refusal(&world.server, &["unblock", &alice.key()]).contains("is not blocked"));
    world.submit(&alice, &body).ok();
    let log = world.server.stop_and_read_log();
    assert!(log.contains("the operator unblocked the key"), "{log}");
}

#[test]
fn hosts_projects_and_directories_of_projects_can_be_blocked() {
    let (alice, _) = people();
    let world = World::start();
    for project in ["acme/app", "other/app"] {
        world.activate(project, &SignersFile::of(1, &[&alice]), &[&alice]);
    }
    let release = |dir: &str| {
        let url = world.publish_checksums(dir, &crate::support::world::checksums(dir));
        world.register_assets(&alice, &[&url])
    };
    for (number, what) in
        ["127.0.0.1", &world.id("acme/app"), &world.id("acme"), &world.id("ACME/App")].into_iter().enumerate()
    {
        ask(&world.server, &["block", what]);
        release(&format!("acme/app/v{number}")).error(403);
        let other = release(&format!("other/app/v{number}"));
        assert_eq!(other.status, if number == 0 { 403 } else { 200 }, "{}", other.text());
        ask(&world.server, &["unblock", what]);
        release(&format!("acme/app/v{number}")).ok();
    }
    // A name that only begins alike is another one.
    ask(&world.server, &["block", &world.id("acme/ap")]);
    release("acme/app/v9").ok();
    for wrong in
        ["svc-pub:nonsense", "a/../b", "https/github.com/443", "", "alice", "none.pub", "keys/none.pub"]
    {
        let said = refusal(&world.server, &["block", wrong]);
        assert!(wrong.is_empty() || said.contains("a .pub file"), "{wrong}: {said}");
    }
}

#[test]
fn a_key_is_blocked_by_its_file_or_its_line_and_no_file_is_a_host() {
    let (alice, bob) = people();
    let (world, dir) = (World::start(), tempfile::TempDir::new().unwrap());
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (file, readme) = (write("alice.pub", &alice.ssh_key()), write("read.me", "no key"));
    assert_eq!(ask(&world.server, &["block", &file]), json!({ "blocked": alice.key() }));
    assert_eq!(ask(&world.server, &["block", &bob.ssh_key()]), json!({ "blocked": bob.key() }));
    refusal(&world.server, &["block", &readme]);
    let kinds = ask(&world.server, &["blocks"])["blocks"].as_array().unwrap().clone();
    assert!(kinds.len() == 2 && kinds.iter().all(|entry| entry["kind"] == "key"), "{kinds:?}");
    ask(&world.server, &["unblock", &file]);
}

#[test]
fn a_host_that_an_earlier_version_blocked_by_mistake_can_be_unblocked() {
    let mut server = TestServer::start();
    server.stop();
    std::fs::write(server.data_dir().join("blocks"), "alice\nalice.pub\n").unwrap();
    server.start_again();
    for name in ["alice", "alice.pub"] {
        assert_eq!(ask(&server, &["unblock", name]), json!({ "unblocked": name }));
    }
}

#[test]
fn projects_and_figures_are_shown() {
    let (alice, _) = people();
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_release(&alice, "acme/app/v1");
    world.register(&alice, "other/app", &SignersFile::of(1, &[&alice])).ok();
    let app = json!({ "project": world.id("acme/app"), "state": "active", "collecting": 1 });
    let other = json!({ "project": world.id("other/app"), "state": "registration pending", "collecting": 0 });
    let stats = ask(&world.server, &["stats"]);
    assert_eq!(
        (&stats["projects"], &stats["collecting"], &stats["ready"]),
        (&2.into(), &2.into(), &true.into())
    );
    let tell = |what: &str| {
        let dir = world.server.data_dir();
        let launch = Launch::default().args(["admin", what, "--data-dir", dir.to_str().unwrap()]);
        String::from_utf8(launch.output().stdout).unwrap()
    };
    let listed = tell("projects");
    assert!(listed.contains("acme/app  active, 1 release collecting signatures\n"), "{listed}");
    let text = tell("stats");
    assert!(!text.contains("null") && !text.contains("bytes"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("disk free   ") && line.ends_with("iB")), "{text}");
    for running in [true, false] {
        if !running {
            world.server.stop();
        }
        assert_eq!(ask(&world.server, &["projects"]), json!({ "projects": [app, other] }));
        for name in [world.id("other"), "other/app".to_owned(), world.files.url("/other/app")] {
            assert_eq!(ask(&world.server, &["projects", &name]), json!({ "projects": [other] }), "{name}");
        }
        assert_eq!(ask(&world.server, &["projects", "app"]), json!({ "projects": [app, other] }));
        assert_eq!(ask(&world.server, &["projects", "her/app"]), json!({ "projects": [] }));
    }
    assert!(refusal(&world.server, &["stats"]).contains("no server runs"));
    // A block that is made now is in force after the start.
    ask(&world.server, &["block", "127.0.0.1"]);
    assert_eq!(ask(&world.server, &["blocks"])["blocks"][0]["blocked"], "127.0.0.1");
    world.server.start_again();
    world.sign(&alice, &world.pending_path("other/app")).refused(403, "the host `127.0.0.1`");
}

#[test]
fn the_list_of_blocks_ends_at_its_bound_and_a_damaged_one_is_named() {
    let mut server = TestServer::start();
    server.stop();
    let file = server.data_dir().join("blocks");
    let list: String = (0..9_999).map(|n| format!("host{n}.example\n")).collect();
    std::fs::write(&file, list).unwrap();
    server.start_again();
    ask(&server, &["block", "one.example"]);
    assert!(refusal(&server, &["block", "two.example"]).contains("there are 10000 blocks already"));
    assert_eq!(ask(&server, &["blocks"])["blocks"].as_array().unwrap().len(), 10_000);
    server.stop();
    std::fs::write(&file, "a/../b\n").unwrap();
    let said = server.launch().refusal();
    assert!(said.contains(file.to_str().unwrap()), "{said}");
}

#[test]
fn the_socket_is_for_the_operator_and_bears_nonsense() {
    let mut server = TestServer::start();
    let path = server.data_dir().join("admin.sock");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for nonsense in ["", "\n", "{}\n", "{\"command\":\"sudo\"}\n", "\u{0}\n", &"x".repeat(4 * 1024)] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(nonsense.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"end\":{\"failed\":\"this is not a request"), "{nonsense:?}: {answer}");
    }
    // More connections than it serves at a time: those that say nothing hold up neither others' requests nor the stop.
    let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
    server.get("/v1/ping").ok();
    drop(silent);
    server.restart();
    assert_eq!(ask(&server, &["stats"])["ready"], true);
}

#[test]
fn a_directory_whose_name_is_too_long_for_a_socket_is_served_without_one() {
    let dir = tempfile::TempDir::new().unwrap();
    let data = dir.path().join("long".repeat(40));
    let server = TestServer::start_with(|_| Launch::serve(&data).arg("--dev"));
    server.get("/v1/ping").ok();
    server.await_log("its socket cannot be made", 1);
    let args = ["admin", "blocks", "--data-dir", data.to_str().unwrap()];
    let said = Launch::default().args(args).refusal();
    assert!(said.contains("stop it first"), "{said}");
}
