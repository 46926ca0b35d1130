//! `countersign fsck`, and the server, on trees that were made to exhaust their readers.

use std::time::{Duration, Instant};

use countersign_core::values::bounds::FILE_BYTES;
use countersign_store::{audit, audit::AuditEvent};
use tempfile::TempDir;

use crate::support::{Git, Launch, fsck::Checked, fsck::fsck, past::past, rewriting::import};

/// More than any of these takes, even where other tests run beside it; without bounds they take for ever.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A history that can be added to with trees of any form.
struct Bombed {
    dir: TempDir,
    git: Git,
}

impl Bombed {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        import(dir.path(), &past().commits);
        let git = Git::at(dir.path());
        Self { dir, git }
    }

    fn blob(&self, content: &str) -> String {
        self.git.run_with_input(&["hash-object", "-w", "--stdin"], content.as_bytes())
    }

    fn tree(&self, entries: &[(&str, &str, &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend(format!("{mode} {name}\0").bytes());
            bytes.extend((0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()));
        }
        let store = ["hash-object", "-w", "-t", "tree", "--stdin", "--literally"];
        self.git.run_with_input(&store, &bytes)
    }

    /// So many directories inside one another, each with the next one in it under each of these names.
    fn nest(&self, depth: usize, names: &[&str]) -> String {
        let innermost = self.tree(&[("100644", "svc.signers.json", &self.blob("x"))]);
        (0..depth).fold(innermost, |inner, _| {
            let entries: Vec<_> = names.iter().map(|name| ("40000", *name, inner.as_str())).collect();
            self.tree(&entries)
        })
    }

    /// A commit that adds this directory.
    fn commit(&self, dir: &str) -> String {
        let listed = self.git.run(&["ls-tree", "main"]);
        let others: Vec<&str> = listed.lines().filter(|line| !line.ends_with("\tbomb")).collect();
        let listed = others.join("\n") + &format!("\n040000 tree {dir}\tbomb\n");
        let root = self.git.run_with_input(&["mktree"], listed.as_bytes());
        let id = self.git.run(&["commit-tree", &root, "-p", "main", "-m", "a bomb"]);
        self.git.run(&["update-ref", "refs/heads/main", &id]);
        id
    }

    #[track_caller]
    fn fsck(&self, args: &[&str]) -> Checked {
        let begin = Instant::now();
        let checked = fsck(self.dir.path(), args);
        assert!(begin.elapsed() < TIMEOUT, "{:?}", begin.elapsed());
        checked
    }
}

#[test]
fn directories_that_lie_in_very_many_places_are_found_without_walking_them_all() {
    let bombed = Bombed::new();
    let id = bombed.commit(&bombed.nest(40, &["a", "b"]));
    bombed.fsck(&[]).finds(&id, "", "more than 100000 files and directories");
    // Not as a state to begin with either.
    let checked = bombed.fsck(&["--since", &id]);
    assert_eq!(checked.code, Some(1), "{:#}", checked.json);
    assert!(checked.json["error"].as_str().unwrap().contains("16000000"), "{:#}", checked.json);

    // A server refuses such a tree, and says why.
    let data_dir = TempDir::new().unwrap();
    let to = data_dir.path().join("repo.git");
    bombed.git.run(&["clone", "--quiet", "--mirror", ".", to.to_str().unwrap()]);
    let begin = Instant::now();
    let args = ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", data_dir.path().to_str().unwrap()];
    let output = Launch::default().args(args).output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && begin.elapsed() < TIMEOUT, "{said}");
    assert!(said.contains("more than 16000000 files and directories"), "{said}");
}

/// So that a user who interrupts a long check has seen what it found.
#[test]
fn findings_are_told_as_they_arise_and_printed_once() {
    let bombed = Bombed::new();
    let ids = [bombed.commit(&bombed.nest(2, &["a"])), bombed.commit(&bombed.nest(3, &["a"]))];
    let mut told = Vec::new();
    let checked =
        audit::walk::check(bombed.dir.path(), None, countersign_forge::forges::speaks_for, &mut |event| {
            match event {
                AuditEvent::Progress { done, .. } => told.push(done.to_string()),
                AuditEvent::Found(finding) => told.push(finding.commit.to_string()),
            }
        });
    assert_eq!(checked.unwrap().found, 2);
    let legal = past().commits.len();
    let [first, second] = ids.clone();
    let end = [legal.to_string(), first, (legal + 1).to_string(), second, (legal + 2).to_string()];
    assert!(told.ends_with(&end), "{told:?}");

    let output = Launch::default().args(["fsck", bombed.dir.path().to_str().unwrap(), "--quiet"]).output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("commit ")).collect();
    assert_eq!(found.len(), 2, "{text}");
    assert!(found.iter().zip(&ids).all(|(line, id)| line.contains(id)), "{text}");
    assert!(text.contains("\n  bomb/a/a/svc.signers.json\n"), "{text}");
}

