//! A store that follows another one has the same commits, or says which one the rules do not give.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_core::{rules::snapshot::Change, values::bounds::NEW_DIRECTORIES};
use countersign_store::journal::{JournalEntry, follow::FollowError};
use countersign_store::{
    Disk, ObjectId, Options, Repository, Store, StoreError, StoreRole, machine::clock::Clock,
};

use crate::support::replaying::{Recorded, everything, first_of_everything, speaks_for};
use crate::support::{Fixture, commit, contents, disk_that_doubts_a_move, options, path};

/// A store with these commits, made at these times.
pub(super) async fn origin(fixture: &Fixture, steps: &[Recorded]) -> Store {
    let (times, next): (Vec<_>, _) = (steps.iter().map(|step| step.time).collect(), AtomicUsize::new(0));
    let clock = Clock::new(move || times[next.fetch_add(1, Ordering::Relaxed)]);
    let options = Options { clock, initial: first_of_everything, speaks_for, ..options() };
    let store = Store::start(Repository::open(&fixture.repository()).unwrap(), options).unwrap();
    for step in &steps[1..] {
        let change = step.change();
        commit(&store, change).await.unwrap();
    }
    store
}

fn follower(fixture: &Fixture) -> Store {
    follower_on(fixture, Disk::default())
}

fn follower_on(fixture: &Fixture, disk: Disk) -> Store {
    let options = Options { speaks_for, role: StoreRole::Mirror, ..options() };
    Store::start(Repository::open_on(disk, &fixture.repository()).unwrap(), options).unwrap()
}

pub(super) fn entries_of(store: &Store, after: Option<ObjectId>) -> Vec<JournalEntry> {
    let mut export = store.journal(after).unwrap().unwrap();
    std::iter::from_fn(|| export.next_entry().unwrap()).collect()
}

/// The journal of a history with every kind of commit.
async fn journal() -> Vec<JournalEntry> {
    let fixture = Fixture::in_memory();
    entries_of(&origin(&fixture, &everything().steps).await, None)
}

#[tokio::test]
async fn it_has_the_same_commits_and_files() {
    let (fixture, copy) = (Fixture::new(), Fixture::new());
    let origin = origin(&fixture, &everything().steps).await;
    let follower = follower(&copy);
    assert!(follower.head().commit.is_null(), "a follower makes no commit of its own");
    follower.follow(entries_of(&origin, None)).await.unwrap();
    assert_eq!(follower.head().commit, origin.head().commit);
    assert_eq!(contents(&follower.head()), contents(&origin.head()));
    copy.check(&follower.head());
}

#[tokio::test]
async fn it_goes_on_after_a_restart_one_commit_at_a_time() {
    let entries = journal().await;
    let copy = Fixture::in_memory();
    for entry in &entries {
        follower(&copy).follow(vec![entry.clone()]).await.unwrap();
    }
    let store = follower(&copy);
    assert_eq!(store.head().commit, entries.last().unwrap().id);
    copy.check(&store.head());
}

#[tokio::test]
async fn every_kind_of_commit_with_a_changed_file_is_refused_and_what_came_before_stays() {
    let (steps, good) = (everything().steps, journal().await);
    for at in 1..steps.len() {
        let mut tampered = steps[..=at].to_vec();
        tampered[at].after.put(&path("extra"), b"{}");
        let entries = entries_of(&origin(&Fixture::in_memory(), &tampered).await, None);
        assert_eq!(entries[..at], good[..at]);
        let copy = Fixture::in_memory();
        let store = follower(&copy);
        let refused = store.follow(entries.clone()).await.unwrap_err();
        assert!(matches!(&refused, FollowError::Illegal { id, .. } if *id == entries[at].id), "{refused}");
        assert_eq!(store.head().commit, good[at - 1].id);
        assert!(store.head().file(&path("extra")).is_none());
        // The right one is welcome afterwards.
        store.follow(vec![good[at].clone()]).await.unwrap();
        copy.check(&store.head());
    }
}

#[tokio::test]
async fn an_entry_must_have_the_id_that_it_says_and_continue_the_newest_commit() {
    let entries = journal().await;
    let copy = Fixture::in_memory();
    let store = follower(&copy);
    let mut other = entries[0].clone();
    other.id = entries[1].id;
    let refused = store.follow(vec![other]).await.unwrap_err();
    assert!(matches!(refused, FollowError::OtherId { made, .. } if made == entries[0].id), "{refused}");
    let refused = store.follow(vec![entries[1].clone()]).await.unwrap_err();
    assert!(matches!(refused, FollowError::Elsewhere { newest: None, .. }), "{refused}");
    store.follow(entries[..2].to_vec()).await.unwrap();
    let refused = store.follow(vec![entries[1].clone()]).await.unwrap_err();
    assert!(matches!(refused, FollowError::Elsewhere { .. }), "{refused}");
    assert_eq!(store.head().commit, entries[1].id);
}

