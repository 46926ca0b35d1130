//! Histories of signers, assembled from their entries (D42): as the file of the specification, and as a chain.
//!
//! Nothing is parsed. The connection's thread answers a short history that is in memory. Any other is read outside the
//! runtime, a part at a time, so that a reader costs no more memory than one part.

use std::{cell::Cell, sync::Arc};

use axum::{body::Body, body::Bytes, response::Response};
use countersign_api::assembly::Assembly;
use countersign_core::documents::{history::EntryFacts, layout};
use countersign_core::rules::snapshot::{ReadError, Snapshot, StoredSigners};
use countersign_core::rules::{chain, chain::ChainRefusal, chain::LocatedChain, stored};
use countersign_core::values::{bounds::FILE_BYTES, path::RepoPath, time::Timestamp};
use countersign_store::{Head, unreadable};

use crate::api::{routing::Question, state::App};
use crate::http::{error::ApiError, sending::BodyPart, sending::SMALL_BYTES, sending::sized};

/// Every part except the last is at least this long.
const PART_BYTES: usize = 128 << 10;

/// A text made of the first entries of a history.
#[derive(Debug)]
pub(crate) struct HistoryEntries {
    head: Arc<Head>,
    project: RepoPath,
    count: usize,
    assembly: Assembly,
    bytes: usize,
}

impl HistoryEntries {
    /// The history file of a project; `None` if it has none.
    pub(crate) fn document(head: Arc<Head>, project: RepoPath) -> Result<Option<Self>, ReadError> {
        let count = stored::history_len(&*head, &project);
        (count > 0).then(|| Self::of(head, project, count, Assembly::document(count))).transpose()
    }

    pub(crate) fn chain(head: Arc<Head>, path: &RepoPath) -> Result<Self, ChainRefusal> {
        let LocatedChain { project, last: count } = chain::locate(&*head, path)?;
        Ok(Self::of(head, project, count, Assembly::chain(count))?)
    }

    fn of(head: Arc<Head>, project: RepoPath, count: usize, assembly: Assembly) -> Result<Self, ReadError> {
        let bytes = assembly.len(stored::history_facts(&*head, &project, count)?);
        Ok(Self { head, project, count, assembly, bytes })
    }

    /// Answers with all of it.
    pub(crate) async fn send(self, Question { app, sender, .. }: &Question) -> Result<Response, ApiError> {
        let length = self.bytes;
        let room = match length <= SMALL_BYTES {
            true => None,
            // In memory at a time: a part, and the entry that it ends with.
            false => Some(app.sending.hold(length.min(PART_BYTES + FILE_BYTES), sender).await?),
        };
        let entries = Arc::new(self);
        let reader = Arc::clone(&entries);
        let first = app.sending.read(move || reader.read_part(1)).await??;
        let body = match room {
            Some(room) => app.sending.stream(room, first, move |from| entries.read_part(from)),
            None => Body::from(first.bytes),
        };
        Ok(sized(body, length))
    }

    /// The part that begins with entry `from`. Positions are entries.
    fn read_part(&self, from: usize) -> Result<BodyPart, ReadError> {
        let mut part = Vec::with_capacity(self.bytes.min(PART_BYTES));
        for number in from..=self.count {
            let path = layout::history_entry(&self.project, number);
            let found = self.head.file(&path).ok_or_else(|| stored::corrupt(&path, "it is missing"))?;
            let content = self.head.content(found).map_err(|error| unreadable(&path, &error))?;
            self.assembly.append(number, &content, &mut part);
            if part.len() >= PART_BYTES && number < self.count {
                return Ok(BodyPart { bytes: part.into(), next: Some(number + 1) });
            }
        }
        Ok(BodyPart { bytes: part.into(), next: None })
    }
}

/// The chain of a signed file if it is short and in memory; `None` if it has to be searched for.
pub(crate) fn cached_chain(app: &App, path: &RepoPath) -> Result<Option<Bytes>, ChainRefusal> {
    let head = app.store.glance();
    match chain::locate(&AtHand { head: &head, looks: Cell::new(0) }, path) {
        Ok(located) => Ok(assemble_cached(&head, located)),
        Err(ChainRefusal::Stored(_)) => Ok(None),
        Err(refusal @ ChainRefusal::NotSigned(_)) => Err(refusal),
    }
}

fn assemble_cached(head: &Head, LocatedChain { project, last }: LocatedChain) -> Option<Bytes> {
    let assembly = Assembly::chain(last);
    let mut text = Vec::new();
    for number in 1..=last {
        let found = head.file(&layout::history_entry(&project, number))?;
        let content = head.cached_content(found, SMALL_BYTES)?;
        if text.len() + content.len() > SMALL_BYTES {
            return None;
        }
        text.reserve(content.len() + 64);
        assembly.append(number, &content, &mut text);
    }
    Some(text.into())
}

/// How many entries the connection's thread looks at. A short chain has fewer.
const MOST_LOOKS: usize = 64;

/// What a head knows without reading. Anything that it would have to read or search for is an error here.
struct AtHand<'a> {
    head: &'a Head,
    looks: Cell<usize>,
}

fn not_cached(path: &RepoPath) -> ReadError {
    stored::corrupt(path, "it is not at hand")
}

impl Snapshot for AtHand<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        if self.head.contains(path) { Err(not_cached(path)) } else { Ok(None) }
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.head.contains(path)
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        self.head.known_signers(path).map_err(|_| not_cached(path))
    }

    fn governing_project(&self, path: &RepoPath) -> Option<RepoPath> {
        self.head.governing_project(path)
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() > MOST_LOOKS {
            return Err(not_cached(path));
        }
        self.head.known_entry_facts(path).map_err(|_| not_cached(path))
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        Err(not_cached(dir))
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
