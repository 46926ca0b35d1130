//! What must be in a store, as far as its users know.

use std::sync::{Arc, Mutex, PoisonError};
use std::{collections::BTreeMap, collections::BTreeSet, path::Path};

use countersign_core::rules::snapshot::{Change, Snapshot as _};
use countersign_core::{documents::signers::SignersOrigin, values::path::RepoPath};
use countersign_store::{Head, ObjectId, Store, audit, journal::JournalEntry};

use crate::{script::Breach, script::Guarantee, wish::RequestMark};

/// A change that was asked for.
#[derive(Debug, Clone)]
pub struct AskedChange {
    /// The change as it was decided last; `None` if it was not, or was refused.
    pub change: Option<Change>,
    pub is_answered: bool,
}

#[derive(Debug, Default)]
pub struct ExpectedHistory {
    /// The attempts in the order in which they were asked for.
    attempts: Vec<AskedChange>,
    /// Commits on top of which something was answered, or that a reader saw.
    seen: Arc<Mutex<BTreeSet<ObjectId>>>,
    /// Requests that were accepted.
    accepted: BTreeSet<RequestMark>,
}

pub fn speaks_for(_: &SignersOrigin, _: &RepoPath) -> Result<(), String> {
    Ok(())
}

impl ExpectedHistory {
    pub fn add(&mut self, attempt: AskedChange) {
        self.attempts.push(attempt);
    }

    pub fn note_seen(&self, commit: ObjectId) {
        if !commit.is_null() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(commit);
        }
    }

    /// An observer who looks at what this store has published.
    pub fn observer(&self, store: &Arc<Store>) -> impl Fn() + Send + Sync + 'static {
        let (seen, store) = (Arc::clone(&self.seen), Arc::downgrade(store));
        move || {
            if let Some(commit) = store.upgrade().map(|store| store.glance().commit)
                && !commit.is_null()
            {
                seen.lock().unwrap_or_else(PoisonError::into_inner).insert(commit);
            }
        }
    }

    pub fn accept(&mut self, request: RequestMark) -> Result<(), Breach> {
        if self.accepted.insert(request) {
            return Ok(());
        }
        Err(Breach::new(Guarantee::NonceOnce, format!("the request {request:?} was accepted twice")))
    }

    pub fn accepted(&self) -> impl ExactSizeIterator<Item = &RequestMark> {
        self.accepted.iter()
    }

    /// The history is the attempts, each whole or not there at all, and none missing that was answered. From here on it
    /// is what everyone has seen.
    pub fn check(&mut self, store: &Store) -> Result<Vec<JournalEntry>, Breach> {
        let entries = read_history(store)?;
        let files = self.check_history(&entries)?;
        // What is not there now does not come any more.
        self.attempts.retain(|attempt| attempt.is_answered);
        check_head(&store.head(), &files)?;
        Ok(entries)
    }

    /// Checks that what was seen is among these commits. From here on all of them are.
    pub fn check_seen(&self, ids: &BTreeSet<ObjectId>) -> Result<(), Breach> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lost) = seen.difference(ids).next() {
            return Err(Breach::new(
                Guarantee::AnsweredStays,
                format!("the commit {lost} was seen and is lost"),
            ));
        }
        seen.clone_from(ids);
        Ok(())
    }

    /// Checks a history that is read from elsewhere.
    pub fn check_history(&mut self, entries: &[JournalEntry]) -> Result<Files, Breach> {
        self.check_seen(&entries.iter().map(|entry| entry.id).collect())?;
        let mut files = BTreeMap::new();
        // A node that did not hear of its own commit makes it again, and it counts once.
        let mut made: Vec<Change> = Vec::new();
        let mut attempts = self.attempts.iter_mut();
        for (number, entry) in entries.iter().enumerate() {
            if number == 0 {
                apply(&mut files, &entry.change);
                continue;
            }
            loop {
                let attempt = attempts.next().ok_or_else(|| {
                    let what = format!("no one asked for the commit {}: {}", entry.id, entry.change.message);
                    Breach::new(Guarantee::NothingHalf, what)
                })?;
                let Some(change) = &attempt.change else { continue };
                // A batch of nodes also names files that a change leaves as they are.
                if change.recorded_message() == entry.change.message
                    && find_touched(&files, change) == find_touched(&files, &entry.change)
                {
                    apply(&mut files, change);
                    made.push(change.clone());
                    // Everyone can see it.
                    attempt.is_answered = true;
                    break;
                }
                if attempt.is_answered && !made.contains(change) {
                    return Err(lost(change));
                }
            }
        }
        let mut rest = attempts.filter(|attempt| attempt.is_answered).filter_map(|it| it.change.as_ref());
        rest.find(|change| !made.contains(change)).map_or(Ok(()), |change| Err(lost(change)))?;
        Ok(files)
    }
}

