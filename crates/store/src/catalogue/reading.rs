//! A head whose files are read past the cache, and counted: a list must not read without bound, nor push out of the cache
//! what others read all the time.

use std::{cell::Cell, sync::Arc};

use countersign_core::{
    documents::history::EntryFacts,
    rules::snapshot::{ReadError, Snapshot, StoredSigners},
    values::{bounds::FILE_BYTES, path::RepoPath, time::Timestamp},
};
use gix::objs::Kind;

use crate::snapshot::head::{Head, unreadable};

pub(super) struct Reading<'a> {
    head: &'a Head,
    bytes: Cell<usize>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(head: &'a Head) -> Self {
        Self { head, bytes: Cell::new(0) }
    }

    /// How many bytes were read so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }
}

impl Snapshot for Reading<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        let Some(found) = self.head.file(path) else { return Ok(None) };
        let content: Arc<[u8]> = match self.head.content_at_hand(found, FILE_BYTES) {
            Some(content) => Arc::from(&content[..]),
            None => {
                let read = self.head.objects.read(&found.id, Kind::Blob);
                read.map_err(|error| unreadable(path, &error))?.into()
            }
        };
        self.bytes.set(self.bytes.get() + content.len());
        Ok(Some(content))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.head.contains(path)
    }

    /// Reads a signers file through the cache: the copies of one project are all the same.
    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        if let Ok(known) = self.head.known_signers(path) {
            return Ok(known);
        }
        let read = self.head.read_signers(path)?;
        self.bytes.set(self.bytes.get() + read.as_ref().map_or(0, |signers| signers.bytes.len()));
        Ok(read)
    }

    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        self.head.governing_project(path)
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.head.read_entry_facts(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        self.head.files_below(dir)
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        self.head.projects_overlapping(id)
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        self.head.pending_registrations(dir)
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        self.head.collecting_indexes(project)
    }
}
