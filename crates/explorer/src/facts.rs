//! Finds what lies where in a state.

use crate::{contents::ContentId, contents::Contents, contents::State, roles::PathRole, roles::ProjectNames};

pub type SignersSlots = [Option<ContentId>; 5];
/// What lies beside a pending signers file.
pub type BesideSlots = [Option<ContentId>; 3];
/// A veto and the signatures on it.
pub type VetoSlots = [Option<ContentId>; 2];
pub type ReleaseSlots = [Option<ContentId>; 16];

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
