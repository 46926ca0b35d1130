//! Folding: many small packs become few, and no program that reads beside us misses one of them.

use std::{fs, path::PathBuf};

use countersign_store::Store;

use crate::support::{Fixture, await_folding, contents, put};

/// A head notes where the content of its files lies, and packs go.
#[tokio::test]
async fn what_was_read_before_its_pack_was_folded_is_read_again_afterwards() {
    let fixture = Fixture::new();
    let store = fixture.start();
    // Larger ones are compressed, and found in another way.
    for (n, length) in [0, 1, 4_096, 4_097, 20_000].into_iter().enumerate() {
        put(&store, &[&format!("+dir/{n}={}", "x".repeat(length))]).await.unwrap();
    }
    let early = store.head();
    let before = contents(&early);
    assert_eq!(contents(&early), before);
    for n in 0..60 {
        put(&store, &[&format!("+more/{n}={n}")]).await.unwrap();
        assert_eq!(contents(&early), before);
    }
    let late = contents(&store.head());
    assert!(before.iter().all(|file| late.get(file.0) == Some(file.1)));
    assert_eq!(late.len(), before.len() + 60);
    assert_eq!(contents(&store.head()), late);
    end(store);
    assert!(!fixture.fold_lists().is_empty(), "they were folded");
}

