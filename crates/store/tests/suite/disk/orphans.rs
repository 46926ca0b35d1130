//! Objects that the branch does not reach (D200): those of a publish that a crash ended, those that another program put
//! there, and what `git gc` makes of them beside a running store. No commit may rely on one.

use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::{fs, path::Path, path::PathBuf};

use countersign_store::{Disk, DiskStep, Moment, Store};
use countersign_testing::{copy_dir, repo::git};

use crate::support::{Fixture, contents, put};

/// A disk on which `act` happens once, while a pack has its name and the branch has not moved. Not before it is armed.
fn disk_before_move(armed: &Arc<AtomicBool>, act: impl Fn() + Send + Sync + 'static) -> Disk {
    let armed = Arc::clone(armed);
    Disk::with_fault(Arc::new(move |step, moment, path| {
        let is_it = step == DiskStep::Create && moment == Moment::Before && path.ends_with("main.lock");
        if is_it && armed.swap(false, Ordering::Relaxed) {
            act();
        }
        Ok(())
    }))
}

fn git_gc(repository: &Path) {
    git(repository, &["gc", "--quiet", "--prune=now"], b"");
}

/// What a kill leaves after a pack has its name and before the branch moves. Its change is `+dir/b=2`.
async fn killed_before_move() -> Fixture {
    let (fixture, killed, armed) = (Fixture::new(), Fixture::new(), Arc::new(AtomicBool::new(false)));
    let (from, to) = (fixture.repository(), killed.repository());
    let disk = disk_before_move(&armed, move || copy_dir(&from, &to));
    let store = fixture.start_on(disk);
    put(&store, &["+dir/a=1"]).await.unwrap();
    armed.store(true, Ordering::Relaxed);
    put(&store, &["+dir/b=2"]).await.unwrap();
    assert!(!armed.load(Ordering::Relaxed));
    assert!(!unreachable_objects(&killed).is_empty());
    killed
}

fn unreachable_objects(fixture: &Fixture) -> String {
    let report = fixture.git(&["fsck", "--unreachable", "--no-reflogs"]);
    report.lines().filter(|line| line.starts_with("unreachable")).collect()
}

fn marks(fixture: &Fixture) -> Vec<PathBuf> {
    fixture.pack_files("keep")
}

/// Stores the content again, on a store that has seen the orphan. Then everything is there.
async fn store_again(fixture: &Fixture, store: Store) {
    put(&store, &["+dir/c=2", "+other/b=2"]).await.unwrap();
    git_gc(&fixture.repository());
    let head = store.head();
    assert_eq!(contents(&head)["dir/c"], "2");
    drop(store);
    fixture.check(&head);
}

#[tokio::test]
async fn a_start_removes_the_pack_of_a_publish_that_a_kill_ended() {
    let fixture = killed_before_move().await;
    let store = fixture.start();
    assert_eq!(unreachable_objects(&fixture), "");
    assert!(marks(&fixture).is_empty());
    git_gc(&fixture.repository());
    store_again(&fixture, store).await;
}

#[tokio::test]
async fn an_orphan_without_a_mark_is_not_relied_upon() {
    let fixture = killed_before_move().await;
    // As an earlier version left it, or a power cut.
    for mark in marks(&fixture) {
        fs::write(mark, "").unwrap();
    }
    let store = fixture.start();
    assert_ne!(unreachable_objects(&fixture), "", "what is not known to be ours stays");
    for mark in marks(&fixture) {
        fs::remove_file(mark).unwrap();
    }
    git_gc(&fixture.repository());
    assert_eq!(unreachable_objects(&fixture), "");
    store_again(&fixture, store).await;
}

#[tokio::test]
async fn what_another_program_put_there_is_not_relied_upon() {
    let fixture = Fixture::new();
    drop(fixture.start());
    let content = fixture.dir.path().join("content");
    fs::write(&content, "2").unwrap();
    fixture.git(&["hash-object", "-w", content.to_str().unwrap()]);
    // Git keeps it in a pack of its own for some weeks.
    fixture.git(&["gc", "--quiet", "--cruft"]);
    let store = fixture.start();
    git_gc(&fixture.repository());
    store_again(&fixture, store).await;
}

#[tokio::test]
async fn a_gc_before_the_branch_moves_leaves_the_new_pack_alone() {
    let (fixture, armed) = (Fixture::new(), Arc::new(AtomicBool::new(false)));
    let repository = fixture.repository();
    let store = fixture.start_on(disk_before_move(&armed, move || git_gc(&repository)));
    for round in 0..3 {
        armed.store(true, Ordering::Relaxed);
        put(&store, &[&format!("+dir/{round}={round}")]).await.unwrap();
        assert!(!armed.load(Ordering::Relaxed));
        assert!(marks(&fixture).is_empty());
    }
    let head = store.head();
    drop(store);
    fixture.check(&head);
}

/// A marked pack also has content that the branch reaches, and Git may not rely on that pack for it.
#[tokio::test]
async fn a_gc_before_a_kill_does_not_rely_on_a_pack_that_goes() {
    let (fixture, killed, armed) = (Fixture::new(), Fixture::new(), Arc::new(AtomicBool::new(false)));
    let (from, to) = (fixture.repository(), killed.repository());
    let disk = disk_before_move(&armed, move || {
        git_gc(&from);
        copy_dir(&from, &to);
    });
    let store = fixture.start_on(disk);
    put(&store, &["+dir/a=2"]).await.unwrap();
    armed.store(true, Ordering::Relaxed);
    put(&store, &["+other/b=2", "+other/c=3"]).await.unwrap();
    let store = killed.start();
    let head = store.head();
    drop(store);
    assert_eq!(contents(&head)["dir/a"], "2");
    killed.check(&head);
}

/// A clone, or a repository of an earlier version.
#[tokio::test]
async fn a_repository_that_lacks_what_marks_need_gets_it() {
    let fixture = Fixture::new();
    drop(fixture.start());
    let config = fixture.repository().join("config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("packKeptObjects = true", "")).unwrap();
    drop(fixture.start());
    assert_eq!(fixture.git(&["config", "repack.packKeptObjects"]), "true\n");
    let once = fs::read_to_string(&config).unwrap();
    drop(fixture.start());
    assert_eq!(fs::read_to_string(&config).unwrap(), once);
}

#[tokio::test]
async fn a_mark_that_was_cut_off_goes_and_its_pack_stays() {
    let fixture = killed_before_move().await;
    for mark in marks(&fixture) {
        let text = fs::read(&mark).unwrap();
        fs::write(&mark, &text[..text.len() / 2]).unwrap();
    }
    let store = fixture.start();
    assert!(marks(&fixture).is_empty());
    assert_ne!(unreachable_objects(&fixture), "");
    git_gc(&fixture.repository());
    store_again(&fixture, store).await;
}

/// A copy of a running server can have an old mark beside a new branch.
#[tokio::test]
async fn an_old_mark_costs_no_pack() {
    let fixture = killed_before_move().await;
    let [mark] = &marks(&fixture)[..] else { panic!("one mark") };
    let text = fs::read_to_string(mark).unwrap();
    let moved_to = text.lines().last().unwrap();
    fixture.git(&["update-ref", "refs/heads/main", moved_to]);
    let store = fixture.start();
    put(&store, &["+dir/c=3"]).await.unwrap();
    drop(store);
    fs::write(mark, text).unwrap();
    let store = fixture.start();
    assert!(marks(&fixture).is_empty());
    let head = store.head();
    drop(store);
    assert_eq!(contents(&head)["dir/b"], "2");
    fixture.check(&head);
}
