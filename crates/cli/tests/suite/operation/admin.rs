//! `countersign admin` beside a running server, and on directories that are no server's (D59). What it answers is in
//! `scenarios/operator.txt` and `scenarios/blocked.txt`.

use std::os::unix::{fs::chown, net::UnixStream};
use std::{ffi::OsString, fs, path::Path, process::Command};
use std::{io::Read as _, io::Write as _, os::unix::fs::MetadataExt as _, os::unix::fs::PermissionsExt as _};

use countersign_testing::assert_mentions;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::environment::clear_environment;
use crate::support::{Launch, TestServer, alice, bob};

/// The id of some other user. It needs no name.
const OTHER: u32 = 54_321;

#[track_caller]
fn ask(server: &TestServer, args: &[&str]) -> Value {
    let output = server.admin(args).arg("--json").output();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).expect("one JSON object")
}

#[track_caller]
fn refusal(server: &TestServer, args: &[&str]) -> String {
    let output = server.admin(args).arg("--json").output();
    assert!(output.status.code().is_some_and(|code| code != 0));
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn names(dir: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn the_packaged_configuration_is_found_unless_a_server_is_here() {
    let (server, here) = (TestServer::start(), TempDir::new().unwrap());
    // Only this program sees another /etc.
    let config = format!("data_dir = {:?}\n", server.data_dir());
    let script = "mount -t tmpfs none /etc && mkdir /etc/countersign \
        && printf %s \"$1\" > /etc/countersign/countersign.toml && exec \"$0\" admin stats --json";
    let run = |dir: &Path| {
        let mut command = Command::new("unshare");
        command.args([
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_countersign"),
            &config,
        ]);
        clear_environment(&mut command);
        command.current_dir(dir).output().unwrap()
    };
    let found = run(here.path());
    if String::from_utf8_lossy(&found.stderr).contains("unshare") {
        return eprintln!("skipped: this system has no user namespaces");
    }
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(serde_json::from_slice::<Value>(&found.stdout).unwrap()["ready"], true);
    // A server in this directory is meant first, and this one is stopped.
    let mut own = TestServer::start();
    own.stop();
    std::os::unix::fs::symlink(own.data_dir(), here.path().join("countersign-data")).unwrap();
    let found = run(here.path());
    assert_ne!(serde_json::from_slice::<Value>(&found.stdout).unwrap_or_default()["ready"], true);
}

#[test]
fn a_key_is_blocked_by_its_file_or_its_line_and_no_file_is_a_host() {
    let (alice, bob) = (alice(), bob());
    let (mut server, dir) = (TestServer::start(), TempDir::new().unwrap());
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (file, readme) = (write("alice.pub", &alice.ssh_key()), write("read.me", "no key"));
    assert_eq!(ask(&server, &["block", &file]), json!({ "blocked": alice.key() }));
    assert_eq!(ask(&server, &["block", &bob.ssh_key()]), json!({ "blocked": bob.key() }));
    refusal(&server, &["block", &readme]);
    let kinds = ask(&server, &["blocks"])["blocks"].as_array().unwrap().clone();
    assert!(kinds.len() == 2 && kinds.iter().all(|entry| entry["kind"] == "key"), "{kinds:?}");
    ask(&server, &["unblock", &file]);
    let log = server.stop_and_read_log();
    assert!(log.contains("the operator unblocked the key"), "{log}");

    // A host that an earlier version blocked by mistake can be unblocked.
    std::fs::write(server.data_dir().join("blocks"), "alice\nalice.pub\n").unwrap();
    server.start_again();
    for name in ["alice", "alice.pub"] {
        assert_eq!(ask(&server, &["unblock", name]), json!({ "unblocked": name }));
    }
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

/// Each command has the directory of a stopped server for itself until the list is written, or is refused.
#[test]
fn commands_at_once_on_a_stopped_server_lose_no_block() {
    let mut server = TestServer::start();
    server.stop();
    let block = |n: usize| {
        let host = format!("host{n}.example");
        let done = server.admin(&["block", &host]).output().status.success();
        done.then_some(host)
    };
    let done: Vec<String> = std::thread::scope(|scope| {
        let runs =
            (0..8).map(|lane| scope.spawn(move || (0..12).filter_map(|n| block(12 * lane + n)).collect()));
        let runs: Vec<_> = runs.collect();
        runs.into_iter().flat_map(|run| -> Vec<String> { run.join().unwrap() }).collect()
    });
    let listed = ask(&server, &["blocks"])["blocks"].to_string();
    let lost: Vec<&String> = done.iter().filter(|host| !listed.contains(&format!("{host:?}"))).collect();
    assert!(!done.is_empty() && lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), done.len());
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
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("long".repeat(40));
    let server = TestServer::start_with(|_| Launch::serve(&data).arg("--dev"));
    server.get("/v1/ping").ok();
    server.await_log("its socket cannot be made", 1);
    let args = ["admin", "blocks", "--data-dir", data.to_str().unwrap()];
    let said = Launch::default().args(args).refusal();
    assert!(said.contains("stop it first"), "{said}");
}

#[test]
fn a_directory_that_is_no_server_s_is_refused_by_name_and_left_as_it_is() {
    let dir = TempDir::new().unwrap();
    let drop_in = |data: &Path| {
        let args = ["admin", "drop", "http/example.org/80/acme", "--data-dir", data.to_str().unwrap()];
        Launch::default().args(args).refusal()
    };
    let missing = dir.path().join("none");
    assert_mentions(&drop_in(&missing), &[missing.to_str().unwrap()]);
    let args = ["admin", "reset-nonces", "--yes", "--data-dir", missing.to_str().unwrap()];
    Launch::default().args(args).refusal();
    assert!(!missing.exists(), "a mistyped directory does not become one");
    assert_mentions(&drop_in(dir.path()), &[dir.path().to_str().unwrap()]);
    assert_eq!(names(dir.path()), [""; 0], "nothing is created in it");
    fs::write(dir.path().join("repo.git"), "a file of this name").unwrap();
    drop_in(dir.path());
    assert_eq!(names(dir.path()), ["repo.git"]);
}

/// Its server runs as that user, and could not read the files.
#[test]
fn another_users_data_directory_is_not_written_to() {
    let mut server = TestServer::start();
    server.stop();
    let (dir, repository) = (server.data_dir(), server.repository());
    if chown(&repository, Some(OTHER), None).is_err() {
        println!("skipped: only root can give a directory to another user");
        return;
    }
    let before = names(&dir);
    for command in [
        &["block", "spam.example"] as &[&str],
        &["drop", "https/github.com/443/acme/app"],
        &["reset-nonces", "--yes"],
        &["log", "init", "--origin", "sign.example.org/log"],
    ] {
        assert_mentions(&refusal(&server, command), &["54321", "sudo -u"]);
    }
    assert_eq!(names(&dir), before);
    chown(&repository, Some(fs::metadata(&dir).unwrap().uid()), None).unwrap();
    ask(&server, &["block", "spam.example"]);
}
