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
    server.get("/v1/ping").ok();
    let git = Git::at(dir.join("countersign-data/repo.git"));
    assert_eq!(git.run(&["rev-parse", "--is-bare-repository"]), "true");
    assert_eq!(git.run(&["symbolic-ref", "HEAD"]), "refs/heads/main");
}

#[test]
fn the_ready_line_shows_the_address_and_development_mode() {
    let server = TestServer::start();
    let line = server.ready_line();
    assert!(line.starts_with(&format!("Countersign is ready on http://{}", server.address())), "{line}");
    assert!(line.to_lowercase().contains("dev"), "D37: {line}");
    let plain = TestServer::start_with(|launch| launch);
    assert!(!plain.ready_line().to_lowercase().contains("dev"), "{}", plain.ready_line());
}

#[test]
fn a_start_without_a_change_makes_no_commit() {
    let mut server = TestServer::start();
    server.restart();
    server.crash_and_restart();
    assert_eq!(Git::at(server.repository()).commit_count(), 1);
}

#[test]
fn two_processes_on_one_data_directory_are_refused() {
    let alice = Person::named("alice");
    let world = World::start();
    let said = world.server.launch().refusal();
    assert!(said.contains("use"), "it says that the directory is in use: {said}");
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
}

#[test]
fn a_directory_is_free_again_after_stop_and_kill() {
    let mut server = TestServer::start();
    server.kill9();
    server.start_again();
    assert_eq!(server.stop().code(), Some(0));
    server.start_again();
    server.get("/v1/ping").ok();
}

#[test]
fn a_newer_format_is_refused_with_its_version() {
    let dir =
        repository_with("svc.repository.json", r#"{"format": 2, "created_at": "2030-01-01T00:00:00Z"}"#);
    let said = Launch::serve(dir.path()).arg("--dev").refusal();
    assert!(said.contains("format") && said.contains('2'), "{said}");
    assert_eq!(Git::at(dir.path().join("repo.git")).commit_count(), 1, "nothing was written");
}

#[test]
fn a_repository_that_is_not_ours_is_refused_and_left_alone() {
    for (path, text) in [
        ("README.md", "hello"),
        ("svc.repository.json", "{}"),
        ("svc.repository.json", "not json"),
        ("svc.repository.json", r#"{"format": "1", "created_at": "2030-01-01T00:00:00Z"}"#),
        ("svc.repository.json/x", "a directory"),
    ] {
        let dir = repository_with(path, text);
        Launch::serve(dir.path()).arg("--dev").refusal();
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
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_by_name() {
    let said = Launch::serve("/proc/countersign".as_ref()).arg("--dev").refusal();
    assert!(said.contains("/proc/countersign"), "{said}");
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
