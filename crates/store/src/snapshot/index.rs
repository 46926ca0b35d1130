//! What must be answered without reading the whole tree: projects, what still collects, and for whom it waits.
//!
//! Built from the tree at start and kept up to date by each change; a rebuild gives the same.

use std::{
    collections::{BTreeSet, HashSet},
    ops::Bound,
    sync::Arc,
};

use countersign_core::{
    documents::{
        layout::{self, Signable},
        metadata::Metadata,
    },
    rules::{
        snapshot::{ReadError, Snapshot, StoredSigners},
        stored,
    },
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};
use imbl::{HashMap, OrdMap, OrdSet};

use crate::{
    snapshot::files::{Files, PathEntry},
    tree::names::addressable,
};

/// Derived from the files of one commit; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// Every project, registered or pending, by its identifier in small letters (D35).
    projects: OrdMap<String, RepoPath>,
    /// Those of them whose first registration still waits for signatures, and since when.
    registering: OrdMap<String, Timestamp>,
    /// Every file that collects signatures, with the keys that may still sign it.
    collecting: OrdMap<RepoPath, Arc<BTreeSet<PublicKey>>>,
    /// The same by key.
    waiting: HashMap<PublicKey, OrdSet<RepoPath>>,
}

impl Index {
    pub fn build(files: &Files) -> Index {
        let mut index = Index::default();
        let mut touched = Vec::new();
        files.walk(&mut |path, _| {
            if might_matter(path) {
                touched.extend(addressable(path));
            }
        });
        index.update(files, &touched);
        index
    }

    /// Brings the index up to date: `files` is the new state, `touched` what was written or deleted to reach it.
    pub fn update(&mut self, files: &Files, touched: &[RepoPath]) {
        let projects: HashSet<RepoPath> = touched.iter().filter_map(layout::project_of_signers_dir).collect();
        for project in projects {
            self.update_project(files, project);
        }
        let signable: HashSet<RepoPath> = touched.iter().filter_map(layout::signable_behind).collect();
        for file in signable {
            self.update_file(files, file);
        }
    }