#[test]
fn directories_that_go_deeper_than_any_path_are_found() {
    let bombed = Bombed::new();
    let id = bombed.commit(&bombed.nest(63, &["a"]));
    bombed.fsck(&[]).finds(&id, "", "too deep");
    let bombed = Bombed::new();
    let id = bombed.commit(&bombed.nest(61, &["a"]));
    bombed.fsck(&[]).finds(&id, &format!("bomb/{}svc.signers.json", "a/".repeat(61)), "");

    // What was read at one depth must not be taken for known where it lies deeper.
    let bombed = Bombed::new();
    let shallow = bombed.nest(50, &["a"]);
    let deep = (0..30).fold(shallow.clone(), |inner, _| bombed.tree(&[("40000", "a", &inner)]));
    let id = bombed.commit(&bombed.tree(&[("40000", "a", &shallow), ("40000", "b", &deep)]));
    bombed.fsck(&[]).finds(&id, "", "too deep");
}

/// Each of these directories looks as if it were nearly the one before, and is not.
#[test]
fn directories_in_another_spelling_are_read_once() {
    let bombed = Bombed::new();
    let blob = bombed.blob("x");
    let names: Vec<String> = (0..9).map(|number| format!("a{number:02}")).collect();
    let nest = |mode: &str, leaf: &str| {
        let innermost = bombed.tree(&[("100644", "f", &bombed.blob(leaf))]);
        (0..45).fold(innermost, |inner, _| {
            let mut entries: Vec<_> = names.iter().map(|name| (mode, name.as_str(), blob.as_str())).collect();
            entries.push(("40000", "d", &inner));
            bombed.tree(&entries)
        })
    };
    let first = bombed.commit(&nest("100644", "1"));
    bombed.commit(&nest("100664", "2"));
    bombed.fsck(&[]).finds(&first, "", "");
}

/// Whether the object lies alone or in a pack, as a difference or whole, its size is told before it is read.
#[test]
fn a_file_that_is_larger_than_any_stored_one_is_found() {
    let bombed = Bombed::new();
    let line = "0123456789abcdef".repeat(4);
    let content = |bytes: usize, first: char| {
        let mut text = line.repeat(bytes / line.len() + 1);
        text.truncate(bytes);
        text.replace_range(..1, &first.to_string());
        text
    };
    let file = |text: &str| bombed.tree(&[("100644", "large", &bombed.blob(text))]);
    let largest = bombed.commit(&file(&content(FILE_BYTES, 'a')));
    let larger = bombed.commit(&file(&content(FILE_BYTES + 1, 'b')));
    let largest_again = bombed.commit(&file(&content(FILE_BYTES, 'c')));
    let bomb = bombed.commit(&file(&content(300 << 20, 'd')));
    for is_packed in [false, true] {
        if is_packed {
            // The largest is not compared with others, and compressed in a hurry: its size is all that counts.
            let quickly = ["-c", "core.bigFileThreshold=128m", "-c", "pack.compression=1"];
            bombed.git.run(&[&quickly[..], &["repack", "-a", "-d", "-f", "--quiet"]].concat());
            assert!(bombed.git.run(&["count-objects", "-v"]).contains("count: 0\n"));
        }
        let checked = bombed.fsck(&[]);
        let findings = checked.json["findings"].as_array().unwrap().iter();
        let sizes: Vec<(&str, &str)> = findings
            .filter(|finding| finding["reason"].as_str().unwrap().contains(&FILE_BYTES.to_string()))
            .map(|finding| (finding["commit"].as_str().unwrap(), finding["files"][0].as_str().unwrap()))
            .collect();
        assert_eq!(sizes, [(larger.as_str(), "bomb/large"), (bomb.as_str(), "bomb/large")], "{is_packed}");
        checked.finds(&largest, "bomb/large", "the commit says nothing");
        assert!(checked.json.to_string().contains(&largest_again), "each is found for its message");
    }
}

#[test]
fn a_name_longer_than_any_path_is_not_repeated_for_each_file_below_it() {
    let bombed = Bombed::new();
    let long = "n".repeat(1 << 20);
    let inner = bombed.nest(12, &["a", "b"]);
    let id = bombed.commit(&bombed.tree(&[("40000", &long, &inner)]));
    bombed.fsck(&[]).finds(&id, "", "no path is longer than 1024 bytes");
}
