//! How a decision sees the repository, and what it asks to be changed there.

use std::{collections::BTreeMap, sync::Arc};

use thiserror::Error;

use crate::{
    documents::{history::EntryFacts, layout, signatures::SignatureSet, signers::SignersFile},
    values::{digest::Sha512, json::ParseError, path::RepoPath, time::Timestamp},
};

/// The repository at one commit. Implemented by the server's store, and by a map in tests.
pub trait Snapshot {
    /// The bytes of the file at `path`; `None` where there is no file (a directory is none).
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError>;

    /// Whether there is a file at `path`, without reading it.
    fn contains(&self, path: &RepoPath) -> bool;

    /// The signers file at `path`. Checking its keys is the costliest part of most decisions, so an implementation may
    /// remember the result: the same bytes are always the same signers.
    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let bytes = self.read(path)?;
        bytes.map(|bytes| StoredSigners::parse(path, bytes)).transpose()
    }

    /// The signatures file at `path`, as with [`Snapshot::read_signers`].
    fn read_signatures(&self, path: &RepoPath) -> Result<Option<SignatureSet>, ReadError> {
        self.read(path)?.map(|bytes| parse_stored(path, SignatureSet::parse(&bytes))).transpose()
    }

    /// The project of the nearest active signers file at or above `path`.
    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        path.self_and_ancestors().find(|dir| self.contains(&layout::active_signers(dir)))
    }

    /// What is known of the entry of a history that is stored at `path`. The same bytes always say the same, so an
    /// implementation may remember it.
    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.read(path)?.map(|bytes| parse_stored(path, EntryFacts::parse(&bytes))).transpose()
    }

    /// Every file below the directory `dir`, sorted.
    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError>;

    /// Every project, registered or pending, that is `id` in any letter case, lies inside it, or contains it.
    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath>;

    /// The times at which the signers files of projects below `dir` were fetched whose first registration still waits
    /// for signatures.
    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp>;

    /// Indexes below `project` that still collect signatures, sorted.
    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath>;
}

/// A signers file with the exact bytes that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSigners {
    pub bytes: Arc<[u8]>,
    pub digest: Sha512,
    pub file: Arc<SignersFile>,
}

impl StoredSigners {
    pub fn parse(path: &RepoPath, bytes: Arc<[u8]>) -> Result<Self, ReadError> {
        let file = Arc::new(parse_stored(path, SignersFile::parse(&bytes))?);
        Ok(Self { digest: Sha512::of(&bytes), bytes, file })
    }
}

/// A stored file could not be read, or is not what it must be. The fault is ours, not the caller's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the stored file {path} cannot be used: {reason}")]
pub struct ReadError {
    pub path: RepoPath,
    pub reason: String,
}

pub fn corrupt(path: &RepoPath, reason: impl Into<String>) -> ReadError {
    ReadError { path: path.clone(), reason: reason.into() }
}

pub fn parse_stored<T>(path: &RepoPath, parsed: Result<T, ParseError>) -> Result<T, ReadError> {
    parsed.map_err(|error| corrupt(path, error.to_string()))
}

/// Files to write and to delete, as one commit. Without any file it stands for "nothing to do".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The files by path, with their new content, or `None` for a file that goes away.
    pub files: BTreeMap<RepoPath, Option<Arc<[u8]>>>,
    pub message: String,
}

impl Change {
    pub fn new(message: impl Into<String>) -> Self {
        Self { files: BTreeMap::new(), message: message.into() }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The message as the store records it: Git wants no NUL in it, and one line break at its end.
    pub fn recorded_message(&self) -> String {
        self.message.trim_end().replace('\0', "\u{fffd}") + "\n"
    }

    pub fn write(&mut self, path: RepoPath, bytes: impl Into<Arc<[u8]>>) {
        self.files.insert(path, Some(bytes.into()));
    }

    pub fn delete(&mut self, path: RepoPath) {
        self.files.insert(path, None);
    }
}
