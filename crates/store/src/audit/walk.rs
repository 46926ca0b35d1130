//! Walks from the newest commit back to where the check begins, and then forward again, replaying what differs between each
//! two trees.

use std::{cmp::Ordering, collections::BTreeMap, collections::BTreeSet, path::Path, sync::Arc};

use countersign_core::values::{bounds::FILE_BYTES, path::RepoPath};
use gix::{ObjectId, hash::Kind as HashKind, objs::Kind};
use thiserror::Error;

use crate::audit::plain::{RepositoryCopy, open};
use crate::audit::replay::{CommitStep, Replay, SpeaksFor};
use crate::audit::report::{AuditEvent, Backwards, CheckError, Checked, Finding};
use crate::objects::commit::Commit;
use crate::snapshot::head::Head;
use crate::snapshot::tree::{dir::Dir, dir::DirEntry, dir::TreeNode, dir::addressable, load};

/// Checks the history of `main` in a data directory, a bare repository or a clone: all of it, or what came after a
/// commit whose state is taken as it is. Which project a URL may speak for, `speaks_for` knows.
pub fn check(
    dir: &Path,
    since: Option<ObjectId>,
    speaks_for: SpeaksFor,
    tell: &mut dyn FnMut(AuditEvent<'_>),
) -> Result<Checked, CheckError> {
    let opened = &open(dir)?;
    let mut report = Report::new(opened, tell);
    let Some(ids) = list_commits(opened, since, &mut report)? else { return Ok(report.finish()) };
    let mut walker = Walker {
        opened,
        replay: Replay::new(speaks_for),
        state: begin(opened, since)?,
        is_first: since.is_none(),
    };
    for (done, id) in ids.iter().rev().enumerate() {
        (report.tell)(AuditEvent::Progress { done, total: ids.len() });
        walker.check(*id, &mut report);
    }
    (report.tell)(AuditEvent::Progress { done: ids.len(), total: ids.len() });
    report.checked.commits = ids.len();
    Ok(report.finish())
}

/// The newest commit of `main` there, as it is: nothing of its past is checked. What else should be known comes with it.
pub fn read_newest(dir: &Path) -> Result<(Head, Vec<String>), CheckError> {
    let opened = open(dir)?;
    Ok((begin(&opened, Some(opened.head))?, opened.warnings))
}

/// The commits to check, newest first; `None` where one cannot be read, which is reported.
fn list_commits(
    opened: &RepositoryCopy,
    since: Option<ObjectId>,
    report: &mut Report<'_>,
) -> Result<Option<Vec<ObjectId>>, CheckError> {
    let mut ids = Vec::new();
    let mut next = Some(opened.head);
    while let Some(id) = next.filter(|id| since != Some(*id)) {
        let commit = match read_commit(opened, id) {
            Ok(commit) => commit,
            Err(reason) => {
                // Here a shallow clone ends.
                if let Some(&commit) = ids.last().filter(|child| opened.shallow.contains(*child)) {
                    return Err(CheckError::Shallow { path: opened.path.clone(), commit });
                }
                report.add(id, Vec::new(), format!("{reason}; without it, nothing can be checked"));
                return Ok(None);
            }
        };
        ids.push(id);
        // Of a merge, which is a finding by itself, the side that it was made on.
        next = commit.parents.first().copied();
    }
    match since {
        Some(since) if next.is_none() => Err(CheckError::NotInHistory { since, head: opened.head }),
        Some(_) | None => Ok(Some(ids)),
    }
}

fn begin(opened: &RepositoryCopy, since: Option<ObjectId>) -> Result<Head, CheckError> {
    let objects = Arc::clone(&opened.objects);
    let Some(since) = since else {
        return Ok(Head::of(ObjectId::null(HashKind::Sha1), Dir::empty(), None, objects));
    };
    let unreadable = |reason: String| CheckError::SinceUnreadable { since, reason };
    let commit = read_commit(opened, since).map_err(unreadable)?;
    let root = load::load_tree(&objects, commit.tree);
    let root = root.map_err(|error| unreadable(error.reason()))?;
    Ok(Head::of(since, root, None, objects))
}

fn read_commit(opened: &RepositoryCopy, id: ObjectId) -> Result<Commit, String> {
    let bytes = opened.objects.read(&id, Kind::Commit);
    let bytes = bytes.map_err(|error| format!("the commit cannot be read: {}", error.reason()))?;
    Commit::parse(&bytes).map_err(|reason| format!("the commit cannot be read: {reason}"))
}

struct Walker<'a> {
    opened: &'a RepositoryCopy,
    replay: Replay,
    /// The state after the commit before.
    state: Head,
    is_first: bool,
}

