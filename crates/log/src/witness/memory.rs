//! What a witness must not forget: a file for each log, replaced as a whole.

use std::{fs, io, path::Path, path::PathBuf, sync::Arc};

use countersign_core::log::checkpoint::{Checkpoint, SignedCheckpoint, WitnessRequest};
use countersign_core::log::network::{KnownLogs, LogListError};
use countersign_core::log::{note::Note, tree::Hash};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::NOTE_BYTES, digest::Sha256};
use countersign_store::{Disk, machine::disk};
use thiserror::Error;

const PINNED: &str = "log.vkey";
const KNOWN: &str = "known-logs";
const EVIDENCE: &str = "evidence-";
/// What stands before the hash of an origin in the name of a file: nothing for the record itself.
const RECORD: &str = "";
const STOPPED: &str = "stopped-";
const DOUBTFUL: &str = "doubtful-";

#[derive(Debug)]
pub(super) struct WitnessMemory {
    disk: Disk,
    pub(super) dir: PathBuf,
}

/// Why a witness cosigns nothing more of a log (D95).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessStop {
    pub origin: String,
    pub reason: String,
    /// The file with both checkpoints.
    pub evidence: String,
}

#[derive(Debug, Clone, Error)]
pub enum WitnessMemoryError {
    #[error("the file {} of the witness cannot be used", path.display())]
    File { path: PathBuf, source: Arc<io::Error> },
    #[error(
        "{} is not a record of the log {origin}: {reason}. A witness that forgets what it has cosigned can contradict itself: \
         put the file back, or begin a witness with a new key",
        path.display()
    )]
    Unusable { path: PathBuf, origin: String, reason: String },
    #[error(
        "{} does not say which logs this witness knows from lists. Put it back from a backup. If you have none, remove it: the \
         logs that the lists have now are then taken anew",
        path.display()
    )]
    Known { path: PathBuf, source: LogListError },
}

impl WitnessMemory {
    pub(super) fn open(disk: Disk, dir: &Path) -> Result<Self, WitnessMemoryError> {
        // A kill may have come between a rename and its fsync. What is read now must not go back later.
        disk.settle_dir(dir).map_err(fail(dir))?;
        Ok(Self { disk, dir: dir.to_owned() })
    }

    /// The newest checkpoint on record.
    pub(super) fn load(
        &self,
        origin: &str,
        keys: &[VerifierKey],
        own: &[VerifierKey],
    ) -> Result<Option<SignedCheckpoint>, WitnessMemoryError> {
        let path = self.file(RECORD, origin);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let opened = Note::parse(&bytes).map_err(|error| error.to_string()).and_then(|note| {
            let opened = SignedCheckpoint::open(&note, keys, own);
            opened.map_err(|error| error.to_string())
        });
        let unusable = |reason| WitnessMemoryError::Unusable { path, origin: origin.to_owned(), reason };
        opened.map(Some).map_err(unusable)
    }

    /// Keeps a checkpoint. When this returns, it is durable.
    pub(super) fn keep(&self, signed: &SignedCheckpoint) -> Result<(), WitnessMemoryError> {
        self.replace(&self.file(RECORD, &signed.checkpoint().origin), &signed.note().to_string())
    }

    /// Loads the checkpoint that the log has signed without a proof. If it cannot be read, only a suspicion is gone.
    pub(super) fn load_doubtful(&self, origin: &str, keys: &[VerifierKey]) -> Option<SignedCheckpoint> {
        let bytes = read(&self.file(DOUBTFUL, origin)).ok()??;
        SignedCheckpoint::open(&Note::parse(&bytes).ok()?, keys, &[]).ok()
    }

    pub(super) fn keep_doubtful(&self, signed: &SignedCheckpoint) -> Result<(), WitnessMemoryError> {
        self.replace(&self.file(DOUBTFUL, &signed.checkpoint().origin), &signed.note().to_string())
    }

    pub(super) fn load_stop(&self, origin: &str) -> Result<Option<WitnessStop>, WitnessMemoryError> {
        let text = read(&self.file(STOPPED, origin))?;
        Ok(text.map(|text| {
            let text = String::from_utf8_lossy(&text);
            let mut lines = text.lines().map(ToOwned::to_owned);
            WitnessStop {
                origin: origin.to_owned(),
                reason: lines.next().unwrap_or_else(|| "an unknown reason".to_owned()),
                evidence: lines.next().unwrap_or_default(),
            }
        }))
    }

