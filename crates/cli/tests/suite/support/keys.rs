//! What the tests of keys share: fixtures, OpenSSH's own tools where they are installed, and a signed request.

use std::process::{Command, Output, Stdio};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf};

use serde_json::{Value, json};

pub(crate) use crate::support::client::text;
use crate::support::{Launch, TestServer};

pub(crate) const PASSPHRASE: &str = "correct horse battery staple";

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/keys").join(name)
}

/// A copy of a fixture with the mode of a private key; a checkout cannot have it.
pub(crate) fn private_copy(dir: &Path, name: &str) -> PathBuf {
    let copy = dir.join(name);
    fs::copy(fixture(name), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    copy
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Whether a tool is there. If not, the test says so, and is passed over.
pub(crate) fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(tool).is_file());
    if !found {
        println!("skipped: {tool} is not installed");
    }
    found
}

/// Whether OpenSSL 3 is there, which reads the message of an Ed25519 signature as it is.
pub(crate) fn has_openssl() -> bool {
    let version = Command::new("openssl").arg("version").output().map(|output| output.stdout);
    let found = version.is_ok_and(|version| version.starts_with(b"OpenSSL 3."));
    if !found {
        println!("skipped: OpenSSL 3 is not installed");
    }
    found
}

#[track_caller]
pub(crate) fn run_tool(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().expect("it starts");
    assert!(status.success(), "{command:?}: {status}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[track_caller]
pub(crate) fn ssh_keygen(args: &[&str]) -> String {
    run_tool(Command::new("ssh-keygen").args(args))
}

/// The key of a `.pub` file, as we spell it.
#[track_caller]
pub(crate) fn public_key(path: &Path) -> String {
    let line = fs::read_to_string(path).unwrap();
    countersign_core::values::key::PublicKey::parse(line.trim_end()).unwrap().to_string()
}

/// A request that is signed with the key.
pub(crate) fn ping(server: &TestServer, key: &Path) -> Launch {
    let server = server.address();
    Launch::default().args(["--json", "--server", &format!("http://{server}"), "--key", text(key), "ping"])
}

/// The server accepts the signature, and names this key.
#[track_caller]
pub(crate) fn assert_accepted(launch: &Launch, key: &str) {
    let output = launch.output();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}{}", String::from_utf8_lossy(&output.stdout));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["auth"]["status"], json!("success"), "{answer}");
    assert_eq!(answer["auth"]["public_key"], json!(key), "{answer}");
}

/// The error object of `--json`, as one text; it has a hint.
#[track_caller]
pub(crate) fn failure(launch: &Launch, exit_code: i32) -> String {
    let output = launch.output();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(exit_code), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let error: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("not JSON: {stdout:?}"));
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
    error.to_string()
}
