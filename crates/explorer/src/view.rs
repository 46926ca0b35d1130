//! A state as decisions see it.

use std::{cell::Cell, sync::Arc};

use countersign_core::documents::{history::EntryFacts, signatures::SignatureSet, signers::Metadata};
use countersign_core::rules::snapshot::{ReadError, Snapshot, StoredSigners};
use countersign_core::values::{path::RepoPath, time::Timestamp};

use crate::contents::{Blob, ContentId, Contents, PARTS, State};
use crate::roles::{IN_FORCE, PROPOSED, PartMask, PathRole, ProjectNames};

/// A state, and a note of which parts of it were looked at. There is no other way to its files, so two states that
/// agree in what was noted get the same answer.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub contents: &'a Contents,
    pub state: &'a State,
    pub reads: &'a Reads,
}

/// Which parts were read, and of which it was asked only which files there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    content: Cell<PartMask>,
    listed: Cell<PartMask>,
}

impl Reads {
    pub fn note_content(&self, part: usize) {
        self.content.set(self.content.get() | 1 << part);
    }

    fn note_listed(&self, parts: PartMask) {
        self.listed.set(self.listed.get() | parts);
    }

    /// What these reads saw of a state, and nothing else of it.
    pub fn seen(&self, contents: &Contents, state: &State) -> State {
        let (content, listed) = (self.content.get(), self.listed.get());
        let part = |at: usize| match (content >> at & 1, listed >> at & 1) {
            (1, _) => state.parts[at],
            (_, 1) => contents.listing(state.parts[at]),
            _ => 0,
        };
        State { parts: std::array::from_fn(part), clock: state.clock }
    }
}

impl<'a> View<'a> {
    fn blob(&self, path: &RepoPath) -> Option<&'a Blob> {
        self.reads.note_content(self.contents.part_of(path));
        Some(self.contents.blob(self.contents.find(self.state, self.contents.find_path(path)?)?))
    }

    /// The paths of all files in these parts.
    fn paths(&self, parts: PartMask) -> impl Iterator<Item = &'a RepoPath> + use<'a> {
        self.reads.note_listed(parts);
        let (contents, state) = (self.contents, self.state);
        let parts = (0..PARTS).filter(move |part| parts >> part & 1 == 1);
        parts.flat_map(move |part| contents.files(state.parts[part])).map(|(path, _)| contents.path(*path))
    }

    pub fn all_paths(&self) -> impl Iterator<Item = &'a RepoPath> + use<'a> {
        self.paths(PartMask::MAX)
    }

    /// Projects that are registered or pending.
    fn projects(&self) -> impl Iterator<Item = RepoPath> + use<'a> {
        self.paths(self.contents.names().parts_of_each(&[IN_FORCE, PROPOSED])).filter_map(|file| {
            let dir = file.as_str().strip_suffix("/svc.signers.json")?;
            let project =
                dir.strip_suffix("/svc.signers").or_else(|| dir.strip_suffix("/svc.signers.pending"))?;
            RepoPath::parse(project).ok()
        })
    }
}

fn unreadable(path: &RepoPath) -> ReadError {
    ReadError { path: path.clone(), reason: "it does not parse".to_owned() }
}

impl Snapshot for View<'_> {
    fn read(&self, path: &RepoPath) -> Result<Option<Arc<[u8]>>, ReadError> {
        Ok(self.blob(path).map(|blob| Arc::clone(&blob.bytes)))
    }

    fn contains(&self, path: &RepoPath) -> bool {
        self.reads.note_listed(1 << self.contents.part_of(path));
        self.contents.find_path(path).is_some_and(|path| self.contents.find(self.state, path).is_some())
    }

    fn read_signers(&self, path: &RepoPath) -> Result<Option<StoredSigners>, ReadError> {
        let Some(blob) = self.blob(path) else { return Ok(None) };
        let parse = || StoredSigners::parse(path, Arc::clone(&blob.bytes)).ok();
        blob.signers.get_or_init(parse).clone().map(Some).ok_or_else(|| unreadable(path))
    }

    fn read_signatures(&self, path: &RepoPath) -> Result<Option<SignatureSet>, ReadError> {
        let Some(blob) = self.blob(path) else { return Ok(None) };
        let set = blob.signatures.get_or_init(|| SignatureSet::parse(&blob.bytes).ok());
        set.clone().map(Some).ok_or_else(|| unreadable(path))
    }

    fn read_entry_facts(&self, path: &RepoPath) -> Result<Option<EntryFacts>, ReadError> {
        let Some(blob) = self.blob(path) else { return Ok(None) };
        let entry = blob.entry.get_or_init(|| EntryFacts::parse(&blob.bytes).ok());
        entry.map(Some).ok_or_else(|| unreadable(path))
    }

    fn files_below(&self, dir: &RepoPath) -> Result<Vec<RepoPath>, ReadError> {
        let parts = self.contents.names().parts_below(dir.as_str());
        let mut files: Vec<RepoPath> =
            self.paths(parts).filter(|file| file.is_inside(dir)).cloned().collect();
        files.sort();
        Ok(files)
    }

    fn projects_overlapping(&self, id: &RepoPath) -> Vec<RepoPath> {
        let overlaps = |other: &RepoPath| other == id || other.is_inside(id) || id.is_inside(other);
        let mut projects: Vec<RepoPath> = self.projects().filter(overlaps).collect();
        projects.sort();
        projects.dedup();
        projects
    }

    fn pending_registrations(&self, dir: &RepoPath) -> Vec<Timestamp> {
        let proposed = self.contents.names().parts_of_each(&[PROPOSED]);
        let pending = self.paths(proposed).filter_map(|file| {
            let project =
                file.as_str().strip_suffix("/svc.signers.pending/svc.signers.json.metadata.json")?;
            let active = RepoPath::parse(&format!("{project}/svc.signers/svc.signers.json")).ok()?;
            let is_new = !self.contains(&active) && RepoPath::parse(project).ok()?.is_inside(dir);
            let metadata = self.blob(file).filter(|_| is_new)?;
            Some(Metadata::parse(&metadata.bytes).ok()?.origin.retrieved_at)
        });
        pending.collect()
    }

    fn collecting_indexes(&self, project: &RepoPath) -> Vec<RepoPath> {
        let parts = self.contents.names().releases_below(project.as_str());
        let collecting = self.paths(parts).filter(|file| file.is_inside(project)).filter_map(|file| {
            let index = file.as_str().strip_suffix(".signatures.json.pending")?;
            RepoPath::parse(index).ok().filter(|_| index.ends_with("/svc.index.json"))
        });
        let mut collecting: Vec<RepoPath> = collecting.collect();
        collecting.sort();
        collecting
    }
}

