//! A release with odd names, which is signed for every tool, its exports, and the shells that run the exported scripts.

use std::{fs, path::Path, path::PathBuf, process::Command, process::Stdio};

use countersign_testing::copy_dir;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Computer, Ran, put_release, text};
use crate::support::signers::{named_group, named_signer};
use crate::support::{SignersFile, World, keys::has_openssl, keys::installed, person};

pub(super) const FILES: [(&str, &[u8]); 7] = [
    ("$(touch pwned)", b"an expansion"),
    ("-rf", b"an option"),
    ("a b  c.txt", b"spaces"),
    ("app.tar.gz", b"the archive"),
    ("dir/it's", b"a quotation mark"),
    ("x\"; exit 0; \"", b"the end of a string"),
    ("é%s`id`", b"a format"),
];

/// What a signer may be called, if nothing stops it from becoming code.
const NAME: &str = "al'ice $(touch pwned) \"`exit 0`\" #\\";

/// Two of alice, bob and carol, and one of alice and dave.
pub(crate) fn signers() -> SignersFile {
    let alice = named_signer(&person("alice"), NAME);
    let mut groups = [named_group(2, &["alice", "bob", "carol"]), named_group(1, &["dave", "alice"])];
    groups[0][0]["signers"][0] = alice.clone();
    groups[1][0]["signers"][1] = alice;
    SignersFile::new().with("artifact_signers", json!([groups[0][0], groups[1][0]]))
}

/// Makes the signers file of [`signers`] ask everyone to sign in every other format as well.
pub(crate) fn asking() -> SignersFile {
    signers().with("formats", json!(["ssh", "minisign", "openpgp"]))
}

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) computer: Computer,
    pub(crate) index: String,
}

impl Scene {
    /// A release that waits for signatures.
    pub(crate) fn collecting(file: &SignersFile) -> Self {
        let everyone = ["alice", "bob", "carol", "dave"].map(person);
        let world = World::with_project(file, &everyone.each_ref());
        let sums = put_release(&world.files, "acme/app/1.0", &FILES);
        let computer = Computer::of(&world.server);
        computer.run_as("alice", &["release", "--checksums", &sums]).ok();
        let index = world.index_path("acme/app/1.0");
        for (name, content) in FILES {
            computer.write(&format!("files/{name}"), content);
        }
        Self { world, computer, index }
    }

    /// One that alice and bob have signed, as the signers file asks.
    pub(crate) fn complete() -> Self {
        let scene = Self::collecting(&asking());
        for name in ["alice", "bob"] {
            scene.sign(name, &[]).ok();
        }
        scene
    }

    pub(crate) fn sign(&self, name: &str, options: &[&str]) -> Ran {
        self.computer.run_as(name, &[&["sign", &self.index, "--yes"], options].concat())
    }

    pub(crate) fn formats_path(&self) -> String {
        format!("{}.formats.json", self.index)
    }

    /// Exports into this directory.
    pub(super) fn try_export(&self, tool: &str, out: &str, more: &[&str]) -> Ran {
        self.computer.run(&[&["export", &self.index, "--for", tool, "-o", out], more].concat())
    }

    /// What the command tells programs; it has exported into the directory with the tool's name.
    pub(super) fn export(&self, tool: &str) -> Value {
        self.try_export(tool, tool, &["--json"]).ok().json()
    }

    pub(super) fn files(&self) -> PathBuf {
        self.computer.path("files")
    }

    /// A copy of an export, to be tampered with.
    pub(super) fn copy(&self, tool: &str) -> TempDir {
        let copy = TempDir::new().expect("a temporary directory");
        copy_dir(&self.computer.path(tool), copy.path());
        copy
    }

    /// What the script of this export says of the files of the release.
    pub(super) fn verify(&self, shell: &str, export: &Path) -> Ran {
        run_script(shell, export, &[text(&self.files())])
    }
}

/// Every file of a directory, by its path in it.
pub(crate) fn list(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(list(&path).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
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

/// The tools that are here, each by the name of its export. A test says which are skipped.
pub(super) fn tools() -> Vec<&'static str> {
    let mut found = Vec::new();
    found.extend(has_openssl().then_some("openssl"));
    found.extend(installed("ssh-keygen").then_some("ssh"));
    found.extend(installed("minisign").then_some("minisign"));
    found.extend((installed("sqv") || installed("gpgv")).then_some("openpgp"));
    found
}

/// The shells that are here. `sh` is what everyone has.
pub(super) fn shells() -> Vec<&'static str> {
    ["sh", "dash", "bash"].into_iter().filter(|shell| *shell == "sh" || installed(shell)).collect()
}

#[track_caller]
pub(super) fn assert_verified(ran: Ran) -> Ran {
    let ran = ran.ok();
    assert!(ran.stdout.lines().last().is_some_and(|line| line.starts_with("VERIFIED: ")), "{ran:?}");
    ran
}

#[track_caller]
pub(super) fn assert_refused(ran: Ran, what: &str) -> Ran {
    assert_eq!(ran.code, 1, "{what}: {ran:?}");
    assert!(ran.stderr.contains("NOT VERIFIED") && !ran.stdout.contains("VERIFIED"), "{what}: {ran:?}");
    ran
}
