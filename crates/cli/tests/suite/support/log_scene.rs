//! A server with a log, whose witnesses are the test itself: it cosigns what it wants, and when.

use std::{fs, time::Duration};

use countersign_core::log::checkpoint::{Checkpoint, InclusionProof, SignedCheckpoint};
use countersign_core::log::record::{Leaf, parse_bundle, write_bundle};
use countersign_core::log::{tile::TileKind, tile::TileName, tree::Hash, tree::Tree};
use countersign_core::proof::bundle::Staple;
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::SecretKey, verifier_key::KeyKind, verifier_key::VerifierKey};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Computer, add_files, text};
use super::{SignersFile, World, hostile::HostileServer, hostile::Lie, hostile::Victim, people::now};
use crate::support::alice;

pub(crate) const ORIGIN: &str = "sign.example.org/log";
const TIMEOUT: Duration = Duration::from_secs(30);

fn secret(name: &str) -> SecretKey {
    let seed = Sha512::of(name.as_bytes());
    SecretKey::from_seed(seed.as_bytes()[..32].try_into().expect("half of 64 bytes"))
}

pub(crate) fn log_key() -> VerifierKey {
    VerifierKey::new(ORIGIN, KeyKind::Log, secret("log").public_key()).expect("a key")
}

pub(crate) fn witness_key(n: usize) -> VerifierKey {
    let key = secret(&format!("witness {n}")).public_key();
    VerifierKey::new(&format!("witness{n}.example"), KeyKind::Witness, key).expect("a key")
}

/// Three of four witnesses, and a day.
pub(crate) fn policy() -> Value {
    let keys: Vec<String> = (1..=4).map(|n| witness_key(n).to_string()).collect();
    json!({
        "log": log_key().to_string(),
        "witnesses": [{ "threshold": 3, "keys": keys }],
        "max_age_seconds": 86_400,
    })
}

/// A policy file that names the log and all witnesses, with this threshold.
pub(crate) fn policy_file(threshold: usize) -> String {
    let witnesses: String = (1..=4).map(|n| format!("witness w{n} {}\n", witness_key(n))).collect();
    format!("log {}\n{witnesses}group all {threshold} w1 w2 w3 w4\nquorum all\n", log_key())
}

/// Witnesses with the number of seconds since they cosigned.
pub(crate) const THREE: &[(usize, i64)] = &[(1, 60), (2, 50), (3, 40)];

/// The project `acme/app` of alice's on a server with a log, with the releases 1.0 and 2.0 of the file app.tar.gz.
pub(crate) struct LogScene {
    pub(crate) world: World,
    pub(crate) hostile: HostileServer,
    pub(crate) user: Victim,
    _config: TempDir,
}

impl LogScene {
    /// Begins a scene with these witnesses in the signers file.
    #[track_caller]
    pub(crate) fn start(transparency: Option<Value>) -> Self {
        let config = TempDir::new().expect("a temporary directory");
        let place = config.path().join("log.key");
        let keys = Computer::offline();
        fs::copy(keys.key_of("log"), &place).expect("a key");
        let table = format!(
            "[log]\norigin = \"{ORIGIN}\"\nkey_file = \"{}\"\ncheckpoint_seconds = 1\n",
            text(&place)
        );
        let world = World::start_with(|launch, _| launch.arg("--dev").configured(&table));
        world.activate("acme/app", &Self::signers(transparency), &[&alice()]);
        for version in ["1.0", "2.0"] {
            add_files(&world, &dir(version), &[("app.tar.gz", &content(version))], &[&alice()]);
        }
        let hostile = HostileServer::before(&world.server);
        let user = Victim::of(&hostile);
        Self { world, hostile, user, _config: config }
    }

    pub(crate) fn signers(transparency: Option<Value>) -> SignersFile {
        let file = SignersFile::of(1, &[&alice()]);
        match transparency {
            Some(transparency) => file.with("transparency", transparency),
            None => file,
        }
    }

    pub(crate) fn url(&self, version: &str) -> String {
        self.world.files.url(&format!("/{}/app.tar.gz", dir(version)))
    }

    pub(crate) fn index(&self, version: &str) -> String {
        self.world.index_path(&dir(version))
    }

