//! Changing a tree: only the directories on the paths of the change are made anew. And what differs between two trees.

use std::{cmp::Ordering, collections::BTreeMap, collections::BTreeSet, sync::Arc};

use countersign_core::values::path::RepoPath;
use gix::{ObjectId, objs::Kind};
use thiserror::Error;

use crate::snapshot::tree::{At, Dir, DirEntries, DirEntry, TreeNode, addressable, compare, intern};
use crate::{error::StoreError, objects::hash};

/// The bytes of a directory that a change made anew.
#[derive(Debug)]
pub struct EncodedTree {
    /// The path of the directory; empty for the root. The next version of the same directory will resemble it.
    pub path: String,
    pub id: ObjectId,
    pub bytes: Vec<u8>,
    /// How long a difference to the version before is, about.
    pub changed: usize,
}

/// What a difference takes for each entry that is another one: a mode, an id, and instructions around them.
const CHANGED_ENTRY_BYTES: usize = 64;

/// A file's new content, or `None` where it goes away.
pub type Edit<'a> = (&'a RepoPath, Option<ObjectId>);

/// The tree after `edits`, which must be sorted by path, and every directory that is new in it. A file cannot become a
/// directory, nor a directory a file (D6).
pub fn apply(root: &Arc<Dir>, edits: &[Edit<'_>]) -> Result<(Arc<Dir>, Vec<EncodedTree>), StoreError> {
    let mut trees = Vec::new();
    let new = edit_dir(Some(root), 0, edits, &mut trees)?;
    Ok((new.unwrap_or_else(Dir::empty), trees))
}

/// The directory `old` after `edits`; `None` where nothing is left of it. The paths of `edits` all begin with the path
/// of this directory, which is `at` bytes long with its slash.
fn edit_dir(
    old: Option<&Arc<Dir>>,
    at: usize,
    edits: &[Edit<'_>],
    trees: &mut Vec<EncodedTree>,
) -> Result<Option<Arc<Dir>>, StoreError> {
    let old_entries = old.map(|dir| dir.entries.clone()).unwrap_or_default();
    let mut entries = old_entries.clone();
    let mut changed = 0;
    let mut rest = edits;
    while let Some(&(path, blob)) = rest.first() {
        let Some(length) = path.as_str()[at..].find('/') else {
            let name = &path.as_str()[at..];
            if edit_file(&mut entries, name, blob, path)? {
                changed += name.len() + CHANGED_ENTRY_BYTES;
            }
            rest = &rest[1..];
            continue;
        };
        let name = &path.as_str()[at..at + length];
        let below_at = at + length + 1;
        // Everything below one directory is adjacent, because the edits are sorted.
        let below =
            rest.partition_point(|(other, _)| other.as_str()[..].starts_with(&path.as_str()[..below_at]));
        let (inside, others) = rest.split_at(below);
        let writes = inside.iter().any(|(_, blob)| blob.is_some());
        // Looked up in `old` too: deleting a file does not make room for a directory in the same change.
        if writes && (entries.locate(name, false).is_ok() || old_entries.locate(name, false).is_ok()) {
            return Err(StoreError::Conflict { path: path.clone() });
        }
        let slot = entries.locate(name, true);
        let dir = slot.ok().and_then(|slot| entries.node(slot).dir());
        let dir = edit_dir(dir, below_at, inside, trees)?;
        if set(&mut entries, slot, name, dir.map(TreeNode::of)) {
            changed += name.len() + CHANGED_ENTRY_BYTES;
        }
        rest = others;
    }
    if changed == 0 {
        return Ok(old.cloned());
    }
    if entries.is_empty() && at > 0 {
        return Ok(None);
    }
    let here = edits[0].0;
    let bytes = entries.encode();
    let id = hash(Kind::Tree, &bytes).ok_or_else(|| StoreError::collision(&here.as_str()[..at]))?;
    trees.push(EncodedTree { path: here.as_str()[..at].to_owned(), id, bytes, changed });
    Ok(Some(Arc::new(Dir { id, entries })))
}

/// Edits a file, and returns whether it is another one afterwards.
fn edit_file(
    entries: &mut DirEntries,
    name: &str,
    blob: Option<ObjectId>,
    path: &RepoPath,
) -> Result<bool, StoreError> {
    let at = entries.locate(name, false);
    let is_foreign = at.is_ok_and(|at| matches!(entries.node(at), TreeNode::Foreign(_)));
    if is_foreign || entries.locate(name, true).is_ok() {
        return Err(StoreError::Conflict { path: path.clone() });
    }
    Ok(set(entries, at, name, blob.map(TreeNode::File)))
}

/// Puts `node` where `name` was looked for, or takes away what is there. Whether that changes anything.
fn set(entries: &mut DirEntries, at: Result<At, At>, name: &str, node: Option<TreeNode>) -> bool {
    match (at, node) {
        (Ok(at), Some(node)) if entries.node(at).is_same(&node) => return false,
        (Ok(at), Some(node)) => entries.replace(at, node),
        (Ok(at), None) => entries.remove(at),
        (Err(at), Some(node)) => entries.insert(at, DirEntry { name: intern(name), node }),
        (Err(_), None) => return false,
    }
    true
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
                (Some(left), Some(right)) => {
                    match compare(left, right.name.as_bytes(), right.node.is_dir()) {
                        Ordering::Less => (before.next(), None),
                        Ordering::Equal => (before.next(), after.next()),
                        Ordering::Greater => (None, after.next()),
                    }
                }
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