// Finds what lies where in a state.

pub type SignersSlots = [Option<ContentId>; 5];
/// What lies beside a pending signers file.
pub type BesideSlots = [Option<ContentId>; 3];
/// A veto and the signatures on it.
pub type VetoSlots = [Option<ContentId>; 2];
pub type ReleaseSlots = [Option<ContentId>; 17];

/// A state by roles instead of paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    pub projects: Vec<ProjectFacts>,
    /// Files that no rule of this world writes.
    pub unknown: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectFacts {
    pub active: SignersSlots,
    pub pending: SignersSlots,
    pub beside: BesideSlots,
    /// Replaced proposals by the beginning of the directory's name, sorted.
    pub superseded: Vec<(u64, SignersSlots)>,
    /// Vetoes by the beginning of the digest of the file that was vetoed, sorted.
    pub vetoed: Vec<(u64, VetoSlots)>,
    /// Entries by number, sorted.
    pub history: Vec<(u32, ContentId)>,
    pub releases: Vec<ReleaseSlots>,
}

impl Facts {
    pub fn of(state: &State, contents: &Contents) -> Self {
        let empty = |names: &ProjectNames| ProjectFacts {
            releases: vec![ReleaseSlots::default(); names.release_dirs.len()],
            ..ProjectFacts::default()
        };
        let mut facts = Self { projects: contents.names().projects.iter().map(empty).collect(), unknown: 0 };
        for (path, content) in contents.state_files(state) {
            facts.put(contents.role(path), content);
        }
        for project in &mut facts.projects {
            project.history.sort_unstable();
            project.superseded.sort_unstable_by_key(|(dir, _)| *dir);
            project.vetoed.sort_unstable_by_key(|(dir, _)| *dir);
        }
        facts
    }

    fn put(&mut self, role: PathRole, content: ContentId) {
        let of = |project: u8| usize::from(project);
        match role {
            PathRole::Active { project, slot } => {
                self.projects[of(project)].active[of(slot)] = Some(content);
            }
            PathRole::Pending { project, slot } => {
                self.projects[of(project)].pending[of(slot)] = Some(content);
            }
            PathRole::Beside { project, slot } => {
                self.projects[of(project)].beside[of(slot)] = Some(content);
            }
            PathRole::Superseded { project, dir, slot } => {
                slots_of(&mut self.projects[of(project)].superseded, dir)[of(slot)] = Some(content);
            }
            PathRole::Vetoed { project, dir, slot } => {
                slots_of(&mut self.projects[of(project)].vetoed, dir)[of(slot)] = Some(content);
            }
            PathRole::History { project, number } => {
                self.projects[of(project)].history.push((number, content));
            }
            PathRole::Release { project, release, slot } => {
                self.projects[of(project)].releases[of(release)][of(slot)] = Some(content);
            }
            PathRole::Unknown => self.unknown += 1,
        }
    }
}

/// The slots of a directory, which are empty where it is not known yet.
fn slots_of<T: Default>(list: &mut Vec<(u64, T)>, dir: u64) -> &mut T {
    let at = list.iter().position(|(known, _)| *known == dir).unwrap_or_else(|| {
        list.push((dir, T::default()));
        list.len() - 1
    });
    &mut list[at].1
}