    /// The server's own staple, once its checkpoint covers all commits.
    #[track_caller]
    pub(crate) fn staple(&self, version: &str) -> Staple {
        let begin = std::time::Instant::now();
        loop {
            let newest = self.world.git().run(&["rev-parse", "main"]);
            let reply = self.world.server.get(&format!("/v1/proof/{}", self.index(version)));
            if reply.status == 200 {
                let staple = Staple::parse(&reply.body).expect("a staple");
                if staple.leaf.commit == newest {
                    return staple;
                }
            }
            assert!(begin.elapsed() < TIMEOUT, "no checkpoint of {newest}: {}", reply.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The staple of a release, cosigned by these witnesses.
    #[track_caller]
    pub(crate) fn cosigned(&self, version: &str, witnesses: &[(usize, i64)]) -> Staple {
        with_cosignatures(self.staple(version), witnesses)
    }

    /// From now on the server shows this staple for a release.
    pub(crate) fn show(&self, version: &str, staple: &Staple) {
        self.hostile.answer(&format!("/v1/proof/{}", self.index(version)), Lie::bytes(staple.write()));
    }

    /// All leaves of the server's own log, once it covers all commits. There are fewer than a tile has.
    #[track_caller]
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        let size = self.staple("2.0").proof.index + 1;
        let name = TileName::new(TileKind::Entries, 0, size);
        parse_bundle(&self.world.server.get(&format!("/log/tile/{name}")).body).expect("leaves")
    }

    /// From now on the server shows a log of these leaves, which its key has signed, whatever they say: checkpoints and
    /// tiles that agree with each other. Witnesses that only check consistency cosign it.
    pub(crate) fn show_log(&self, leaves: Vec<Leaf>, witnesses: &[(usize, i64)]) {
        let mut tree = Tree::default();
        leaves.iter().for_each(|leaf| tree.push(leaf.hash()));
        let size = tree.len();
        let root = tree.root(size).expect("a root");
        let signed = Checkpoint { origin: ORIGIN.to_owned(), size, root }.sign(&log_key(), &secret("log"));
        let note = cosign(signed, witnesses).note().to_string();
        self.hostile.lie(move |asked| {
            let path = asked.path.as_str();
            if matches!(path, "/log/checkpoint" | "/log/cosigned") {
                return Some(Lie::bytes(note.clone()));
            }
            let name = TileName::parse(path.strip_prefix("/log/tile/")?)?;
            let bytes = match name.kind() {
                TileKind::Entries => write_bundle(&leaves),
                TileKind::Hashes { level } => {
                    let hashes = tree.tile_hashes(usize::from(level), name.range())?;
                    hashes.iter().flat_map(Hash::as_bytes).copied().collect()
                }
            };
            Some(Lie::bytes(bytes))
        });
    }

    /// An honest server, whose witnesses have cosigned a minute ago.
    #[track_caller]
    pub(crate) fn show_cosigned(&self, version: &str) -> Staple {
        let staple = self.cosigned(version, THREE);
        self.show(version, &staple);
        staple
    }
}

pub(crate) fn dir(version: &str) -> String {
    format!("acme/app/{version}")
}

pub(crate) fn content(version: &str) -> Vec<u8> {
    format!("the app, version {version}").into_bytes()
}

pub(crate) fn with_cosignatures(staple: Staple, witnesses: &[(usize, i64)]) -> Staple {
    let signed = SignedCheckpoint::open(&staple.proof.note, &[log_key()], &[]).expect("the log's own");
    let note = cosign(signed, witnesses).note();
    Staple { proof: InclusionProof { note, ..staple.proof }, ..staple }
}

pub(crate) fn cosign(mut signed: SignedCheckpoint, witnesses: &[(usize, i64)]) -> SignedCheckpoint {
    for (n, seconds_ago) in witnesses {
        let time = u64::try_from(now().unix_seconds() - seconds_ago).expect("after 1970");
        let line = signed.cosign(&witness_key(*n), &secret(&format!("witness {n}")), time).line;
        signed.add_cosignatures(&[line], &[witness_key(*n)]).expect("a cosignature");
    }
    signed
}

/// Shows the state of a staple in another log of this size, signed with the same key. All leaves before the last are
/// others.
pub(crate) fn forked(staple: &Staple, size: u64, witnesses: &[(usize, i64)]) -> Staple {
    let mut tree = Tree::default();
    let zero = Sha256::of(b"another past");
    let other = Leaf { commit: "0".repeat(40), object: zero, changes: zero, state: zero };
    (1..size).for_each(|_| tree.push(other.hash()));
    tree.push(staple.leaf.hash());
    let root = tree.root(size).expect("a root");
    let signed = Checkpoint { origin: ORIGIN.to_owned(), size, root }.sign(&log_key(), &secret("log"));
    let hashes = tree.inclusion(size - 1, size).expect("a leaf");
    let proof = InclusionProof { index: size - 1, hashes, note: cosign(signed, witnesses).note() };
    Staple { proof, ..staple.clone() }
}