impl Walker<'_> {
    /// Checks one commit. Whatever is wrong with it, the next one is checked against the state that this one left.
    fn check(&mut self, id: ObjectId, report: &mut Report<'_>) {
        let is_first = std::mem::take(&mut self.is_first);
        let commit = match read_commit(self.opened, id) {
            Ok(commit) => commit,
            Err(reason) => return report.add(id, Vec::new(), reason),
        };
        check_form(&commit, id, report);
        report.backwards.note_time(id, commit.time);
        let loaded = load::load_next(&self.opened.objects, commit.tree, &self.state.root);
        let (root, odd_dirs) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                let reason = format!("the files of the commit cannot be read: {}", error.reason());
                return report.add(id, Vec::new(), reason);
            }
        };
        let difference = match Difference::between(&self.state.root, &root) {
            Ok(difference) => difference,
            Err(error) => return report.add(id, Vec::new(), error.to_string()),
        };
        for (path, what) in &difference.odd {
            report.add(id, vec![path.clone()], *what);
        }
        if !odd_dirs.is_empty() {
            let reason =
                "the directory is not written as the server writes it: a mode or a name is spelled otherwise";
            report.add(id, odd_dirs, reason);
        }
        let touched: Vec<RepoPath> = difference.touched.iter().cloned().collect();
        self.check_sizes(id, &root, &touched, report);
        let after = self.state.next(id, root, &touched);
        let step = CommitStep {
            message: &commit.message,
            time: commit.time,
            touched: &difference.touched,
            is_first,
        };
        for violation in self.replay.check(&self.state, &after, &step).err().into_iter().flatten() {
            report.add_finding(violation.found_in(id));
        }
        self.state = after;
    }

    fn check_sizes(&self, id: ObjectId, root: &Dir, touched: &[RepoPath], report: &mut Report<'_>) {
        for path in touched {
            if let Some(blob) = root.file(path)
                && let Ok(Some(bytes)) = self.opened.objects.size(&blob)
                && bytes > FILE_BYTES as u64
            {
                let reason =
                    format!("it has {bytes} bytes, which is larger than a stored file may be: {FILE_BYTES}");
                report.add(id, vec![path.to_string()], reason);
            }
        }
    }
}

/// Whether the server writes commits like this one.
fn check_form(commit: &Commit, id: ObjectId, report: &mut Report<'_>) {
    if commit.parents.len() > 1 {
        report.add(id, Vec::new(), "it is a merge, and the server makes none");
    }
    if let Some(names) = &commit.odd_headers {
        let reason = format!("its headers are {names:?}, and the server writes others");
        report.add(id, Vec::new(), reason);
    } else if commit.author.is_none() && commit.parents.len() <= 1 {
        let reason = "it is not written as the server writes a commit: author and committer are one, in UTC, and \
                      all of it is UTF-8";
        report.add(id, Vec::new(), reason);
    }
}

struct Report<'a> {
    tell: &'a mut dyn FnMut(AuditEvent<'_>),
    checked: Checked,
    backwards: Backwards,
}

impl<'a> Report<'a> {
    fn new(opened: &RepositoryCopy, tell: &'a mut dyn FnMut(AuditEvent<'_>)) -> Self {
        let mut checked = Checked { head: opened.head, ..Checked::new(&opened.path) };
        if !opened.other_refs.is_empty() {
            let others = opened.other_refs.join(", ");
            checked.notes.push(format!("not checked, since only main counts: {others}"));
        }
        checked.warnings.clone_from(&opened.warnings);
        Self { tell, checked, backwards: Backwards::default() }
    }

    fn finish(mut self) -> Checked {
        self.checked.notes.extend(self.backwards.note());
        self.checked
    }

    fn add(&mut self, commit: ObjectId, files: Vec<String>, reason: impl Into<String>) {
        self.add_finding(Finding::new(commit, files.into_iter(), reason.into()));
    }

    fn add_finding(&mut self, finding: Finding) {
        if let Some(finding) = self.checked.add(finding) {
            (self.tell)(AuditEvent::Found(finding));
        }
    }
}

// What differs between two trees: files, and whatever a tree can hold beside files.

