//! A copy that is made from a journal holds only what the rules give (D206).

use countersign_core::{rules::snapshot::Change, values::bounds::FILE_BYTES};
use countersign_store::journal::{JournalEntry, copy::CheckBegin, copy::Copied, copy::JournalCopy};
use countersign_store::{ObjectId, Options, Repository, Store, machine::clock::Clock};

use super::following::{entries_of, origin};
use crate::support::{Fixture, commit, options, path, replaying::everything, replaying::speaks_for};

/// A legal history, and then as many commits of so many bytes that no rule gives.
async fn journal(illegal: usize, bytes: usize) -> (Vec<JournalEntry>, usize) {
    let fixture = Fixture::in_memory();
    let legal = entries_of(&origin(&fixture, &everything().steps).await, None);
    let repository = Repository::open(&fixture.repository()).unwrap();
    let newest = legal.last().unwrap().time;
    let options = Options { clock: Clock::new(move || newest), ..options() };
    let store = Store::start(repository, options).unwrap();
    for number in 0..illegal {
        let mut change = Change::new("Notes");
        let mut content = number.to_string().into_bytes();
        content.resize(bytes, b'x');
        change.write(path(&format!("notes/{number}")), content);
        commit(&store, change).await.unwrap();
    }
    (entries_of(&store, None), legal.len())
}

/// How many commits the copy takes, and those of a copy that is opened again.
fn copy_all(fixture: &Fixture, begin: CheckBegin, entries: &[JournalEntry]) -> (usize, Option<ObjectId>) {
    let mut copy = JournalCopy::open(&fixture.repository(), speaks_for).unwrap();
    copy.begin_check(begin);
    let is_added = |entry: &&JournalEntry| match copy.add(entry).unwrap() {
        Copied::Added => true,
        Copied::Illegal { commit, violations } => {
            assert_eq!(commit, entry.id);
            assert!(violations[0].files[0].as_str().starts_with("notes"), "{violations:?}");
            false
        }
    };
    let added = entries.iter().take_while(is_added).count();
    copy.publish().unwrap();
    (added, JournalCopy::open(&fixture.repository(), speaks_for).unwrap().newest())
}

#[tokio::test]
async fn the_first_commit_that_the_rules_do_not_give_is_not_stored_and_no_later_one() {
    let (entries, legal) = journal(3, 10).await;
    let fixture = Fixture::in_memory();
    let (added, newest) = copy_all(&fixture, CheckBegin::Now, &entries);
    assert_eq!((added, newest), (legal, Some(entries[legal - 1].id)));
    let objects = fixture.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    assert!(!objects.contains(&entries[legal].id.to_string()), "not even without a branch that leads to it");
    // Each part of the history is checked with what came before it.
    let fixture = Fixture::in_memory();
    for at in 0..legal {
        assert_eq!(copy_all(&fixture, CheckBegin::Now, &entries[at..=at]), (1, Some(entries[at].id)));
    }
}

#[tokio::test]
async fn commits_before_the_one_that_the_check_begins_after_are_excused() {
    let (entries, legal) = journal(3, 10).await;
    let begin = CheckBegin::After(entries[legal + 1].id);
    let (added, newest) = copy_all(&Fixture::in_memory(), begin, &entries);
    assert_eq!((added, newest), (legal + 2, Some(entries[legal + 1].id)));
}

#[tokio::test]
async fn a_journal_that_never_comes_to_that_commit_ends_all_the_same() {
    let (entries, legal) = journal(34, FILE_BYTES).await;
    let never = CheckBegin::After(ObjectId::from_bytes_or_panic(&[1; 20]));
    let (added, _) = copy_all(&Fixture::in_memory(), never, &entries);
    assert_eq!(added, legal + 31, "64 MiB of them, without the little that each takes beside its file");
}
