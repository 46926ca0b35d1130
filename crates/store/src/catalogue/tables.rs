//! The tables of the catalogue. They hold no text but paths, and names of keys, projects and releases as numbers: with
//! hundreds of thousands of releases, that is what fills the memory.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use countersign_api::catalogue::ReleaseState;
use countersign_core::values::{key::PublicKey, path::RepoPath};
use gix::ObjectId;

use super::facts::{ProjectFacts, ReleaseFacts, Seconds};

pub(super) type ReleaseId = u32;
pub(super) type ProjectId = u32;
pub(super) type KeyId = u32;

#[derive(Default)]
pub(super) struct Tables {
    releases: Vec<ReleaseRow>,
    release_ids: HashMap<RepoPath, ReleaseId>,
    projects: Vec<ProjectRow>,
    project_ids: HashMap<RepoPath, ProjectId>,
    key_ids: HashMap<PublicKey, KeyId>,
    /// How many releases each key has signed.
    signed_counts: Vec<u32>,
    /// Complete and revoked releases by the digests of their files, the oldest first.
    pub(super) digests: BTreeSet<(u64, Seconds, ReleaseId)>,
    /// The newest first.
    pub(super) by_project: BTreeSet<(ProjectId, ReleaseState, Reverse<Seconds>, Reverse<ReleaseId>)>,
    /// Complete ones of all projects, the newest first.
    pub(super) complete: BTreeSet<(Reverse<Seconds>, Reverse<ReleaseId>)>,
    /// Who has signed what, the newest signature first.
    pub(super) signed: BTreeSet<(KeyId, Reverse<Seconds>, ReleaseId)>,
    collecting: HashMap<ReleaseId, CollectingRow>,
    /// Revocations that wait for more signatures, the oldest first, with those who have nothing more to do.
    pub(super) begun: BTreeMap<(ProjectId, Seconds, ReleaseId), Box<[KeyId]>>,
    begun_since: HashMap<ReleaseId, Seconds>,
    /// Projects whose signers files in force list a key.
    pub(super) listed: BTreeSet<(KeyId, ProjectId)>,
    /// By their names in small letters, the last one first. Those with signers in force, and those without.
    pub(super) active_names: BTreeSet<(String, ProjectId)>,
    pub(super) pending_names: BTreeSet<(String, ProjectId)>,
}

pub(super) struct ReleaseRow {
    pub(super) path: RepoPath,
    pub(super) project: ProjectId,
    pub(super) registered_at: Seconds,
    /// `None` for one that is gone.
    pub(super) state: Option<ReleaseState>,
}

/// What changes while a release collects signatures.
struct CollectingRow {
    /// Of the index: a corrected one is another registration, perhaps by another key.
    content: ObjectId,
    signed: Box<[(KeyId, Seconds)]>,
    by: Option<PublicKey>,
}

struct ProjectRow {
    path: RepoPath,
    listed: Box<[KeyId]>,
    proposed_at: Option<Seconds>,
}

impl Tables {
    pub(super) fn release(&self, id: ReleaseId) -> &ReleaseRow {
        &self.releases[id as usize]
    }

    pub(super) fn find_release(&self, path: &RepoPath) -> Option<(ReleaseId, &ReleaseRow)> {
        let id = *self.release_ids.get(path)?;
        Some((id, self.release(id)))
    }

    pub(super) fn project(&self, id: ProjectId) -> &RepoPath {
        &self.projects[id as usize].path
    }

    pub(super) fn project_id(&self, path: &RepoPath) -> Option<ProjectId> {
        self.project_ids.get(path).copied()
    }

    pub(super) fn proposed_at(&self, project: &RepoPath) -> Option<Seconds> {
        self.projects[self.project_id(project)? as usize].proposed_at
    }

    pub(super) fn key_id(&self, key: &PublicKey) -> Option<KeyId> {
        self.key_ids.get(key).copied()
    }

    pub(super) fn signed_count(&self, key: KeyId) -> usize {
        self.signed_counts[key as usize] as usize
    }

    /// Who registered a release that collects signatures, where that is known.
    pub(super) fn registered_by(&self, id: ReleaseId) -> Option<PublicKey> {
        self.collecting.get(&id)?.by
    }

    /// The releases of a project whose revocation was begun.
    pub(super) fn begun_in(&self, project: &RepoPath) -> impl Iterator<Item = &RepoPath> {
        let id = self.project_id(project);
        let begun = id.map(|id| self.begun.range((id, 0, 0)..=(id, Seconds::MAX, ReleaseId::MAX)));
        begun.into_iter().flatten().map(|((_, _, release), _)| &self.release(*release).path)
    }

    /// The releases that collect signatures.
    pub(super) fn collecting_paths(&self) -> impl Iterator<Item = RepoPath> {
        self.collecting.keys().map(|id| self.release(*id).path.clone())
    }

    pub(super) fn attribute(&mut self, path: &RepoPath, by: PublicKey) {
        let id = self.release_ids.get(path);
        if let Some(row) = id.and_then(|id| self.collecting.get_mut(id)) {
            row.by = Some(by);
        }
    }

