//! Walks from the newest commit back to where the check begins, and then forward again, replaying what differs between
//! each two trees.

use std::{path::Path, sync::Arc};

use countersign_core::values::{bounds::FILE_BYTES, path::RepoPath};
use gix::{ObjectId, hash::Kind as HashKind, objs::Kind};

use crate::audit::plain::{RepositoryCopy, open};
use crate::audit::replay::{CommitStep, Replay, SpeaksFor};
use crate::audit::{AuditEvent, Backwards, CheckError, Checked, Finding};
use crate::objects::commit::Commit;
use crate::snapshot::Head;
use crate::snapshot::tree::{Dir, edit::Difference, load};

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

/// The newest commit of `main` there, as it is: nothing of its past is checked. What else should be known comes with
/// it.
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
