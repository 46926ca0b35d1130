//! Servers with a log, witnesses of them, and logs that a test keeps itself.

use std::{net::SocketAddr, path::PathBuf};

use countersign_core::log::checkpoint::{Checkpoint, SignedCheckpoint, WitnessRequest};
use countersign_core::log::{note::Note, tree::Tree, tree::leaf_hash};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{digest::Sha256, key::SecretKey};
use serde_json::Value;

use super::client::text;
use super::http::{Reply, Request};
use super::server::{Launch, TestServer};
use super::{files::FileServer, metrics::free_address, waiting::wait_until, world::World};

pub(crate) const ORIGIN: &str = "sign.example.org/log";

/// The witness's process, its address and its keys.
pub(crate) struct TestWitness {
    pub(crate) server: TestServer,
    pub(crate) address: SocketAddr,
    pub(crate) key: VerifierKey,
    /// The ML-DSA-44 key beside that.
    pub(crate) second: Option<VerifierKey>,
}

/// How a server with a log is started.
#[derive(Default)]
pub(crate) struct LogSetup {
    pub(crate) address: Option<SocketAddr>,
    /// Another server's key, as a path.
    pub(crate) key: Option<PathBuf>,
    /// The witnesses file.
    pub(crate) witnesses: Option<String>,
}

impl LogSetup {
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { address: Some(address), ..Self::default() }
    }

    /// All of these must cosign. Those in `polling` are not asked.
    pub(crate) fn witnessed(mut self, asked: &[&TestWitness], polling: &[&TestWitness]) -> Self {
        let mut text = String::new();
        let mut names = Vec::new();
        for (number, witness) in asked.iter().enumerate() {
            text += &format!("witness w{number} {} http://{}\n", witness.key, witness.address);
            names.push(format!("w{number}"));
            if let Some(second) = &witness.second {
                text += &format!("witness w{number}-second {second} http://{}\n", witness.address);
                names.push(format!("w{number}-second"));
            }
        }
        for (number, witness) in polling.iter().enumerate() {
            text += &format!("witness p{number} {}\n", witness.key);
            names.push(format!("p{number}"));
        }
        let count = asked.len() + polling.len();
        text += &format!("group all {count} {}\nquorum all\n", names.join(" "));
        self.witnesses = Some(text);
        self
    }

    #[track_caller]
    pub(crate) fn start(self) -> World {
        let mut world = self.prepare();
        world.server.start_again();
        world
    }

    pub(crate) fn prepare(self) -> World {
        let address = self.address.unwrap_or_else(free_address);
        let server = TestServer::prepare_as(|dir| {
            let key = self.key.clone().unwrap_or_else(|| {
                let made = run_json(&["admin", "log", "init", "--origin", ORIGIN, "--data-dir", text(dir)]);
                made["key_file"].as_str().expect("a path").into()
            });
            let mut config = format!(
                "[log]\norigin = \"{ORIGIN}\"\nkey_file = \"{}\"\ncheckpoint_seconds = 1\nheartbeat_seconds = 2\n",
                text(&key)
            );
            if let Some(witnesses) = &self.witnesses {
                let path = dir.with_extension("witnesses");
                std::fs::write(&path, witnesses).expect("a writable directory");
                config += &format!("witnesses_file = \"{}\"\n", text(&path));
            }
            Launch::serve(dir).arg("--dev").configured(&config).with_metrics().at(address)
        });
        World { server, files: FileServer::start() }
    }
}

/// A server with a log, and a witness that it asks.
pub(crate) fn start_witnessed() -> (World, TestWitness) {
    let origin = free_address();
    let mut witness = TestWitness::prepare(origin, "one.example", &[]);
    let world = LogSetup::at(origin).witnessed(&[&witness], &[]).start();
    witness.server.start_again();
    (world, witness)
}

impl TestWitness {
    /// Not started yet.
    pub(crate) fn prepare(origin: SocketAddr, name: &str, extra: &[&str]) -> Self {
        Self::prepare_with("ed25519", origin, name, extra)
    }

    /// One with keys of this type. Not started yet.
    pub(crate) fn prepare_with(key_type: &str, origin: SocketAddr, name: &str, extra: &[&str]) -> Self {
        let address = free_address();
        let (mut key, mut second) = (None, None);
        let server = TestServer::prepare_as(|dir| {
            let path = dir.with_extension("key");
            let init = ["admin", "witness", "init", "--type", key_type, "--name", name, "--key", text(&path)];
            let made = run_json(&init);
            let parse = |made: &Value| VerifierKey::parse(made["witness"].as_str()?).ok();
            (key, second) = (parse(&made), parse(&made["second"]));
            let origin = format!("http://{origin}");
            let launch = Launch::default()
                .args(["witness", &origin, "--key", text(&path), "--data-dir", text(dir), "--listen", "-"])
                .at(address)
                .args(extra.iter().copied());
            match made["second"]["key_file"].as_str() {
                Some(file) => launch.args(["--ml-dsa-key", file]),
                None => launch,
            }
        });
        Self { server, address, key: key.expect("it was made"), second }
    }

