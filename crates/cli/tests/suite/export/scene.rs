//! A release with odd names, its export, and the shells that run the exported script.

use std::{fs, path::Path, path::PathBuf, process::Command, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Computer, Ran, add_files, text};
use crate::support::{Person, SignersFile, World, keys::has_openssl, keys::installed, person};

pub(super) const FILES: [(&str, &[u8]); 7] = [
    ("$(touch pwned)", b"an expansion"),
    ("-rf", b"an option"),
    ("a b  c.txt", b"spaces"),
    ("app.tar.gz", b"the archive"),
    ("dir/it's", b"a quotation mark"),
    ("x\"; exit 0; \"", b"the end of a string"),
    ("é%s`id`", b"a format"),
];

pub(super) const OPENSSL: [&str; 2] = ["--for", "openssl"];

/// What a signer may be called, if nothing stops it from becoming code.
const NAME: &str = "al'ice $(touch pwned) \"`exit 0`\" #\\";

pub(super) fn signer(person: &Person, name: &str) -> Value {
    json!({ "kind": "key", "data": { "pubkey": person.key() }, "name": name })
}

/// Two of alice, bob and carol, and one of alice and dave.
pub(super) fn signers() -> SignersFile {
    let alice = signer(&person("alice"), NAME);
    let [bob, carol, dave] = ["bob", "carol", "dave"].map(|name| signer(&person(name), name));
    SignersFile::new().with(
        "artifact_signers",
        json!([
            { "threshold": 2, "signers": [alice, bob, carol] },
            { "threshold": 1, "signers": [dave, alice] },
        ]),
    )
}

pub(super) fn project() -> World {
    let everyone = ["alice", "bob", "carol", "dave"].map(person);
    World::with_project(&signers(), &everyone.each_ref())
}

/// An export that alice and bob have signed, and a directory with the files of the release.
pub(super) struct Exported {
    pub(super) world: World,
    pub(super) computer: Computer,
    pub(super) index: String,
    /// What the command told.
    pub(super) report: Value,
}

impl Exported {
    pub(super) fn new() -> Self {
        let world = project();
        let index = add_files(&world, "acme/app/1.0", &FILES, &[&person("alice"), &person("bob")]);
        let computer = Computer::of(&world.server);
        let report = computer.json(&[&["export", &index, "-o", "out"][..], &OPENSSL].concat());
        for (name, content) in FILES {
            computer.write(&format!("files/{name}"), content);
        }
        Self { world, computer, index, report }
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.computer.path("out")
    }

    pub(super) fn files(&self) -> PathBuf {
        self.computer.path("files")
    }

    /// A copy of the export, to be tampered with.
    pub(super) fn copy(&self) -> TempDir {
        let copy = TempDir::new().expect("a temporary directory");
        copy_all(&self.dir(), copy.path());
        copy
    }

    /// What the script of this export says of the files of the release.
    pub(super) fn verify(&self, shell: &str, export: &Path) -> Ran {
        run_script(shell, export, &[text(&self.files())])
    }
}

pub(crate) fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

pub(super) fn shell_command(shell: &str, export: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(shell);
    command.arg(export.join("verify.sh")).args(args).stdin(Stdio::null());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(export);
    command
}

pub(super) fn run_script(shell: &str, export: &Path, args: &[&str]) -> Ran {
    Ran::of(&mut shell_command(shell, export, args))
}

/// The shells to try. None where OpenSSL 3 is missing, which the test says.
pub(super) fn shells() -> Vec<&'static str> {
    if !has_openssl() {
        return Vec::new();
    }
    // Where there is no dash, `sh` is what everyone has.
    let plain = if installed("dash") { "dash" } else { "sh" };
    if installed("bash") { vec![plain, "bash"] } else { vec![plain] }
}

#[track_caller]
pub(super) fn assert_verified(ran: Ran) -> Ran {
    let ran = ran.ok();
    assert_eq!(ran.stderr, "", "{ran:?}");
    assert!(ran.stdout.lines().last().is_some_and(|line| line.starts_with("VERIFIED: ")), "{ran:?}");
    ran
}

#[track_caller]
pub(super) fn assert_refused(ran: Ran, what: &str) -> Ran {
    assert_eq!(ran.code, 1, "{what}: {ran:?}");
    assert!(ran.stderr.contains("NOT VERIFIED") && !ran.stdout.contains("VERIFIED"), "{what}: {ran:?}");
    ran
}
