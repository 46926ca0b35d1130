//! How stored documents are found.

use std::{cell::Cell, sync::Arc};

use countersign_core::{
    documents::layout,
    rules::{
        snapshot::{ReadError, Snapshot},
        stored,
    },
    values::{path::RepoPath, time::Timestamp},
};
use countersign_testing::{PROJECT, path};

/// A history of so many entries, and how often it was asked for one.
struct Entries {
    names: Vec<RepoPath>,
    asked: Cell<usize>,
}

impl Entries {
    fn new(count: usize) -> Self {
        let names = (1..=count).map(|number| layout::history_entry(&path(PROJECT), number)).collect();
        Self { names, asked: Cell::new(0) }
    }
}

impl Snapshot for Entries {
    fn read(&self, _: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        panic!("no entry needs to be read")
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.asked.set(self.asked.get() + 1);
        assert!(self.asked.get() <= 1_000, "it asks for ever");
        self.names.contains(path)
    }

    fn files_below(&self, _: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        panic!("no list is needed")
    }

    fn projects_overlapping(&self, _: &RepoPath) -> Vec<RepoPath> {
        Vec::new()
    }

    fn pending_registrations(&self, _: &RepoPath) -> Vec<Timestamp> {
        Vec::new()
    }

    fn collecting_indexes(&self, _: &RepoPath) -> Vec<RepoPath> {
        Vec::new()
    }
}

#[test]
fn the_entries_of_a_history_are_counted_without_asking_for_each() {
    for count in (0..=70).chain([127, 128, 129, 500]) {
        let entries = Entries::new(count);
        assert_eq!(stored::history_len(&entries, &path(PROJECT)), count);
        let (asked, doublings) = (entries.asked.get(), count.max(1).ilog2() as usize);
        assert!(asked <= 2 * doublings + 2, "{asked} questions for {count} entries");
    }
}
