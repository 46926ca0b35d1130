//! The journal out of a repository.

use countersign_store::journal::{JournalEntry, export::JournalExport, write_entries};
use countersign_store::{ObjectId, Store};
use countersign_testing::repo::git;
use tempfile::TempDir;

use super::{id, read_all};
use crate::support::{Fixture, commit_index, put};

fn entries(mut export: JournalExport) -> Vec<JournalEntry> {
    let mut entries = Vec::new();
    while let Some(entry) = export.next_entry().unwrap() {
        entries.push(entry);
    }
    entries
}

fn text(mut export: JournalExport, part: usize) -> Vec<u8> {
    let (mut text, mut commits) = (Vec::new(), 0);
    while let Some(part) = export.next_part(part).unwrap() {
        text.extend(part.bytes);
        commits += part.commits;
    }
    assert!(export.is_done());
    assert_eq!(commits, read_all(&text).unwrap().len());
    text
}

fn journal(store: &Store, after: Option<ObjectId>) -> JournalExport {
    store.journal(after).unwrap().unwrap()
}

async fn fill(store: &Store) {
    put(store, &["+https/a/443/b=one", "+https/a/443/c=one", "+https/a/443/d/e=two"]).await.unwrap();
    put(store, &["+https/a/443/b=three", "-https/a/443/c"]).await.unwrap();
    let quoted = "+\"quoted\" name/ü '=five";
    put(store, &["-https/a/443/d/e", "+https/a/443/d.x=four", quoted]).await.unwrap();
    put(store, &["+https/a/443/b=one"]).await.unwrap();
}

#[tokio::test]
async fn it_has_every_commit_with_what_it_changed_in_parts_of_any_size_and_after_any_commit() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    let told = entries(journal(&store, None));
    let ids: Vec<String> = told.iter().map(|entry| entry.id.to_string()).collect();
    assert_eq!(ids, fixture.git(&["rev-list", "--reverse", "main"]).lines().collect::<Vec<_>>());
    assert_eq!(journal(&store, None).head(), store.head().commit);
    for pair in told.windows(2) {
        assert_eq!(pair[1].parent, Some(pair[0].id));
        // What a file becomes, the copies below prove.
        let [before, after] = [0, 1].map(|at: usize| pair[at].id.to_string());
        let names = fixture.git(&["diff-tree", "-r", "--no-renames", "--name-only", "-z", &before, &after]);
        let own: String = pair[1].change.files.keys().map(|path| format!("{path}\0")).collect();
        assert_eq!(names, own);
    }
    let expected = write_entries(&told);
    for part in [1, 100, 1 << 20] {
        assert_eq!(text(journal(&store, None), part), expected);
    }
    for (number, entry) in told.iter().enumerate() {
        let rest = journal(&store, Some(entry.id));
        assert_eq!(rest.is_done(), number + 1 == told.len());
        assert_eq!(entries(rest), told[number + 1..]);
    }
}

#[tokio::test]
async fn only_a_commit_of_the_history_can_be_gone_on_from() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    assert!(store.journal(Some(id('a'))).unwrap().is_none());
    for name in ["main:https/a/443/b", "main^{tree}"] {
        assert!(store.journal(Some(fixture.id_of(name))).unwrap().is_none(), "{name}");
    }
    // Such as a crash leaves.
    for parents in [&["-p", "main~1"][..], &["-p", "main"], &[]] {
        let stray = fixture.id_of(&fixture.commit_tree("main~1^{tree}", "x", parents));
        assert!(store.journal(Some(stray)).unwrap().is_none(), "{parents:?}");
    }
}

/// More commits than two milestones are apart, while more are made.
#[tokio::test]
async fn a_long_history_is_told_from_any_commit_on() {
    let fixture = Fixture::in_memory();
    let store = fixture.start();
    let mut expected = 1;
    for round in [1_200, 1, 499, 2, 700] {
        for number in 0..round {
            put(&store, &[&format!("+https/a/443/b{}=round {round} {number}", number % 7)]).await.unwrap();
        }
        expected += round;
        let all = entries(journal(&store, None));
        assert_eq!(all.len(), expected);
        assert_eq!(all.last().unwrap().id, store.head().commit);
        assert!(all.windows(2).all(|pair| pair[1].parent == Some(pair[0].id)));
        for at in [0, 1, 499, 500, 501, 1_000, 1_001, expected - 1] {
            assert_eq!(entries(journal(&store, Some(all[at].id))), all[at + 1..], "{at} of {expected}");
        }
        let old = all[3].id.to_string();
        let stray = fixture.id_of(&fixture.commit_tree("main^{tree}", "x", &["-p", &old]));
        assert!(store.journal(Some(stray)).unwrap().is_none());
    }
}

#[tokio::test]
async fn git_imports_it_at_once_and_in_parts() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    let all = text(journal(&store, None), 1 << 20);
    let copy = BareCopy::new();
    copy.import(&all);
    copy.check(store.head().commit);

    let copy = BareCopy::new();
    let ids: Vec<ObjectId> = read_all(&all).unwrap().iter().map(|entry| entry.id).collect();
    for (begin, end) in [(0, 1), (2, 3), (4, 4)] {
        let after = (begin > 0).then(|| ids[begin - 1]);
        copy.import(&write_entries(&entries(journal(&store, after))[..=end - begin]));
        copy.check(ids[end]);
    }
}

#[tokio::test]
async fn what_no_server_wrote_is_not_told() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    drop(store);
    let (head, blob) = (fixture.id_of("main"), fixture.id_of("main:https/a/443/b"));
    let tip = head.to_string();
    for (mode, name) in
        [("100755", "https/a/443/x"), ("120000", "https/a/443/x"), ("100644", "https/a/443/a\\b")]
    {
        fixture.git(&["read-tree", &tip]);
        fixture.git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{blob},{name}")]);
        commit_index(&fixture, &["-p", &tip], "main");
        let store = fixture.start();
        let error = journal(&store, Some(head)).next_part(1).unwrap_err().to_string();
        assert!(error.contains(&fixture.id_of("main").to_string()), "{error}");
        drop(store);
        fixture.git(&["update-ref", "refs/heads/main", &tip]);
    }
}

/// A bare repository of Git's own making.
struct BareCopy(TempDir);

impl BareCopy {
    fn new() -> Self {
        let copy = Self(TempDir::new().unwrap());
        copy.git(&["init", "-q", "--bare", "--initial-branch=main"], b"");
        copy
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        git(self.0.path(), arguments, input)
    }

    fn import(&self, journal: &[u8]) {
        assert_eq!(self.git(&["fast-import", "--quiet"], journal), "");
    }

    fn check(&self, head: ObjectId) {
        assert_eq!(self.git(&["rev-parse", "main"], b"").trim(), head.to_string());
        assert_eq!(self.git(&["fsck", "--strict", "--full", "--no-progress"], b""), "");
    }
}