/// Found by the simulator: the follower said that the other machine had another past, and a mirror stops for ever then.
#[tokio::test]
async fn a_commit_that_a_failed_disk_has_all_the_same_is_welcome_again() {
    let entries = journal().await;
    let copy = Fixture::in_memory();
    let store = follower_on(&copy, disk_that_doubts_a_move());
    let failed = store.follow(entries[..3].to_vec()).await.unwrap_err();
    assert!(matches!(failed, FollowError::Store(StoreError::Io(_))), "{failed}");
    assert!(store.head().commit.is_null(), "no one has looked where the branch is");
    // In other groups than before, as a network cuts them.
    for group in entries.chunks(2) {
        store.follow(group.to_vec()).await.unwrap();
    }
    assert_eq!(store.head().commit, entries.last().unwrap().id);
    copy.check(&store.head());
}

#[tokio::test]
async fn a_request_that_was_used_before_the_restart_is_not_accepted_again() {
    // Registered, dropped, and registered with the same request: only the nonce tells that it is the same one.
    let mut steps = everything().steps;
    steps.truncate(4);
    let (before, after) = (steps[3].after.clone(), steps[1].after.clone());
    let again = Recorded { before, after, time: steps[3].time, ..steps[1].clone() };
    steps.push(again);
    let fixture = Fixture::in_memory();
    let entries = entries_of(&origin(&fixture, &steps).await, None);
    let copy = Fixture::in_memory();
    follower(&copy).follow(entries[..4].to_vec()).await.unwrap();
    let refused = follower(&copy).follow(entries[4..].to_vec()).await.unwrap_err();
    assert!(refused.to_string().contains("nonce"), "{refused}");
}

/// What an entry that is no one's commit is refused for, on top of the first commit.
async fn refuse(first: &JournalEntry, change: Change) -> FollowError {
    let copy = Fixture::in_memory();
    let store = follower(&copy);
    store.follow(vec![first.clone()]).await.unwrap();
    let entry = JournalEntry {
        id: ObjectId::from_bytes_or_panic(&[1; 20]),
        parent: Some(first.id),
        change,
        ..first.clone()
    };
    store.follow(vec![entry]).await.unwrap_err()
}

#[tokio::test]
async fn directories_are_counted_before_a_commit_is_made_and_only_new_ones() {
    let first = journal().await.remove(0);
    let with_directories = |count: usize| {
        let mut change = Change::new("x");
        // Each below the one before, as deep as a path can be, and several files in each.
        for at in 0..count {
            let (chain, depth) = (at / 63, at % 63);
            let dir = format!("{chain:02}{}", "/d".repeat(depth));
            change.write(path(&format!("{dir}/a")), *b"x");
            change.write(path(&format!("{dir}/b")), *b"x");
        }
        change
    };
    let fitting = refuse(&first, with_directories(NEW_DIRECTORIES)).await;
    assert!(matches!(fitting, FollowError::OtherId { .. }), "{fitting}");
    let refused = refuse(&first, with_directories(NEW_DIRECTORIES + 1)).await;
    assert!(
        matches!(&refused, FollowError::Illegal { reason, .. } if reason.contains("directories")),
        "{refused}"
    );
    // What goes away adds none.
    let mut change = Change::new("x");
    with_directories(2 * NEW_DIRECTORIES).files.into_keys().for_each(|path| change.delete(path));
    let removed = refuse(&first, change).await;
    assert!(matches!(removed, FollowError::OtherId { .. }), "{removed}");
}

/// New signers touch a file beside every release that collects, and all those directories are there already.
#[tokio::test]
async fn directories_that_are_there_are_not_counted() {
    let (origin_fixture, files) = (Fixture::in_memory(), 3 * NEW_DIRECTORIES);
    let options = Options { initial: first_of_everything, speaks_for, ..options() };
    let origin = Store::start(Repository::open(&origin_fixture.repository()).unwrap(), options).unwrap();
    for content in [b"1", b"2"] {
        let mut change = Change::new("x");
        (0..files).for_each(|number| change.write(path(&format!("{number}/x")), *content));
        commit(&origin, change).await.unwrap();
    }
    let entries = entries_of(&origin, None);
    drop(origin);
    // A follower that has the first two, as from before there was such a bound.
    origin_fixture.git(&["update-ref", "refs/heads/main", &entries[1].id.to_string()]);
    let store = follower(&origin_fixture);
    let refused = store.follow(vec![entries[2].clone()]).await.unwrap_err();
    let reason = refused.to_string();
    assert!(matches!(refused, FollowError::Illegal { .. }) && !reason.contains("directories"), "{reason}");
}
