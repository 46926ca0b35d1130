//! The journal out of a repository.

use std::{io::Write as _, process::Command, process::Stdio};

use countersign_store::journal::{export::JournalExport, write::JournalEntry, write::write_entries};
use countersign_store::{ObjectId, Store};
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
    put(
        store,
        &[
            "-https/a/443/d/e",
            "+https/a/443/d.x=four",
            "+\"quoted\" name/ü \\'=five".replace('\\', "").as_str(),
        ],
    )
    .await
    .unwrap();
    put(store, &["+https/a/443/b=one"]).await.unwrap();
}

#[tokio::test]
async fn it_has_every_commit_with_what_it_changed() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    let told = entries(journal(&store, None));
    let ids = fixture.git(&["rev-list", "--reverse", "main"]);
    assert_eq!(
        told.iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>(),
        ids.lines().collect::<Vec<_>>()
    );
    let messages: Vec<&str> = told.iter().map(|entry| entry.change.message.lines().next().unwrap()).collect();
    assert_eq!(messages, fixture.log());
    for (entry, parent) in told.iter().zip([None].into_iter().chain(told.iter().map(|entry| Some(entry.id))))
    {
        assert_eq!(entry.parent, parent);
    }
    for (number, entry) in told.iter().enumerate().skip(1) {
        let (before, after) = (told[number - 1].id, entry.id);
        let names = fixture.git(&[
            "-c",
            "core.quotePath=false",
            "diff-tree",
            "-r",
            "--no-renames",
            "--format=",
            "--name-status",
            "-z",
            &before.to_string(),
            &after.to_string(),
        ]);
        let mut own = String::new();
        for (path, content) in &entry.change.files {
            let is_new = !fixture
                .git(&["ls-tree", "-r", "--name-only", "-z", &before.to_string()])
                .contains(&format!("{path}\0"));
            let status = if content.is_none() {
                "D"
            } else if is_new {
                "A"
            } else {
                "M"
            };
            own += &format!("{status}\0{path}\0");
        }
        assert_eq!(names, own);
    }
    assert_eq!(journal(&store, None).head(), store.head().commit);
}

#[tokio::test]
async fn parts_of_any_size_are_the_text_of_the_entries() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    let expected = write_entries(&entries(journal(&store, None)));
    for part in [1, 100, 1 << 20] {
        assert_eq!(text(journal(&store, None), part), expected);
    }
}

#[tokio::test]
async fn it_goes_on_after_any_commit() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    let all = entries(journal(&store, None));
    for (number, entry) in all.iter().enumerate() {
        let rest = journal(&store, Some(entry.id));
        assert_eq!(rest.is_done(), number + 1 == all.len());
        assert_eq!(entries(rest), all[number + 1..]);
    }
}

#[tokio::test]
async fn only_a_commit_of_the_history_can_be_gone_on_from() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    assert!(store.journal(Some(id('a'))).unwrap().is_none());
    for name in ["main:https/a/443/b", "main^{tree}"] {
        let other = ObjectId::from_hex(fixture.git(&["rev-parse", name]).trim().as_bytes()).unwrap();
        assert!(store.journal(Some(other)).unwrap().is_none(), "{name}");
    }
    // Such as a crash leaves.
    let tree = fixture.git(&["rev-parse", "main~1^{tree}"]);
    for parents in [&["-p", "main~1"][..], &["-p", "main"], &[]] {
        let made = ["-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree.trim(), "-m", "x"];
        let stray = fixture.git(&[&made, parents].concat());
        let stray = ObjectId::from_hex(stray.trim().as_bytes()).unwrap();
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
        for at in [0, 1, 2, 498, 499, 500, 501, 502, 699, 700, 701, 999, 1_000, 1_001, 1_199, expected - 1] {
            assert_eq!(entries(journal(&store, Some(all[at].id))), all[at + 1..], "{at} of {expected}");
        }
        let old = all[3].id.to_string();
        let stray = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit-tree",
            "main^{tree}",
            "-m",
            "x",
            "-p",
            &old,
        ];
        let stray = ObjectId::from_hex(fixture.git(&stray).trim().as_bytes()).unwrap();
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
    let mut after = None;
    for end in [1, 3, 4] {
        let entries = entries(journal(&store, after));
        let count =
            ids[..=end].len() - after.map_or(0, |after| ids.iter().position(|id| *id == after).unwrap() + 1);
        copy.import(&write_entries(&entries[..count]));
        copy.check(ids[end]);
        after = Some(ids[end]);
    }
}

#[tokio::test]
async fn what_no_server_wrote_is_not_told() {
    let fixture = Fixture::new();
    let store = fixture.start();
    fill(&store).await;
    drop(store);
    let head = fixture.git(&["rev-parse", "main"]);
    let blob = fixture.git(&["rev-parse", "main:https/a/443/b"]);
    for (mode, name) in
        [("100755", "https/a/443/x"), ("120000", "https/a/443/x"), ("100644", "https/a/443/a\\b")]
    {
        fixture.git(&["read-tree", head.trim()]);
        fixture.git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{},{name}", blob.trim())]);
        commit_index(&fixture, &["-p", head.trim()], "main");
        let bad = fixture.git(&["rev-parse", "main"]);
        let store = fixture.start();
        let mut export = journal(&store, Some(ObjectId::from_hex(head.trim().as_bytes()).unwrap()));
        let error = export.next_part(1).unwrap_err().to_string();
        assert!(error.contains(bad.trim()), "{error}");
        drop(store);
        fixture.git(&["update-ref", "refs/heads/main", head.trim()]);
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
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.arg("-C").arg(self.0.path()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        running.stdin.take().unwrap().write_all(input).unwrap();
        let output = running.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap() + &errors
    }

    fn import(&self, journal: &[u8]) {
        assert_eq!(self.git(&["fast-import", "--quiet"], journal), "");
    }

    fn check(&self, head: ObjectId) {
        assert_eq!(self.git(&["rev-parse", "main"], b"").trim(), head.to_string());
        assert_eq!(self.git(&["fsck", "--strict", "--full", "--no-progress"], b""), "");
    }
}
