//! The tables of the catalogue. They hold no text but paths, and names of keys, projects and releases as numbers: with
//! hundreds of thousands of releases, that is what fills the memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::{cmp::Reverse, hash::BuildHasher as _, hash::RandomState};

use countersign_api::catalogue::ReleaseState;
use countersign_core::values::{key::PublicKey, path::RepoPath, wire};
use smol_str::SmolStr;

use crate::catalogue::facts::{ProjectFacts, ReleaseFacts, Seconds};

pub(super) type ReleaseId = u32;
pub(super) type ProjectId = u32;
pub(super) type KeyId = u32;

#[derive(Default)]
pub(super) struct Tables {
    releases: Vec<ReleaseRow>,
    /// Releases by a hash of the path of the index.
    release_ids: BTreeSet<(u64, ReleaseId)>,
    path_hasher: RandomState,
    projects: Vec<ProjectRow>,
    project_ids: HashMap<RepoPath, ProjectId>,
    key_ids: HashMap<PublicKey, KeyId>,
    /// How many releases each key has signed.
    signed_counts: Vec<u32>,
    /// The time at which each key last signed a signers file that took effect, or a revocation in force; 0 if never.
    /// Neither ever goes away.
    last_acts: Vec<Seconds>,
    /// Who signed a signers file of a project that took effect.
    pub(super) rotated: BTreeSet<(KeyId, ProjectId)>,
    /// Complete and revoked releases by the digests of their files, the oldest first.
    pub(super) digests: BTreeSet<(u64, Seconds, ReleaseId)>,
    /// Releases by project and state, the newest first.
    pub(super) by_project: BTreeSet<(ProjectId, ReleaseState, Reverse<Seconds>, Reverse<ReleaseId>)>,
    /// Who has signed what, the newest signature first.
    pub(super) signed: BTreeSet<(KeyId, Reverse<Seconds>, ReleaseId)>,
    /// Who has signed what still collects signatures: these can be dropped.
    collecting: HashMap<ReleaseId, Box<[(KeyId, Seconds)]>>,
    /// Revocations that wait for more signatures, the oldest first, with those who have nothing more to do.
    pub(super) begun: BTreeMap<(ProjectId, Seconds, ReleaseId), Box<[KeyId]>>,
    begun_since: HashMap<ReleaseId, Seconds>,
    /// Builders, with the releases that they are asked to build, the oldest first.
    pub(super) unbuilt: BTreeSet<(KeyId, Seconds, ReleaseId)>,
    asked_builders: HashMap<ReleaseId, Box<[KeyId]>>,
    /// Projects whose signers files in force list a key.
    pub(super) listed: BTreeSet<(KeyId, ProjectId)>,
    /// Projects by their names in small letters, the last name first: those with signers in force here, the others
    /// below.
    pub(super) active_names: BTreeSet<(String, ProjectId)>,
    pub(super) pending_names: BTreeSet<(String, ProjectId)>,
    /// Present only while the tables are made.
    bulk: Option<Bulk>,
}

/// Rows of the large tables, to be sorted once: tables that grow row by row would leave gaps in memory.
#[derive(Default)]
struct Bulk {
    release_ids: Vec<(u64, ReleaseId)>,
    digests: Vec<(u64, Seconds, ReleaseId)>,
    by_project: Vec<(ProjectId, ReleaseState, Reverse<Seconds>, Reverse<ReleaseId>)>,
    signed: Vec<(KeyId, Reverse<Seconds>, ReleaseId)>,
}

pub(super) struct ReleaseRow {
    /// What stands between the project and the name of the index. Short ones take no further memory.
    tail: SmolStr,
    pub(super) project: ProjectId,
    pub(super) registered_at: Seconds,
    /// The state of the release; `None` for one that is gone.
    pub(super) state: Option<ReleaseState>,
}

struct ProjectRow {
    path: RepoPath,
    listed: Box<[KeyId]>,
    proposed_at: Option<Seconds>,
    /// How many entries of its history were read.
    history_len: usize,
}

impl ReleaseRow {
    /// The directory of the release, below that of its project.
    pub(super) fn dir(&self) -> &str {
        self.tail.trim_end_matches('/')
    }
}

impl Tables {
    pub(super) fn release(&self, id: ReleaseId) -> &ReleaseRow {
        &self.releases[id as usize]
    }

