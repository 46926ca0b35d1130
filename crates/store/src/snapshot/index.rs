//! What must be answered without reading the whole tree: projects, what still collects, and for whom it waits.
//!
//! Built from the tree at start and kept up to date by each change; a rebuild gives the same.

use std::{borrow::Borrow, collections::BTreeSet, collections::HashSet, ops::Bound, sync::Arc};

use countersign_api::answers::collecting;
use countersign_core::documents::{layout, layout::Signable, signers::Metadata};
use countersign_core::rules::{snapshot::ReadError, snapshot::Snapshot, stored};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use imbl::{HashMap, OrdMap, OrdSet};

static NO_KEYS: BTreeSet<PublicKey> = BTreeSet::new();

/// An index of projects and of what collects signatures, derived from the files of one commit; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// Every project, registered or pending, by its identifier in small letters (D35).
    projects: OrdMap<String, RepoPath>,
    /// The projects whose first registration still waits for signatures, and since when.
    registering: OrdMap<String, Timestamp>,
    waiting_signers: Arc<WaitingSigners>,
    /// Every file that collects signatures, with the keys that may still sign it.
    collecting: OrdMap<RepoPath, Arc<BTreeSet<PublicKey>>>,
    /// The files that collect signatures, by key.
    waiting: HashMap<PublicKey, OrdSet<RepoPath>>,
}

/// Signers that have all consent and wait, with the time at which they take effect (D131).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitingSigners {
    by_project: OrdMap<RepoPath, Timestamp>,
    /// Projects by the time at which their signers take effect, the next ones first.
    by_time: OrdSet<(Timestamp, RepoPath)>,
    /// The time at which the first of them take effect: every request looks at it.
    next_due: Option<Timestamp>,
}

impl WaitingSigners {
    /// The time at which the next signers take effect, if any wait.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.next_due
    }

    /// The signers that take effect by this time, with their projects; the next ones first.
    pub fn due(&self, by: Timestamp) -> impl Iterator<Item = &(Timestamp, RepoPath)> {
        self.iter().take_while(move |(due, _)| *due <= by)
    }

    /// All of them, with their projects; the next ones first.
    pub fn iter(&self) -> impl Iterator<Item = &(Timestamp, RepoPath)> {
        self.by_time.iter()
    }

    /// Whether exactly these signers wait.
    pub fn contains(&self, signers: &(Timestamp, RepoPath)) -> bool {
        self.by_time.contains(signers)
    }

    /// Sets the time at which the signers of a project take effect; `None` if they do not wait.
    pub fn set(&mut self, project: &RepoPath, due: Option<Timestamp>) {
        let before = match due {
            Some(due) => self.by_project.insert(project.clone(), due),
            None => self.by_project.remove(project),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before, project.clone()));
        }
        self.by_time.extend(due.map(|due| (due, project.clone())));
        self.next_due = self.by_time.get_min().map(|(due, _)| *due);
    }
}

