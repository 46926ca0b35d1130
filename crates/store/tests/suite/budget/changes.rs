//! How much may be stored: what counts, and which changes are refused.

use std::sync::{Arc, atomic::Ordering};

use countersign_core::rules::snapshot::Change;
use countersign_store::{BudgetScope, Disk, Options, Repository, StorageLimits, Store, StoreError};

use crate::support::{Fixture, commit, commit_together, contents, options, path, switched_disk};

const A: &str = "https/a.example/443/acme/app/svc.signers.pending/svc.signers.json";
const B: &str = "https/b.example/443/acme/app/svc.signers.pending/svc.signers.json";

/// Room for some changes of one project. What comes back during a test is nothing beside it.
const LIMITS: StorageLimits =
    StorageLimits { project: 20_000, owner: 30_000, host: 40_000, total: 50_000, project_reserved: 1_000 };

fn start(fixture: &Fixture, disk: Disk) -> Store {
    let repository = Repository::open_on(disk, &fixture.repository()).unwrap();
    Store::start(repository, Options { budget: Some(LIMITS), ..options() }).unwrap()
}

/// A change that writes so many bytes to each of `names`, different for each `seed`.
fn write(names: &[&str], seed: u8, bytes: usize) -> Change {
    let mut change = Change::new("Write");
    names.iter().for_each(|name| change.write(path(name), vec![seed; bytes]));
    change
}

fn scope_of(result: Result<(), StoreError>) -> BudgetScope {
    match result {
        Err(StoreError::OverBudget(over)) => over.scope,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_change_over_budget_is_refused_and_the_others_of_its_batch_are_stored() {
    let fixture = Fixture::in_memory();
    let store = Arc::new(start(&fixture, Disk::default()));
    let changes = [
        write(&[A], b'x', 12_000),
        write(&[A], b'y', 12_000),
        write(&[B], b'z', 12_000),
        write(&[A], b'w', 100),
    ];
    let mut results = commit_together(&store, changes).await;
    let over = results.remove(1);
    assert_eq!(scope_of(over), BudgetScope::Project);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(fixture.log().len(), 4);
    let head = store.head();
    assert_eq!(contents(&head)[A], "w".repeat(100));
    drop(store);
    fixture.check(&head);
}

#[tokio::test]
async fn content_that_stays_or_moves_does_not_count_again() {
    let fixture = Fixture::in_memory();
    let store = start(&fixture, Disk::default());
    let before = store.stats().stored_bytes.get();
    let names =
        ["1", "2", "3"].map(|name| format!("https/a.example/443/acme/app/svc.signers.pending/{name}"));
    let names = names.each_ref().map(String::as_str);
    // Two copies in one change, and one of them moves: one content.
    commit(&store, write(&names[..2], b'x', 15_000)).await.unwrap();
    let mut moved = write(&names[1..], b'x', 15_000);
    moved.delete(path(names[0]));
    commit(&store, moved).await.unwrap();
    let mut removal = Change::new("Remove");
    removal.delete(path(names[1]));
    commit(&store, removal).await.unwrap();
    let rest = store.stats().stored_bytes.get() - before - 15_000;
    // Each commit has its text, and makes seven directories anew.
    assert!((3 * 600..3 * 1_000).contains(&rest), "three commits with {rest} bytes");
    assert_eq!(scope_of(commit(&store, write(&names[..1], b'y', 5_000)).await), BudgetScope::Project);
}

/// Many long names in one directory, and then single changes of small files there (D201). Each change is a batch of its
/// own.
#[tokio::test]
async fn what_is_counted_is_at_least_what_the_disk_takes() {
    let fixture = Fixture::in_memory();
    let store = fixture.start();
    let pack_bytes = || {
        let files = std::fs::read_dir(fixture.repository().join("objects/pack")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let dir = "https/a.example/443/acme/app/releases";
    let name = |n: usize| path(&format!("{dir}/{n:0150}/svc.index.json"));
    let (stored, on_disk) = (store.stats().stored_bytes.get(), pack_bytes());
    for n in 0..300 {
        let mut change = Change::new("Add");
        // Each is the first of its directory.
        change.write(name(1_000 - n), n.to_string().into_bytes());
        commit(&store, change).await.unwrap();
    }
    let added = store.stats().stored_bytes.get() - stored;
    assert!(added > 300 * 150 * 150, "directories count: {added}");
    for n in 0..40 {
        let mut change = Change::new("Sign");
        change.write(name(1_000 - 299), format!("signature {n}").into_bytes());
        commit(&store, change).await.unwrap();
    }
    let (added, grown) = (store.stats().stored_bytes.get() - stored, pack_bytes() - on_disk);
    assert!(grown <= added, "{added} bytes were counted, and the disk has {grown} more");
    let head = store.head();
    drop(store);
    fixture.check(&head);
}

#[tokio::test]
async fn what_could_not_be_stored_is_not_charged() {
    let fixture = Fixture::in_memory();
    let (disk, is_dead) = switched_disk();
    let store = start(&fixture, disk);
    is_dead.store(true, Ordering::Relaxed);
    for seed in [b'a', b'b', b'c'] {
        assert!(matches!(commit(&store, write(&[A], seed, 8_000)).await, Err(StoreError::Io(_))));
    }
    is_dead.store(false, Ordering::Relaxed);
    commit(&store, write(&[A], b'd', 8_000)).await.unwrap();
    assert_eq!(scope_of(commit(&store, write(&[A], b'e', 12_000)).await), BudgetScope::Project);
}
