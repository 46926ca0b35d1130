//! The Git tree of a commit, in memory. Versions share whatever they have in common, so that keeping an old one costs
//! nothing, and a change copies only the directories on its paths.

pub(crate) mod entries;
pub(crate) mod load;

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use countersign_core::values::{
    path::{RepoPath, Segments},
    wire,
};
use gix::{ObjectId, hash::Kind as HashKind, objs::tree::EntryKind};

use smol_str::SmolStr;

use crate::{
    objects::sums::hash_tree,
    tree::entries::{At, Entries},
};

/// A directory: the id of its Git tree, and its entries in Git's order.
#[derive(Debug, PartialEq, Eq)]
pub struct Dir {
    pub(crate) id: ObjectId,
    pub(crate) entries: Entries,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirEntry {
    /// Short ones lie in the entry itself: a read compares names, and waits for memory at each that lies elsewhere.
    pub(crate) name: SmolStr,
    pub(crate) node: Node,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File(ObjectId),
    /// With its id, which is here as well: whoever writes a directory of thousands needs the ids of all, and would wait for
    /// memory at each that lies elsewhere.
    Dir(ObjectId, Arc<Dir>),
    /// Boxed, since there should be none.
    Foreign(Box<Foreign>),
}

/// A link, an executable or a submodule, which somebody else put into the tree. It is kept, and never looked into:
/// following a link would leave the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) kind: EntryKind,
    pub(crate) id: ObjectId,
}

/// The bytes of a directory that a change made anew.
#[derive(Debug)]
pub(crate) struct EncodedTree {
    /// Where it lies; empty for the root. The next version of the same directory will resemble it.
    pub(crate) path: String,
    pub(crate) id: ObjectId,
    pub(crate) bytes: Vec<u8>,
}

/// A change cannot become a tree: a file would become a directory, or a directory a file (D6).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict(pub(crate) RepoPath);

/// A file's new content, or `None` where it goes away.
pub(crate) type Edit<'a> = (&'a RepoPath, Option<ObjectId>);

impl Dir {
    pub(crate) fn empty() -> Arc<Self> {
        Arc::new(Self { id: ObjectId::empty_tree(HashKind::Sha1), entries: Entries::default() })
    }

    /// A directory as it was stored; `None` where the entries are not in Git's order, each once.
    pub(crate) fn from_stored(id: ObjectId, entries: Vec<DirEntry>) -> Option<Arc<Self>> {
        Some(Arc::new(Self { id, entries: Entries::new(entries)? }))
    }

    pub(crate) fn find(&self, path: &RepoPath) -> Option<&Node> {
        let mut segments = path.segments();
        let last = segments.next_back()?;
        segments.try_fold(self, |dir, name| dir.subdir(name).map(|dir| &**dir))?.get(last)
    }

    /// The file with this relative path in the deepest directory that has one, of those that lead to `path` and `path`
    /// itself.
    pub(crate) fn find_nearest(&self, path: &RepoPath, relative: [&str; 2]) -> Option<ObjectId> {
        self.find_below(path.segments(), relative)
    }

    /// The deepest comes first: it is most often one of the last few.
    fn find_below(&self, mut segments: Segments<'_>, relative: [&str; 2]) -> Option<ObjectId> {
        let dir = self.subdir(segments.next()?)?;
        let [inner, file] = relative;
        dir.find_below(segments, relative).or_else(|| match dir.subdir(inner)?.get(file)? {
            Node::File(id) => Some(*id),
            Node::Dir(..) | Node::Foreign(_) => None,
        })
    }

    /// Calls `visit` with the path and content of every file below, in the order of the paths. `prefix` is what stands
    /// before each path: empty, or a directory and its slash.
    pub(crate) fn walk(&self, prefix: &mut String, visit: &mut dyn FnMut(&str, ObjectId)) {
        let length = prefix.len();
        for entry in self.entries.iter() {
            prefix.push_str(&entry.name);
            match &entry.node {
                Node::File(id) => visit(prefix, *id),
                Node::Dir(_, dir) => {
                    prefix.push('/');
                    dir.walk(prefix, visit);
                }
                Node::Foreign(_) => {}
            }
            prefix.truncate(length);
        }
    }

    pub(crate) fn subdir(&self, name: &str) -> Option<&Arc<Dir>> {
        match self.entries.node(self.entries.locate(name, true).ok()?) {
            Node::Dir(_, dir) => Some(dir),
            Node::File(_) | Node::Foreign(_) => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let at = self.entries.locate(name, false).or_else(|_| self.entries.locate(name, true)).ok()?;
        Some(self.entries.node(at))
    }

    /// The bytes of its Git tree, as we write them.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        Self::encode(&self.entries)
    }

    fn encode(entries: &Entries) -> Vec<u8> {
        let mut out = Vec::with_capacity(entries.iter().map(|entry| entry.name.len() + 28).sum());
        for entry in entries.iter() {
            let (kind, id) = entry.node.kind_and_id();
            out.extend_from_slice(kind.as_octal_str());
            out.push(b' ');
            out.extend_from_slice(entry.name.as_bytes());
            out.push(0);
            out.extend_from_slice(id.as_slice());
        }
        out
    }
}

