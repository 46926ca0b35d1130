//! `countersign serve --check` (D58). Single mistakes are in `scenarios/mistakes.txt`.

use std::{path::Path, process::Output};

use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_testing::{assert_mentions, literals::free_port};
use tempfile::TempDir;

use crate::support::{Launch, TestServer, files::FileServer};

struct Checked {
    code: Option<i32>,
    said: String,
}

#[track_caller]
fn check(dir: &TempDir, config: &str, args: &[&str]) -> Checked {
    let path = dir.path().join("countersign.toml");
    std::fs::write(&path, config).unwrap();
    let launch = Launch::bare().args(["--check", "--config", path.to_str().unwrap()]);
    let Output { status, stdout, stderr } = launch.args(args.iter().copied()).output();
    let said = [stdout, stderr].concat();
    Checked { code: status.code(), said: String::from_utf8(said).unwrap() }
}

fn data_line(dir: &TempDir) -> String {
    format!("data_dir = {:?}\nlisten = \"127.0.0.1:0\"\n", dir.path().join("data"))
}

#[test]
fn what_is_in_order_is_told_and_nothing_is_made() {
    let dir = TempDir::new().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, "a-token\n").unwrap();
    let files = FileServer::start();
    let host = format!("127.0.0.1:{}", files.port());
    let forge = format!(
        "[[forge]]\nhost = {host:?}\nkind = \"forgejo\"\ntoken_file = {token:?}\n\
         [[webhook]]\nname = \"ci\"\nurl = \"https://ci.example.org/x\"\nsecret = \"s0-secret-of-many-bytes\"\n"
    );
    let checked = check(&dir, &(data_line(&dir) + &forge), &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.said);
    for words in
        ["http://127.0.0.1:0", "data", "127.0.0.1, with a token", "ci, to ci.example.org", "in order"]
    {
        assert!(checked.said.contains(words), "{words}: {}", checked.said);
    }
    assert_eq!(files.asked().len(), 1, "the forge was asked");
    assert!(!checked.said.contains("a-token") && !checked.said.contains("s0-secret"), "{}", checked.said);
    assert!(!dir.path().join("data").exists());
}

#[test]
fn a_running_server_is_told_and_left_alone() {
    let mut server = TestServer::start();
    let dir = TempDir::new().unwrap();
    let data = server.data_dir();
    let args = ["--data-dir", data.to_str().unwrap(), "--listen", &server.address().to_string()];
    let checked = check(&dir, "", &args);
    assert_eq!(checked.code, Some(0), "{}", checked.said);
    assert!(checked.said.contains("in use by a running server"), "{}", checked.said);
    server.get("/v1/ping").ok();
    server.stop();
    let checked = check(&dir, "", &args);
    assert!(checked.said.contains("with a repository of a known format"), "{}", checked.said);
}

#[test]
fn every_problem_is_told_with_exit_code_2() {
    let dir = TempDir::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let config = format!(
        "listen = \"{}\"\ndata_dir = {file:?}\n[tls]\ncert_file = \"/nowhere/cert.pem\"\nkey_file = \"/nowhere/key.pem\"\n\
         [log]\norigin = \"sign.test/log\"\nkey_file = \"/nowhere/key\"\n",
        taken.local_addr().unwrap()
    );
    let checked = check(&dir, &config, &[]);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    for words in [
        "4 things are wrong:\n- ", "/nowhere/cert.pem", "countersign.toml, line 4)", "/nowhere/key ",
        "countersign.toml, line 8)", "is not a directory", "cannot listen on 127.0.0.1",
    ] {
        assert!(checked.said.contains(words), "{words}: {}", checked.said);
    }
    let other = dir.path().join("other");
    std::fs::create_dir_all(other.join("repo.git")).unwrap();
    let checked = check(&dir, "", &["--data-dir", other.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    assert!(checked.said.contains("cannot be read as a Git repository"), "{}", checked.said);
}

#[test]
fn servers_that_do_not_answer_are_told() {
    let (dir, files) = (TempDir::new().unwrap(), FileServer::start());
    // Nothing listens there.
    let silent = free_port();
    let forge = format!("[[forge]]\nhost = \"127.0.0.1:{silent}\"\nkind = \"forgejo\"\n");
    let database = format!("[database]\nurl = \"postgres://countersign@127.0.0.1:{silent}/countersign\"\n");
    let checked = check(&dir, &(data_line(&dir) + &forge + &database), &[]);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    let place = format!("127.0.0.1:{silent}");
    assert_mentions(&checked.said, &["2 things are wrong", "cannot connect to the database", &place]);
    assert_mentions(&checked.said, &[&format!("http://{place}/api/v1/version")]);
    assert!(!checked.said.contains("in order"), "{}", checked.said);

    // Of three witnesses two must answer. One sends its cosignatures itself.
    let (key, witnesses) = (dir.path().join("key"), dir.path().join("witnesses"));
    let made = Launch::default().args(["admin", "log", "init", "--origin", "sign.test/log"]);
    made.args(["--data-dir", key.to_str().unwrap()]).output();
    let log = format!(
        "[log]\norigin = \"sign.test/log\"\nkey_file = {:?}\nwitnesses_file = {witnesses:?}\n",
        key.join("log/key")
    );
    let answering = files.port();
    for (other, code, words) in [
        (answering, 0, ["witness       c, which sends its cosignatures itself", "Everything is in order"]),
        (silent, 0, ["warning       the witness b: it cannot be reached", "Everything else is in order"]),
    ] {
        write_witnesses(&witnesses, [Some(answering), Some(other), None]);
        let checked = check(&dir, &(data_line(&dir) + &log), &[]);
        assert_eq!(checked.code, Some(code), "{}", checked.said);
        assert_mentions(&checked.said, &words);
        assert_mentions(
            &checked.said,
            &["quorum        2 of a, b, c", &format!("a, http://127.0.0.1:{answering}")],
        );
    }
    write_witnesses(&witnesses, [Some(silent), Some(silent), None]);
    let checked = check(&dir, &(data_line(&dir) + &log), &[]);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    assert_mentions(&checked.said, &["too few witnesses answer: the quorum is 2 of a, b, c"]);
}

/// Writes a policy of the witnesses a, b and c, with the ports at which they are asked.
fn write_witnesses(file: &Path, ports: [Option<u16>; 3]) {
    let lines = ["a", "b", "c"].iter().zip(1..).zip(ports).map(|((name, seed), port)| {
        let url = port.map(|port| format!(" http://127.0.0.1:{port}")).unwrap_or_default();
        let key = VerifierKey::new(
            &format!("{name}.test"),
            KeyKind::Witness,
            SecretKey::from_seed(&[seed; 32]).public_key(),
        );
        format!("witness {name} {}{url}\n", key.unwrap())
    });
    std::fs::write(file, lines.collect::<String>() + "group enough 2 a b c\nquorum enough\n").unwrap();
}

#[test]
fn a_data_directory_that_cannot_be_made_is_told_before_the_server_tries() {
    let dir = TempDir::new().unwrap();
    // Not even root can make a directory there.
    let args = ["--data-dir", "/proc/countersign/data", "--listen", "127.0.0.1:0"];
    let checked = check(&dir, "", &args);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    assert!(checked.said.contains("the data directory /proc/countersign/data"), "{}", checked.said);
    assert!(!checked.said.contains("in order"), "{}", checked.said);
}