/// How many entries may differ between two commits. A change touches some ten files, and all those of a project's
/// superseded proposals at most. More are an attempt to exhaust the check.
const MAX_ENTRIES: usize = 100_000;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Plain files that are not the same in both.
    pub(crate) touched: BTreeSet<RepoPath>,
    /// What the store never writes, by its path as the tree spells it, with what it is.
    pub(crate) odd: BTreeMap<String, &'static str>,
    /// Entries that were found to differ.
    entries: usize,
}

/// Error: too many entries differ between two commits.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("more than {MAX_ENTRIES} files and directories differ from the commit before")]
pub(crate) struct TooMany;

impl Difference {
    pub(crate) fn between(old: &Arc<Dir>, new: &Arc<Dir>) -> Result<Self, TooMany> {
        let mut difference = Self::default();
        difference.compare(Some(old), Some(new), &mut String::new())?;
        Ok(difference)
    }

    fn compare(
        &mut self,
        old: Option<&Arc<Dir>>,
        new: Option<&Arc<Dir>>,
        path: &mut String,
    ) -> Result<(), TooMany> {
        if let (Some(old), Some(new)) = (old, new)
            && old.id == new.id
        {
            return Ok(());
        }
        let is_empty = |dir: Option<&Arc<Dir>>| dir.is_some_and(|dir| dir.entries.is_empty());
        if !path.is_empty() && (is_empty(old) || is_empty(new)) {
            self.odd.insert(path.clone(), "it is an empty directory, and Git's own commands keep none");
        }
        let mut before = old.into_iter().flat_map(|dir| dir.entries.iter()).peekable();
        let mut after = new.into_iter().flat_map(|dir| dir.entries.iter()).peekable();
        loop {
            let (left, right) = match (before.peek(), after.peek()) {
                (None, None) => break,
                (Some(_), None) => (before.next(), None),
                (None, Some(_)) => (None, after.next()),
                (Some(left), Some(right)) => match spelled(left).cmp(spelled(right)) {
                    Ordering::Less => (before.next(), None),
                    Ordering::Equal => (before.next(), after.next()),
                    Ordering::Greater => (None, after.next()),
                },
            };
            let length = path.len();
            self.compare_entries(left, right, path)?;
            if let (None, Some(new), Some(old)) = (left, right, old)
                && old.get(&new.name).is_some()
            {
                path.push_str(&new.name);
                self.odd.insert(path.clone(), "a file became a directory, or a directory a file");
            }
            path.truncate(length);
        }
        Ok(())
    }

    /// Entries of the same name and sort, or one of them alone.
    fn compare_entries(
        &mut self,
        old: Option<&DirEntry>,
        new: Option<&DirEntry>,
        path: &mut String,
    ) -> Result<(), TooMany> {
        let Some(entry) = new.or(old) else { return Ok(()) };
        let (old, new) = (old.map(|entry| &entry.node), new.map(|entry| &entry.node));
        if old.zip(new).is_some_and(|(old, new)| old.is_same(new)) {
            return Ok(());
        }
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(TooMany);
        }
        let length = path.len();
        path.push_str(&entry.name);
        match (old, new) {
            (None | Some(TreeNode::Dir(..)), None | Some(TreeNode::Dir(..))) => {
                if !is_plain(&entry.name) {
                    self.odd.insert(path.clone(), "no path can spell this name");
                }
                path.push('/');
                self.compare(old.and_then(TreeNode::dir), new.and_then(TreeNode::dir), path)?;
            }
            (None | Some(TreeNode::File(_)), None | Some(TreeNode::File(_))) => self.touch(path, &entry.name),
            (Some(TreeNode::File(_) | TreeNode::Dir(..) | TreeNode::Foreign(_)) | None, _) => {
                let what =
                    "it is a link, an executable or a submodule, and the server stores plain files only";
                self.odd.insert(path.clone(), what);
            }
        }
        path.truncate(length);
        Ok(())
    }

    fn touch(&mut self, path: &str, name: &str) {
        match addressable(path).filter(|_| is_plain(name)) {
            Some(parsed) => drop(self.touched.insert(parsed)),
            None => drop(self.odd.insert(path.to_owned(), "no path can spell this name")),
        }
    }
}

/// Whether a name is one segment of a path.
fn is_plain(name: &str) -> bool {
    !name.contains('/') && !matches!(name, "" | "." | "..")
}

/// The entries are in the order of these bytes: a slash stands behind the name of a directory.
fn spelled(entry: &DirEntry) -> impl Iterator<Item = u8> {
    entry.name.bytes().chain(entry.node.is_dir().then_some(b'/'))
}
