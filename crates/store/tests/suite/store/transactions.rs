//! The store at work, looked at through `git` itself.

use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{path::PathBuf, process::Command, time::Duration};

use countersign_core::{rules::snapshot::Change, rules::snapshot::Snapshot, values::bounds::FILE_BYTES};
use countersign_store::machine::data_dir::{DataDir, DataDirError};
use countersign_store::{Head, PathEntry, StoreError};

use crate::support::{Fixture, call_together, change, commit, commit_together, contents, path, put, read};

#[tokio::test]
async fn a_repository_begins_with_the_initial_change_and_every_other_one_is_a_commit_with_author_and_time() {
    let fixture = Fixture::new();
    let store = fixture.start();
    assert_eq!(read(&store.head(), "svc.repository.json").as_deref(), Some("{}\n"));
    assert_eq!(fixture.git(&["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
    assert_eq!(fixture.git(&["rev-parse", "--is-bare-repository"]).trim(), "true");
    put(&store, &["+a/b=1", "+a/c=2"]).await.unwrap();
    put(&store, &["-a/b", "+a/c=3", "+d=4"]).await.unwrap();
    assert_eq!(fixture.log(), ["Create the repository", "Change +a/b=1 +a/c=2", "Change -a/b +a/c=3 +d=4"]);
    let shown = fixture.git(&["log", "-1", "--format=%an <%ae> %at;%cn <%ce> %ct"]);
    assert_eq!(shown.trim(), ["Countersign <countersign@localhost> 1700000002"; 2].join(";"));
    fixture.check(&store.head());
}

#[tokio::test]
async fn a_head_answers_what_stands_where() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let before = store.head();
    put(&store, &["+a/b=one", "+a/c/d=two", "+a-x=three"]).await.unwrap();
    let head = store.head();
    let Some(PathEntry::File(id)) = head.entry(&path("a/b")) else { panic!("a/b is a file") };
    assert_eq!(read(&head, "a/b").as_deref(), Some("one"));
    assert_eq!(fixture.git(&["rev-parse", "main:a/b"]).trim(), id.to_string());
    assert_eq!(head.entry(&path("a/c")), Some(PathEntry::Directory));
    assert_eq!(head.entry(&path("a/b/c")), None);
    assert!(head.read(&path("a/c")).unwrap().is_none());
    assert_eq!(head.files_below(&path("a")).unwrap(), [path("a/b"), path("a/c/d")]);
    assert!(head.files_below(&path("a/b")).unwrap().is_empty());
    assert!(before.read(&path("a/b")).unwrap().is_none(), "an older head does not change");
}

#[tokio::test]
async fn changes_that_wait_share_a_publish_and_keep_their_own_commits() {
    let fixture = Fixture::new();
    let store = Arc::new(fixture.start());
    let changes = (0..200).map(|n| change(&[&format!("+dir/{n:03}={n}"), "+counter=same"]));
    assert!(commit_together(&store, changes).await.iter().all(Result::is_ok));
    assert_eq!(store.head().files_below(&path("dir")).unwrap().len(), 200);
    assert_eq!(fixture.log().len(), 201);
    assert_eq!(store.publishes(), 2);
    fixture.check(&store.head());
}

#[tokio::test]
async fn one_key_that_signs_sixty_four_times_at_once_is_accepted_once() {
    let fixture = Fixture::new();
    let store = Arc::new(fixture.start());
    let sign = |n: usize| {
        let store = Arc::clone(&store);
        let decide = move |head: &Head, _| match read(head, "signature") {
            Some(seen) => Err(seen),
            None => Ok((change(&[&format!("+signature={n}")]), n.to_string())),
        };
        async move { store.transact(decide).await.unwrap() }
    };
    let (accepted, refused): (Vec<_>, Vec<_>) =
        call_together(&store, (0..64).map(sign)).await.into_iter().partition(Result::is_ok);
    let [Ok(accepted)] = &accepted[..] else { panic!("{accepted:?}") };
    assert_eq!(refused, vec![Err(accepted.clone()); 63]);
    assert_eq!(fixture.log().len(), 2);
}

#[tokio::test]
async fn an_empty_change_and_a_refusal_commit_nothing() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let before = store.head().commit;
    let nothing = store.transact(|_, _| Ok::<_, ()>((Change::new("nothing"), 7))).await.unwrap();
    let refused = store.transact(|_, _| Err::<(Change, ()), _>("no")).await.unwrap();
    assert_eq!((nothing, refused), (Ok(7), Err("no")));
    assert_eq!(store.head().commit, before);
    assert_eq!(store.publishes(), 1);
}

#[tokio::test]
async fn a_conflict_refuses_one_change_and_no_other() {
    let fixture = Fixture::new();
    let store = fixture.start();
    put(&store, &["+a/b=1"]).await.unwrap();
    let (file_over_dir, dir_over_file, fine) =
        tokio::join!(put(&store, &["+a=x", "+new=x"]), put(&store, &["+a/b/c=x"]), put(&store, &["+c=2"]));
    assert!(matches!(file_over_dir, Err(StoreError::Conflict { path: at }) if at == path("a")));
    assert!(matches!(dir_over_file, Err(StoreError::Conflict { path: at }) if at == path("a/b/c")));
    fine.unwrap();
    assert!(read(&store.head(), "new").is_none());
    fixture.check(&store.head());
}

#[tokio::test]
async fn a_file_that_is_too_large_refuses_one_change_and_no_other() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let write = async |at: &str, bytes: usize| {
        let mut change = Change::new(format!("Write {at}"));
        change.write(path("beside"), *b"x");
        change.write(path(at), vec![b'x'; bytes]);
        commit(&store, change).await
    };
    let (largest, larger, small) =
        tokio::join!(write("a", FILE_BYTES), write("b", FILE_BYTES + 1), write("c", 1));
    largest.unwrap();
    small.unwrap();
    let error = larger.unwrap_err();
    assert!(
        matches!(&error, StoreError::TooLarge { path: at, bytes } if *at == path("b") && *bytes == FILE_BYTES + 1),
        "{error}"
    );
    assert!(error.to_string().contains("2097153") && error.to_string().contains("2097152"), "{error}");
    assert_eq!(store.head().read(&path("a")).unwrap().unwrap().len(), FILE_BYTES);
    assert!(store.head().read(&path("b")).unwrap().is_none());
    fixture.check(&store.head());
}