impl DirEntry {
    /// How many bytes of its directory it takes.
    pub(crate) fn encoded_len(&self) -> usize {
        let (kind, id) = self.node.kind_and_id();
        kind.as_octal_str().len() + self.name.len() + id.as_slice().len() + 2
    }
}

impl Node {
    pub(crate) fn of(dir: Arc<Dir>) -> Self {
        Self::Dir(dir.id, dir)
    }

    fn kind_and_id(&self) -> (EntryKind, &ObjectId) {
        match self {
            Node::File(id) => (EntryKind::Blob, id),
            Node::Dir(id, _) => (EntryKind::Tree, id),
            Node::Foreign(foreign) => (foreign.kind, &foreign.id),
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self, Node::Dir(..))
    }
}

/// The tree after `edits`, which must be sorted by path, and every directory that is new in it.
pub(crate) fn apply(root: &Arc<Dir>, edits: &[Edit<'_>]) -> Result<(Arc<Dir>, Vec<EncodedTree>), Conflict> {
    let mut trees = Vec::new();
    let new = edit_dir(Some(root), 0, edits, &mut trees)?;
    Ok((new.unwrap_or_else(Dir::empty), trees))
}

/// The name of an entry. The names of our own files recur in every project, and are kept once.
pub(crate) fn intern(name: &str) -> SmolStr {
    FREQUENT_NAMES.get(name).map_or_else(|| name.into(), SmolStr::clone)
}

/// The directory `old` after `edits`; `None` where nothing is left of it. The paths of `edits` all begin with the path
/// of this directory, which is `at` bytes long with its slash.
fn edit_dir(
    old: Option<&Arc<Dir>>,
    at: usize,
    edits: &[Edit<'_>],
    trees: &mut Vec<EncodedTree>,
) -> Result<Option<Arc<Dir>>, Conflict> {
    let old_entries = old.map(|dir| dir.entries.clone()).unwrap_or_default();
    let mut entries = old_entries.clone();
    let mut changed = false;
    let mut rest = edits;
    while let Some(&(path, blob)) = rest.first() {
        let Some(length) = path.as_str()[at..].find('/') else {
            changed |= edit_file(&mut entries, &path.as_str()[at..], blob, path)?;
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
            return Err(Conflict(path.clone()));
        }
        changed |= edit_subdir(&mut entries, name, |dir| edit_dir(dir, below_at, inside, trees))?;
        rest = others;
    }
    if !changed {
        return Ok(old.cloned());
    }
    if entries.is_empty() && at > 0 {
        return Ok(None);
    }
    let here = edits[0].0;
    let bytes = Dir::encode(&entries);
    let id = hash_tree(&bytes);
    trees.push(EncodedTree { path: here.as_str()[..at].to_owned(), id, bytes });
    Ok(Some(Arc::new(Dir { id, entries })))
}

fn edit_file(
    entries: &mut Entries,
    name: &str,
    blob: Option<ObjectId>,
    path: &RepoPath,
) -> Result<bool, Conflict> {
    let at = entries.locate(name, false);
    let is_foreign = at.is_ok_and(|at| matches!(entries.node(at), Node::Foreign(_)));
    if is_foreign || entries.locate(name, true).is_ok() {
        return Err(Conflict(path.clone()));
    }
    Ok(match (at, blob) {
        (Ok(at), Some(id)) => replace(entries, at, Node::File(id)),
        (Ok(at), None) => {
            entries.remove(at);
            true
        }
        (Err(at), Some(id)) => {
            entries.insert(at, DirEntry { name: intern(name), node: Node::File(id) });
            true
        }
        (Err(_), None) => false,
    })
}

fn edit_subdir(
    entries: &mut Entries,
    name: &str,
    edit: impl FnOnce(Option<&Arc<Dir>>) -> Result<Option<Arc<Dir>>, Conflict>,
) -> Result<bool, Conflict> {
    let found = entries.locate(name, true);
    let old = match found.map(|at| entries.node(at)) {
        Ok(Node::Dir(_, dir)) => Some(dir),
        Ok(Node::File(_) | Node::Foreign(_)) | Err(_) => None,
    };
    let new = edit(old)?;
    Ok(match (found, new) {
        (Ok(at), Some(dir)) => replace(entries, at, Node::of(dir)),
        (Ok(at), None) => {
            entries.remove(at);
            true
        }
        (Err(at), Some(dir)) => {
            entries.insert(at, DirEntry { name: intern(name), node: Node::of(dir) });
            true
        }
        (Err(_), None) => false,
    })
}

/// Whether it was another one.
fn replace(entries: &mut Entries, at: At, node: Node) -> bool {
    let changes = match (entries.node(at), &node) {
        // Directories with the same id are the same, however large they are.
        (Node::Dir(old, _), Node::Dir(new, _)) => old != new,
        (old, new) => old != new,
    };
    if changes {
        entries.replace(at, node);
    }
    changes
}

static FREQUENT_NAMES: LazyLock<HashSet<SmolStr>> = LazyLock::new(|| {
    use wire::*;
    let directories =
        [ACTIVE_DIR, PENDING_DIR, SUPERSEDED_DIR, "http", "https", "80", "443", "releases", "tag"];
    let mut names: HashSet<SmolStr> = directories.map(SmolStr::from).into();
    let revocation = format!("{INDEX_FILE}{REVOCATION_SUFFIX}");
    let metadata = format!("{SIGNERS_FILE}{METADATA_SUFFIX}");
    for file in [SIGNERS_FILE, INDEX_FILE, HISTORY_FILE, &revocation, &metadata] {
        for suffix in
            ["", METADATA_SUFFIX, REGISTRATION_SUFFIX, SIGNERS_COPY_SUFFIX, SIGNATURES_SUFFIX, REQUEST_SUFFIX]
        {
            for ending in ["", PENDING_SUFFIX, REVOKED_SUFFIX] {
                names.insert(format!("{file}{suffix}{ending}").into());
            }
        }
    }
    names
});

#[cfg(test)]
mod tests {
    use gix::objs::Kind;

    use super::*;
    use crate::objects::sums::hash;

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    fn blob(text: &str) -> ObjectId {
        hash(Kind::Blob, text.as_bytes()).unwrap()
    }

    /// Applies lines such as `+a/b` and `-a/c`.
    fn change(root: &Arc<Dir>, lines: &[&str]) -> Result<Arc<Dir>, Conflict> {
        let mut edits: Vec<(RepoPath, Option<ObjectId>)> =
            lines.iter().map(|line| (path(&line[1..]), line.starts_with('+').then(|| blob(line)))).collect();
        edits.sort();
        let edits: Vec<Edit<'_>> = edits.iter().map(|(path, blob)| (path, *blob)).collect();
        apply(root, &edits).map(|(root, _)| root)
    }

    fn list(root: &Dir) -> Vec<String> {
        let mut files = Vec::new();
        root.walk(&mut String::new(), &mut |path, _| files.push(path.to_owned()));
        files
    }

    fn refused(root: &Arc<Dir>, lines: &[&str]) -> String {
        match change(root, lines) {
            Err(Conflict(path)) => path.to_string(),
            other => panic!("expected a conflict, not {other:?}"),
        }
    }

    #[test]
    fn files_come_and_go_and_empty_directories_with_them() {
        let root = change(&Dir::empty(), &["+a/b/c", "+a/d", "+e"]).unwrap();
        assert_eq!(list(&root), ["a/b/c", "a/d", "e"]);
        let root = change(&root, &["-a/b/c", "-e", "-never/there", "-a/d/below/a/file"]).unwrap();
        assert_eq!(list(&root), ["a/d"]);
        assert!(matches!(root.find(&path("a")), Some(Node::Dir(..))));
        let root = change(&root, &["-a/d"]).unwrap();
        assert_eq!(root, Dir::empty());
    }

    #[test]
    fn names_around_the_slash_keep_gits_order() {
        let names = ["+a-b", "+a.c", "+a/x", "+a/y/z", "+a0", "+aa"];
        let root = change(&Dir::empty(), &names).unwrap();
        assert_eq!(list(&root), ["a-b", "a.c", "a/x", "a/y/z", "a0", "aa"]);
        for name in names {
            assert!(matches!(root.find(&path(&name[1..])), Some(Node::File(id)) if *id == blob(name)));
        }
        assert!(root.find(&path("a/x/y")).is_none());
    }

    #[test]
    fn a_file_never_becomes_a_directory_nor_back() {
        let root = change(&Dir::empty(), &["+a/b", "+c"]).unwrap();
        assert_eq!(refused(&root, &["+a"]), "a");
        assert_eq!(refused(&root, &["-a"]), "a");
        assert_eq!(refused(&root, &["+c/d"]), "c/d");
        assert_eq!(refused(&root, &["-c", "+c/d"]), "c/d");
        assert_eq!(refused(&root, &["+a", "-a/b"]), "a");
        assert_eq!(refused(&root, &["+n", "+n/m"]), "n/m");
        assert_eq!(refused(&root, &["+n", "+n-x", "+n/m"]), "n/m");
    }

    #[test]
    fn what_does_not_change_is_shared_and_not_encoded_again() {
        let root = change(&Dir::empty(), &["+a/b", "+c/d"]).unwrap();
        let (same, trees) = apply(&root, &[(&path("a/b"), Some(blob("+a/b")))]).unwrap();
        assert!(Arc::ptr_eq(&root, &same) && trees.is_empty());
        let (new, trees) = apply(&root, &[(&path("a/b"), Some(blob("new")))]).unwrap();
        let paths: Vec<_> = trees.iter().map(|tree| tree.path.as_str()).collect();
        assert_eq!(paths, ["a/", ""]);
        let (Some(Node::Dir(_, before)), Some(Node::Dir(_, after))) =
            (root.find(&path("c")), new.find(&path("c")))
        else {
            panic!("c is a directory");
        };
        assert!(Arc::ptr_eq(before, after));
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<DirEntry>(), 56);
    }
}