    pub(crate) fn keys(&self) -> Vec<VerifierKey> {
        [Some(self.key.clone()), self.second.clone()].into_iter().flatten().collect()
    }

    /// One that serves these logs as an ordinary witness. The server that it follows is not there.
    #[track_caller]
    pub(crate) fn start_ordinary(logs: &[&OwnLog]) -> Self {
        Self::start_ordinary_with("ed25519", logs)
    }

    #[track_caller]
    pub(crate) fn start_ordinary_with(key_type: &str, logs: &[&OwnLog]) -> Self {
        let mut witness = Self::prepare_with(key_type, free_address(), "witness.example", &[]);
        let policy = witness.server.data_dir().with_extension("policy");
        let lines: String = logs.iter().map(|log| format!("log {}\n", log.key)).collect();
        std::fs::write(&policy, lines).expect("a writable directory");
        let launch = witness.server.launch().clone().args(["--policy", text(&policy)]);
        witness.server.change_launch(|_| launch);
        witness.server.start_again();
        witness
    }

    pub(crate) fn add_checkpoint(&self, request: &WitnessRequest) -> Reply {
        self.post(request.write())
    }

    pub(crate) fn post(&self, body: impl Into<Vec<u8>>) -> Reply {
        self.server.send(&Request::new("POST", "/add-checkpoint").with_body(body))
    }

    pub(crate) fn checkpoint_target(origin: &str) -> String {
        format!("/{}/checkpoint", Sha256::of(origin.as_bytes()))
    }

    /// The newest checkpoint that it has cosigned, if there is one; verified.
    pub(crate) fn cosigned(&self, log: &VerifierKey) -> Option<SignedCheckpoint> {
        let reply = self.server.get(&Self::checkpoint_target(log.name()));
        if reply.status == 404 {
            return None;
        }
        assert_eq!(reply.status, 200, "{}", reply.text());
        let note = Note::parse(&reply.body).expect("a note");
        let signed = SignedCheckpoint::open(&note, std::slice::from_ref(log), &self.keys());
        let signed = signed.expect("signed by the log");
        assert_eq!(signed.cosignatures().count(), self.keys().len(), "{note}");
        Some(signed)
    }

    pub(crate) fn evidence(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.server.data_dir().join("witness")).expect("its directory");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let is_evidence = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("evidence-"))
        };
        paths.filter(is_evidence).map(|path| std::fs::read_to_string(path).expect("text")).collect()
    }
}

/// A log that a test keeps itself: what it signs need not be true.
pub(crate) struct OwnLog {
    pub(crate) key: VerifierKey,
    secret: SecretKey,
    pub(crate) tree: Tree,
}

impl OwnLog {
    pub(crate) fn named(origin: &str, seed: u8) -> Self {
        let secret = SecretKey::from_seed(&[seed; 32]);
        let key = VerifierKey::new(origin, KeyKind::Log, secret.public_key()).expect("a name");
        Self { key, secret, tree: Tree::default() }
    }

    pub(crate) fn grow(&mut self, word: &str, leaves: usize) {
        (0..leaves).for_each(|_| {
            let leaf = format!("{word} {}", self.tree.len());
            self.tree.push(leaf_hash(leaf.as_bytes()));
        });
    }

    pub(crate) fn checkpoint(&self, size: u64) -> SignedCheckpoint {
        let root = self.tree.root(size).expect("so many leaves");
        self.sign(Checkpoint { origin: self.key.name().to_owned(), size, root })
    }

    pub(crate) fn sign(&self, checkpoint: Checkpoint) -> SignedCheckpoint {
        checkpoint.sign(&self.key, &self.secret)
    }

    /// An honest request.
    pub(crate) fn request(&self, old: u64, size: u64) -> WitnessRequest {
        let proof = self.tree.consistency(old, size).unwrap_or_default();
        WitnessRequest { old, proof, note: self.checkpoint(size).log_note() }
    }
}

/// The key of a server's log.
pub(crate) fn log_key_of(server: &TestServer) -> VerifierKey {
    VerifierKey::parse(server.get("/log/key").text().trim()).expect("a key")
}

/// The newest checkpoint of a server, once there is one.
#[track_caller]
pub(crate) fn checkpoint_of(server: &TestServer) -> SignedCheckpoint {
    let mut reply = server.get("/log/checkpoint");
    wait_until("there is no checkpoint", || {
        reply = server.get("/log/checkpoint");
        reply.status == 200
    });
    let note = Note::parse(&reply.body).expect("a note");
    SignedCheckpoint::open(&note, &[log_key_of(server)], &[]).expect("signed by the log")
}

/// Waits until the newest checkpoint covers all commits, and gives it.
#[track_caller]
pub(crate) fn await_logged(server: &TestServer) -> SignedCheckpoint {
    let commits = super::Git::at(server.repository()).commit_count() as u64;
    let mut newest = checkpoint_of(server);
    wait_until("the log does not get there", || {
        newest = checkpoint_of(server);
        newest.checkpoint().size == commits
    });
    newest
}

pub(crate) fn run_json(args: &[&str]) -> Value {
    let output = Launch::default().args(args.iter().copied()).arg("--json").output();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
