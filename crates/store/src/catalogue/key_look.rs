//! Questions about keys.

use std::{cmp::Reverse, ops::Bound};

use countersign_api::catalogue::{
    KeyListing, KeyPendingResponse, KeyResponse, KeySignedResponse, ListedRebuilds, ReleaseState,
    SignedRelease, WaitingFile, WaitingKind,
};
use countersign_core::documents::{layout, layout::Signable, signers::has_member};
use countersign_core::rules::{quorum, reproduction::Reproduction, stored};
use countersign_core::rules::{snapshot::ReadError, snapshot::Snapshot};
use countersign_core::values::bounds::{KEY_ENTRIES, LIST_ENTRIES};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::describe::release::RevocationDescription;

use crate::catalogue::describe::{KnownRelease, describe_proposal, explicit_roles, time_of, waits_for};
use crate::catalogue::look::{List, Look, UnknownAfter};
use crate::catalogue::{facts::Seconds, facts::seconds, tables::KeyId, tables::ProjectId, tables::ReleaseId};

/// How many projects of a key are looked through for those that list it no longer: anyone can register many.
const MOST_PROJECTS: usize = 10_000;

/// Something that waits, before it is read.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<'a> {
    /// Strangers can register projects that name any key, so these get the room that all else leaves (D21).
    is_first_registration: bool,
    kind: WaitingKind,
    since: Seconds,
    path: &'a RepoPath,
    project: Option<RepoPath>,
}

