//! How stored documents are found, and what is said of a change.

use std::{cell::Cell, sync::Arc};

use countersign_core::rules::snapshot::{Change, ReadError, Snapshot};
use countersign_core::rules::{stored, stored::ReleaseState};
use countersign_core::{documents::layout, values::path::RepoPath, values::time::Timestamp};
use countersign_testing::{INDEX, PROJECT, path};

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

/// What Git would not keep as it is cannot be told from a change that someone else made.
#[test]
fn a_message_is_recorded_without_nul_and_with_one_line_break_at_its_end() {
    let recorded = |message: &str| Change::new(message).recorded_message();
    for message in ["Sign app", "Sign app\n", "Sign app\n\n \n"] {
        assert_eq!(recorded(message), "Sign app\n", "{message:?}");
    }
    assert_eq!(recorded("Sign\n\nBy: a\0b\n"), "Sign\n\nBy: a\u{fffd}b\n");
}

/// In a damaged repository, the state that allows least is believed.
#[test]
fn an_index_that_is_gone_has_no_state_and_one_that_collects_is_not_complete() {
    let index = path(INDEX);
    let state = |files: &[RepoPath]| {
        let entries = Entries { names: files.to_vec(), asked: Cell::new(0) };
        stored::index_state(&entries, &index).map_err(|error| error.path)
    };
    let (pending, complete) = (layout::pending_signatures_of(&index), layout::signatures_of(&index));
    let revoked = layout::revoked_signatures_of(&index);
    assert_eq!(state(&[]), Ok(None));
    assert_eq!(state(&[pending.clone(), complete.clone(), revoked.clone()]), Ok(None));
    assert_eq!(state(std::slice::from_ref(&index)), Err(index.clone()), "it has no signatures file");
    assert_eq!(state(&[index.clone(), pending.clone()]), Ok(Some(ReleaseState::Collecting)));
    assert_eq!(state(&[index.clone(), pending, complete.clone()]), Ok(Some(ReleaseState::Collecting)));
    assert_eq!(state(&[index.clone(), complete]), Ok(Some(ReleaseState::Complete)));
    assert_eq!(state(&[index.clone(), revoked]), Ok(Some(ReleaseState::Revoked)));
}