    pub(super) fn find_release(&self, path: &RepoPath) -> Option<(ReleaseId, &ReleaseRow)> {
        let hash = self.path_hasher.hash_one(path.as_str());
        let mut alike = self.release_ids.range((hash, ReleaseId::MIN)..=(hash, ReleaseId::MAX));
        let (_, id) = alike.find(|(_, id)| self.path_text(*id) == path.as_str())?;
        Some((*id, self.release(*id)))
    }

    /// The path of the index of a release.
    pub(super) fn path_of(&self, id: ReleaseId) -> RepoPath {
        RepoPath::parse(&self.path_text(id)).expect("it was a path before it was taken apart")
    }

    fn path_text(&self, id: ReleaseId) -> String {
        let row = self.release(id);
        format!("{}{}{}", self.project(row.project), row.tail, wire::INDEX_FILE)
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

    /// How many entries of this project's history are in the tables.
    pub(super) fn history_len(&self, project: &RepoPath) -> usize {
        self.project_id(project).map_or(0, |id| self.projects[id as usize].history_len)
    }

    /// The time at which a key last signed anything that counts (D140).
    pub(super) fn last_signed(&self, key: KeyId) -> Option<Seconds> {
        let newest = (key, Reverse(Seconds::MAX), ReleaseId::MIN);
        let release = self.signed.range(newest..).next().filter(|(signer, _, _)| *signer == key);
        let acted = Some(self.last_acts[key as usize]).filter(|at| *at > 0);
        release.map(|(_, Reverse(at), _)| *at).max(acted)
    }

    pub(super) fn signed_count(&self, key: KeyId) -> usize {
        self.signed_counts[key as usize] as usize
    }

    /// Whether a revocation of this release waits for more signatures.
    pub(super) fn is_begun(&self, release: ReleaseId) -> bool {
        self.begun_since.contains_key(&release)
    }

    /// The releases of a project whose revocation was begun.
    pub(super) fn begun_in(&self, project: &RepoPath) -> impl Iterator<Item = RepoPath> {
        let id = self.project_id(project);
        let begun = id.map(|id| self.begun.range((id, 0, 0)..=(id, Seconds::MAX, ReleaseId::MAX)));
        begun.into_iter().flatten().map(|((_, _, release), _)| self.path_of(*release))
    }

    pub(super) fn set_release(&mut self, path: &RepoPath, facts: Option<ReleaseFacts>) {
        // While they are made, each release comes once.
        let known = if self.bulk.is_some() { None } else { self.find_release(path).map(|(id, _)| id) };
        if let Some(id) = known {
            self.take_release(id);
        }
        let Some(facts) = facts else { return };
        let project = self.intern_project(&facts.project);
        let row = ReleaseRow {
            tail: facts.tail.clone(),
            project,
            registered_at: facts.registered_at,
            state: Some(facts.state),
        };
        let id = match known {
            Some(id) => {
                self.releases[id as usize] = row;
                id
            }
            None => self.add_release(path, row),
        };
        let digests = facts.digests.iter().map(|digest| (*digest, facts.registered_at, id));
        let listed = (project, facts.state, Reverse(facts.registered_at), Reverse(id));
        match &mut self.bulk {
            Some(bulk) => {
                bulk.digests.extend(digests);
                bulk.by_project.push(listed);
            }
            None => {
                self.digests.extend(digests);
                self.by_project.insert(listed);
            }
        }
        if let Some(begun) = &facts.begun {
            let joined = begun.joined.iter().map(|key| self.intern_key(key)).collect();
            self.begun.insert((project, begun.since, id), joined);
            self.begun_since.insert(id, begun.since);
        }
        if !facts.unbuilt.is_empty() {
            let asked: Box<[_]> = facts.unbuilt.iter().map(|key| self.intern_key(key)).collect();
            self.unbuilt.extend(asked.iter().map(|key| (*key, facts.registered_at, id)));
            self.asked_builders.insert(id, asked);
        }
        for (key, at) in &facts.revoked_by {
            self.note_act(key, *at);
        }
        let signed: Box<[_]> = facts.signed.iter().map(|(key, at)| (self.intern_key(key), *at)).collect();
        for (key, at) in &signed {
            self.note_signed(*key, *at, id);
        }
        if facts.state == ReleaseState::Collecting {
            self.collecting.insert(id, signed);
        }
    }

    fn add_release(&mut self, path: &RepoPath, row: ReleaseRow) -> ReleaseId {
        let id = next_id(self.releases.len());
        let named = (self.path_hasher.hash_one(path.as_str()), id);
        match &mut self.bulk {
            Some(bulk) => bulk.release_ids.push(named),
            None => drop(self.release_ids.insert(named)),
        }
        self.releases.push(row);
        id
    }

    fn note_signed(&mut self, key: KeyId, at: Seconds, release: ReleaseId) {
        let row = (key, Reverse(at), release);
        let is_new = match &mut self.bulk {
            Some(bulk) => {
                bulk.signed.push(row);
                true
            }
            None => self.signed.insert(row),
        };
        self.signed_counts[key as usize] += u32::from(is_new);
    }

    /// Takes out what may change. The digests and signatures of a complete release never do.
    fn take_release(&mut self, id: ReleaseId) {
        let ReleaseRow { project, registered_at, state, tail: _ } = &self.releases[id as usize];
        let (project, registered_at, state) = (*project, *registered_at, *state);
        self.releases[id as usize].state = None;
        if let Some(state) = state {
            self.by_project.remove(&(project, state, Reverse(registered_at), Reverse(id)));
        }
        if let Some(since) = self.begun_since.remove(&id) {
            self.begun.remove(&(project, since, id));
        }
        for key in self.asked_builders.remove(&id).unwrap_or_default() {
            self.unbuilt.remove(&(key, registered_at, id));
        }
        for (key, at) in self.collecting.remove(&id).unwrap_or_default() {
            if self.signed.remove(&(key, Reverse(at), id)) {
                self.signed_counts[key as usize] -= 1;
            }
        }
    }

    pub(super) fn set_project(&mut self, path: &RepoPath, facts: &ProjectFacts) {
        let id = self.intern_project(path);
        for key in std::mem::take(&mut self.projects[id as usize].listed) {
            self.listed.remove(&(key, id));
        }
        let listed: Box<[KeyId]> = facts.listed.iter().map(|key| self.intern_key(key)).collect();
        self.listed.extend(listed.iter().map(|key| (*key, id)));
        for (key, at) in &facts.rotated_by {
            let key = self.note_act(key, *at);
            self.rotated.insert((key, id));
        }
        let row = &mut self.projects[id as usize];
        (row.listed, row.proposed_at) = (listed, facts.proposed_at);
        row.history_len = row.history_len.max(facts.history_len);
        let name = (reversed_name(path.as_str()), id);
        self.active_names.remove(&name);
        self.pending_names.remove(&name);
        if facts.is_active {
            self.active_names.insert(name);
        } else if facts.proposed_at.is_some() {
            self.pending_names.insert(name);
        }
    }

    /// Empty tables, to be filled with everything and then finished.
    pub(super) fn making() -> Self {
        Self { bulk: Some(Bulk::default()), ..Self::default() }
    }

    pub(super) fn finish(&mut self) {
        let Some(bulk) = self.bulk.take() else { return };
        self.release_ids = bulk.release_ids.into_iter().collect();
        self.digests = bulk.digests.into_iter().collect();
        self.by_project = bulk.by_project.into_iter().collect();
        self.signed = bulk.signed.into_iter().collect();
        self.releases.shrink_to_fit();
    }

    fn intern_project(&mut self, path: &RepoPath) -> ProjectId {
        if let Some(id) = self.project_ids.get(path) {
            return *id;
        }
        let id = next_id(self.projects.len());
        self.project_ids.insert(path.clone(), id);
        self.projects.push(ProjectRow {
            path: path.clone(),
            listed: Box::default(),
            proposed_at: None,
            history_len: 0,
        });
        id
    }

    fn note_act(&mut self, key: &PublicKey, at: Seconds) -> KeyId {
        let id = self.intern_key(key);
        let last = &mut self.last_acts[id as usize];
        *last = (*last).max(at);
        id
    }

    fn intern_key(&mut self, key: &PublicKey) -> KeyId {
        if let Some(id) = self.key_ids.get(key) {
            return *id;
        }
        let id = next_id(self.signed_counts.len());
        self.key_ids.insert(*key, id);
        self.signed_counts.push(0);
        self.last_acts.push(0);
        id
    }
}

/// The name in reverse, `https/example.org/443/Acme/App` as `app/acme/443/example.org/https/`: what ends alike then
/// begins alike (D35).
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
