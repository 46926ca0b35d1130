//! What crashes, full disks and other programs leave behind, and what the store makes of it.

use std::{fs, sync::Arc, sync::atomic::Ordering};

use countersign_core::rules::snapshot::Snapshot;
use countersign_store::{Head, OpenError, Repository, Store, StoreError};

use crate::support::{
    Fixture, call_together, change, commit_index, contents, foreign_repository, options, path, put, read,
    switched_disk,
};

#[tokio::test]
async fn a_dead_disk_refuses_writes_until_it_is_back_and_reads_go_on() {
    let fixture = Fixture::new();
    let (disk, dead) = switched_disk();
    let store = fixture.start_on(disk);
    put(&store, &["+a=1"]).await.unwrap();
    dead.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert!(matches!(put(&store, &["+b=2"]).await, Err(StoreError::Io(_))));
        assert_eq!(read(&store.head(), "a").as_deref(), Some("1"));
        assert_eq!(read(&store.head(), "b"), None);
    }
    dead.store(false, Ordering::SeqCst);
    put(&store, &["+c=3"]).await.unwrap();
    assert_eq!(fixture.log().len(), 3);
    fixture.check(&store.head());
}

#[tokio::test]
async fn answers_that_saw_unpublished_changes_share_their_fate() {
    let fixture = Fixture::new();
    let (disk, dead) = switched_disk();
    let store = Arc::new(fixture.start_on(disk));
    let call = |refuses: bool| {
        let (store, dead) = (Arc::clone(&store), Arc::clone(&dead));
        let decide = move |head: &Head, _| {
            // All of them are decided before the first one is stored.
            dead.store(true, Ordering::SeqCst);
            let is_there = head.read(&path("b")).unwrap().is_some();
            if refuses { Err(is_there) } else { Ok((change(&["+b=2"]), ())) }
        };
        async move { store.transact(decide).await }
    };
    let answers = call_together(&store, [true, false, true].map(call)).await;
    assert!(matches!(answers[0], Ok(Err(false))), "it saw nothing that is not on disk");
    assert!(matches!(answers[1], Err(StoreError::Io(_))));
    assert!(matches!(answers[2], Err(StoreError::Io(_))), "it was refused because of a change that is lost");
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed_at_the_next_start() {
    let fixture = Fixture::new();
    let store = fixture.start();
    put(&store, &["+a=1"]).await.unwrap();
    let head = store.head();
    drop(store);
    let packs = fixture.repository().join("objects/pack");
    let leftovers = [
        "refs/heads/main.lock", "HEAD.lock", "packed-refs.lock", "objects/pack/pack-1.pack",
        "objects/pack/pack-1.idx.countersign-tmp", "objects/pack/pack-2.pack.countersign-tmp",
        "objects/pack/pack-3.idx", "objects/pack/pack-3.folded",
    ];
    for name in leftovers {
        fs::write(fixture.repository().join(name), "half").unwrap();
    }
    fs::write(packs.join("pack-4.pack"), "not known to be ours").unwrap();
    let store = fixture.start();
    for name in leftovers {
        assert!(!fixture.repository().join(name).exists(), "{name}");
    }
    assert!(packs.join("pack-4.pack").exists());
    assert_eq!(store.head().root, head.root);
    put(&store, &["+b=2"]).await.unwrap();
}

#[tokio::test]
async fn git_gc_by_hand_is_survived_stopped_and_running() {
    let fixture = Fixture::new();
    let store = fixture.start();
    for n in 0..10 {
        put(&store, &[&format!("+dir/{n}={n}")]).await.unwrap();
    }
    drop(store);
    fixture.git(&["gc", "-q", "--prune=now"]);
    assert!(!fixture.repository().join("refs/heads/main").exists(), "gc moves it to packed-refs");
    let store = fixture.start();
    assert_eq!(contents(&store.head()).len(), 11);
    put(&store, &["+while=stopped"]).await.unwrap();
    fixture.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(contents(&store.head()).len(), 12);
    put(&store, &["+while=running", "+dir/0=new"]).await.unwrap();
    assert_eq!(fixture.log().len(), 13);
    fixture.check(&store.head());
}

#[tokio::test]
async fn a_branch_that_another_program_moved_is_not_overwritten() {
    let fixture = Fixture::new();
    let store = fixture.start();
    put(&store, &["+a=1"]).await.unwrap();
    let commit = fixture.commit_tree("main^{tree}", "By hand", &["-p", "main"]);
    fixture.git(&["update-ref", "refs/heads/main", &commit]);
    assert!(put(&store, &["+b=2"]).await.is_err());
    put(&store, &["+c=3"]).await.unwrap();
    assert_eq!(fixture.log(), ["Create the repository", "Change +a=1", "By hand", "Change +c=3"]);
    fixture.check(&store.head());
}

#[tokio::test]
async fn a_link_that_someone_committed_is_kept_not_served_and_not_written_through() {
    let fixture = Fixture::new();
    let store = fixture.start();
    put(&store, &["+a/plain=1", "+target=secret"]).await.unwrap();
    drop(store);
    commit_link(&fixture, "a/link", "../target");
    let store = fixture.start();
    assert_eq!(store.head().entry(&path("a/link")), None);
    assert_eq!(read(&store.head(), "a/link"), None);
    for lines in [["+a/link=2"], ["-a/link"], ["+a/link/below=2"]] {
        assert!(matches!(put(&store, &lines).await, Err(StoreError::Conflict { .. })), "{lines:?}");
    }
    put(&store, &["+a/plain=3"]).await.unwrap();
    let listed = fixture.git(&["ls-tree", "-r", "main", "a/"]);
    assert!(listed.contains("120000 blob") && listed.contains("a/link"), "{listed}");
    fixture.git(&["fsck", "--strict"]);
}

/// Adds a symbolic link on top of the branch, with `git` alone.
fn commit_link(fixture: &Fixture, name: &str, target: &str) {
    let content = fixture.dir.path().join("link-target");
    fs::write(&content, target).unwrap();
    let blob = fixture.git(&["hash-object", "-w", content.to_str().unwrap()]);
    fixture.git(&["read-tree", "main"]);
    fixture.git(&["update-index", "--add", "--cacheinfo", &format!("120000,{},{name}", blob.trim())]);
    commit_index(fixture, &["-p", "main"], "main");
}

#[test]
fn repositories_that_are_not_ours_are_refused_with_the_reason() {
    const MARKER: &str = "svc.repository.json";
    type Damage<'a> = (&'a dyn Fn(&Fixture), &'a str);
    let cases: [Damage<'_>; 7] = [
        (
            &|fixture| foreign_repository(fixture, "main", "100644", "README"),
            "there is no file svc.repository.json",
        ),
        (&|fixture| foreign_repository(fixture, "master", "100644", MARKER), "HEAD is refs/heads/master"),
        (
            &|fixture| {
                foreign_repository(fixture, "master", "100644", MARKER);
                fixture.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
            },
            "no refs/heads/main",
        ),
        (
            &|fixture| {
                foreign_repository(fixture, "main", "100644", MARKER);
                fixture.git(&["update-ref", "--no-deref", "HEAD", &fixture.id_of("main").to_string()]);
            },
            "HEAD is not on refs/heads/main",
        ),
        (
            &|fixture| foreign_repository(fixture, "main", "120000", MARKER),
            "there is no file svc.repository.json",
        ),
        (&|fixture| fs::create_dir(fixture.repository()).unwrap(), "cannot be read as a Git repository"),
        (
            &|fixture| {
                drop(fixture.start());
                fs::write(fixture.repository().join("refs/heads/main"), "nonsense\n").unwrap();
            },
            "cannot be read",
        ),
    ];
    for (make, reason) in cases {
        let fixture = Fixture::new();
        make(&fixture);
        let refused = fixture.open_error().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

#[tokio::test]
async fn a_damaged_pack_is_an_error_and_no_panic() {
    let fixture = Fixture::new();
    let store = fixture.start();
    put(&store, &["+a=some content that is long enough to be damaged"]).await.unwrap();
    drop(store);
    for index in fixture.packs() {
        let pack = index.with_extension("pack");
        let mut bytes = fs::read(&pack).unwrap();
        let middle = bytes.len() - 25;
        bytes[12..middle].iter_mut().for_each(|byte| *byte ^= 0x5a);
        fs::set_permissions(&pack, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        fs::write(&pack, bytes).unwrap();
    }
    assert!(matches!(fixture.open_error(), OpenError::Store(StoreError::Corrupt { .. })));
    for index in fixture.packs() {
        fs::write(index.with_extension("pack"), "PACK").unwrap();
    }
    assert!(matches!(fixture.open_error(), OpenError::Store(StoreError::Corrupt { .. })));
}

#[test]
fn a_repository_that_never_got_its_first_commit_gets_it_now() {
    let fixture = Fixture::new();
    let unborn = Repository::open(&fixture.repository()).unwrap();
    assert!(unborn.is_unborn() && unborn.marker().unwrap().is_none());
    drop(unborn);
    let again = Repository::open(&fixture.repository()).unwrap();
    let store = Store::start(again, options()).unwrap();
    assert_eq!(contents(&store.head()).len(), 1);
    drop(store);
    let born = Repository::open(&fixture.repository()).unwrap();
    assert!(!born.is_unborn());
    assert_eq!(&born.marker().unwrap().unwrap()[..], b"{}\n");
}
