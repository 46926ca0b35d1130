//! What the operator does: make a key, and configure the log.

use std::{fs, os::unix::fs::PermissionsExt as _};

use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_testing::assert_mentions;

use crate::support::witnesses::{LogSetup, ORIGIN, log_key_of, run_json};
use crate::support::{Launch, TestServer, client::text};

#[test]
fn init_makes_a_key_once_and_prints_what_to_configure() {
    let mut server = TestServer::prepare(|launch| launch);
    let dir = server.data_dir();
    let init = ["admin", "log", "init", "--origin", ORIGIN, "--data-dir", text(&dir)];
    let table = run_json(&init)["table"].as_str().unwrap().to_owned();
    let config = dir.with_extension("toml");
    fs::write(&config, table).unwrap();
    server.change_launch(|dir| Launch::serve(dir).args(["--dev", "--config", text(&config)]));
    let file = dir.join("log/key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&file).unwrap();
    assert_mentions(&Launch::default().args(init).refusal(), &["log/key", "exists"]);
    assert_eq!(fs::read(&file).unwrap(), before);
    let checked = server.launch().clone().arg("--check").output();
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    server.start_again();
    let key = log_key_of(&server);
    assert_eq!(key.name(), ORIGIN);
    assert_mentions(&checked, &[&key.to_string()]);
}

#[test]
fn an_origin_that_is_no_name_makes_no_key() {
    let dir = tempfile::TempDir::new().unwrap();
    for origin in ["", "two words", "a+b"] {
        let init = Launch::default().args(["admin", "log", "init", "--origin", origin]);
        init.args(["--data-dir", dir.path().to_str().unwrap()]).refusal();
    }
    assert!(!dir.path().join("log/key").exists());
}

#[test]
fn a_table_that_cannot_work_is_refused_and_says_why() {
    let server = LogSetup::default().prepare().server;
    let config = server.data_dir().with_extension("toml");
    let table = fs::read_to_string(&config).unwrap();
    let witnesses = server.data_dir().with_extension("witnesses");
    let policy = format!("witnesses_file = {:?}\n", witnesses.to_str().unwrap());
    let refusal = |text: &str| {
        fs::write(&config, text).unwrap();
        server.launch().refusal()
    };
    let zero = table.replace("checkpoint_seconds = 1", "checkpoint_seconds = 0");
    assert_mentions(&refusal(&zero), &["log.checkpoint_seconds", "more than 0"]);
    let long = table.replace("heartbeat_seconds = 2", "heartbeat_seconds = 86401");
    assert_mentions(&refusal(&long), &["log.heartbeat_seconds", "at most 86400"]);
    assert_mentions(&refusal(&format!("{table}key = 1\n")), &["unknown key `key`"]);
    let odd = table.replace(ORIGIN, "two words");
    assert_mentions(&refusal(&odd), &["log.origin"]);
    let missing = table.replace("log/key", "log/none");
    assert_mentions(&refusal(&missing), &["log/none"]);
    assert_mentions(&refusal(&format!("{table}{policy}")), &["log.witnesses_file", "witnesses"]);
    fs::write(&witnesses, "quorum of some\n").unwrap();
    assert_mentions(&refusal(&format!("{table}{policy}")), &["log.witnesses_file", "line 1"]);
    let other = SecretKey::from_seed(&[7; 32]).public_key();
    let other = VerifierKey::new("other.example/log", KeyKind::Log, other).unwrap();
    fs::write(&witnesses, format!("log {other}\nquorum none\n")).unwrap();
    assert_mentions(&refusal(&format!("{table}{policy}")), &["log.witnesses_file", "other logs", ORIGIN]);
}

#[test]
fn a_log_key_that_is_a_witness_s_is_refused() {
    let mut server = LogSetup::default().prepare().server;
    server.start_again();
    let key = log_key_of(&server);
    server.stop();
    let witness = VerifierKey::new("witness.example", KeyKind::Witness, key.ed25519().unwrap()).unwrap();
    let witnesses = server.data_dir().with_extension("witnesses");
    fs::write(&witnesses, format!("witness w {witness}\nquorum w\n")).unwrap();
    let config = server.data_dir().with_extension("toml");
    let table = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{table}witnesses_file = {:?}\n", witnesses.to_str().unwrap())).unwrap();
    assert_mentions(&server.launch().refusal(), &["log.witnesses_file", "is a witness's as well"]);
}

#[test]
fn a_mirror_ignores_the_table() {
    let mut origin = LogSetup::default().prepare().server;
    origin.start_again();
    let address = format!("http://{}", origin.address());
    let config = origin.data_dir().with_extension("toml");
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(&address, dir));
    mirror.change_launch(|dir| Launch::mirror(&address, dir).args(["--config", config.to_str().unwrap()]));
    mirror.start_again();
    mirror.get("/log/key").refused(404, "keeps no log");
    assert!(!mirror.data_dir().join("log").exists());
}
