//! Who is lied to: a computer that meets the project for the first time, and one that knows it.

use std::{process::Command, process::Stdio, sync::mpsc, time::Duration};

use countersign_core::values::shown::is_unseen;
use serde_json::Value;

use super::server::HostileServer;
use crate::support::client::{Computer, Ran, add_files};
use crate::support::{SignersFile, World, alice, bob, carol};

/// No lie keeps the client busy for longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What stands in the working directory before each download, under the name that the file would get. Each is told to
/// replace it.
const OLD: &[u8] = b"the old file";

/// A computer whose signing server lies.
pub(crate) struct Victim {
    pub(crate) computer: Computer,
    server: String,
}

impl Victim {
    pub(crate) fn of(server: &HostileServer) -> Self {
        Self::at(&server.url())
    }

    pub(crate) fn at(server: &str) -> Self {
        let victim = Self { computer: Computer::offline(), server: server.to_owned() };
        victim.put_old_file();
        victim
    }

    /// Puts the file there that downloads are told to replace.
    pub(crate) fn put_old_file(&self) {
        self.computer.write("app.tar.gz", OLD);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.computer.command(&[args, &["--server", &self.server]].concat())
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run_bounded(self.command(args))
    }

    pub(crate) fn run_as(&self, name: &str, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.env("COUNTERSIGN_KEY", self.computer.key_of(name));
        run_bounded(command)
    }

    /// Starts the client and leaves it running.
    pub(crate) fn spawn(&self, args: &[&str]) -> std::process::Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Everything is as it was before a download: the old file, and nothing beside it.
    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(self.computer.listing(), ["app.tar.gz"]);
        assert_eq!(self.computer.read("app.tar.gz"), OLD, "the old file keeps its content");
    }

    /// The download fails with this exit code, says these words, and leaves everything as it was.
    #[track_caller]
    pub(crate) fn refuses(&self, url: &str, code: i32, words: &[&str]) -> Ran {
        let ran = self.run(&["download", url, "--force"]).failed(code).says(words);
        assert_harmless(&ran);
        self.assert_untouched();
        ran
    }

    /// The download succeeds; the file is put away again, so that the next one can be seen.
    #[track_caller]
    pub(crate) fn takes(&self, url: &str, content: &[u8]) -> Ran {
        let ran = self.run(&["download", url, "--force"]).ok();
        assert_harmless(&ran);
        assert_eq!(self.computer.listing(), ["app.tar.gz"]);
        assert_eq!(self.computer.read("app.tar.gz"), content);
        self.put_old_file();
        ran
    }

    /// What it remembers, byte for byte; empty before it has accepted anything.
    pub(crate) fn memory(&self) -> Vec<u8> {
        std::fs::read(self.computer.config().join("trust.json")).unwrap_or_default()
    }
}

/// Nothing that was said could rewrite a line or hide in one (D39).
#[track_caller]
pub(crate) fn assert_harmless(ran: &Ran) {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let raw: Vec<char> = said.chars().filter(|c| *c != '\n' && is_unseen(*c)).collect();
    assert!(raw.is_empty(), "{raw:?} is shown as it is: {said:?}");
}

#[track_caller]
fn run_bounded(mut command: Command) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let id = child.id().to_string();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(TIMEOUT) {
        Ok(output) => Ran::from(output.expect("it can be waited for")),
        Err(_) => {
            let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
            panic!("still busy after {TIMEOUT:?}: {command:?}")
        }
    }
}

/// The project `acme/app`, two of whose three signers sign, with the releases 1.0 and 2.0 of the file app.tar.gz.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) hostile: HostileServer,
    pub(crate) newcomer: Victim,
    /// Has downloaded from the project before.
    pub(crate) regular: Victim,
}

impl Scene {
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with(&SignersFile::of(2, &[&alice(), &bob(), &carol()]))
    }

    /// Starts as `start` does, with another signers file of all three.
    #[track_caller]
    pub(crate) fn with(file: &SignersFile) -> Self {
        let world = World::with_project(file, &[&alice(), &bob(), &carol()]);
        for version in ["1.0", "2.0"] {
            let content = Self::content(version);
            add_files(&world, &Self::dir(version), &[("app.tar.gz", &content)], &[&alice(), &bob()]);
        }
        let hostile = HostileServer::before(&world.server);
        let (newcomer, regular) = (Victim::of(&hostile), Victim::of(&hostile));
        let scene = Self { world, hostile, newcomer, regular };
        scene.regular.takes(&scene.url("1.0"), &Self::content("1.0"));
        scene
    }

    fn dir(version: &str) -> String {
        format!("acme/app/{version}")
    }

    pub(crate) fn content(version: &str) -> Vec<u8> {
        format!("the app, version {version}").into_bytes()
    }

    pub(crate) fn project(&self) -> String {
        self.world.id("acme/app")
    }

    pub(crate) fn url(&self, version: &str) -> String {
        self.world.files.url(&format!("/{}/app.tar.gz", Self::dir(version)))
    }

    pub(crate) fn signers_url(&self) -> String {
        self.world.files.url("/acme/app/svc.signers.json")
    }

    pub(crate) fn index(&self, version: &str) -> String {
        self.world.index_path(&Self::dir(version))
    }

    pub(crate) fn history(&self) -> Value {
        self.world.read_json(&format!("{}/svc.signers.history.json", self.project()))
    }

    /// Neither computer is deceived about version 2.0, whose evidence someone tampered with.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        for victim in [&self.newcomer, &self.regular] {
            let memory = victim.memory();
            victim.refuses(&self.url("2.0"), code, words);
            assert!(victim.memory() == memory, "a download that failed is nothing to remember");
        }
    }
}
