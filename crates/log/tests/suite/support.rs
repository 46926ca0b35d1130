//! A store with commits such as the rules make, and a log behind it.

use std::{fs, path::Path, path::PathBuf, sync::Arc, time::Duration, time::Instant};

use countersign_core::documents::{layout, transparency::WitnessGroup};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_core::{log::checkpoint::SignedCheckpoint, log::policy::Policy, rules::snapshot::Change};
use countersign_log::{CheckpointFiles, CheckpointSigner, LogError, LogOptions, LogRefusal, TransparencyLog};
use countersign_store::{Author, Disk, Options, Repository, Store, StoreRole, machine::clock::Clock};
use countersign_testing::{copy_dir, memory_dir, path};
use tempfile::TempDir;

pub(crate) const ORIGIN: &str = "sign.example.org/log";
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) store: Option<Store>,
    runtime: tokio::runtime::Runtime,
}

/// A key of a log or witness, with its secret half.
pub(crate) struct NamedKey {
    pub(crate) public: VerifierKey,
    pub(crate) secret: SecretKey,
}

impl NamedKey {
    pub(crate) fn signer(self) -> CheckpointSigner {
        CheckpointSigner::with_key(self.public, self.secret)
    }
}

pub(crate) fn log_key() -> NamedKey {
    named(ORIGIN, KeyKind::Log, 1)
}

pub(crate) fn witness(number: u8) -> NamedKey {
    named(&format!("witness-{number}.example"), KeyKind::Witness, 100 + number)
}

fn named(name: &str, kind: KeyKind, seed: u8) -> NamedKey {
    let secret = SecretKey::from_seed(&[seed; 32]);
    NamedKey { public: VerifierKey::new(name, kind, secret.public_key()).unwrap(), secret }
}

/// A project with its first signers.
pub(crate) fn register(project: &str) -> Change {
    rotate(project, 1)
}

pub(crate) fn rotate(project: &str, number: usize) -> Change {
    let project = path(project);
    let mut change = Change::new(format!("Signers {number} of {project}"));
    change.write(layout::active_signers(&project), format!("{project} {number}").into_bytes());
    change.write(layout::history_entry(&project, number), format!("entry {number}").into_bytes());
    change
}

pub(crate) fn index(release: &str) -> RepoPath {
    layout::index_in(&path(release))
}

/// A release that collects signatures.
pub(crate) fn publish(release: &str) -> Change {
    let mut change = Change::new(format!("Release {release}"));
    change.write(index(release), format!("index of {release}").into_bytes());
    change.write(layout::pending_signatures_of(&index(release)), b"{}".to_vec());
    change
}

pub(crate) fn complete(release: &str) -> Change {
    let mut change = Change::new(format!("Complete {release}"));
    change.write(layout::signatures_of(&index(release)), format!("signatures of {release}").into_bytes());
    change.delete(layout::pending_signatures_of(&index(release)));
    change
}

