//! What lies where in a state.

use crate::{
    contents::{ContentId, Contents, State},
    roles::{PathRole, ProjectNames},
};

pub type SignersSlots = [Option<ContentId>; 5];
pub type ReleaseSlots = [Option<ContentId>; 12];

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
    /// By the beginning of the directory's name, sorted.
    pub superseded: Vec<(u64, SignersSlots)>,
    /// By number, sorted.
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
            PathRole::Superseded { project, dir, slot } => {
                let list = &mut self.projects[of(project)].superseded;
                let at = list.iter().position(|(known, _)| *known == dir).unwrap_or_else(|| {
                    list.push((dir, SignersSlots::default()));
                    list.len() - 1
                });
                list[at].1[of(slot)] = Some(content);
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
