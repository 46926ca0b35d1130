//! What differs between two trees: files, and whatever a tree can hold beside files.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use countersign_core::values::path::RepoPath;
use thiserror::Error;

use crate::tree::{
    dir::{Dir, DirEntry, TreeNode},
    names::addressable,
};

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