#[tokio::test]
async fn folding_keeps_versions_of_a_wide_directory_as_differences() {
    let fixture = Fixture::new();
    let store = fixture.start();
    let files: Vec<String> = (0..500).map(|n| format!("+wide/file{n:03}={n}")).collect();
    put(&store, &files.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
    let size = || fixture.packs().iter().map(|pack| pack.metadata().unwrap().len()).sum::<u64>();
    let one_copy = size();
    for n in 0..200 {
        put(&store, &[&format!("+wide/file{:03}=again {n}", n * 7 % 500)]).await.unwrap();
    }
    let head = store.head();
    end(store);
    fixture.let_time_pass();
    drop(fixture.start());
    assert!(fixture.packs().len() < 40, "{} packs", fixture.packs().len());
    let copies = size() / one_copy;
    assert!(copies < 100, "200 versions take the room of {copies}");
    assert_eq!(fixture.log().len(), 202);
    fixture.check(&head);
    // Every version, at the end of whatever chain of differences: commits, trees and files.
    let objects = 202 + (1 + 2 * 201) + (1 + 500 + 200);
    assert_eq!(fixture.git(&["rev-list", "--objects", "main"]).lines().count(), objects);
    fixture.git(&["fsck", "--strict"]);
}

/// Stores so many changes, one after the other.
async fn put_many(fixture: &Fixture, dir: &str, count: usize) {
    let store = fixture.start();
    for n in 0..count {
        put(&store, &[&format!("+{dir}/{n}={n}"), "+often=same"]).await.unwrap();
    }
    end(store);
}

/// Ends a store whose packs are folded. One that ends earlier gives up the fold under way.
fn end(store: Store) {
    await_folding(&store, 15);
}

fn remaining(packs: &[PathBuf]) -> usize {
    packs.iter().filter(|index| index.exists() && index.with_extension("pack").exists()).count()
}

/// `git fsck`, `git clone` and `git gc` list the packs once, and open them later.
#[tokio::test]
async fn a_pack_that_was_listed_stays_for_a_while_after_it_was_folded_and_across_restarts() {
    // In all, not so many that folded packs have to go.
    let fixture = Fixture::new();
    put_many(&fixture, "first", 14).await;
    let listed = fixture.packs();
    assert_eq!(listed.len(), 15);
    put_many(&fixture, "second", 20).await;
    assert!(!fixture.fold_lists().is_empty(), "they were folded");
    put_many(&fixture, "third", 20).await;
    assert_eq!(remaining(&listed), 15);
    fixture.check(&fixture.start().head());

    fixture.let_time_pass();
    drop(fixture.start());
    assert_eq!(remaining(&listed), 0);
    assert_eq!(fixture.fold_lists(), Vec::<PathBuf>::new());
    fixture.check(&fixture.start().head());
}

#[tokio::test(flavor = "multi_thread")]
async fn git_fsck_and_git_clone_beside_a_busy_store_miss_no_pack() {
    let fixture = Fixture::in_memory();
    let store = fixture.start();
    let busy = tokio::spawn(async move {
        // Not so many that folded packs have to go.
        for n in 0..60 {
            put(&store, &[&format!("+dir/{n}={n}")]).await.unwrap();
        }
        end(store);
    });
    let mut clones = 0;
    while !busy.is_finished() {
        assert_eq!(fixture.git(&["fsck", "--strict", "--full", "--no-dangling"]), "");
        let target = fixture.dir.path().join(format!("clone{clones}"));
        fixture.git(&["clone", "-q", "--mirror", "--no-local", ".", target.to_str().unwrap()]);
        clones += 1;
    }
    busy.await.unwrap();
    assert!(clones > 0 && !fixture.fold_lists().is_empty());
}

#[tokio::test]
async fn a_pack_that_stays_is_not_folded_again() {
    let fixture = Fixture::new();
    put_many(&fixture, "dir", 40).await;
    let (packs, lists) = (fixture.packs().len(), fixture.fold_lists().len());
    assert!(packs > 40 && lists > 0);
    for _ in 0..3 {
        drop(fixture.start());
    }
    assert_eq!((fixture.packs().len(), fixture.fold_lists().len()), (packs, lists));
}

#[tokio::test]
async fn lists_that_are_lost_or_damaged_leave_packs_that_a_later_fold_takes_in() {
    let damages: [fn(&PathBuf); 3] = [
        |list| fs::remove_file(list).unwrap(),
        |list| fs::write(list, "").unwrap(),
        |list| {
            fs::write(list, [&fs::read(list).unwrap()[..70], b"\0\xff\n../../HEAD\n.\n"].concat()).unwrap()
        },
    ];
    for damage in damages {
        let fixture = Fixture::new();
        put_many(&fixture, "dir", 20).await;
        fixture.fold_lists().iter().for_each(damage);
        put_many(&fixture, "again", 20).await;
        fixture.let_time_pass();
        drop(fixture.start());
        assert!(fixture.packs().len() < 20, "{} packs", fixture.packs().len());
        let head = fixture.start().head();
        assert_eq!(contents(&head).len(), 42);
        fixture.check(&head);
        assert!(fixture.repository().join("HEAD").exists());
    }
}

#[tokio::test]
async fn a_list_is_not_believed_about_what_its_pack_does_not_hold() {
    let fixture = Fixture::new();
    put_many(&fixture, "dir", 20).await;
    let before = fixture.packs();
    put_many(&fixture, "late", 1).await;
    let late: Vec<_> = fixture.packs().into_iter().filter(|pack| !before.contains(pack)).collect();
    let name = late[0].file_stem().unwrap().to_str().unwrap();
    fs::write(&fixture.fold_lists()[0], format!("{name}\n")).unwrap();
    fixture.let_time_pass();
    let head = fixture.start().head();
    assert_eq!(contents(&head).len(), 23);
    assert_eq!(remaining(&late), late.len());
    fixture.check(&head);
}

#[tokio::test]
async fn git_gc_beside_a_running_server_leaves_no_list_in_force() {
    let fixture = Fixture::new();
    let store = fixture.start();
    for n in 0..40 {
        put(&store, &[&format!("+dir/{n}={n}")]).await.unwrap();
    }
    fixture.git(&["gc", "-q", "--prune=now"]);
    for n in 0..40 {
        put(&store, &[&format!("+more/{n}={n}")]).await.unwrap();
    }
    end(store);
    fixture.let_time_pass();
    let head = fixture.start().head();
    assert_eq!(contents(&head).len(), 81);
    fixture.check(&head);
}
