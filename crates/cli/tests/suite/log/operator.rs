//! What the operator does: make a key, and configure the log.

use std::{fs, os::unix::fs::PermissionsExt as _};

use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_testing::assert_mentions;

use super::{ORIGIN, log_key, prepare};
use crate::support::server::{Launch, TestServer};

#[test]
fn init_makes_a_key_once_and_prints_what_to_configure() {
    let mut server = prepare();
    let file = server.data_dir().join("log/key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&file).unwrap();
    let again = Launch::default().args(["admin", "log", "init", "--origin", ORIGIN]);
    let again = again.args(["--data-dir", server.data_dir().to_str().unwrap()]).refusal();
    assert_mentions(&again, &["log/key", "exists"]);
    assert_eq!(fs::read(&file).unwrap(), before);
    let checked = server.launch().clone().arg("--check").output();
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    server.start_again();
    let key = log_key(&server);
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
    let server = prepare();
    let config = server.data_dir().parent().unwrap().join("countersign.toml");
    let table = fs::read_to_string(&config).unwrap();
    let witnesses = server.data_dir().parent().unwrap().join("witnesses");
    let policy = format!("witnesses_file = {:?}\n", witnesses.to_str().unwrap());
    let refusal = |text: &str| {
        fs::write(&config, text).unwrap();
        server.launch().refusal()
    };
    let zero = table.replace("checkpoint_seconds = 1", "checkpoint_seconds = 0");
    assert_mentions(&refusal(&zero), &["log.checkpoint_seconds", "more than 0"]);
    let long = format!("{table}heartbeat_seconds = 86401\n");
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
    let mut server = prepare();
    server.start_again();
    let key = log_key(&server);
    server.stop();
    let witness = VerifierKey::new("witness.example", KeyKind::Witness, key.ed25519().unwrap()).unwrap();
    let witnesses = server.data_dir().parent().unwrap().join("witnesses");
    fs::write(&witnesses, format!("witness w {witness}\nquorum w\n")).unwrap();
    let config = server.data_dir().parent().unwrap().join("countersign.toml");
    let table = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{table}witnesses_file = {:?}\n", witnesses.to_str().unwrap())).unwrap();
    assert_mentions(&server.launch().refusal(), &["log.witnesses_file", "is a witness's as well"]);
}

#[test]
fn a_mirror_ignores_the_table() {
    let mut origin = prepare();
    origin.start_again();
    let address = format!("http://{}", origin.address());
    let config = origin.data_dir().parent().unwrap().join("countersign.toml");
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(&address, dir));
    mirror.change_launch(|dir| Launch::mirror(&address, dir).args(["--config", config.to_str().unwrap()]));
    mirror.start_again();
    mirror.get("/log/key").refused(404, "keeps no log");
    assert!(!mirror.data_dir().join("log").exists());
}
