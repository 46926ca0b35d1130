//! Every file of a commit by its whole path, beside the tree: to find a file there, instead of searching each directory
//! on the way to it, is what keeps reading fast when there are many.
//!
//! Paths are not kept, only what two keyed hashes make of them: 96 bits, of secret keys. That another path
//! has the same is less likely than that two files have one id.
//!
//! Only paths are there that are spelled as [`RepoPath`] spells them. A request for one of these in just this way need
//! not have it parsed first.

use std::hash::{BuildHasher as _, RandomState};

use countersign_core::values::{path::RepoPath, wire};
use gix::{ObjectId, hashtable::HashMap};

use crate::{
    objects::spot::Spot,
    snapshot::trie::{FilePlace, Node},
    tree::{dir::Dir, names::addressable},
};

/// The signers file that governs a path is most often among its last few directories.
pub const NEAR: usize = 8;

#[derive(Debug, Clone)]
pub struct Places {
    pub keys: [RandomState; 2],
    pub files: Node,
    /// The active signers files once more, by their projects: so few that they stay where the processor is fast.
    pub signers: Node,
}

impl Places {
    /// Those of a whole tree. `spots` says where objects lie, as far as that is known.
    pub fn of(root: &Dir, spots: &HashMap<ObjectId, Spot>) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        let (mut files, mut signers) = (Vec::new(), Vec::new());
        root.walk(&mut String::new(), &mut |path, id| {
            if addressable(path).is_none() {
                return;
            }
            let spot = spots.get(&id).cloned().unwrap_or_default();
            signers.extend(project_of(path).map(|project| place(&keys, project, id, spot.clone())));
            files.push(place(&keys, path, id, spot));
        });
        Self { keys, files: Node::new(files), signers: Node::new(signers) }
    }

    pub fn find(&self, path: &str) -> Option<&FilePlace> {
        find(&self.keys, &self.files, path)
    }

    /// The active signers file of the deepest directory that has one, of those that lead to `path` and `path` itself; an
    /// error where only looking through all of them would tell.
    pub fn find_nearest_signers(&self, path: &RepoPath) -> Result<Option<&FilePlace>, Far> {
        Ok(self.find_nearest(path)?.map(|(_, place)| place))
    }

    /// The directory of that signers file's project.
    pub fn find_nearest_project(&self, path: &RepoPath) -> Result<Option<RepoPath>, Far> {
        Ok(self.find_nearest(path)?.and_then(|(levels, _)| path.ancestor(levels)))
    }

    /// With how many levels above `path` it is.
    fn find_nearest(&self, path: &RepoPath) -> Result<Option<(usize, &FilePlace)>, Far> {
        let mut dir = path.as_str();
        for levels in 0..NEAR {
            if let Some(place) = find(&self.keys, &self.signers, dir) {
                return Ok(Some((levels, place)));
            }
            match dir.rsplit_once('/') {
                Some((parent, _)) => dir = parent,
                None => return Ok(None),
            }
        }
        Err(Far)
    }

    /// What is at `path` from now on; `None` where no file is.
    pub fn set(&mut self, path: &str, id: Option<ObjectId>) {
        set(&self.keys, &mut self.files, path, id);
        if let Some(project) = project_of(path) {
            set(&self.keys, &mut self.signers, project, id);
        }
    }
}

fn place(keys: &[RandomState; 2], path: &str, id: ObjectId, spot: Spot) -> FilePlace {
    FilePlace { hash: keys[0].hash_one(path), spot, check: check(keys, path), id }
}

fn find<'a>(keys: &[RandomState; 2], table: &'a Node, path: &str) -> Option<&'a FilePlace> {
    // Most of what is not there has a hash that nothing has.
    let mut found = table.find(keys[0].hash_one(path)).peekable();
    found.peek()?;
    let check = check(keys, path);
    found.find(|place| place.check == check)
}

fn set(keys: &[RandomState; 2], table: &mut Node, path: &str, id: Option<ObjectId>) {
    match id {
        Some(id) => table.insert(place(keys, path, id, Spot::default())),
        None => table.remove(keys[0].hash_one(path), check(keys, path)),
    }
}

/// The project whose active signers file this is.
fn project_of(path: &str) -> Option<&str> {
    let dir = path.strip_suffix(wire::SIGNERS_FILE)?.strip_suffix('/')?;
    dir.strip_suffix(wire::ACTIVE_DIR)?.strip_suffix('/')
}

/// Nothing was found near the path.
#[derive(Debug)]
pub struct Far;

fn check(keys: &[RandomState; 2], path: &str) -> u32 {
    keys[1].hash_one(path) as u32
}
