//! Keeps the newest checkpoints. They are no cache: a log that forgets what it has signed can contradict itself.

use std::{fmt, io, path::Path, path::PathBuf, sync::Arc};

use countersign_core::values::bounds::NOTE_BYTES;
use countersign_store::{Disk, machine::disk};
use thiserror::Error;

/// A keeper of checkpoints: for a server on its own its data directory; for nodes, the database that they share.
pub trait CheckpointKeeper: fmt::Debug + Send {
    fn load(&mut self) -> Result<KeptNotes, KeepError>;

    /// The place of the newest checkpoint, for messages.
    fn location(&self) -> String;

    /// Keeps a new checkpoint in place of the one with `before` commits, or of none. When this returns, it is durable.
    fn keep_newest(&mut self, before: u64, note: &str) -> Result<(), KeepError>;

    /// Keeps the newest checkpoint that witnesses have cosigned.
    fn keep_cosigned(&mut self, note: &str) -> Result<(), KeepError>;

    /// Whether other nodes sign as well. Then they are looked for every second, and [`KeepError::Overtaken`] is no
    /// failure.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether this is the copy of another server's log. Then what witnesses said is kept as it was shown: their keys
    /// are not known here, and those who trust them verify it.
    fn is_copy(&self) -> bool {
        false
    }

    /// The caches of this machine go up to this checkpoint.
    fn note_cached(&mut self, _note: &str) -> Result<(), KeepError> {
        Ok(())
    }
}

/// Notes as they were kept. Nothing of them is checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptNotes {
    pub newest: Option<Vec<u8>>,
    pub cosigned: Option<Vec<u8>>,
    /// The checkpoint up to which the caches of this machine go, if that is not the newest one.
    pub cached: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Error)]
pub enum KeepError {
    #[error("the checkpoint {} cannot be used", path.display())]
    File { path: PathBuf, source: Arc<io::Error> },
    #[error(
        "{location} holds no checkpoint that the key {key} of this log has signed: {reason}. If the key or the origin is a new \
         one, this is another log: move the old checkpoint away to begin it. Otherwise put it back from a backup"
    )]
    Unusable { location: String, key: String, reason: String },
    #[error("another node has signed a checkpoint meanwhile")]
    Overtaken,
    #[error("the database, which keeps the checkpoints of all nodes, cannot be reached")]
    Unreachable(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

/// A keeper with two files in a directory, each replaced as a whole.
#[derive(Debug)]
pub struct CheckpointFiles {
    disk: Disk,
    dir: PathBuf,
}

impl CheckpointFiles {
    pub const NEWEST: &str = "checkpoint";
    pub const COSIGNED: &str = "cosigned";

    pub fn new(dir: &Path) -> Self {
        Self::on(Disk::default(), dir)
    }

    /// A keeper on a disk that a test can make fail.
    pub fn on(disk: Disk, dir: &Path) -> Self {
        Self { disk, dir: dir.to_owned() }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, KeepError> {
        let path = self.dir.join(name);
        let found = disk::read(&path, NOTE_BYTES as u64);
        found.map_err(|source| KeepError::File { path, source: Arc::new(source) })
    }

    fn replace(&self, name: &str, text: &str) -> Result<(), KeepError> {
        let path = self.dir.join(name);
        let replaced = self.disk.replace(&path, text);
        replaced.map_err(|source| KeepError::File { path, source: Arc::new(source) })
    }
}

impl CheckpointKeeper for CheckpointFiles {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        // A kill may have come between a rename and its fsync. What is read now must not go back later; neither must
        // the directory itself.
        let settled = self.disk.settle_dir(&self.dir);
        settled.map_err(|source| KeepError::File { path: self.dir.clone(), source: Arc::new(source) })?;
        Ok(KeptNotes { newest: self.read(Self::NEWEST)?, cosigned: self.read(Self::COSIGNED)?, cached: None })
    }

    fn location(&self) -> String {
        self.dir.join(Self::NEWEST).display().to_string()
    }

    // This process is the only one that writes to the data directory.
    fn keep_newest(&mut self, _before: u64, note: &str) -> Result<(), KeepError> {
        self.replace(Self::NEWEST, note)
    }

    fn keep_cosigned(&mut self, note: &str) -> Result<(), KeepError> {
        self.replace(Self::COSIGNED, note)
    }
}
