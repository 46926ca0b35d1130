//! The recent commits that watchers read: always what the branch has, whatever happened to it.

use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};

use countersign_store::{DiskStep, Moment, ObjectId, Store, journal::recent_commits::KEPT};

use crate::support::{Fixture, failing_disk, put};

/// The commits of the branch, oldest first.
fn branch(fixture: &Fixture) -> Vec<String> {
    fixture.git(&["rev-list", "--reverse", "main"]).lines().map(str::to_owned).collect()
}

/// All that is kept, oldest first.
fn kept(store: &Store) -> Vec<String> {
    let newest_first = store.recent_commits().before(i64::MAX, usize::MAX, |_| true);
    newest_first.iter().rev().map(|(_, commit)| commit.id.to_string()).collect()
}

async fn commit(store: &Store, count: usize) {
    for at in 0..count {
        put(store, &[&format!("+a/{at}={at} {}", store.recent_commits().end())]).await.unwrap();
    }
}

#[tokio::test]
async fn the_log_holds_the_commits_of_the_branch_from_before_and_after_a_start() {
    let fixture = Fixture::new();
    let store = fixture.start();
    commit(&store, 3).await;
    assert_eq!(kept(&store), branch(&fixture));
    assert_eq!(store.recent_commits().end(), 4);
    drop(store);

    let store = fixture.start();
    commit(&store, 2).await;
    assert_eq!(store.recent_commits().end(), 2);
    // Before anyone asked for what came before.
    assert_eq!(store.recent_commits().from(0, usize::MAX).unwrap().len(), 2);
    let commits = branch(&fixture);
    let id = |at: usize| ObjectId::from_hex(commits[at].as_bytes()).unwrap();
    assert_eq!(store.recent_commits().position_of(&id(0)), Some(-4));
    assert_eq!(store.recent_commits().position_of(&id(5)), Some(1));
    assert_eq!(store.recent_commits().position_of(&ObjectId::null(id(0).kind())), None);
    assert_eq!(kept(&store), commits);
    let from: Vec<_> =
        store.recent_commits().from(-2, 3).unwrap().iter().map(|commit| commit.id.to_string()).collect();
    assert_eq!(from, commits[2..5]);
    assert!(store.recent_commits().from(-5, 1).is_none(), "there is no such commit");
    assert!(store.recent_commits().from(2, 1).unwrap().is_empty(), "not yet");
    let back: Vec<_> =
        store.recent_commits().read_back(id(5)).map(|commit| commit.unwrap().id.to_string()).collect();
    assert_eq!(back.into_iter().rev().collect::<Vec<_>>(), commits);
}

#[tokio::test]
async fn a_waiting_reader_is_told_of_new_commits() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let mut end = store.recent_commits().subscribe();
    assert_eq!(*end.borrow_and_update(), 1);
    commit(&store, 1).await;
    end.changed().await.unwrap();
    assert_eq!(*end.borrow_and_update(), 2);
}

#[tokio::test]
async fn what_was_published_though_it_seemed_to_fail_is_in_the_log() {
    let fixture = Fixture::new();
    let is_armed = Arc::new(AtomicBool::new(false));
    let armed = Arc::clone(&is_armed);
    let disk = failing_disk(move |step, moment, path| {
        let moves_branch = step == DiskStep::Rename && path.ends_with("refs/heads/main");
        moves_branch && moment == Moment::After && armed.load(Ordering::Relaxed)
    });
    let store = fixture.start_on(disk);
    commit(&store, 1).await;
    is_armed.store(true, Ordering::Relaxed);
    for at in 0..3 {
        assert!(put(&store, &[&format!("+b/{at}=x")]).await.is_err());
    }
    is_armed.store(false, Ordering::Relaxed);
    commit(&store, 2).await;
    assert_eq!(branch(&fixture).len(), 5, "the first of those that failed was published");
    assert_eq!(kept(&store), branch(&fixture));
    assert_eq!(store.recent_commits().end(), 5);
}

#[tokio::test]
async fn only_the_newest_commits_are_kept() {
    let fixture = Fixture::in_memory();
    let store = Arc::new(fixture.start());
    // Many at once, so that they share the work of being published.
    let puts = (0..KEPT + 10).map(|at| {
        let store = Arc::clone(&store);
        async move { put(&store, &[&format!("+c/{}/{at}=x", at % 100)]).await }
    });
    let mut puts: Vec<_> = puts.collect();
    while !puts.is_empty() {
        let some = puts.split_off(puts.len().saturating_sub(500));
        for done in futures_util::future::join_all(some).await {
            done.unwrap();
        }
    }
    let end = store.recent_commits().end();
    assert_eq!(end, KEPT as i64 + 11);
    assert_eq!(kept(&store), branch(&fixture)[11..]);
    assert!(store.recent_commits().from(10, 1).is_none(), "it is no longer kept");
    assert_eq!(store.recent_commits().from(11, 5).unwrap().len(), 5);
}