impl Look<'_> {
    /// What waits for this key: begun revocations, signers files, releases to sign, of each kind the oldest first, and
    /// releases to build, the newest first.
    pub fn pending_for(&self, key: &PublicKey) -> KeyPendingResponse {
        let mut list = List::of(&self.head);
        let mut more = self.list_revocations(key, &mut list);
        let waiting = self.head.index.waiting_for(key).filter_map(|path| self.candidate(path));
        let (strange, known): (Vec<_>, Vec<_>) = waiting.partition(|it| it.is_first_registration);
        more |= self.list_candidates(known, key, &mut list);
        more |= self.list_unbuilt(key, &mut list);
        more |= self.list_candidates(strange, key, &mut list);
        let mut pending = list.entries;
        let oldest_first = |kind| kind != WaitingKind::Rebuild;
        pending.sort_by_key(|entry| (entry.kind, oldest_first(entry.kind).then_some(entry.since)));
        KeyPendingResponse { public_key: *key, pending, more }
    }

    /// Lists the oldest of these. Gives whether there are more than the list has room for.
    fn list_candidates(
        &self,
        mut candidates: Vec<Candidate<'_>>,
        key: &PublicKey,
        list: &mut List<'_, WaitingFile>,
    ) -> bool {
        let room = LIST_ENTRIES - list.entries.len();
        let mut more = candidates.len() > room;
        if more {
            candidates.select_nth_unstable(room);
            candidates.truncate(room);
        }
        candidates.sort_unstable();
        more |= list.fill(candidates, |reading, candidate| self.read_candidate(reading, &candidate, key));
        more
    }

    /// Begun revocations that this key can join, the oldest first.
    pub fn revocations_for(&self, key: &PublicKey) -> Vec<WaitingFile> {
        let mut list = List::of(&self.head);
        self.list_revocations(key, &mut list);
        list.entries
    }

    /// Releases that this key is asked to build, the newest first.
    pub fn rebuilds_for(&self, key: &PublicKey) -> Vec<WaitingFile> {
        let mut list = List::of(&self.head);
        self.list_unbuilt(key, &mut list);
        list.entries
    }

    /// Describes a key: where it is listed, what it signed last, and which revocations it began or joined.
    pub fn describe_key(&self, key: &PublicKey) -> KeyResponse {
        let id = self.tables.key_id(key);
        let mut listed = List::of(&self.head);
        let listed_more = listed
            .fill(self.listed_projects(id), |reading, (_, project)| describe_listing(reading, project, key));
        listed.entries.sort_by(|a: &KeyListing, b| a.project_id.cmp(&b.project_id));
        KeyResponse {
            public_key: *key,
            listed: listed.entries,
            listed_more,
            formerly: self.list_former(id),
            last_signed_at: self.last_signed(key),
            signed_count: id.map_or(0, |id| self.tables.signed_count(id)),
            signed: self.list_signed(key, id),
            begun: self.list_joined(key, id),
        }
    }

    /// Releases that this key has signed, the newest signature first, down to a time. `after`: the last one that the
    /// caller knows.
    pub fn signed_by(
        &self,
        key: &PublicKey,
        since: Option<Timestamp>,
        after: Option<&RepoPath>,
    ) -> Result<KeySignedResponse, UnknownAfter> {
        let mut list = List::of(&self.head);
        let id = self.tables.key_id(key);
        let mut from = Bound::Included((Reverse(Seconds::MAX), ReleaseId::MIN));
        if let Some(after) = after {
            let unknown = || UnknownAfter(after.clone());
            let (release, _) = self.tables.find_release(after).ok_or_else(unknown)?;
            let at = stored::index_signatures(&list.reading, after).ok().flatten();
            let at = at.and_then(|(_, set)| Some(set.entries.get(key)?.collected_at)).ok_or_else(unknown)?;
            from = Bound::Excluded((Reverse(seconds(at)), release));
        }
        let oldest = since.map_or(Seconds::MIN, seconds);
        let signed = id.into_iter().flat_map(|id| self.signatures_of(id, from));
        let signed = signed.take_while(|(at, _)| *at >= oldest);
        let more =
            list.fill(signed, |reading, (at, release)| self.describe_signed(reading, key, at, release));
        Ok(KeySignedResponse { public_key: *key, signed: list.entries, more })
    }

    /// The time at which this key last signed anything that counts (D140).
    pub fn last_signed(&self, key: &PublicKey) -> Option<Timestamp> {
        self.tables.last_signed(self.tables.key_id(key)?).map(time_of)
    }

    /// Projects that it was a signer of, without those that list it now.
    fn list_former(&self, id: Option<KeyId>) -> Vec<RepoPath> {
        let range = |id| (id, ProjectId::MIN)..=(id, ProjectId::MAX);
        let rotated = id.into_iter().flat_map(|id| self.tables.rotated.range(range(id)));
        let former = rotated.take(MOST_PROJECTS).filter(|pair| !self.tables.listed.contains(pair));
        let former = former.take(LIST_ENTRIES);
        let mut former: Vec<RepoPath> =
            former.map(|(_, project)| self.tables.project(*project).clone()).collect();
        former.sort_unstable();
        former
    }

    /// Gives whether there are more than the list has room for.
    fn list_revocations(&self, key: &PublicKey, list: &mut List<'_, WaitingFile>) -> bool {
        let id = self.tables.key_id(key);
        let mut more = false;
        for (project, path) in self.listed_projects(id) {
            let mut waiting = self
                .begun_in(project)
                .filter(|(_, joined)| id.is_none_or(|id| !joined.contains(&id)))
                .peekable();
            // So that those who cannot revoke make no one read what was begun.
            if waiting.peek().is_none() || !self.may_revoke(path, key) {
                continue;
            }
            more |= list.fill(waiting, |reading, (release, _)| {
                self.known(release).describe_begun(reading, key, |begun| waits_for(begun, key))
            });
        }
        // Of each project they are in order already.
        sort_by_age(&mut list.entries);
        more
    }

    fn may_revoke(&self, project: &RepoPath, key: &PublicKey) -> bool {
        let active = stored::active_signers(&*self.head, project);
        active.is_ok_and(|active| {
            active.is_some_and(|active| has_member(&active.file.revocation_groups(), key))
        })
    }

    fn list_joined(&self, key: &PublicKey, id: Option<KeyId>) -> Vec<WaitingFile> {
        let mut list = List::of(&self.head);
        let begun = self.listed_projects(id).flat_map(|(project, _)| self.begun_in(project));
        let joined = begun.filter(|(_, joined)| id.is_some_and(|id| joined.contains(&id)));
        for (release, _) in joined.take(KEY_ENTRIES) {
            let has_joined = |begun: &RevocationDescription| begun.signatures.entries.contains_key(key);
            list.add(|reading| self.known(release).describe_begun(reading, key, has_joined));
        }
        sort_by_age(&mut list.entries);
        list.entries
    }

    fn list_signed(&self, key: &PublicKey, id: Option<KeyId>) -> Vec<SignedRelease> {
        let mut list = List::of(&self.head);
        let from = Bound::Included((Reverse(Seconds::MAX), ReleaseId::MIN));
        let signed = id.into_iter().flat_map(|id| self.signatures_of(id, from));
        for (at, release) in signed.take(KEY_ENTRIES) {
            list.add(|reading| self.describe_signed(reading, key, at, release));
        }
        list.entries
    }

    /// The signatures of a key, the newest first.
    fn signatures_of(
        &self,
        key: KeyId,
        from: Bound<(Reverse<Seconds>, ReleaseId)>,
    ) -> impl Iterator<Item = (Seconds, ReleaseId)> {
        let from = from.map(|(at, release)| (key, at, release));
        let to = Bound::Included((key, Reverse(Seconds::MIN), ReleaseId::MAX));
        self.tables.signed.range((from, to)).map(|(_, Reverse(at), release)| (*at, *release))
    }

    fn describe_signed(
        &self,
        snapshot: &impl Snapshot,
        key: &PublicKey,
        at: Seconds,
        release: ReleaseId,
    ) -> Result<Option<SignedRelease>, ReadError> {
        let release = self.known(release);
        let Some((state, set)) = stored::index_signatures(snapshot, &release.path)? else { return Ok(None) };
        let signers = stored::signers_copy(snapshot, &release.path)?;
        let decisive = match state {
            ReleaseState::Collecting => false,
            ReleaseState::Complete | ReleaseState::Revoked => {
                let mut others = set.signers();
                others.remove(key);
                !quorum::is_met(signers.file.artifact_groups(), &others)
            }
        };
        let reproduction = Reproduction::read(snapshot, &release.path, &signers)?;
        Ok(Some(SignedRelease {
            index_path: release.path.clone(),
            project_id: release.project.clone(),
            tag: release.tag(),
            state,
            signed_at: time_of(at),
            decisive,
            rebuilds: reproduction.as_ref().map(ListedRebuilds::of),
        }))
    }

    fn listed_projects(&self, id: Option<KeyId>) -> impl Iterator<Item = (ProjectId, &RepoPath)> {
        let range = |id| (id, ProjectId::MIN)..=(id, ProjectId::MAX);
        let listed = id.into_iter().flat_map(move |id| self.tables.listed.range(range(id)));
        listed.map(|(_, project)| (*project, self.tables.project(*project)))
    }

    /// Gives whether there are more than the list has room for.
    fn list_unbuilt(&self, key: &PublicKey, list: &mut List<'_, WaitingFile>) -> bool {
        list.fill(self.unbuilt_by(key), |reading, release| release.describe_unbuilt(reading, key))
    }

    /// The releases that this key is asked to build, in projects that list it now, the newest first: what can never be
    /// reproduced stays asked for.
    fn unbuilt_by(&self, key: &PublicKey) -> impl Iterator<Item = KnownRelease<'_>> {
        let range = |id| (id, Seconds::MIN, ReleaseId::MIN)..=(id, Seconds::MAX, ReleaseId::MAX);
        let id = self.tables.key_id(key);
        let asked = id.into_iter().flat_map(move |id| self.tables.unbuilt.range(range(id)));
        let is_listed = |(key, _, release): &&_| {
            self.tables.listed.contains(&(*key, self.tables.release(*release).project))
        };
        asked.rev().filter(is_listed).map(|(_, _, release)| self.known(*release))
    }

    /// Revocations that wait for more signatures, each with those who have nothing more to do for it.
    fn begun_in(&self, project: ProjectId) -> impl Iterator<Item = (ReleaseId, &[KeyId])> {
        let range = (project, 0, 0)..=(project, Seconds::MAX, ReleaseId::MAX);
        self.tables.begun.range(range).map(|((_, _, release), joined)| (*release, &**joined))
    }

    fn candidate<'a>(&self, path: &'a RepoPath) -> Option<Candidate<'a>> {
        match layout::signable(path)? {
            Signable::Index => Some(Candidate {
                is_first_registration: false,
                kind: WaitingKind::Release,
                since: self.tables.find_release(path)?.1.registered_at,
                path,
                project: None,
            }),
            Signable::PendingSigners { project } => Some(Candidate {
                is_first_registration: !self.head.contains(&layout::active_signers(&project)),
                kind: WaitingKind::Signers,
                since: self.tables.proposed_at(&project)?,
                path,
                project: Some(project),
            }),
        }
    }

    fn read_candidate(
        &self,
        snapshot: &impl Snapshot,
        candidate: &Candidate<'_>,
        key: &PublicKey,
    ) -> Result<Option<WaitingFile>, ReadError> {
        if let Some(project) = &candidate.project {
            return describe_proposal(snapshot, project, key);
        }
        let Some((release, _)) = self.tables.find_release(candidate.path) else { return Ok(None) };
        self.known(release).describe_waiting(snapshot, key)
    }
}

fn sort_by_age(files: &mut [WaitingFile]) {
    files.sort_by(|a, b| (a.since, &a.file_path).cmp(&(b.since, &b.file_path)));
}

/// Describes where a project lists the key. `None` if it no longer does.
fn describe_listing(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    key: &PublicKey,
) -> Result<Option<KeyListing>, ReadError> {
    let active = stored::active_signers(snapshot, project)?;
    let active = active.filter(|active| active.file.names(key));
    Ok(active.map(|active| KeyListing {
        project_id: project.clone(),
        roles: explicit_roles(&active.file, key),
        name: active.file.named_signer(*key).name,
        registrar: active.file.has_registrar(key),
    }))
}
