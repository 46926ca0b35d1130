//! What the server starts on, and what it refuses with a clear error (D33, D38).

use tempfile::TempDir;

use crate::support::{Git, Launch, Person, SignersFile, TestServer, World};

/// A data directory whose repository holds one commit with this format marker, or a stranger's file.
fn repository_with(path: &str, text: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    Git::init_bare(&dir.path().join("repo.git")).commit_file(path, text.as_bytes());
    dir
}

#[test]
fn it_starts_with_no_configuration_in_an_empty_directory() {
    let here = TempDir::new().unwrap();
    let dir = here.path().to_owned();
    let server =
        TestServer::start_with(|_| Launch::bare().args(["--listen", "127.0.0.1:0"]).current_dir(&dir));
    assert!(server.address().ip().is_loopback() && server.address().port() != 0);
    assert!(!server.ready_line().to_lowercase().contains("dev"), "{}", server.ready_line());
    server.get("/v1/ping").ok();
    let git = Git::at(dir.join("countersign-data/repo.git"));
    assert_eq!(git.run(&["rev-parse", "--is-bare-repository"]), "true");
    assert_eq!(git.run(&["symbolic-ref", "HEAD"]), "refs/heads/main");
}

#[test]
fn two_processes_on_one_data_directory_are_refused_and_it_is_free_after_a_stop_or_a_kill() {
    let alice = Person::named("alice");
    let mut world = World::start();
    let line = world.server.ready_line().to_owned();
    let expected = format!("Countersign is ready on http://{}", world.server.address());
    assert!(line.starts_with(&expected) && line.to_lowercase().contains("dev"), "D37: {line}");
    world.server.restart();
    world.server.crash_and_restart();
    assert_eq!(world.git().commit_count(), 1, "a start without a change makes no commit");
    let said = world.server.launch().refusal();
    assert!(said.contains("use"), "it says that the directory is in use: {said}");
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
}

#[test]
fn a_repository_that_is_not_ours_is_refused_and_left_alone() {
    for (path, text) in [
        // A newer format is named.
        ("svc.repository.json", r#"{"format": 2, "created_at": "2030-01-01T00:00:00Z"}"#),
        ("README.md", "hello"),
        ("svc.repository.json", "{}"),
        ("svc.repository.json", "not json"),
        ("svc.repository.json", r#"{"format": "1", "created_at": "2030-01-01T00:00:00Z"}"#),
        ("svc.repository.json/x", "a directory"),
    ] {
        let dir = repository_with(path, text);
        let said = Launch::serve(dir.path()).arg("--dev").refusal();
        assert!(!text.contains(": 2") || said.contains("format") && said.contains('2'), "{said}");
        assert_eq!(Git::at(dir.path().join("repo.git")).commit_count(), 1, "{path} {text}");
    }
}

#[test]
fn a_file_in_place_of_a_directory_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("data");
    std::fs::write(&file, "x").unwrap();
    let said = Launch::serve(&file).arg("--dev").refusal();
    assert!(said.contains(file.to_str().unwrap()), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), b"x");

    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("repo.git"), "x").unwrap();
    Launch::serve(dir.path()).arg("--dev").refusal();

    let said = Launch::serve("/proc/countersign".as_ref()).arg("--dev").refusal();
    assert!(said.contains("/proc/countersign"), "it cannot be written: {said}");
}

#[test]
fn an_address_in_use_is_refused_by_name() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    let said = Launch::bare().args(["--listen", &address, "--data-dir", data.to_str().unwrap()]).refusal();
    assert!(said.contains(&address), "{said}");
}
