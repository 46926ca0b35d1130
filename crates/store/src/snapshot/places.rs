//! Every file of a commit by its whole path, beside the tree: to find a file there, instead of searching each directory
//! on the way to it, is what keeps reading fast when there are many.
//!
//! Paths are not kept, only what two keyed hashes make of them: 96 bits, of secret keys. That another path
//! has the same is less likely than that two files have one id.
//!
//! Only paths are there that are spelled as [`RepoPath`] spells them. A request for one of these in just this way need
//! not have it parsed first.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
};

use countersign_core::values::{path::RepoPath, wire};
use gix::{ObjectId, hashtable::HashMap};

use crate::{
    objects::spot::Spot,
    snapshot::trie::{Node, Place},
    tree::{dir::Dir, names::addressable},
};

/// The signers file that governs a path is most often among its last few directories.
const NEAR: usize = 8;

#[derive(Clone)]
pub(crate) struct Places {
    keys: [RandomState; 2],
    files: Node,
    /// The active signers files once more, by their projects: so few that they stay where the processor is fast.
    signers: Node,
}

impl Places {
    /// Those of a whole tree. `spots` says where objects lie, as far as that is known.
    pub(crate) fn of(root: &Dir, spots: &HashMap<ObjectId, Spot>) -> Self {
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

    pub(crate) fn find(&self, path: &str) -> Option<&Place> {
        find(&self.keys, &self.files, path)
    }

    /// The active signers file of the deepest directory that has one, of those that lead to `path` and `path` itself; an
    /// error where only looking through all of them would tell.
    pub(crate) fn find_nearest_signers(&self, path: &RepoPath) -> Result<Option<&Place>, Far> {
        Ok(self.find_nearest(path)?.map(|(_, place)| place))
    }

    /// The directory of that signers file's project.
    pub(crate) fn find_nearest_project(&self, path: &RepoPath) -> Result<Option<RepoPath>, Far> {
        Ok(self.find_nearest(path)?.and_then(|(levels, _)| path.ancestor(levels)))
    }

    /// With how many levels above `path` it is.
    fn find_nearest(&self, path: &RepoPath) -> Result<Option<(usize, &Place)>, Far> {
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
    pub(crate) fn set(&mut self, path: &str, id: Option<ObjectId>) {
        set(&self.keys, &mut self.files, path, id);
        if let Some(project) = project_of(path) {
            set(&self.keys, &mut self.signers, project, id);
        }
    }
}

fn place(keys: &[RandomState; 2], path: &str, id: ObjectId, spot: Spot) -> Place {
    Place { hash: keys[0].hash_one(path), spot, check: check(keys, path), id }
}

fn find<'a>(keys: &[RandomState; 2], table: &'a Node, path: &str) -> Option<&'a Place> {
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
pub(crate) struct Far;

fn check(keys: &[RandomState; 2], path: &str) -> u32 {
    keys[1].hash_one(path) as u32
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gix::objs::Kind;

    use super::*;
    use crate::{
        objects::sums::hash,
        tree::{
            dir::{DirEntry, TreeNode},
            edit::{Edit, apply},
        },
    };

    /// Some hundred paths in a few directories, projects inside projects among them.
    fn path(n: u64) -> RepoPath {
        let project = ["a", "a/b", "a/b/c/d", "e/f/g/h/i/j/k/l/m/n"][(n % 4) as usize];
        let name = match n / 4 % 8 {
            0 => format!("{}/{}", wire::ACTIVE_DIR, wire::SIGNERS_FILE),
            1 => wire::SIGNERS_FILE.to_owned(),
            2 => format!("{}.of/{}", wire::ACTIVE_DIR, wire::SIGNERS_FILE),
            _ => format!("v{}/file{}", n / 32 % 7, n / 224 % 13),
        };
        RepoPath::parse(&format!("{project}/{name}")).unwrap()
    }

    fn all(node: &Node) -> Vec<(u64, u32, ObjectId)> {
        let mut all = Vec::new();
        node.visit(&mut |place| all.push((place.hash, place.check, place.id)));
        all
    }

    /// What `Places::of` makes of the tree, with the same keys.
    fn rebuild(places: &Places, root: &Dir) -> Places {
        let empty = || Node::new(Vec::new());
        let mut new = Places { keys: places.keys.clone(), files: empty(), signers: empty() };
        root.walk(&mut String::new(), &mut |path, id| new.set(path, Some(id)));
        new
    }

    fn check(places: &Places, root: &Arc<Dir>) {
        let rebuilt = rebuild(places, root);
        assert_eq!(all(&places.files), all(&rebuilt.files));
        assert_eq!(all(&places.signers), all(&rebuilt.signers));
        let loaded = Places::of(root, &HashMap::default());
        for path in (0..2_912).map(path) {
            let by_tree = match root.find(&path) {
                Some(TreeNode::File(id)) => Some(*id),
                Some(TreeNode::Dir(..) | TreeNode::Foreign(_)) | None => None,
            };
            let signers = root.find_nearest(&path, [wire::ACTIVE_DIR, wire::SIGNERS_FILE]);
            for places in [places, &loaded] {
                assert_eq!(places.find(path.as_str()).map(|place| place.id), by_tree, "{path}");
                if let Ok(nearest) = places.find_nearest_signers(&path) {
                    assert_eq!(nearest.map(|place| place.id), signers, "{path}");
                }
            }
        }
    }

    #[test]
    fn places_agree_with_the_tree_and_with_a_rebuild_after_random_changes() {
        let mut root = Dir::empty();
        let mut places = Places::of(&root, &HashMap::default());
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        for step in 0..3_000 {
            let content = hash(Kind::Blob, &next().to_le_bytes()).unwrap();
            let path = path(next());
            let edit: Edit<'_> = (&path, (next() % 3 != 0).then_some(content));
            root = apply(&root, &[edit]).unwrap().0;
            places.set(path.as_str(), edit.1);
            if step % 500 == 499 {
                check(&places, &root);
            }
        }
        let near = RepoPath::parse("a/b/x/y/z").unwrap();
        places.set("a/b/svc.signers/svc.signers.json", Some(ObjectId::empty_blob(gix::hash::Kind::Sha1)));
        assert!(matches!(places.find_nearest_signers(&near), Ok(Some(place)) if place.id.is_empty_blob()));
    }

    #[test]
    fn a_path_that_nobody_can_ask_for_is_not_found_however_it_is_asked_for() {
        let id = hash(Kind::Blob, b"secret").unwrap();
        // Somebody put these into the tree by hand.
        let dir = |name: &str, node| {
            let entry = DirEntry { name: name.into(), node };
            TreeNode::of(Dir::from_stored(id, vec![entry]).unwrap())
        };
        let names = [["https", "EXAMPLE.org", "443"], ["https", "example.org", ".."], ["a", ".git", "x"]];
        for [first, second, third] in names {
            let TreeNode::Dir(_, root) = dir(first, dir(second, dir(third, TreeNode::File(id)))) else {
                panic!()
            };
            let below = [first, second, third].join("/");
            let mut walked = Vec::new();
            root.walk(&mut String::new(), &mut |path, _| walked.push(path.to_owned()));
            assert_eq!(walked, [below.as_str()]);
            assert!(Places::of(&root, &HashMap::default()).find(&below).is_none(), "{below}");
        }
    }

    #[test]
    fn what_lies_far_above_is_left_to_the_tree() {
        let places = Places::of(&Dir::empty(), &HashMap::default());
        let [near, far] = [NEAR, NEAR + 1].map(|names| RepoPath::parse(&vec!["x"; names].join("/")).unwrap());
        assert!(matches!(places.find_nearest_signers(&near), Ok(None)));
        assert!(places.find_nearest_signers(&far).is_err());
    }
}