impl Index {
    /// Every project that is `id` in any letter case, lies inside it, or contains it.
    pub fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let folded = id.as_str().to_ascii_lowercase();
        let above = folded.match_indices('/').map(|(end, _)| &folded[..end]).chain([folded.as_str()]);
        let above = above.filter_map(|ancestor| self.projects.get(ancestor));
        let below = below(&self.projects, &folded).map(|(_, project)| project);
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
        let below = below(&self.projects, &dir.as_str().to_ascii_lowercase());
        below.map(|(_, project)| project.clone()).collect()
    }

    /// Whether a file still collects signatures.
    pub fn is_collecting(&self, file: &RepoPath) -> bool {
        self.collecting.contains_key(file)
    }

    /// How many files still collect signatures.
    pub fn collecting_count(&self) -> usize {
        self.collecting.len()
    }

    /// The times at which the registrations below `dir` began that still wait for signatures.
    pub fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let below = below(&self.registering, &dir.as_str().to_ascii_lowercase());
        below.map(|(_, since)| *since).collect()
    }

    pub fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let files = below(&self.collecting, project.as_str()).map(|(file, _)| file);
        files.filter(|file| layout::signable(file) == Some(Signable::Index)).cloned().collect()
    }

    /// The files that wait for this key's signature, sorted.
    pub fn waiting_for(&self, key: &PublicKey) -> impl Iterator<Item = &RepoPath> + Clone {
        self.waiting.get(key).into_iter().flatten()
    }

    /// Signers that wait to take effect. Two commits share the list until a commit changes it.
    pub fn waiting_signers(&self) -> &Arc<WaitingSigners> {
        &self.waiting_signers
    }

    /// Brings the index up to date with the files, of which `touched` were written or deleted.
    pub fn update(&mut self, snapshot: &impl Snapshot, touched: &[RepoPath]) {
        let projects: HashSet<RepoPath> =
            touched.iter().filter_map(layout::project_with_signers_at).collect();
        for project in projects {
            self.set_due(snapshot, &project);
            let (active, pending) = (layout::active_signers(&project), layout::pending_signers(&project));
            match (snapshot.contains(&active), snapshot.contains(&pending)) {
                (false, false) => self.remove_project(&project),
                (true, _) => self.set_project(project, None),
                (false, true) => self.set_project(project, pending_since(snapshot, &pending)),
            }
        }
        let signable: HashSet<RepoPath> = touched.iter().filter_map(layout::signable_behind).collect();
        for file in signable {
            let keys = missing_signers(snapshot, &file).unwrap_or_else(|error| {
                // One project's broken file must not keep the others from being served.
                tracing::warn!(%error, "a file is left out of the index");
                None
            });
            self.set_collecting(file, keys);
        }
    }

    fn set_due(&mut self, snapshot: &impl Snapshot, project: &RepoPath) {
        let agreement = stored::agreement(snapshot, &layout::pending_signers(project));
        let agreement = agreement.unwrap_or_else(|error| {
            tracing::warn!(%error, "signers that wait are left out of the index");
            None
        });
        let due = agreement.map(|agreement| agreement.due_at);
        if self.waiting_signers.by_project.get(project).copied() != due {
            Arc::make_mut(&mut self.waiting_signers).set(project, due);
        }
    }

    /// Notes a project, and since when its first registration waits, if it does.
    fn set_project(&mut self, project: RepoPath, registering: Option<Timestamp>) {
        let folded = project.as_str().to_ascii_lowercase();
        match registering {
            Some(since) => self.registering.insert(folded.clone(), since),
            None => self.registering.remove(&folded),
        };
        self.projects.insert(folded, project);
    }

    fn remove_project(&mut self, project: &RepoPath) {
        let folded = project.as_str().to_ascii_lowercase();
        self.registering.remove(&folded);
        self.projects.remove(&folded);
    }

    /// The keys that may still sign a file; `None` where it collects no signatures. Of many keys mostly one changes.
    fn set_collecting(&mut self, file: RepoPath, keys: Option<BTreeSet<PublicKey>>) {
        let before = self.collecting.remove(&file).unwrap_or_default();
        let now = keys.as_ref().unwrap_or(&NO_KEYS);
        for key in before.difference(now) {
            if let Some(waiting) = self.waiting.get_mut(key) {
                waiting.remove(&file);
                if waiting.is_empty() {
                    self.waiting.remove(key);
                }
            }
        }
        for key in now.difference(&before) {
            self.waiting.entry(*key).or_default().insert(file.clone());
        }
        if let Some(keys) = keys {
            self.collecting.insert(file, Arc::new(keys));
        }
    }
}

/// The time at which a proposal was fetched; `None` if its metadata cannot be read.
fn pending_since(snapshot: &impl Snapshot, pending: &RepoPath) -> Option<Timestamp> {
    let metadata = snapshot.read(&layout::metadata_of(pending)).ok()??;
    Some(Metadata::parse(&metadata).ok()?.origin.retrieved_at)
}

/// The keys that may still sign a file; `None` where it does not collect signatures.
fn missing_signers(
    snapshot: &impl Snapshot,
    file: &RepoPath,
) -> Result<Option<BTreeSet<PublicKey>>, ReadError> {
    let state = collecting(snapshot, file)?;
    Ok(state.map(|state| state.accepted.difference(&state.signed).copied().collect()))
}

/// Whether a file of this name can tell that there is a project, or something that collects signatures.
pub(crate) fn might_matter(path: &str) -> bool {
    use countersign_core::values::wire::{PENDING_SUFFIX, SIGNERS_FILE};
    path.ends_with(PENDING_SUFFIX) || path.ends_with(SIGNERS_FILE)
}

/// What a sorted map has below `dir`: all that begins with it and a slash. `0` is the character after that.
fn below<'a, K: Ord + Borrow<str>, V>(
    map: &'a OrdMap<K, V>,
    dir: &str,
) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
    let (from, to) = (format!("{dir}/"), format!("{dir}0"));
    map.range::<_, str>((Bound::Included(from.as_str()), Bound::Excluded(to.as_str())))
}
