//! What is stored, by digest, project, name and key (D51, D52).
//!
//! Beside the head, and behind it: a question first brings the catalogue up to date, so that the writer never waits for
//! it. The tables say where to look; every answer is read from the head.

mod describe;
mod facts;
mod key_look;
mod look;
mod tables;

use std::sync::{Arc, Mutex, RwLock, atomic::AtomicBool, atomic::Ordering};
use std::{collections::BTreeSet, fmt};

use countersign_core::documents::{layout, layout::Signable};
use countersign_core::values::{path::RepoPath, wire};
use tokio::sync::watch;

pub use crate::catalogue::facts::FileDigest;
use crate::catalogue::facts::{DigestHasher, ProjectFacts, Reading, ReleaseFacts};
pub use crate::catalogue::look::{Look, ProjectName, ProjectSearch, UnknownAfter, WantedReleases};
use crate::catalogue::tables::Tables;
use crate::machine::clock::{lock, read, write};
use crate::snapshot::tree::{addressable, edit::Difference, edit::TooMany};
use crate::{snapshot::Head, writer::StoreState};

/// Follows a store. Cheap while no one asks.
pub struct Catalogue {
    store: Arc<StoreState>,
    hasher: DigestHasher,
    tables: RwLock<Tables>,
    /// What the tables were made from; `None` if they have to be made anew. Held while they are brought up to date.
    seen: Mutex<Option<Arc<Head>>>,
    is_ready: watch::Sender<bool>,
    is_stopping: AtomicBool,
}

impl Catalogue {
    pub(crate) fn new(store: Arc<StoreState>) -> Self {
        Self {
            store,
            hasher: DigestHasher::default(),
            tables: RwLock::default(),
            seen: Mutex::default(),
            is_ready: watch::Sender::new(false),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Becomes true when questions can be answered at once.
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.is_ready.subscribe()
    }

    pub fn is_ready(&self) -> bool {
        *self.is_ready.borrow()
    }

    /// The catalogue of the newest head. Reads what has changed; the first time, that is everything.
    pub fn look(&self) -> Look<'_> {
        self.catch_up();
        let tables = read(&self.tables);
        Look { head: self.store.published.load_full(), tables, hasher: &self.hasher }
    }

    /// Makes a `catch_up` that is under way end early, and any later one do nothing.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Reads everything that has changed since the last time. Takes long the first time.
    pub fn catch_up(&self) {
        let mut seen = lock(&self.seen);
        let head = self.store.published.load_full();
        if self.is_stopping() || seen.as_ref().is_some_and(|seen| seen.commit == head.commit) {
            return;
        }
        // Put back when all is done: after a panic, the next one begins anew.
        let changed = seen.take().map(|seen| Difference::between(&seen.root, &head.root));
        match changed {
            Some(Ok(difference)) => self.update(&difference, &head),
            // Where very much differs, to begin anew is as fast.
            Some(Err(TooMany)) | None => {
                let Some(tables) = self.build(&head) else { return };
                *write(&self.tables) = tables;
            }
        }
        *seen = Some(head);
        self.is_ready.send_if_modified(|is_ready| !std::mem::replace(is_ready, true));
    }

    fn build(&self, head: &Arc<Head>) -> Option<Tables> {
        let mut tables = Tables::making();
        let reading = Reading::of(head);
        for (_, project) in head.index.projects() {
            tables.set_project(project, &ProjectFacts::gather(&reading, project, 0));
        }
        let ending = format!("/{}", wire::INDEX_FILE);
        head.walk(&mut |path, _| {
            if self.is_stopping() || !path.ends_with(&ending) {
                return;
            }
            if let Some(index) = addressable(path) {
                tables.set_release(&index, ReleaseFacts::gather(&reading, &index, &self.hasher));
            }
        });
        tables.finish();
        (!self.is_stopping()).then_some(tables)
    }

    fn update(&self, difference: &Difference, head: &Arc<Head>) {
        let (mut indexes, mut projects) = (BTreeSet::new(), BTreeSet::new());
        // What is no longer a plain file has changed as well.
        let odd = difference.odd.keys().filter_map(|path| addressable(path));
        for path in difference.touched.iter().cloned().chain(odd) {
            match layout::signable_behind(&path) {
                Some(file) if layout::signable(&file) == Some(Signable::Index) => drop(indexes.insert(file)),
                Some(_) | None => projects.extend(layout::project_with_signers_at(&path)),
            }
        }
        // Only this thread changes the tables: it holds the lock of those who follow.
        let tables = read(&self.tables);
        // Whether a begun revocation has enough signatures depends on the signers in force.
        indexes.extend(projects.iter().flat_map(|project| tables.begun_in(project)));
        let reading = Reading::of(head);
        let gather = |index: &RepoPath| ReleaseFacts::gather(&reading, index, &self.hasher);
        let releases: Vec<_> = indexes.iter().map(gather).collect();
        let gather = |project| ProjectFacts::gather(&reading, project, tables.history_len(project));
        let facts: Vec<_> = projects.iter().map(gather).collect();
        drop(tables);
        let mut tables = write(&self.tables);
        projects.iter().zip(&facts).for_each(|(project, facts)| tables.set_project(project, facts));
        indexes.iter().zip(releases).for_each(|(index, facts)| tables.set_release(index, facts));
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}
