//! What crashes, full disks and other programs leave behind, and what the store makes of it.

use std::{fs, io, sync::Arc, sync::Mutex, sync::atomic::AtomicBool, sync::atomic::Ordering};

use countersign_core::rules::snapshot::{Change, Snapshot};
use countersign_store::{Disk, Head, Moment, OpenError, Repository, Store, StoreError};

use crate::support::{
    Fixture, change, commit_index, contents, foreign_repository, hold_writer, let_tasks_begin, options, path,
    put, read,
};

/// A disk that fails at one chosen step, counted from when it is armed.
#[derive(Clone, Default)]
struct Fuse {
    left: Arc<Mutex<Option<usize>>>,
}

impl Fuse {
    fn arm(&self, steps: usize) {
        *self.left.lock().unwrap() = Some(steps);
    }

    /// Disarms, and says whether it had blown.
    fn has_blown(&self) -> bool {
        self.left.lock().unwrap().take().is_none()
    }

    fn disk(&self, failing: Moment) -> Disk {
        let left = Arc::clone(&self.left);
        Disk::with_fault(Arc::new(move |_, moment, _| {
            let mut left = left.lock().unwrap();
            if moment == failing
                && let Some(steps) = *left
            {
                *left = steps.checked_sub(1);
                if steps == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
            }
            Ok(())
        }))
    }
}

fn temporary_files(fixture: &Fixture) -> Vec<String> {
    let mut found = Vec::new();
    for dir in ["objects/pack", "refs/heads", ""] {
        let names = fs::read_dir(fixture.repository().join(dir)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        found.extend(names.filter(|name| name.ends_with("tmp") || name.ends_with(".lock")));
    }
    found
}

#[tokio::test]
async fn a_publish_that_fails_at_any_step_is_not_acknowledged_and_stops_nothing() {
    for failing in [Moment::Before, Moment::After] {
        let mut steps = 0;
        loop {
            let fixture = Fixture::new();
            let fuse = Fuse::default();
            let store = fixture.start_on(fuse.disk(failing));
            put(&store, &["+dir/a=1"]).await.unwrap();
            fuse.arm(steps);
            let failed = put(&store, &["+dir/b=2"]).await;
            if !fuse.has_blown() {
                assert!(failed.is_ok() && steps > 8, "every step of a publish was tried");
                break;
            }
            assert!(matches!(failed, Err(StoreError::Io(_))), "step {steps}: {failed:?}");
            put(&store, &["+dir/c=2", "+dir/d=4"]).await.unwrap();
            let stored = contents(&store.head());
            assert_eq!(stored["dir/a"], "1");
            assert_eq!(stored["dir/c"], "2");
            assert_eq!(fixture.log().len(), 3 + usize::from(stored.contains_key("dir/b")));
            assert_eq!(temporary_files(&fixture), Vec::<String>::new(), "step {steps}");
            fixture.check(&store.head());
            steps += 1;
        }
    }
}

#[tokio::test]
async fn a_dead_disk_refuses_writes_until_it_is_back_and_reads_go_on() {
    let fixture = Fixture::new();
    let dead = Arc::new(AtomicBool::new(false));
    let is_dead = Arc::clone(&dead);
    let store =
        fixture.start_on(Disk::with_fault(Arc::new(move |_, _, _| match is_dead.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        })));
    put(&store, &["+a=1"]).await.unwrap();
    dead.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(matches!(put(&store, &["+b=2"]).await, Err(StoreError::Io(_))));
        assert_eq!(read(&store.head(), "a").as_deref(), Some("1"));
        assert_eq!(read(&store.head(), "b"), None);
    }
    dead.store(false, Ordering::Relaxed);
    put(&store, &["+c=3"]).await.unwrap();
    assert_eq!(fixture.log().len(), 3);
    fixture.check(&store.head());
}