    /// Keeps what proves the fork, then the fact that the witness has stopped.
    pub(super) fn stop(
        &self,
        signed: &[&SignedCheckpoint],
        contradiction: &Contradiction,
    ) -> Result<WitnessStop, WitnessMemoryError> {
        let Contradiction { origin, reason, size, own_root, shown_by } = contradiction;
        let own = own_root.map_or_else(
            || "not replayed here\n".to_owned(),
            |root| Checkpoint { origin: origin.clone(), size: *size, root }.text(),
        );
        let signed: String =
            signed.iter().map(|signed| format!("=== the log has signed ===\n{}\n", signed.note())).collect();
        let proof = shown_by.as_ref().map_or_else(String::new, |request| {
            format!(
                "=== the request of the log, whose proof leads to another root ===\n{}\n",
                request.write()
            )
        });
        let text = format!("{reason}\n\n{signed}{proof}=== what the journal of the log gives ===\n{own}");
        let name = format!("{EVIDENCE}{}-{}", hash_of(origin), Sha256::of(text.as_bytes()));
        let stop = WitnessStop { origin: origin.clone(), reason: reason.clone(), evidence: name };
        self.replace(&self.dir.join(&stop.evidence), &text)?;
        let text = format!("{}\n{}\n{}\n", stop.reason, stop.evidence, stop.origin);
        self.replace(&self.file(STOPPED, &stop.origin), &text)?;
        Ok(stop)
    }

    pub(super) fn pinned_key(&self) -> Result<Option<VerifierKey>, WitnessMemoryError> {
        let path = self.dir.join(PINNED);
        let Some(text) = read(&path)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&text);
        let parsed = VerifierKey::parse_kind(text.trim(), KeyKind::Log);
        let origin = "of the origin".to_owned();
        parsed.map(Some).map_err(|error| WitnessMemoryError::Unusable {
            path,
            origin,
            reason: error.to_string(),
        })
    }

    pub(super) fn pin_key(&self, key: &VerifierKey) -> Result<(), WitnessMemoryError> {
        self.replace(&self.dir.join(PINNED), &format!("{key}\n"))
    }

    pub(super) fn refuse_key(&self, key: &VerifierKey) -> WitnessMemoryError {
        let (path, origin) = (self.dir.join(PINNED), key.name().to_owned());
        let reason = "the policy file names another key for the log of the server that this witness follows";
        WitnessMemoryError::Unusable { path, origin, reason: reason.to_owned() }
    }

    /// The logs that lists have had.
    pub(super) fn load_known(&self) -> Result<KnownLogs, WitnessMemoryError> {
        let path = self.dir.join(KNOWN);
        let read = disk::read(&path, KnownLogs::MAX_BYTES as u64).map_err(fail(&path))?;
        let Some(bytes) = read else { return Ok(KnownLogs::default()) };
        KnownLogs::parse(&bytes).map_err(|source| WitnessMemoryError::Known { path, source })
    }

    pub(super) fn keep_known(&self, known: &KnownLogs) -> Result<(), WitnessMemoryError> {
        self.replace(&self.dir.join(KNOWN), &known.write())
    }

    fn file(&self, kind: &str, origin: &str) -> PathBuf {
        self.dir.join(format!("{kind}{}", hash_of(origin)))
    }

    fn replace(&self, path: &Path, text: &str) -> Result<(), WitnessMemoryError> {
        self.disk.replace(path, text).map_err(fail(path))
    }
}

/// The operator's decision to cosign again, on the directory of a stopped witness too. Whether there was anything to
/// decide. The evidence stays.
pub fn forget_stops(dir: &Path) -> Result<bool, WitnessMemoryError> {
    let mut had_stops = false;
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries.map_err(fail(dir))?,
    };
    for entry in entries {
        let entry = entry.map_err(fail(dir))?;
        if entry.file_name().to_string_lossy().starts_with(STOPPED) {
            had_stops |= disk::remove(&entry.path()).map_err(fail(dir))?;
        }
    }
    Ok(had_stops)
}

pub(super) fn hash_of(origin: &str) -> Sha256 {
    Sha256::of(origin.as_bytes())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, WitnessMemoryError> {
    disk::read(path, NOTE_BYTES as u64).map_err(fail(path))
}

fn fail(path: &Path) -> impl Fn(io::Error) -> WitnessMemoryError {
    let path = path.to_owned();
    move |source| WitnessMemoryError::File { path: path.clone(), source: Arc::new(source) }
}

// A log that contradicts what its witness knows.

/// What the log says, and what it should say.
#[derive(Debug, Clone)]
pub(super) struct Contradiction {
    pub(super) origin: String,
    pub(super) reason: String,
    pub(super) size: u64,
    /// The root that the witness has computed itself.
    pub(super) own_root: Option<Hash>,
    /// What the log has sent, if its own proof shows the contradiction.
    pub(super) shown_by: Option<WitnessRequest>,
}
