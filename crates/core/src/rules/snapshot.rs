//! How a decision sees the repository, what it asks to be changed there, and the commit message of each. A part of a
//! repository in memory.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use thiserror::Error;

use crate::documents::history::{Agreement, EntryFacts};
use crate::documents::signers::{Metadata, SignersFile};
use crate::documents::{layout, layout::Signable, signatures::SignatureSet};
use crate::values::{digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp};

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
        self.read_document(path, SignatureSet::parse)
    }

    /// The document at `path`, as `parse` reads it; `None` where there is no file.
    fn read_document<T>(
        &self,
        path: &RepoPath,
        parse: fn(&[u8]) -> Result<T, ParseError>,
    ) -> Result<Option<T>, ReadError> {
        self.read(path)?.map(|bytes| parse_stored(path, parse(&bytes))).transpose()
    }

    /// The project of the nearest active signers file at or above `path`.
    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        path.self_and_ancestors().find(|dir| self.contains(&layout::active_signers(dir)))
    }

    /// What is known of the entry of a history that is stored at `path`. The same bytes always say the same, so an
    /// implementation may remember it.
    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.read_document(path, EntryFacts::parse)
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

// The commit message of each decision: how it begins, and its lines. A replay reads there what a commit claims to be.

pub const CREATE: &str = "Create the repository";
pub const REGISTER: &str = "Register";
pub const PROPOSE: &str = "Propose signers for";
pub const REPLACE: &str = "Replace the proposed signers of";
pub const SIGN: &str = "Sign";
pub const COMPLETE: &str = "Sign and complete";
pub const ACTIVATE: &str = "Activate the signers of";
pub const AGREE: &str = "Agree to the signers of";
pub const RECORD_VETO: &str = "Record a veto of the pending signers of";
pub const VETO: &str = "Veto the pending signers of";
pub const ADD: &str = "Add";
pub const CORRECT: &str = "Correct";
pub const WITHDRAW: &str = "Withdraw";
pub const OBJECT: &str = "Object to";
pub const TAKE_BACK_OBJECTION: &str = "Take back the objection to";
pub const REBUILD: &str = "Record a rebuild of";
pub const REBUILD_OTHERWISE: &str = "Record a different rebuild of";
pub const RECORD_REVOCATION: &str = "Record a revocation signature on";
pub const REVOKE: &str = "Revoke";
pub const DROP: &str = "Drop the pending signers of";

/// The titles that a subject follows. The title of a completion stands before the one that it begins with.
#[rustfmt::skip]
pub const TITLES: [&str; 19] = [
    REGISTER, PROPOSE, REPLACE, ACTIVATE, AGREE, RECORD_VETO, VETO, COMPLETE, SIGN, ADD, CORRECT, WITHDRAW, OBJECT,
    TAKE_BACK_OBJECTION, REBUILD, REBUILD_OTHERWISE, RECORD_REVOCATION, REVOKE, DROP,
];

/// The beginnings of the lines below the title.
pub const BY: &str = "By: ";
pub const FROM: &str = "From: ";
pub const DUE: &str = "Due: ";

/// The message of a change to `subject` that the owner of a key makes. More lines can follow.
pub(crate) fn message(title: &str, subject: &RepoPath, by: &PublicKey) -> String {
    format!("{title} {subject}\n\n{BY}{by}\n")
}

/// The line that says when signers take effect that wait.
pub(crate) fn due_line(agreement: &Agreement) -> String {
    format!("{DUE}{}\n", agreement.due_at)
}

// A part of a repository in memory: what a server showed, or what a drill plays on.

/// Files in memory that can be read as a repository.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    files: BTreeMap<RepoPath, Arc<[u8]>>,
    /// Parsed signers files. A drill asks for the same file with each signature, and checking its keys takes longest.
    signers: RefCell<BTreeMap<RepoPath, StoredSigners>>,
}

impl Scratch {
    pub fn put(&mut self, path: RepoPath, bytes: impl Into<Arc<[u8]>>) {
        self.files.insert(path, bytes.into());
    }

    /// Forgets a file.
    pub fn remove(&mut self, path: &RepoPath) {
        self.files.remove(path);
    }

    /// Takes files of another one over.
    pub fn absorb(&mut self, other: &Self, wanted: impl Fn(&RepoPath) -> bool) {
        let wanted = other.files.iter().filter(|(path, _)| wanted(path));
        self.files.extend(wanted.map(|(path, bytes)| (path.clone(), Arc::clone(bytes))));
    }

    /// Changes files as a store would.
    pub fn apply(&mut self, change: &Change) {
        for (path, content) in &change.files {
            match content {
                Some(bytes) => drop(self.files.insert(path.clone(), Arc::clone(bytes))),
                None => drop(self.files.remove(path)),
            }
        }
    }

    fn projects(&self) -> impl Iterator<Item = RepoPath> {
        self.files.keys().filter_map(|path| match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => Some(project),
            Some(Signable::Index) | None => layout::project_of_active_signers(path),
        })
    }
}

impl Snapshot for Scratch {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        Ok(self.files.get(path).cloned())
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let Some(bytes) = self.files.get(path) else { return Ok(None) };
        let known = self.signers.borrow().get(path).filter(|known| Arc::ptr_eq(&known.bytes, bytes)).cloned();
        if let Some(known) = known {
            return Ok(Some(known));
        }
        let parsed = StoredSigners::parse(path, Arc::clone(bytes))?;
        self.signers.borrow_mut().insert(path.clone(), parsed.clone());
        Ok(Some(parsed))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.files.contains_key(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        Ok(self.files.keys().filter(|file| file.is_inside(dir)).cloned().collect())
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let overlaps = |other: &RepoPath| {
            other.as_str().eq_ignore_ascii_case(id.as_str()) || other.is_inside(id) || id.is_inside(other)
        };
        let mut projects: Vec<RepoPath> = self.projects().filter(overlaps).collect();
        projects.dedup();
        projects
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let waiting = self.projects().filter(|project| {
            project.is_inside(dir) && !self.files.contains_key(&layout::active_signers(project))
        });
        let metadata = |project| self.files.get(&layout::metadata_of(&layout::pending_signers(&project)));
        let parsed = waiting.filter_map(metadata).filter_map(|bytes| Metadata::parse(bytes).ok());
        parsed.map(|metadata| metadata.origin.retrieved_at).collect()
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let is_collecting = |path: &&RepoPath| {
            layout::signable(path) == Some(Signable::Index)
                && path.is_inside(project)
                && self.files.contains_key(&layout::pending_signatures_of(path))
        };
        self.files.keys().filter(is_collecting).cloned().collect()
    }
}