fn lost(change: &Change) -> Breach {
    let what = format!("this change was answered and is lost: {}", change.message);
    Breach::new(Guarantee::AnsweredStays, what)
}

pub type Files = BTreeMap<RepoPath, Arc<[u8]>>;

/// Finds which of `files` a change makes different.
fn find_touched<'c>(files: &Files, change: &'c Change) -> Vec<(&'c RepoPath, Option<&'c Arc<[u8]>>)> {
    let contents = change.files.iter().map(|(path, content)| (path, content.as_ref()));
    contents.filter(|(path, content)| files.get(*path) != *content).collect()
}

fn apply(files: &mut Files, change: &Change) {
    for (path, content) in &change.files {
        match content {
            Some(content) => drop(files.insert(path.clone(), Arc::clone(content))),
            None => drop(files.remove(path)),
        }
    }
}

pub fn read_history(store: &Store) -> Result<Vec<JournalEntry>, Breach> {
    let unreadable = |error: &dyn std::fmt::Display| Breach::new(Guarantee::ReplayAccepts, error.to_string());
    if store.head().commit.is_null() {
        return Ok(Vec::new());
    }
    let export = store.journal(None).map_err(|error| unreadable(&error))?;
    let mut export = export.ok_or_else(|| unreadable(&"the beginning is not in the history"))?;
    let mut entries = Vec::new();
    while let Some(entry) = export.next_entry().map_err(|error| unreadable(&error))? {
        entries.push(entry);
    }
    Ok(entries)
}

/// The newest state has these files, and an index that tells them.
pub fn check_head(head: &Head, files: &Files) -> Result<(), Breach> {
    let (mut count, mut wrong) = (0, None);
    head.walk(&mut |name, _| {
        count += 1;
        let path = RepoPath::parse(name).expect("the store has no other paths");
        let found = head.read(&path).ok().flatten();
        if found.is_none() || found.as_ref() != files.get(&path) {
            wrong = Some(name.to_owned());
        }
    });
    if let Some(name) = wrong {
        return Err(Breach::new(Guarantee::NothingHalf, format!("{name} has another content")));
    }
    if count != files.len() {
        let what = format!("{} files, and there should be {}", count, files.len());
        return Err(Breach::new(Guarantee::NothingHalf, what));
    }
    check_index(head)
}

pub fn check_index(head: &Head) -> Result<(), Breach> {
    if Head::clone(head).rebuild_index().index == head.index {
        return Ok(());
    }
    Err(Breach::new(Guarantee::IndexEqualsRebuilt, format!("the index after {}", head.commit)))
}

/// What `countersign fsck` says about all commits, or about those after one.
pub fn check_replay(data_dir: &Path, since: Option<ObjectId>) -> Result<(), Breach> {
    let checked = audit::walk::check(data_dir, since, speaks_for, &mut |_| {});
    let checked = checked.map_err(|error| Breach::new(Guarantee::ReplayAccepts, error.to_string()))?;
    match checked.findings.first() {
        None => Ok(()),
        Some(finding) => Err(Breach::new(Guarantee::ReplayAccepts, format!("{finding:?}"))),
    }
}
