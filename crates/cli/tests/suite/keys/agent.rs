//! `--key FILE.pub`: signing through an ssh-agent, real or hostile.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::{fs, path::Path, path::PathBuf, thread, time::Duration, time::Instant};

use tempfile::TempDir;

use super::{read_request, string};
use crate::support::keys::{
    assert_accepted, failure, fixture, installed, ping, private_copy, public_key, run_tool, text,
};
use crate::support::{Launch, Running, TestServer};

/// OpenSSH's own agent, on a socket of its own.
pub(crate) struct SshAgent {
    dir: TempDir,
    process: Child,
}

impl SshAgent {
    /// `None` where OpenSSH is not installed.
    pub(crate) fn start() -> Option<Self> {
        if !installed("ssh-agent") || !installed("ssh-add") {
            return None;
        }
        let dir = TempDir::new().unwrap();
        let mut command = Command::new("ssh-agent");
        // Questions are answered with no.
        command.arg("-D").arg("-a").arg(dir.path().join("socket")).env("SSH_ASKPASS", "/bin/false");
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let agent = Self { dir, process };
        let started = Instant::now();
        while UnixStream::connect(agent.socket()).is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "ssh-agent does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Some(agent)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    #[track_caller]
    pub(crate) fn add(&self, options: &[&str], key: &Path) {
        run_tool(
            Command::new("ssh-add").args(options).arg("-q").arg(key).env("SSH_AUTH_SOCK", self.socket()),
        );
    }

    fn remove(&self, key: &Path) {
        fs::copy(fixture("plain.pub"), key.with_extension("pub")).unwrap();
        run_tool(Command::new("ssh-add").args(["-q", "-d"]).arg(key).env("SSH_AUTH_SOCK", self.socket()));
    }

    /// Locks the agent as `ssh-add -x` does, which would ask on a terminal.
    fn lock(&self) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.write_all(b"\0\0\0\x09\x16\0\0\0\x04lock").unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0, 0, 0, 1, 6], "it says that it is locked");
    }
}

impl Drop for SshAgent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn through(launch: Launch, socket: &Path) -> Launch {
    launch.env("SSH_AUTH_SOCK", text(socket))
}

#[test]
fn a_real_agent_signs_for_a_public_key_or_says_why_not() {
    let Some(agent) = SshAgent::start() else { return };
    let (server, dir) = (TestServer::start(), TempDir::new().unwrap());
    let public = dir.path().join("alice.pub");
    fs::copy(fixture("plain.pub"), &public).unwrap();
    let key = public_key(&public);
    let fails = || failure(&through(ping(&server, &public), &agent.socket()), 1);
    assert!(fails().contains("shows no key at all"));
    agent.add(&[], &private_copy(dir.path(), "rsa"));
    let error = fails();
    assert!(error.contains(&key) && error.contains("alice.pub") && error.contains("another one"), "{error}");
    assert!(error.contains(&format!("ssh-add {}", text(&dir.path().join("alice")))), "{error}");
    // To be confirmed each time, which no one does.
    agent.add(&["-c"], &private_copy(dir.path(), "plain"));
    let error = fails();
    assert!(error.contains("refused") && error.contains(&key), "{error}");
    agent.remove(&dir.path().join("plain"));

    agent.add(&[], &dir.path().join("plain"));
    assert_accepted(&through(ping(&server, &public), &agent.socket()), &key);
    // The content tells, not the name.
    let renamed = dir.path().join("id_ed25519");
    fs::copy(&public, &renamed).unwrap();
    assert_accepted(&through(ping(&server, &renamed), &agent.socket()), &key);
    // A key that keygen made.
    let made = Launch::default().args(["keygen", "--no-password", "--out", text(&dir.path().join("new"))]);
    assert!(made.output().status.success());
    agent.add(&[], &dir.path().join("new"));
    let new = dir.path().join("new.pub");
    assert_accepted(&through(ping(&server, &new), &agent.socket()), &public_key(&new));
    agent.lock();
    assert!(fails().contains("ssh-add -X"));
}

#[test]
fn a_public_key_without_an_agent_is_a_usage_error() {
    let server = TestServer::start();
    let launch = || ping(&server, &fixture("plain.pub"));
    for launch in [launch(), launch().env("SSH_AUTH_SOCK", "")] {
        let error = failure(&launch, 2);
        assert!(error.contains("SSH_AUTH_SOCK") && error.contains("ssh-add"), "{error}");
    }
    let dir = TempDir::new().unwrap();
    let error = failure(&through(launch(), &dir.path().join("absent")), 1);
    assert!(error.contains("not reachable at SSH_AUTH_SOCK"), "{error}");
}

/// An agent that says to have the fixture's key, and answers a request to sign as the test likes.
struct HostileAgent {
    dir: TempDir,
}

impl HostileAgent {
    /// Without an answer it keeps the caller waiting.
    fn start(answer: Option<Vec<u8>>) -> Self {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if read_request(&mut stream) == [11] {
                    stream.write_all(&list_of_one_key()).unwrap();
                } else if let Some(answer) = &answer {
                    let _ = stream.write_all(answer);
                }
                // The other side hangs up, or the test is over.
                let _ = stream.read(&mut [0]);
            }
        });
        Self { dir }
    }

    fn failure(&self, server: &TestServer) -> String {
        failure(&through(ping(server, &fixture("plain.pub")), &self.dir.path().join("socket")), 1)
    }
}

fn list_of_one_key() -> Vec<u8> {
    let line = fs::read_to_string(fixture("plain.pub")).unwrap();
    let blob = countersign_core::values::key::PublicKey::parse(line.trim_end())
        .unwrap()
        .to_ssh_blob(countersign_core::values::key::KeyFormat::Ed25519);
    string(&[&[12, 0, 0, 0, 1], string(&blob).as_slice(), &string(b"comment")].concat())
}

#[test]
fn a_hostile_agent_is_found_out() {
    let server = TestServer::start();
    let signature = [string(b"ssh-ed25519"), string(&[1; 64])].concat();
    let wrong = string(&[vec![14], string(&signature)].concat());
    for (answer, found) in [
        (wrong, "its signature is wrong"),
        (u32::MAX.to_be_bytes().to_vec(), "not one of the agent protocol"),
        (b"garbage garbage garbage".to_vec(), "not one of the agent protocol"),
        (string(&[14, 0, 0, 0, 200]), "not one of the agent protocol"),
        (string(&[5]), "it refused"),
    ] {
        let error = HostileAgent::start(Some(answer)).failure(&server);
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn who_has_to_touch_a_device_is_told_that_it_waits() {
    let (server, agent) = (TestServer::start(), HostileAgent::start(None));
    let socket = agent.dir.path().join("socket");
    let (key, url) = (fixture("plain.pub"), format!("http://{}", server.address()));
    let launch = Launch::default().args(["ping", "--server", &url, "--key", text(&key)]);
    Running::start(through(launch, &socket).command()).await_note("waiting for the agent");
}
