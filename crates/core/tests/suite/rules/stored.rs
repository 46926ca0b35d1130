//! How stored documents are found, and what is said of a change.

use std::{cell::Cell, sync::Arc};

use countersign_core::rules::snapshot::{Change, ReadError, Scratch, Snapshot};
use countersign_core::rules::{decide::proposal::Proposal, stored, stored::ReleaseState};
use countersign_core::{documents::layout, values::path::RepoPath, values::time::Timestamp};
use countersign_testing::{INDEX, PENDING, PROJECT, World, alice, bob, path, release, signers};

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
fn files_in_memory_answer_as_a_repository_does() {
    let team = |time| signers(time).artifact(2, [&alice(), &bob()]);
    let mut world = World::with(&team("2026-01-31T10:00:00Z"), &[&alice(), &bob()]);
    world.release_signed_by(&[&alice(), &bob()]);
    world.add_release(&release("v2", "two"), &alice()).unwrap();
    world.update(&team("2026-02-01T10:00:00Z"), &alice()).unwrap();
    world.pass(60);
    let host = "https/github.com/443";
    for new in ["Acme/app", "acme/other", "acme/app2"].map(|name| path(&format!("{host}/{name}"))) {
        // The first overlaps, and is refused.
        let proposal = world.proposal(&team("2026-02-01T10:00:00Z"), &alice());
        let _ = world.register_proposal(&Proposal { project: new, ..proposal });
    }
    let mut all = Scratch::default();
    world.repo.names().iter().for_each(|name| all.put(path(name), world.repo.bytes(name)));
    let mut scratch = Scratch::default();
    scratch.absorb(&all, |file| file.is_inside(&path(host)));
    scratch.absorb(&Scratch::default(), |_| true);
    let (mut overlapping, mut waiting) = (0, 0);
    for dir in
        ["https", host, "https/github.com/443/acme", PROJECT, "https/github.com/443/ACME/APP", PENDING, INDEX]
    {
        let dir = path(dir);
        assert_eq!(scratch.files_below(&dir), world.repo.files_below(&dir), "{dir}");
        assert_eq!(scratch.projects_overlapping(&dir), world.repo.projects_overlapping(&dir), "{dir}");
        assert_eq!(scratch.pending_registrations(&dir), world.repo.pending_registrations(&dir), "{dir}");
        assert_eq!(scratch.collecting_indexes(&dir), world.repo.collecting_indexes(&dir), "{dir}");
        overlapping += scratch.projects_overlapping(&dir).len();
        waiting += scratch.pending_registrations(&dir).len();
    }
    assert!(overlapping > 5 && waiting > 3, "{overlapping} {waiting}");
    assert_eq!(scratch.collecting_indexes(&path(PROJECT)).len(), 1);
    for (name, file) in world.repo.names().into_iter().map(|name| (name, path(name))) {
        assert_eq!(scratch.read(&file).unwrap(), Some(world.repo.bytes(name)));
    }
}

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