pub(crate) fn revoke(release: &str) -> Change {
    let mut change = Change::new(format!("Revoke {release}"));
    change.write(layout::revocation_of(&index(release)), format!("revocation of {release}").into_bytes());
    change
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::at(TempDir::new().unwrap())
    }

    /// In memory where the system has such a place, for tests with many commits.
    pub(crate) fn in_memory() -> Self {
        Self::at(memory_dir())
    }

    fn at(dir: TempDir) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut fixture = Self { dir, store: None, runtime };
        fixture.open();
        fixture
    }

    pub(crate) fn open(&mut self) {
        self.open_on(Disk::default());
    }

    pub(crate) fn open_on(&mut self, disk: Disk) {
        self.store = None;
        let options = Options {
            author: Author::new("Countersign", "countersign@localhost").unwrap(),
            clock: Clock::new(|| Timestamp::from_unix_seconds(1_700_000_000).unwrap()),
            initial: |_| {
                let mut initial = Change::new("Create the repository");
                initial.write(path("svc.repository.json"), b"{}\n".to_vec());
                initial
            },
            budget: None,
            speaks_for: |_, _| Ok(()),
            role: StoreRole::Single,
        };
        let repository = Repository::open_on(disk, &self.repository()).unwrap();
        self.store = Some(Store::start(repository, options).unwrap());
    }

    pub(crate) fn close(&mut self) {
        self.store = None;
    }

    /// Puts a copy of another repository in the place of this one.
    pub(crate) fn replace_repository(&mut self, other: &Path) {
        self.close();
        fs::remove_dir_all(self.repository()).unwrap();
        copy_dir(other, &self.repository());
        self.open();
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.dir.path().join("repo.git")
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    pub(crate) fn commit(&self, change: Change) {
        let stored = self.store().transact(move |_, _| Ok::<_, ()>((change.clone(), ())));
        self.runtime.block_on(stored).unwrap().unwrap();
    }

    /// Two projects, with releases in every state: 24 commits, and the first one of the repository.
    pub(crate) fn fill(&self) {
        for project in ["https/a.example/443/one", "https/a.example/443/two"] {
            self.commit(register(project));
            for number in 1..=4 {
                let release = format!("{project}/releases/v{number}");
                self.commit(publish(&release));
                self.commit(complete(&release));
            }
            self.commit(rotate(project, 2));
            self.commit(revoke(&format!("{project}/releases/v2")));
            self.commit(publish(&format!("{project}/releases/v5")));
        }
    }

    /// Signs as soon as something is new.
    pub(crate) fn options(&self) -> LogOptions {
        let key = log_key();
        LogOptions {
            dir: self.log_dir(),
            signer: Arc::new(CheckpointSigner::with_key(key.public, key.secret)),
            keeper: Box::new(CheckpointFiles::new(&self.log_dir())),
            checkpoint_every: Duration::ZERO,
            heartbeat_every: Duration::from_secs(3_600),
            policy: None,
            waits_for_witnesses: false,
            copied: None,
        }
    }

    pub(crate) fn start_log(&self) -> TransparencyLog {
        TransparencyLog::start(self.store(), self.options()).unwrap()
    }

    /// The newest checkpoint, once it covers all commits.
    pub(crate) fn wait_for_all(&self, log: &TransparencyLog) -> SignedCheckpoint {
        let size = self.commits();
        wait_for(log, |log| {
            log.newest_checkpoint()
                .filter(|newest| newest.checkpoint().size == size && log.figures().size == size)
        })
    }

    pub(crate) fn commits(&self) -> u64 {
        let mut export = self.store().journal(None).unwrap().unwrap();
        let mut count = 0;
        while export.next_entry().unwrap().is_some() {
            count += 1;
        }
        count
    }

    pub(crate) fn flip(&self, name: &str, at: usize) {
        let file = self.log_dir().join(name);
        let mut bytes = fs::read(&file).unwrap();
        bytes[at] ^= 0x10;
        fs::write(&file, bytes).unwrap();
    }
}

/// Waits for rounds of the log, and looks again after each; also now and then, for what comes without a round.
pub(crate) fn wait_for<T>(log: &TransparencyLog, look: impl Fn(&TransparencyLog) -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look(log) {
            return found;
        }
        assert!(begin.elapsed() < SOON, "it does not happen; trouble: {:?}", log.trouble());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Why the log must not sign, once it says so.
pub(crate) fn refusal(log: &TransparencyLog) -> LogRefusal {
    wait_for(log, |log| match log.trouble().as_deref() {
        Some(LogError::Refused(refusal)) => Some(refusal.clone()),
        _ => None,
    })
}

/// One group of all these witnesses.
pub(crate) fn policy(threshold: usize, witnesses: &[&NamedKey]) -> Policy {
    let keys = witnesses.iter().map(|witness| witness.public.clone()).collect();
    Policy::of_groups(log_key().public, &[WitnessGroup::new(threshold, keys)]).unwrap()
}
