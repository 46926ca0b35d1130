//! A computer with the client on it: a working directory, a configuration directory and key files of its own.

use std::process::{Command, Output, Stdio};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf};

use countersign_core::values::{digest::Sha256, digest::Sha512, key::SecretKey};
use serde_json::Value;
use ssh_key::{LineEnding, PrivateKey, private::Ed25519Keypair, private::KeypairData};
use tempfile::TempDir;

use super::{
    environment::clear_environment, files::FileServer, http::Reply, people::Person, server::TestServer,
    world::World,
};

/// An address where nothing listens: the discard port of loopback.
pub(crate) const NO_SERVER: &str = "http://127.0.0.1:9";

pub(crate) struct Computer {
    dir: TempDir,
    server: String,
}

impl Computer {
    pub(crate) fn of(server: &TestServer) -> Self {
        Self::with_server(&format!("http://{}", server.address()))
    }

    /// One that reaches no signing server.
    pub(crate) fn offline() -> Self {
        Self::with_server(NO_SERVER)
    }

    fn with_server(server: &str) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        for name in ["work", "keys"] {
            fs::create_dir(dir.path().join(name)).expect("an empty directory");
        }
        Self { dir, server: server.to_owned() }
    }

    /// A file in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// The configuration directory; it need not exist yet.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    #[track_caller]
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("inside the working directory")).expect("a directory");
        fs::write(&path, bytes).expect("a writable directory");
        path
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Carries files to another computer by hand.
    #[track_caller]
    pub(crate) fn carry(&self, to: &Self, names: &[&str]) {
        names.iter().for_each(|name| drop(to.write(name, self.read(name))));
    }

    /// Everything in the working directory, hidden files too.
    pub(crate) fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).expect("a directory");
        let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[track_caller]
    pub(crate) fn pins(&self) -> Value {
        let text = fs::read(self.config().join("trust.json")).expect("there are pins");
        serde_json::from_slice(&text).expect("a JSON file")
    }

    /// The private key file of the person with this name; its public half lies beside it.
    pub(crate) fn key_of(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join("keys").join(name);
        if !path.exists() {
            let seed = Sha512::of(name.as_bytes());
            let seed: [u8; 32] = seed.as_bytes()[..32].try_into().expect("half of 64 bytes");
            let public = *SecretKey::from_seed(&seed).public_key().as_bytes();
            let pair = [seed, public].concat().try_into().expect("twice 32 bytes");
            let pair = Ed25519Keypair::from_bytes(&pair).expect("halves of one key");
            let key = PrivateKey::new(KeypairData::from(pair), name).expect("a key");
            let public = key.public_key().to_openssh().expect("a line");
            fs::write(&path, key.to_openssh(LineEnding::LF).expect("a file")).expect("a writable directory");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
            fs::write(path.with_extension("pub"), format!("{public}\n")).expect("a writable directory");
        }
        path
    }

    /// Nothing of the tester's own environment reaches the program.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(args).stdin(Stdio::null());
        clear_environment(&mut command);
        self.settle(&mut command);
        command
    }

    /// Lets a program run here: the place, and what the client is told by its environment.
    pub(crate) fn settle(&self, command: &mut Command) {
        command.current_dir(self.path(""));
        command.env("COUNTERSIGN_SERVER", &self.server).env("COUNTERSIGN_CONFIG_DIR", self.config());
    }

    /// Makes a command as `command` does, told of no server.
    pub(crate) fn newcomer(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.env_remove("COUNTERSIGN_SERVER");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Runs a command as `run` does, with the key of the person of this name.
    pub(crate) fn run_as(&self, name: &str, args: &[&str]) -> Ran {
        Ran::of(self.command(args).env("COUNTERSIGN_KEY", self.key_of(name)))
    }

    /// The one JSON object of a command that succeeds.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).ok().json()
    }

    #[track_caller]
    pub(crate) fn json_as(&self, name: &str, args: &[&str]) -> Value {
        self.run_as(name, &[args, &["--json"]].concat()).ok().json()
    }

    #[track_caller]
    pub(crate) fn download(&self, url: &str) -> Ran {
        self.run(&["download", url])
    }

    /// Each signs everything that waits for them.
    #[track_caller]
    pub(crate) fn sign_all(&self, names: &[&str]) {
        for name in names {
            self.run_as(name, &["sign", "--all", "--yes"]).ok();
        }
    }
}

/// What a run of the client left: its exit code, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    /// -1 where a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the program starts"))
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Failed with this exit code, with a message and a hint, and nothing on standard output.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let is_hinted = self.stderr.lines().any(|line| line.starts_with("hint: ") && line.len() > 6);
        assert!(self.stderr.contains("error: ") && is_hinted, "{self:?}");
        self
    }

    /// Failed with this exit code, as a script does.
    #[track_caller]
    pub(crate) fn failed_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains("error: "), "{self:?}");
        self
    }

    /// Refused as wrong usage, with a message and the way to help.
    #[track_caller]
    pub(crate) fn failed_as_usage(self) {
        assert_eq!(self.code, 2, "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let is_helpful = self.stderr.contains("--help") || self.stderr.contains("hint: ");
        assert!(self.stderr.contains("error: ") && is_helpful, "{self:?}");
    }

    /// Says all of these, on standard output or standard error.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stdout.contains(word) || self.stderr.contains(word),
                "{word:?} is missing: {self:?}"
            );
        }
        self
    }

    #[track_caller]
    pub(crate) fn says_nothing_of(self, words: &[&str]) -> Self {
        for word in words {
            assert!(!self.stdout.contains(word) && !self.stderr.contains(word), "{word:?} is said: {self:?}");
        }
        self
    }

    /// Standard output is one JSON object on one line; what is signed may be shown on standard error.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert!(self.stdout.ends_with('\n') && self.stdout.lines().count() == 1, "{self:?}");
        let json: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {self:?}"));
        assert!(json.is_object(), "{self:?}");
        json
    }

    /// The error object of `--json`, whose form is checked.
    #[track_caller]
    pub(crate) fn json_error(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{self:?}");
        let json = self.json();
        assert_eq!(json["exit_code"], code, "{json}");
        for field in ["error", "hint"] {
            assert!(json[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {json}");
        }
        json
    }
}

impl From<Output> for Ran {
    #[track_caller]
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program speaks UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let ran = Self { code: output.status.code().unwrap_or(-1), stdout, stderr };
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        ran
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

/// Puts files and their SHA256SUMS into a directory of the file server; the URL of the sums.
pub(crate) fn put_release(files: &FileServer, dir: &str, content: &[(&str, &[u8])]) -> String {
    let mut sums = String::new();
    for (name, bytes) in content {
        files.put(&format!("/{dir}/{name}"), *bytes);
        sums.push_str(&format!("{}  {name}\n", Sha256::of(bytes)));
    }
    files.put(&format!("/{dir}/SHA256SUMS"), sums);
    files.url(&format!("/{dir}/SHA256SUMS"))
}

/// A release with these files, which each of the signers signs; the path of its index.
#[track_caller]
pub(crate) fn add_files(world: &World, dir: &str, content: &[(&str, &[u8])], signers: &[&Person]) -> String {
    let sums = put_release(&world.files, dir, content);
    let reply: Reply = world.register_assets(signers[0], &[&sums]);
    reply.ok();
    let index = world.index_path(dir);
    world.sign_all(&index, signers);
    index
}