    /// Gives whether it has to be found out who registered the release.
    pub(super) fn set_release(&mut self, path: &RepoPath, facts: Option<ReleaseFacts>) -> bool {
        let known = self.release_ids.get(path).copied();
        let before = known.map(|id| (id, self.take_release(id)));
        let Some(facts) = facts else { return false };
        let project = self.intern_project(&facts.project);
        let row = ReleaseRow {
            path: path.clone(),
            project,
            registered_at: facts.registered_at,
            state: Some(facts.state),
        };
        let (known, collected) = before.unzip();
        let same = collected.flatten().filter(|collected| collected.content == facts.content);
        let by = same.and_then(|collected| collected.by);
        let id = match known {
            Some(id) => {
                self.releases[id as usize] = row;
                id
            }
            None => {
                let id = next_id(self.releases.len());
                self.release_ids.insert(path.clone(), id);
                self.releases.push(row);
                id
            }
        };
        self.digests.extend(facts.digests.iter().map(|digest| (*digest, facts.registered_at, id)));
        self.by_project.insert((project, facts.state, Reverse(facts.registered_at), Reverse(id)));
        if facts.state == ReleaseState::Complete {
            self.complete.insert((Reverse(facts.registered_at), Reverse(id)));
        }
        if let Some(begun) = &facts.begun {
            let joined = begun.joined.iter().map(|key| self.intern_key(key)).collect();
            self.begun.insert((project, begun.since, id), joined);
            self.begun_since.insert(id, begun.since);
        }
        let signed: Box<[_]> = facts.signed.iter().map(|(key, at)| (self.intern_key(key), *at)).collect();
        for (key, at) in &signed {
            if self.signed.insert((*key, Reverse(*at), id)) {
                self.signed_counts[*key as usize] += 1;
            }
        }
        if facts.state != ReleaseState::Collecting {
            return false;
        }
        self.collecting.insert(id, CollectingRow { content: facts.content, signed, by });
        by.is_none()
    }

    /// Takes out what may change. The digests and signatures of a complete release never do.
    fn take_release(&mut self, id: ReleaseId) -> Option<CollectingRow> {
        let ReleaseRow { project, registered_at, state, .. } = self.releases[id as usize];
        self.releases[id as usize].state = None;
        if let Some(state) = state {
            self.by_project.remove(&(project, state, Reverse(registered_at), Reverse(id)));
            self.complete.remove(&(Reverse(registered_at), Reverse(id)));
        }
        if let Some(since) = self.begun_since.remove(&id) {
            self.begun.remove(&(project, since, id));
        }
        let collecting = self.collecting.remove(&id);
        for (key, at) in collecting.iter().flat_map(|row| &row.signed) {
            if self.signed.remove(&(*key, Reverse(*at), id)) {
                self.signed_counts[*key as usize] -= 1;
            }
        }
        collecting
    }

    pub(super) fn set_project(&mut self, path: &RepoPath, facts: &ProjectFacts) {
        let id = self.intern_project(path);
        for key in std::mem::take(&mut self.projects[id as usize].listed) {
            self.listed.remove(&(key, id));
        }
        let listed: Box<[KeyId]> = facts.listed.iter().map(|key| self.intern_key(key)).collect();
        self.listed.extend(listed.iter().map(|key| (*key, id)));
        let row = &mut self.projects[id as usize];
        (row.listed, row.proposed_at) = (listed, facts.proposed_at);
        let name = (reversed_name(path.as_str()), id);
        self.active_names.remove(&name);
        self.pending_names.remove(&name);
        if facts.is_active {
            self.active_names.insert(name);
        } else if facts.proposed_at.is_some() {
            self.pending_names.insert(name);
        }
    }

    /// Packs the large tables tightly, after many insertions.
    pub(super) fn compact(&mut self) {
        repack(&mut self.digests);
        repack(&mut self.by_project);
        repack(&mut self.complete);
        repack(&mut self.signed);
        repack(&mut self.listed);
        self.releases.shrink_to_fit();
        self.release_ids.shrink_to_fit();
    }

    fn intern_project(&mut self, path: &RepoPath) -> ProjectId {
        if let Some(id) = self.project_ids.get(path) {
            return *id;
        }
        let id = next_id(self.projects.len());
        self.project_ids.insert(path.clone(), id);
        self.projects.push(ProjectRow { path: path.clone(), listed: Box::default(), proposed_at: None });
        id
    }

    fn intern_key(&mut self, key: &PublicKey) -> KeyId {
        if let Some(id) = self.key_ids.get(key) {
            return *id;
        }
        let id = next_id(self.signed_counts.len());
        self.key_ids.insert(*key, id);
        self.signed_counts.push(0);
        id
    }
}

/// `https/example.org/443/Acme/App` as `app/acme/443/example.org/https/`: what ends alike then begins alike (D35).
pub(super) fn reversed_name(path: &str) -> String {
    let mut name = String::with_capacity(path.len() + 1);
    for segment in path.rsplit('/') {
        name.push_str(&segment.to_ascii_lowercase());
        name.push('/');
    }
    name
}

fn next_id(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 2^32 releases, projects and keys fit into memory")
}

fn repack<T: Ord>(set: &mut BTreeSet<T>) {
    *set = std::mem::take(set).into_iter().collect();
}