    /// Every project that is `id` in any letter case, lies inside it, or contains it.
    pub fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let folded = id.as_str().to_ascii_lowercase();
        let above = folded.match_indices('/').map(|(end, _)| &folded[..end]).chain([folded.as_str()]);
        let above = above.filter_map(|ancestor| self.projects.get(ancestor));
        let below = below(&folded);
        let below = self.projects.range::<_, str>(as_bounds(&below)).map(|(_, project)| project);
        above.chain(below).cloned().collect()
    }

    /// Every project, registered or pending, in the order of their identifiers in small letters, which come first.
    pub fn projects(&self) -> impl Iterator<Item = (&str, &RepoPath)> {
        self.projects.iter().map(|(folded, project)| (folded.as_str(), project))
    }

    pub fn project_count(&self) -> usize {
        self.projects.len()
    }

    /// Whether this very path is a project.
    pub fn is_project(&self, path: &RepoPath) -> bool {
        self.projects.get(&path.as_str().to_ascii_lowercase()).is_some_and(|project| project == path)
    }

    /// The project of this identifier, in whatever letter case (D35).
    pub fn find_project(&self, id: &RepoPath) -> Option<&RepoPath> {
        self.projects.get(&id.as_str().to_ascii_lowercase())
    }

    /// Every project below `dir`, in the same order as `projects`.
    pub fn projects_below(&self, dir: &RepoPath) -> Vec<RepoPath> {
        let folded = below(&dir.as_str().to_ascii_lowercase());
        let projects = self.projects.range::<_, str>(as_bounds(&folded)).map(|(_, project)| project);
        projects.cloned().collect()
    }

    /// Whether a file still collects signatures.
    pub fn is_collecting(&self, file: &RepoPath) -> bool {
        self.collecting.contains_key(file)
    }

    /// How many files still collect signatures.
    pub fn collecting_count(&self) -> usize {
        self.collecting.len()
    }

    /// When each registration below `dir` began that still waits for signatures.
    pub fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let below = below(&dir.as_str().to_ascii_lowercase());
        self.registering.range::<_, str>(as_bounds(&below)).map(|(_, since)| *since).collect()
    }

    pub fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let below = below(project.as_str());
        let files = self.collecting.range::<_, str>(as_bounds(&below)).map(|(file, _)| file);
        files.filter(|file| layout::signable(file) == Some(Signable::Index)).cloned().collect()
    }

    /// The files that wait for this key's signature, sorted.
    pub fn waiting_for(&self, key: &PublicKey) -> impl Iterator<Item = &RepoPath> + Clone {
        self.waiting.get(key).into_iter().flatten()
    }

    fn update_project(&mut self, files: &Files, project: RepoPath) {
        let folded = project.as_str().to_ascii_lowercase();
        let exists = |path: &RepoPath| matches!(files.entry(path), Some(PathEntry::File(_)));
        let (active, pending) = (layout::active_signers(&project), layout::pending_signers(&project));
        let (is_active, is_pending) = (exists(&active), exists(&pending));
        match (is_pending && !is_active).then(|| pending_since(files, &pending)).flatten() {
            Some(since) => self.registering.insert(folded.clone(), since),
            None => self.registering.remove(&folded),
        };
        if is_active || is_pending {
            self.projects.insert(folded, project);
        } else {
            self.projects.remove(&folded);
        }
    }

    fn update_file(&mut self, files: &Files, file: RepoPath) {
        for key in self.collecting.remove(&file).iter().flat_map(|keys| keys.iter()) {
            if let Some(waiting) = self.waiting.get_mut(key) {
                waiting.remove(&file);
                if waiting.is_empty() {
                    self.waiting.remove(key);
                }
            }
        }
        match stored::collecting(&FilesOnly(files), &file) {
            Ok(None) => {}
            Ok(Some(state)) => {
                let keys: BTreeSet<PublicKey> = state.accepted.difference(&state.signed).copied().collect();
                for key in &keys {
                    self.waiting.entry(*key).or_default().insert(file.clone());
                }
                self.collecting.insert(file, Arc::new(keys));
            }
            // One project's broken file must not keep the others from being served.
            Err(error) => tracing::warn!(%error, "a file is left out of the index"),
        }
    }
}

/// When a proposal was fetched; `None` where its metadata cannot be read.
fn pending_since(files: &Files, pending: &RepoPath) -> Option<Timestamp> {
    let metadata = files.read(&layout::metadata_of(pending)).ok()??;
    Some(Metadata::parse(&metadata).ok()?.origin.retrieved_at)
}

/// Whether a file of this name can tell that there is a project, or something that collects signatures.
fn might_matter(path: &str) -> bool {
    use countersign_core::values::wire::{PENDING_SUFFIX, SIGNERS_FILE};
    path.ends_with(PENDING_SUFFIX) || path.ends_with(SIGNERS_FILE)
}

/// Everything that begins with `dir` and a slash; `0` is the character after it.
fn below(dir: &str) -> (String, String) {
    (format!("{dir}/"), format!("{dir}0"))
}

fn as_bounds((from, to): &(String, String)) -> (Bound<&str>, Bound<&str>) {
    (Bound::Included(from), Bound::Excluded(to))
}

/// The files without the index, which is only being made of them.
struct FilesOnly<'a>(&'a Files);

impl Snapshot for FilesOnly<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.0.read(path)
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.0.contains(path)
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        self.0.read_signers(path)
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        Ok(self.0.files_below(dir))
    }

    fn projects_overlapping(&self, _: &RepoPath) -> Vec<RepoPath> {
        Vec::new()
    }

    fn pending_registrations(&self, _: &RepoPath) -> Vec<Timestamp> {
        Vec::new()
    }

    fn collecting_indexes(&self, _: &RepoPath) -> Vec<RepoPath> {
        Vec::new()
    }
}
