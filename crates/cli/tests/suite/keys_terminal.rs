//! Passphrases that are typed: on a real pseudo-terminal, by way of `script` of util-linux.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    keys_support::{PASSPHRASE, fixture, installed, private_copy, public_key, ssh_keygen, text},
    support::TestServer,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// The program on a terminal. Everything that a person would see there is in `seen`.
struct Terminal {
    script: Child,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    /// `None` where there is no `script`, or another one than that of util-linux.
    fn start(args: &[&str]) -> Option<Self> {
        let is_known = || {
            let version = Command::new("script").arg("--version").stdin(Stdio::null()).output();
            version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("util-linux"))
        };
        if !installed("script") || !is_known() {
            println!("skipped: there is no `script` of util-linux");
            return None;
        }
        let quoted = [&[env!("CARGO_BIN_EXE_countersign")], args].concat();
        let command = quoted.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" ");
        let mut script = Command::new("script")
            .args(["-q", "-e", "-c", &command, "/dev/null"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = script.stdout.take().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                let _ = sender.send(buffer[..length].to_vec());
            }
        });
        Some(Self { script, screen, seen: String::new() })
    }

    /// Waits for a question, and types the answer.
    #[track_caller]
    fn answer(&mut self, question: &str, answer: &str) {
        let asked_before = self.seen.matches(question).count();
        let started = Instant::now();
        while self.seen.matches(question).count() == asked_before {
            assert!(started.elapsed() < PATIENCE, "{question:?} is not asked: {:?}", self.seen);
            if let Ok(text) = self.screen.recv_timeout(Duration::from_millis(100)) {
                self.seen.push_str(&String::from_utf8_lossy(&text));
            }
        }
        // A person needs longer than the program does from its question to hiding the answer.
        thread::sleep(Duration::from_millis(500));
        self.script.stdin.as_mut().unwrap().write_all(format!("{answer}\n").as_bytes()).unwrap();
    }

    /// The exit code, and all that was to be seen.
    fn end(mut self) -> (i32, String) {
        let mut seen = std::mem::take(&mut self.seen);
        while let Ok(text) = self.screen.recv_timeout(PATIENCE) {
            seen.push_str(&String::from_utf8_lossy(&text));
        }
        (self.script.wait().unwrap().code().unwrap_or(-1), seen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

fn keygen(out: &Path) -> Option<Terminal> {
    Terminal::start(&["keygen", "--out", text(out)])
}

#[test]
fn keygen_asks_twice_and_echoes_nothing() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("key");
    let Some(mut terminal) = keygen(&out) else { return };
    terminal.answer("Passphrase for ", PASSPHRASE);
    terminal.answer("again: ", PASSPHRASE);
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(!seen.contains("horse") && seen.contains("svc-pub:"), "{seen}");
    if installed("ssh-keygen") {
        let derived = ssh_keygen(&["-y", "-P", PASSPHRASE, "-f", text(&out)]);
        assert_eq!(derived.trim_end(), fs::read_to_string(dir.path().join("key.pub")).unwrap().trim_end());
    }
}

#[test]
fn keygen_makes_no_key_for_an_empty_passphrase_or_two_different_ones() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("key");
    let Some(mut terminal) = keygen(&out) else { return };
    terminal.answer("Passphrase for ", "");
    let (code, seen) = terminal.end();
    assert!(code == 2 && seen.contains("--no-password"), "{code}: {seen}");

    let Some(mut terminal) = keygen(&out) else { return };
    terminal.answer("Passphrase for ", PASSPHRASE);
    terminal.answer("again: ", "correct horse battery stable");
    let (code, seen) = terminal.end();
    assert!(code == 2 && seen.contains("differ") && !seen.contains("horse"), "{code}: {seen}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn keygen_asks_nothing_where_the_file_exists() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("key");
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
    let Some(mut terminal) = Terminal::start(&["--json", "--server", &url, "--key", text(&key), "ping"])
    else {
        return;
    };
    terminal.answer("Passphrase of ", "wrong horse");
    terminal.answer("Wrong. Passphrase of ", PASSPHRASE);
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains(&public_key(&fixture("plain.pub"))) && !seen.contains("horse"), "{seen}");
}

#[test]
fn three_wrong_passphrases_are_enough() {
    let dir = TempDir::new().unwrap();
    let key = private_copy(dir.path(), "encrypted-aes256-ctr");
    let Some(mut terminal) =
        Terminal::start(&["--server", "http://127.0.0.1:9", "--key", text(&key), "ping"])
    else {
        return;
    };
    for _ in 0..3 {
        terminal.answer("Passphrase of ", "wrong horse");
    }
    let (code, seen) = terminal.end();
    assert!(code == 1 && seen.contains("passphrase is wrong") && !seen.contains("horse"), "{code}: {seen}");
}