#[tokio::test]
async fn answers_that_saw_unpublished_changes_share_their_fate() {
    let fixture = Fixture::new();
    let fuse = Fuse::default();
    let store = Arc::new(fixture.start_on(fuse.disk(Moment::Before)));
    let refuse = |head: &Head| Err::<(Change, ()), bool>(head.read(&path("b")).unwrap().is_some());
    let release = hold_writer(&store).await;
    let spawn = |job: Job| tokio::spawn(job);
    type Job = std::pin::Pin<Box<dyn Future<Output = Result<Result<(), bool>, StoreError>> + Send>>;
    let transact = |store: &Arc<Store>, refusing: bool| -> Job {
        let store = Arc::clone(store);
        Box::pin(async move {
            let decide =
                move |head: &Head, _| if refusing { refuse(head) } else { Ok((change(&["+b=2"]), ())) };
            store.transact(decide).await
        })
    };
    let (early, writer, late) =
        (spawn(transact(&store, true)), spawn(transact(&store, false)), spawn(transact(&store, true)));
    let_tasks_begin().await;
    fuse.arm(0);
    release.wait();
    assert!(matches!(early.await.unwrap(), Ok(Err(false))), "it saw nothing that is not on disk");
    assert!(matches!(writer.await.unwrap(), Err(StoreError::Io(_))));
    assert!(
        matches!(late.await.unwrap(), Err(StoreError::Io(_))),
        "it was refused because of a change that is lost"
    );
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
        "refs/heads/main.lock",
        "HEAD.lock",
        "packed-refs.lock",
        "objects/pack/pack-1.pack",
        "objects/pack/pack-1.idx.countersign-tmp",
        "objects/pack/pack-2.pack.countersign-tmp",
        "objects/pack/pack-3.idx",
        "objects/pack/pack-3.folded",
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
    let tree = fixture.git(&["rev-parse", "main^{tree}"]);
    let made = [
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "commit-tree",
        tree.trim(),
        "-p",
        "main",
        "-m",
        "By hand",
    ];
    let commit = fixture.git(&made);
    fixture.git(&["update-ref", "refs/heads/main", commit.trim()]);
    assert!(put(&store, &["+b=2"]).await.is_err());
    put(&store, &["+c=3"]).await.unwrap();
    assert_eq!(fixture.log(), ["Create the repository", "Change +a=1", "By hand", "Change +c=3"]);
    fixture.check(&store.head());
}

#[tokio::test]
async fn loose_objects_of_a_repository_made_by_hand_are_read() {
    let fixture = Fixture::new();
    foreign_repository(&fixture, "main", "100644", "svc.repository.json");
    let store = fixture.start();
    assert_eq!(read(&store.head(), "svc.other.json").as_deref(), Some("{}\n"));
    put(&store, &["+a=1"]).await.unwrap();
    fixture.check(&store.head());
}

#[tokio::test]
async fn a_link_that_somebody_committed_is_kept_not_served_and_not_written_through() {
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
    let refused = |make: &dyn Fn(&Fixture)| {
        let fixture = Fixture::new();
        make(&fixture);
        fixture.open_error().to_string()
    };
    let no_marker = refused(&|fixture| foreign_repository(fixture, "main", "100644", "README"));
    assert!(no_marker.contains("there is no file svc.repository.json"), "{no_marker}");
    let other_branch =
        refused(&|fixture| foreign_repository(fixture, "master", "100644", "svc.repository.json"));
    assert!(other_branch.contains("HEAD is refs/heads/master"), "{other_branch}");
    let unborn = refused(&|fixture| {
        foreign_repository(fixture, "master", "100644", "svc.repository.json");
        fixture.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    });
    assert!(unborn.contains("no refs/heads/main"), "{unborn}");
    let detached = refused(&|fixture| {
        foreign_repository(fixture, "main", "100644", "svc.repository.json");
        let commit = fixture.git(&["rev-parse", "main"]);
        fixture.git(&["update-ref", "--no-deref", "HEAD", commit.trim()]);
    });
    assert!(detached.contains("HEAD is not on refs/heads/main"), "{detached}");
    let link = refused(&|fixture| foreign_repository(fixture, "main", "120000", "svc.repository.json"));
    assert!(link.contains("there is no file svc.repository.json"), "{link}");
    let no_repository = refused(&|fixture| fs::create_dir(fixture.repository()).unwrap());
    assert!(no_repository.contains("cannot be read as a Git repository"), "{no_repository}");
    let bad_ref = refused(&|fixture| {
        drop(fixture.start());
        fs::write(fixture.repository().join("refs/heads/main"), "nonsense\n").unwrap();
    });
    assert!(bad_ref.contains("cannot be read") || bad_ref.contains("does not name a commit"), "{bad_ref}");
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
