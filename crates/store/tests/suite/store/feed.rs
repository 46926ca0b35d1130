//! Commits handed to one who follows closely.

use std::time::Duration;

use countersign_core::rules::snapshot::Change;
use countersign_store::writer::{commit_feed::CommitFeed, feed::FeedNews, feed::PublishedCommit};
use countersign_store::{ObjectId, Store};

use crate::support::{Fixture, put};

const SOON: Duration = Duration::from_secs(60);

fn commits(feed: &CommitFeed) -> Vec<PublishedCommit> {
    match feed.next(SOON) {
        FeedNews::Commits(commits) => commits,
        FeedNews::Behind => panic!("behind"),
    }
}

/// A follower that has everything.
fn follow(store: &Store) -> CommitFeed {
    let feed = store.follow_commits();
    assert!(matches!(feed.next(SOON), FeedNews::Behind));
    assert!(feed.resume(feed.head().tip()));
    feed
}

fn written(change: &Change) -> Vec<(&str, Option<&str>)> {
    let files = change.files.iter();
    files
        .map(|(path, content)| {
            (path.as_str(), content.as_ref().map(|content| std::str::from_utf8(content).unwrap()))
        })
        .collect()
}

/// What the journal says about the commits after this one.
fn journal(store: &Store, after: Option<ObjectId>) -> Vec<(ObjectId, Option<ObjectId>, Change)> {
    let mut export = store.journal(after).unwrap().unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = export.next_entry().unwrap() {
        let change = Change { message: String::new(), ..entry.change };
        entries.push((entry.id, entry.parent, change));
    }
    entries
}

#[tokio::test]
async fn it_gives_each_commit_with_the_files_that_differ_as_the_journal_does() {
    let fixture = Fixture::new();
    let store = fixture.start();
    put(&store, &["+https/a/443/b=one", "+https/a/443/c=same"]).await.unwrap();
    let feed = follow(&store);
    let begin = feed.head().tip();
    // One file stays as it is, one goes away, and one was never there.
    put(&store, &["+https/a/443/b=two", "+https/a/443/c=same", "-https/a/443/none"]).await.unwrap();
    put(&store, &["-https/a/443/b", "+https/a/443/d=three"]).await.unwrap();
    let mut fed = commits(&feed);
    while fed.len() < 2 {
        fed.extend(commits(&feed));
    }
    assert_eq!(written(&fed[0].change), [("https/a/443/b", Some("two"))]);
    assert_eq!(written(&fed[1].change), [("https/a/443/b", None), ("https/a/443/d", Some("three"))]);
    let expected = journal(&store, begin);
    let told: Vec<_> = fed.iter().map(|fed| (fed.id, fed.parent, fed.change.clone())).collect();
    assert_eq!(told, expected);
    for commit in &fed {
        assert_eq!(commit.object, feed.commit_object(&commit.id).unwrap());
    }
    assert!(feed.resume(Some(fed[1].id)));
}

#[tokio::test]
async fn a_follower_that_falls_behind_is_told_so_once_and_misses_nothing() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let feed = follow(&store);
    let begin = feed.head().tip();
    // More than may wait, and none of these writes waits for the follower.
    let content = "x".repeat(900_000);
    for number in 0..40 {
        put(&store, &[&format!("+https/a/443/{number}={number}{content}")]).await.unwrap();
    }
    assert!(matches!(feed.next(SOON), FeedNews::Behind));
    let missed = journal(&store, begin);
    assert_eq!(missed.len(), 40);
    assert!(!feed.resume(begin), "there is more to read");
    put(&store, &["+https/a/443/x=1"]).await.unwrap();
    assert!(!feed.resume(missed.last().map(|(id, ..)| *id)), "one more has come");
    assert!(feed.resume(feed.head().tip()));
    put(&store, &["+https/a/443/y=1"]).await.unwrap();
    assert_eq!(written(&commits(&feed)[0].change), [("https/a/443/y", Some("1"))]);
}

#[tokio::test]
async fn a_follower_that_waits_can_be_woken() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let feed = follow(&store);
    let waker = feed.waker();
    let waiting = std::thread::spawn(move || commits(&feed).len());
    waker.wake();
    assert_eq!(waiting.join().unwrap(), 0);
}

#[tokio::test]
async fn a_follower_can_come_after_another() {
    let fixture = Fixture::new();
    let store = fixture.start();
    drop(follow(&store));
    put(&store, &["+https/a/443/b=one"]).await.unwrap();
    let feed = follow(&store);
    put(&store, &["+https/a/443/b=two"]).await.unwrap();
    assert_eq!(written(&commits(&feed)[0].change), [("https/a/443/b", Some("two"))]);
}