#[tokio::test]
async fn a_panic_in_a_decision_harms_no_other_change() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let (panicked, fine) = tokio::join!(
        store.transact(|_, _| -> Result<(Change, ()), ()> { panic!("a bug in a decision, on purpose") }),
        put(&store, &["+a=1"])
    );
    assert!(matches!(panicked, Err(StoreError::Panicked)));
    fine.unwrap();
    put(&store, &["+b=2"]).await.unwrap();
    fixture.check(&store.head());
}

#[tokio::test]
async fn dropping_the_store_finishes_what_waits() {
    let fixture = Fixture::new();
    let store = fixture.start();
    for n in 0..20 {
        // Asks once, and goes away without waiting for the answer.
        let _ = tokio::time::timeout(Duration::ZERO, put(&store, &[&format!("+f{n}=x")])).await;
    }
    drop(store);
    assert_eq!(contents(&fixture.start().head()).len(), 21);
}

#[tokio::test]
async fn a_full_queue_says_busy() {
    let fixture = Fixture::new();
    let store = Arc::new(fixture.start());
    let answers = commit_together(&store, (0..1_100).map(|_| Change::new(""))).await;
    let busy = answers.iter().filter(|answer| matches!(answer, Err(StoreError::Busy))).count();
    assert_eq!((busy, answers.iter().filter(|answer| answer.is_ok()).count()), (1_100 - 1_024, 1_024));
}

#[tokio::test]
async fn a_signers_file_is_stored_once_for_all_releases_that_it_governs() {
    let fixture = Fixture::new();
    let large = "the same signers file ".repeat(1_000);
    let store = fixture.start();
    let active = format!("+acme/svc.signers/svc.signers.json={large}");
    put(&store, &[&active, &format!("+acme/v1/svc.index.json.signers.json={large}")]).await.unwrap();
    drop(store);
    let store = fixture.start();
    put(&store, &[&format!("+acme/v2/svc.index.json.signers.json={large}")]).await.unwrap();
    let count_blobs = |pack: PathBuf| {
        let shown = fixture.git(&["verify-pack", "-v", pack.to_str().unwrap()]);
        shown.lines().filter(|line| line.contains(" blob ")).count()
    };
    // The marker, and the large one.
    assert_eq!(fixture.packs().into_iter().map(count_blobs).sum::<usize>(), 2);
    fixture.check(&store.head());
}

#[test]
fn a_data_directory_has_one_user_at_a_time() {
    let dir = tempfile::TempDir::new().unwrap();
    let place = dir.path().join("deep/data");
    let first = DataDir::lock(&place).unwrap();
    assert!(matches!(DataDir::lock(&place), Err(DataDirError::InUse { .. })));
    drop(first);
    DataDir::lock(&place).unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(DataDir::lock(&file), Err(DataDirError::NotADirectory { .. })));
    assert!(matches!(DataDir::lock(&file.join("below")), Err(DataDirError::NotADirectory { .. })));
}

#[test]
fn a_look_at_a_directory_does_not_keep_its_user_out() {
    let dir = tempfile::TempDir::new().unwrap();
    drop(DataDir::lock(dir.path()).unwrap());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                DataDir::is_held(dir.path()).unwrap();
            }
        });
        let locked = (0..2_000).find_map(|_| DataDir::lock(dir.path()).err());
        is_done.store(true, Ordering::Relaxed);
        assert!(locked.is_none(), "{locked:?}");
    });
    assert!(!DataDir::is_held(dir.path()).unwrap());
}

#[test]
fn a_program_that_is_being_started_does_not_hold_the_directory_after_its_user() {
    let dir = tempfile::TempDir::new().unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        let taken: Result<Vec<_>, _> = (0..500).map(|_| DataDir::lock(dir.path()).map(drop)).collect();
        is_done.store(true, Ordering::Relaxed);
        taken.unwrap();
    });
}
