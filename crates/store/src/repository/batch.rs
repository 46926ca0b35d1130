//! Changes that wait to be published together: each becomes its own commit, all of them one pack.

use std::{cmp::min, collections::HashMap, collections::HashSet, collections::hash_map::Entry, sync::Arc};

use bytes::Bytes;
use countersign_core::{rules::snapshot::Change, values::bounds::FILE_BYTES, values::path::RepoPath};
use gix::{ObjectId, objs::Kind};

use crate::error::StoreError;
use crate::objects::{Objects, commit::commit_text, hash, pack, pack::MAX_CHAIN, pack::PackObject};
use crate::snapshot::{Head, tree::Dir, tree::edit, tree::edit::Edit, tree::edit::EncodedTree};

#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) objects: Vec<PackObject>,
    /// The position in `objects` of each object.
    positions: HashMap<ObjectId, usize>,
    /// The newest version of each directory that the batch touched, as a position in `objects`.
    newest_trees: HashMap<String, usize>,
    /// The newest version of each file that is worth a difference, as a position in `objects`.
    newest_blobs: HashMap<RepoPath, usize>,
    /// How much memory it holds, about.
    pub(crate) bytes: usize,
}

/// A commit that is not in a batch yet.
#[derive(Debug)]
pub(crate) struct NewCommit<'a> {
    pub(crate) root: Arc<Dir>,
    pub(crate) tip: ObjectId,
    /// The files that neither the branch nor the batch has.
    blobs: Vec<(&'a RepoPath, ObjectId, &'a Arc<[u8]>)>,
    trees: Vec<EncodedTree>,
    /// How many bytes each of the trees takes.
    tree_bytes: Vec<usize>,
    text: Bytes,
}

/// What a pack and its index have besides the content of an object: headers, checksums, and its place. What they have
/// besides all objects, about a kilobyte, goes when packs are folded.
const OBJECT_BYTES: u64 = 40;

impl NewCommit<'_> {
    /// The commit object.
    pub(crate) fn object(&self) -> Bytes {
        self.text.clone()
    }

    /// How much it adds to its pack at most, before packs are folded: new files, directories that it makes anew, and
    /// its own text, none of them compressed.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let files = self.blobs.iter().map(|(_, _, bytes)| bytes.len());
        let objects = files.chain(self.tree_bytes.iter().copied()).chain([self.text.len()]);
        objects.map(|bytes| bytes as u64 + OBJECT_BYTES).sum::<u64>()
    }
}

impl Batch {
    /// Prepares `change` on top of `head`, as one commit. Nothing is added yet.
    pub(crate) fn prepare<'a>(
        &self,
        head: &Head,
        change: &'a Change,
        who: &str,
    ) -> Result<NewCommit<'a>, StoreError> {
        let mut edits: Vec<Edit<'_>> = Vec::with_capacity(change.files.len());
        for (path, content) in &change.files {
            if let Some(bytes) = content.as_ref().map(|bytes| bytes.len()).filter(|bytes| *bytes > FILE_BYTES)
            {
                return Err(StoreError::TooLarge { path: path.clone(), bytes });
            }
            let hashed = content.as_ref().map(|bytes| hash(Kind::Blob, bytes).ok_or(path));
            edits.push((path, hashed.transpose().map_err(StoreError::collision)?));
        }
        let (root, trees) = edit::apply(&head.root, &edits)?;
        let text = commit_text(root.id, head.tip(), &change.recorded_message(), who);
        let tip = hash(Kind::Commit, &text).ok_or_else(|| StoreError::collision("the commit"))?;
        // What the branch reaches is not written again: a file that stays or moves, and the signers file that lies
        // beside every release of a project. No other object counts as there (D200): a crash may have left it, and then
        // `git gc` takes it away.
        let reached: HashSet<ObjectId> = edits.iter().filter_map(|(path, _)| head.root.file(path)).collect();
        let is_signers =
            |path: &RepoPath, id: &ObjectId| head.nearest_signers(path).is_some_and(|found| found.id == *id);
        let mut seen = HashSet::new();
        let mut is_new = |path: &RepoPath, id: &ObjectId| {
            let is_known = self.positions.contains_key(id) || reached.contains(id) || !seen.insert(*id);
            !is_known && !is_signers(path, id)
        };
        let contents = change.files.values().map(Option::as_ref);
        let blobs =
            edits.iter().zip(contents).filter_map(|((path, id), bytes)| Some((*path, (*id)?, bytes?)));
        let blobs: Vec<_> = blobs.filter(|(path, id, _)| is_new(path, id)).collect();
        let tree_bytes = trees.iter().map(|tree| self.tree_bytes(tree)).collect();
        Ok(NewCommit { root, tip, blobs, trees, tree_bytes, text: text.into() })
    }

    /// How much a directory takes: all of it, or the difference to its last version in the batch, of which every so
    /// many are whole.
    fn tree_bytes(&self, tree: &EncodedTree) -> usize {
        let whole = tree.bytes.len();
        let is_difference = self.newest_trees.contains_key(&tree.path);
        if is_difference { min(whole, tree.changed + whole.div_ceil(MAX_CHAIN)) } else { whole }
    }

    pub(crate) fn add_commit(&mut self, objects: &Objects, commit: NewCommit<'_>) {
        commit.blobs.into_iter().for_each(|(path, id, bytes)| self.add_blob(objects, path, id, bytes));
        commit.trees.into_iter().for_each(|tree| self.add_tree(tree));
        self.add(Kind::Commit, commit.tip, commit.text, None);
    }

    /// A set of signatures grows by one at a time, and is written whole each time: the later versions are differences.
    fn add_blob(&mut self, objects: &Objects, path: &RepoPath, id: ObjectId, bytes: &Arc<[u8]>) {
        objects.stage(id, Arc::clone(bytes));
        // Smaller ones are read as they lie in the pack.
        let is_large = bytes.len() > pack::MAX_BYTES;
        let base = if is_large { self.newest_blobs.insert(path.clone(), self.objects.len()) } else { None };
        self.add(Kind::Blob, id, Bytes::from_owner(Arc::clone(bytes)), base);
    }

    fn add_tree(&mut self, tree: EncodedTree) {
        if !self.positions.contains_key(&tree.id) {
            let base = self.newest_trees.get(&tree.path).copied();
            self.newest_trees.insert(tree.path, self.objects.len());
            self.add(Kind::Tree, tree.id, tree.bytes.into(), base);
        }
    }

    fn add(&mut self, kind: Kind, id: ObjectId, data: Bytes, base: Option<usize>) {
        if let Entry::Vacant(vacant) = self.positions.entry(id) {
            vacant.insert(self.objects.len());
            self.bytes += data.len();
            self.objects.push(PackObject { kind, id, data, base });
        }
    }

    /// Takes in the objects of a batch that came after this one.
    pub(crate) fn absorb(&mut self, later: Self) {
        let mut positions = Vec::with_capacity(later.objects.len());
        for PackObject { kind, id, data, base } in later.objects {
            self.add(kind, id, data, base.map(|base| positions[base]));
            positions.push(self.positions[&id]);
        }
    }
}
