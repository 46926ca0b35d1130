//! `countersign keygen`: the two files and their modes. What it never does is text (`client_keygen.txt`).

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::keys::{assert_accepted, installed, mode, ping, public_key, ssh_keygen, text};
use crate::support::{Launch, TestServer};

fn keygen(out: &Path) -> Launch {
    Launch::default().args(["--json", "keygen", "--out", text(out)])
}

#[track_caller]
fn made(launch: &Launch) -> Value {
    let output = launch.output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn it_makes_two_files_with_the_modes_of_ssh_keygen_and_names_them() {
    let dir = TempDir::new().unwrap();
    let (private, public) = (dir.path().join("alice"), dir.path().join("alice.pub"));
    let answer = made(&keygen(&private).args(["--no-password", "--comment", "alice@example.org at work"]));
    assert_eq!(mode(&private), 0o600);
    // The tester's umask may take more away.
    assert_eq!(mode(&public) | 0o044, 0o644);

    let line = fs::read_to_string(&public).unwrap();
    assert!(
        line.starts_with("ssh-ed25519 AAAA") && line.ends_with(" alice@example.org at work\n"),
        "{line:?}"
    );
    assert_eq!(answer["ssh"], line.trim_end());
    assert_eq!(answer["public_key"], public_key(&public).as_str());
    assert_eq!(answer["private_key_file"], text(&private));
    assert_eq!(answer["public_key_file"], text(&public));
    let secret = fs::read_to_string(&private).unwrap();
    assert!(secret.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"), "{secret}");
    // For people, with the next step.
    let output =
        Launch::default().args(["keygen", "--out", "bob", "--no-password"]).current_dir(dir.path()).output();
    let said = String::from_utf8(output.stdout).unwrap();
    let key = public_key(&dir.path().join("bob.pub"));
    for part in ["bob.pub", &key, "Next: ", "signers new", "--key bob"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let line = fs::read_to_string(dir.path().join("bob.pub")).unwrap();
    assert_eq!(line.split(' ').count(), 2, "no comment, and no space for it: {line:?}");
    assert_ne!(key, public_key(&public), "every key is another");
}

#[test]
fn a_new_key_signs_requests_and_ssh_keygen_accepts_it() {
    let (server, dir) = (TestServer::start(), TempDir::new().unwrap());
    let (plain, locked) = (dir.path().join("plain"), dir.path().join("locked"));
    let passphrase = dir.path().join("passphrase");
    fs::write(&passphrase, "pass phrase\r\nnot this\n").unwrap();
    made(&keygen(&plain).args(["--no-password", "--comment", "ä comment"]));
    made(&keygen(&locked).args(["--password-file", text(&passphrase), "--comment", "ä comment"]));
    assert_accepted(&ping(&server, &plain), &public_key(&dir.path().join("plain.pub")));
    let locked_ping = ping(&server, &locked).args(["--password-file", text(&passphrase)]);
    assert_accepted(&locked_ping, &public_key(&dir.path().join("locked.pub")));
    if !installed("ssh-keygen") {
        return;
    }
    for (private, passphrase) in [(&plain, ""), (&locked, "pass phrase")] {
        let public = private.with_extension("pub");
        let derived = ssh_keygen(&["-y", "-P", passphrase, "-f", text(private)]);
        assert_eq!(derived, fs::read_to_string(&public).unwrap());
        assert!(ssh_keygen(&["-l", "-f", text(&public)]).contains("(ED25519)"));
        // Decrypts the whole, and writes it anew.
        ssh_keygen(&["-p", "-P", passphrase, "-N", "another", "-f", text(private)]);
    }
}
