//! Every file of a commit by its whole path, beside the tree: to find a file there, instead of searching each directory
//! on the way to it, is what keeps reading fast when there are many.
//!
//! Paths are not kept, only what a hash with a secret key makes of them: 96 bits, of which the files of a directory
//! share 20. That a path which is not there is taken for one that is has a chance of one in 10^22 for each file in its
//! directory, and is far less likely for the others.
//!
//! Only paths are there that are spelled as [`RepoPath`] spells them.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use countersign_core::values::{path::RepoPath, wire};
use gix::{ObjectId, hashtable::HashMap};

use crate::objects::spot::Spot;
use crate::snapshot::{tree::Dir, tree::addressable, trie::Node, trie::TableEntry};

/// The signers file that governs a path is most often among its last few directories.
pub const NEAR: usize = 8;

/// The files of a directory share the first bits of their hashes. They are often asked for one after the other, and so
/// lie side by side. Enough to tell most directories of a million files apart.
const DIR_BITS: u32 = 20;

#[derive(Debug, Clone)]
pub struct PathTable {
    pub key: RandomState,
    /// All but the entries of histories.
    pub files: Node,
    /// The entries of signers histories, which every chain needs. They are few, like the next ones, and so these tables
    /// stay where the processor is fast.
    pub histories: Node,
    /// The active signers files once more, by their projects.
    pub signers: Node,
}

impl PathTable {
    /// The files of a whole tree. `spots` says where objects lie, as far as that is known.
    pub fn of(root: &Dir, spots: &HashMap<ObjectId, Spot>) -> Self {
        let key = RandomState::new();
        let (mut files, mut histories, mut signers) = (Vec::new(), Vec::new(), Vec::new());
        root.walk(&mut String::new(), &mut |path, id| {
            if addressable(path).is_none() {
                return;
            }
            let spot = spots.get(&id).cloned().unwrap_or_default();
            let project = project_of(path).map(|project| Mark::of(&key, project));
            signers.extend(project.map(|mark| mark.entry(id, spot.clone())));
            let table = if is_in_history(path) { &mut histories } else { &mut files };
            table.push(Mark::of(&key, path).entry(id, spot));
        });
        let [files, histories, signers] = [files, histories, signers].map(Node::new);
        Self { key, files, histories, signers }
    }

    pub fn find(&self, path: &str) -> Option<&TableEntry> {
        let table = if is_in_history(path) { &self.histories } else { &self.files };
        Mark::of(&self.key, path).find_in(table)
    }

    /// The active signers file of the deepest directory that has one, of those that lead to `path` and `path` itself;
    /// an error where only looking through all of them would tell.
    pub fn find_nearest_signers(&self, path: &RepoPath) -> Result<Option<&TableEntry>, Far> {
        Ok(self.find_nearest(path)?.map(|(_, entry)| entry))
    }

    /// The directory of that signers file's project.
    pub fn find_nearest_project(&self, path: &RepoPath) -> Result<Option<RepoPath>, Far> {
        Ok(self.find_nearest(path)?.and_then(|(levels, _)| path.ancestor(levels)))
    }

    /// The nearest file at or above `path`, with how many levels it is above.
    fn find_nearest(&self, path: &RepoPath) -> Result<Option<(usize, &TableEntry)>, Far> {
        let mut dir = path.as_str();
        for levels in 0..NEAR {
            if let Some(entry) = Mark::of(&self.key, dir).find_in(&self.signers) {
                return Ok(Some((levels, entry)));
            }
            match dir.rsplit_once('/') {
                Some((parent, _)) => dir = parent,
                None => return Ok(None),
            }
        }
        Err(Far)
    }

    /// Sets the file at `path`; `None` if there is no file any more.
    pub fn set(&mut self, path: &str, id: Option<ObjectId>) {
        let table = if is_in_history(path) { &mut self.histories } else { &mut self.files };
        Mark::of(&self.key, path).set_in(table, id);
        if let Some(project) = project_of(path) {
            Mark::of(&self.key, project).set_in(&mut self.signers, id);
        }
    }
}

/// What is kept of a path.
struct Mark {
    hash: u64,
    check: u32,
}

impl Mark {
    fn of(key: &RandomState, path: &str) -> Self {
        let (dir, name) = path.as_bytes().split_at(path.rfind('/').unwrap_or_default());
        let mut hasher = key.build_hasher();
        hasher.write(dir);
        let shared = hasher.finish() & !(u64::MAX >> DIR_BITS);
        hasher.write(name);
        let hash = shared | hasher.finish() >> DIR_BITS;
        // The hash of what no path is, which has nothing to do with that of the path.
        hasher.write_u8(0);
        Self { hash, check: hasher.finish() as u32 }
    }

    fn entry(&self, id: ObjectId, spot: Spot) -> TableEntry {
        TableEntry { hash: self.hash, spot, check: self.check, id }
    }

    fn find_in<'a>(&self, table: &'a Node) -> Option<&'a TableEntry> {
        table.find(self.hash).find(|entry| entry.check == self.check)
    }

    fn set_in(&self, table: &mut Node, id: Option<ObjectId>) {
        match id {
            Some(id) => table.insert(self.entry(id, Spot::default())),
            None => table.remove(self.hash, self.check),
        }
    }
}

fn is_in_history(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(dir, _)| dir.ends_with(wire::HISTORY_DIR))
}

/// The project whose active signers file this is.
fn project_of(path: &str) -> Option<&str> {
    let dir = path.strip_suffix(wire::SIGNERS_FILE)?.strip_suffix('/')?;
    dir.strip_suffix(wire::ACTIVE_DIR)?.strip_suffix('/')
}

/// Error: there was nothing near the path.
#[derive(Debug)]
pub struct Far;
