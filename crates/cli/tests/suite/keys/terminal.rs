//! Passphrases that are typed: on a real pseudo-terminal, by way of `script` of util-linux.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::support::keys::{PASSPHRASE, fixture, installed, private_copy, public_key, ssh_keygen, text};
use crate::support::{Terminal, TestServer};

fn start(args: &[&str]) -> Option<Terminal> {
    Terminal::start(args, |_| {})
}

/// Types a passphrase when it is asked for.
#[track_caller]
fn answer(terminal: &mut Terminal, question: &str, passphrase: &str) {
    terminal.wait_for(question);
    terminal.press(&format!("{passphrase}\n"));
}

fn keygen(out: &Path) -> Option<Terminal> {
    start(&["keygen", "--out", text(out)])
}

#[test]
fn keygen_asks_twice_and_echoes_nothing() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("key");
    let Some(mut terminal) = keygen(&out) else { return };
    answer(&mut terminal, "Passphrase for ", PASSPHRASE);
    answer(&mut terminal, "again: ", PASSPHRASE);
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(!seen.contains("horse") && seen.contains("svc-pub:"), "{seen}");
    if installed("ssh-keygen") {
        let derived = ssh_keygen(&["-y", "-P", PASSPHRASE, "-f", text(&out)]);
        assert_eq!(derived.trim_end(), fs::read_to_string(dir.path().join("key.pub")).unwrap().trim_end());
    }
}

#[test]
fn keygen_makes_no_key_for_an_empty_passphrase_or_an_interrupt_and_asks_again_if_two_differ() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("key");
    let Some(mut terminal) = keygen(&out) else { return };
    answer(&mut terminal, "Passphrase for ", "");
    let (code, seen) = terminal.end();
    assert!(code == 2 && seen.contains("--no-password"), "{code}: {seen}");

    let Some(mut terminal) = keygen(&out) else { return };
    answer(&mut terminal, "Passphrase for ", PASSPHRASE);
    answer(&mut terminal, "again: ", "correct horse battery stable");
    answer(&mut terminal, "The two passphrases differ. Passphrase for ", "");
    let (code, seen) = terminal.end();
    assert!(code == 2 && !seen.contains("horse"), "{code}: {seen}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

    let Some(mut terminal) = keygen(&out) else { return };
    terminal.answer("Passphrase for ", "half of it\u{3}");
    let (code, seen) = terminal.end();
    assert_eq!(code, 1, "{seen}");
    assert!(seen.contains("interrupted by Ctrl-C") && !seen.contains("half of it"), "{seen}");
    assert!(!out.exists());

    fs::write(&out, "precious").unwrap();
    let Some(terminal) = keygen(&out) else { return };
    let (code, seen) = terminal.end();
    assert!(code == 1 && !seen.contains("Passphrase"), "{code}: {seen}");
}

#[test]
fn an_encrypted_key_is_asked_for_until_it_opens() {
    let (server, dir) = (TestServer::start(), TempDir::new().unwrap());
    let key = private_copy(dir.path(), "encrypted-aes256-ctr");
    let url = format!("http://{}", server.address());
    let Some(mut terminal) = start(&["--json", "--server", &url, "--key", text(&key), "ping"]) else {
        return;
    };
    answer(&mut terminal, "Passphrase of ", "wrong horse");
    answer(&mut terminal, "Wrong. Passphrase of ", PASSPHRASE);
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains(&public_key(&fixture("plain.pub"))) && !seen.contains("horse"), "{seen}");

    let Some(mut terminal) = start(&["--server", &url, "--key", text(&key), "ping"]) else { return };
    // All of it wrong and cleared, then an umlaut too many and taken back.
    answer(&mut terminal, "Passphrase of ", &format!("nonsense\u{15}{PASSPHRASE}\u{fc}\u{7f}"));
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(!seen.contains("horse") && !seen.contains("nonsense"), "{seen}");

    // Commands tell of a server that is not there before they ask for anything.
    for command in [&["release", "http://127.0.0.1:9/v1"][..], &["ping"]] {
        let gone = [&["--server", "http://127.0.0.1:9", "--key", text(&key)], command].concat();
        let Some(terminal) = start(&gone) else { return };
        let (code, seen) = terminal.end();
        assert!(code == 5 && !seen.contains("Passphrase"), "{code}: {seen}");
    }

    let Some(mut terminal) = start(&["--server", &url, "--key", text(&key), "ping"]) else { return };
    for _ in 0..3 {
        answer(&mut terminal, "Passphrase of ", "wrong horse");
    }
    let (code, seen) = terminal.end();
    assert!(code == 1 && seen.contains("passphrase is wrong") && !seen.contains("horse"), "{code}: {seen}");
}
