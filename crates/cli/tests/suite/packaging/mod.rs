//! How Countersign itself is packaged, released and installed (D113–D115). The scripts run as their users run them,
//! with a small stand-in for the program, so that there is little to compress.

use std::path::{Path, PathBuf};
use std::{fs, os::unix::fs::PermissionsExt as _, process::Command, process::Stdio};

use crate::support::{Running, TestServer, client::Computer, client::Ran, client::text, keys::installed};

mod documents;
mod installing;
mod releasing;
mod scripts;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROJECT: &str = "site/countersign";
const SIGNERS: &str = "site/countersign/svc.signers.json";

pub(crate) fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

/// A signing server, a file server that shows the directory `site`, and a project that needs two of three.
pub(crate) struct ReleaseScene {
    pub(crate) computer: Computer,
    pub(crate) url: String,
    _site: Running,
    _server: TestServer,
}

impl ReleaseScene {
    /// `None` where the scripts lack a tool; then the test says so, and is passed over.
    pub(crate) fn start() -> Option<Self> {
        let has_client = installed("curl") || installed("wget");
        if !has_client || !["openssl", "tar", "gzip", "sha256sum", "rustc"].into_iter().all(installed) {
            return None;
        }
        if !archive().ends_with("-unknown-linux-gnu.tar.gz") {
            println!("skipped: install.sh knows no programs for this system");
            return None;
        }
        let server = TestServer::start_with(|launch| launch.arg("--dev"));
        let computer = Computer::of(&server);
        fs::create_dir_all(computer.path(PROJECT)).unwrap();
        let mut site = Running::start(computer.command(&["serve-files", "site", "--listen", "127.0.0.1:0"]));
        let line = site.next_line();
        let url = format!("{}/countersign", line.trim_end().rsplit(' ').next().unwrap());
        let scene = Self { computer, url, _site: site, _server: server };
        scene.begin_project();
        Some(scene)
    }

    fn begin_project(&self) {
        let keys = ["alice", "bob", "carol"]
            .map(|name| format!("{name}={}", text(&self.computer.key_of(name).with_extension("pub"))));
        let [a, b, c] = &keys;
        let new = ["signers", "new", "--artifact", a, b, c, "--threshold", "2", "-o", SIGNERS];
        self.computer.run(&new).ok();
        self.computer.run_as("alice", &["register", &format!("{}/svc.signers.json", self.url)]).ok();
        self.computer.sign_all(&["alice", "bob", "carol"]);
        self.write_program("program", &format!("exec {} \"$@\"", program()));
    }

    pub(crate) fn write_program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.computer.write(name, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn release(&self, step: &str, more: &[&str]) -> Ran {
        self.release_with(Path::new(env!("CARGO_BIN_EXE_countersign")), step, more)
    }

    /// Runs a step of `packaging/release` with this program as the client.
    pub(crate) fn release_with(&self, client: &Path, step: &str, more: &[&str]) -> Ran {
        let mut command = Command::new(packaging("release"));
        self.computer.settle(&mut command);
        command
            .args([step, "--url", &self.url])
            .args(more)
            .stdin(Stdio::null())
            .env("COUNTERSIGN", client)
            .env("COUNTERSIGN_KEY", self.computer.key_of("bob"))
            .env("SOURCE_DATE_EPOCH", "1700000000");
        Ran::of(&mut command)
    }

    pub(crate) fn build(&self, more: &[&str]) -> Ran {
        let always = ["--signers", SIGNERS, "--program", "program", "--packages", ""];
        self.release("build", &[&always[..], more].concat())
    }

    pub(crate) fn register(&self) -> Ran {
        self.release("register", &["--publish", PROJECT])
    }

    pub(crate) fn publish(&self) -> Ran {
        self.release("publish", &["--publish", PROJECT, "--signers", SIGNERS, "--timeout", "1s"])
    }

    /// A release that two have signed and that is published.
    pub(crate) fn publish_signed(&self) {
        self.build(&[]).ok();
        self.register().ok();
        self.computer.sign_all(&["alice", "carol"]);
        self.publish().ok();
    }

    /// The names of what users can download.
    pub(crate) fn published(&self) -> Vec<String> {
        let dir = self.computer.path(&format!("{PROJECT}/{VERSION}"));
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn dist(&self, name: &str) -> String {
        format!("dist/{VERSION}/{name}")
    }
}

/// Our program as a word of a script.
pub(crate) fn program() -> String {
    format!("'{}'", env!("CARGO_BIN_EXE_countersign").replace('\'', "'\\''"))
}

/// The name of the archive for this machine.
pub(crate) fn archive() -> String {
    let out = Command::new("rustc").arg("-vV").output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    let target = out.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    format!("countersign-{VERSION}-{target}.tar.gz")
}
