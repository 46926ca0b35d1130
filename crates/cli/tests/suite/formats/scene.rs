//! A project that asks for both formats, and a release of it.

use std::{fs, path::Path, process::Command, process::Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::export::scene::copy_all;
use crate::support::client::{Computer, Ran, put_release, text};
use crate::support::{SignersFile, World, keys::installed, person};

pub(super) const FILES: [(&str, &[u8]); 3] =
    [("$(touch pwned)", b"an expansion"), ("app.tar.gz", b"the archive"), ("dir/it's", b"a quotation mark")];
pub(super) const TOOLS: [(&str, &str); 2] = [("ssh", "ssh-keygen"), ("minisign", "minisign")];

/// Two of alice, bob and carol, and one of alice and dave.
pub(super) fn signers() -> SignersFile {
    let [alice, bob, carol, dave] = ["alice", "bob", "carol", "dave"].map(person);
    SignersFile::new().artifact(2, &[&alice, &bob, &carol]).artifact(1, &[&dave, &alice])
}

pub(crate) fn asking() -> SignersFile {
    signers().with("formats", json!(["ssh", "minisign"]))
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
    pub(super) fn complete() -> Self {
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

    pub(super) fn export(&self, tool: &str) -> Ran {
        self.computer.run(&["export", &self.index, "-o", &format!("out-{tool}"), "--for", tool])
    }

    /// A copy of an export, to be tampered with.
    pub(super) fn copy(&self, tool: &str) -> TempDir {
        let copy = TempDir::new().expect("a temporary directory");
        copy_all(&self.computer.path(&format!("out-{tool}")), copy.path());
        copy
    }

    pub(super) fn verify(&self, shell: &str, export: &Path) -> Ran {
        let files = self.computer.path("files");
        let mut command = Command::new(shell);
        command.arg(export.join("verify.sh")).arg(text(&files)).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(export);
        Ran::of(&mut command)
    }
}

/// The tools that are here, each by its format; a test says which are skipped.
pub(super) fn tools() -> Vec<&'static str> {
    TOOLS.into_iter().filter(|(_, program)| installed(program)).map(|(tool, _)| tool).collect()
}

pub(super) fn shells() -> Vec<&'static str> {
    ["sh", "dash", "bash"].into_iter().filter(|shell| installed(shell)).collect()
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
