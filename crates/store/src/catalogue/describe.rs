//! Releases and what waits, as answers tell of them, read from a head.

use std::collections::BTreeSet;

use countersign_api::{
    catalogue::{ListedRelease, ReleaseState, SignatureCount, WaitingFile, WaitingKind},
    objected::ListedObjection,
    signed::{begun_signatures, first_signed, last_signed, read_state},
};
use countersign_core::{
    documents::{
        layout,
        revocation::Revocation,
        signatures::SignatureSet,
        signed_request::SignedRequest,
        signers::{Role, SignersFile, keys_of},
    },
    rules::{
        consent::Consent,
        quorum,
        snapshot::{ReadError, Snapshot},
        stored::{self, ActiveSigners, StoredProposal},
        tally::Tally,
    },
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

use super::facts::Seconds;

/// A release as the tables know it.
pub(super) struct KnownRelease<'a> {
    pub(super) path: RepoPath,
    pub(super) project: &'a RepoPath,
    pub(super) registered_at: Seconds,
}

pub(super) fn time_of(seconds: Seconds) -> Timestamp {
    Timestamp::from_unix_seconds(seconds.into()).expect("a year before 2107")
}

impl KnownRelease<'_> {
    /// The tag of a release on a forge, which its path names (spec §2.1).
    pub(super) fn tag(&self) -> Option<String> {
        layout::tag_of_release(&self.path.parent()?, self.project).map(str::to_owned)
    }

    /// `None` if there is no such release any more.
    pub(super) fn describe(&self, snapshot: &impl Snapshot) -> Result<Option<ListedRelease>, ReadError> {
        let Some((state, set)) = read_state(snapshot, &self.path)? else { return Ok(None) };
        let signers = stored::signers_copy(snapshot, &self.path)?;
        let mut listed = ListedRelease {
            index_path: self.path.clone(),
            project_id: self.project.clone(),
            tag: self.tag(),
            state,
            file_name: None,
            registered_at: time_of(self.registered_at),
            completed_at: None,
            revoked_at: None,
            revocation_reason: None,
            revocation_begun: None,
            signatures: count(Tally::of(signers.file.artifact_groups(), &set.signers())),
            objections: stored::objections(snapshot, &self.path)?.standing().len(),
        };
        match state {
            ReleaseState::Collecting => {}
            ReleaseState::Complete => {
                listed.completed_at = last_signed(&set);
                if let Some(begun) = self.read_begun(snapshot)? {
                    listed.revocation_begun = Some(count(begun.tally()));
                    listed.revocation_reason = Some(begun.document.reason);
                }
            }
            ReleaseState::Revoked => {
                listed.completed_at = last_signed(&set);
                let path = layout::revocation_of(&self.path);
                let document = read_revocation(snapshot, &path)?;
                listed.revocation_reason = document.map(|document| document.reason);
                let set = snapshot.read_signatures(&layout::signatures_of(&path))?;
                listed.revoked_at = set.and_then(|set| last_signed(&set));
            }
        }
        Ok(Some(listed))
    }

    /// A revocation that waits for more signatures.
    pub(super) fn read_begun(&self, snapshot: &impl Snapshot) -> Result<Option<BegunRevocation>, ReadError> {
        let Some(document) = read_revocation(snapshot, &layout::pending_revocation_of(&self.path))? else {
            return Ok(None);
        };
        let active = stored::require_governing_signers(snapshot, &self.path)?;
        let set = begun_signatures(snapshot, &self.path)?;
        Ok(Some(BegunRevocation { document, set, active }))
    }

    pub(super) fn describe_begun(&self, begun: &BegunRevocation, key: &PublicKey) -> WaitingFile {
        let SignatureCount { collected, needed } = count(begun.tally());
        let first =
            begun.set.entries.iter().min_by_key(|(_, collected)| collected.collected_at).map(|(key, _)| *key);
        WaitingFile {
            kind: WaitingKind::Revocation,
            file_path: self.path.clone(),
            project_id: self.project.clone(),
            tag: self.tag(),
            collected,
            needed,
            roles: vec![Role::Revocation],
            since: first_signed(&begun.set).unwrap_or(begun.document.timestamp),
            by: begun.document.initiator.or(first),
            reason: Some(begun.document.reason.clone()),
            objections: Vec::new(),
            waits_until: None,
            completes: quorum::is_met(&begun.active.file.revocation_groups(), &signers_with(&begun.set, key)),
        }
    }

    /// As something that waits for an artifact signer. `None` if it no longer collects signatures.
    pub(super) fn describe_waiting(
        &self,
        snapshot: &impl Snapshot,
        key: &PublicKey,
    ) -> Result<Option<WaitingFile>, ReadError> {
        let Some((ReleaseState::Collecting, set)) = read_state(snapshot, &self.path)? else {
            return Ok(None);
        };
        let signers = stored::signers_copy(snapshot, &self.path)?;
        let tally = Tally::of(signers.file.artifact_groups(), &set.signers());
        Ok(Some(WaitingFile {
            kind: WaitingKind::Release,
            file_path: self.path.clone(),
            project_id: self.project.clone(),
            tag: self.tag(),
            collected: tally.collected,
            needed: tally.needed,
            roles: vec![Role::Artifact],
            since: time_of(self.registered_at),
            by: stored::registrant(snapshot, &self.path)?,
            reason: None,
            objections: ListedObjection::list(snapshot, &self.path)?,
            waits_until: None,
            completes: quorum::is_met(signers.file.artifact_groups(), &signers_with(&set, key)),
        }))
    }
}

pub(super) struct BegunRevocation {
    document: Revocation,
    set: SignatureSet,
    active: ActiveSigners,
}

impl BegunRevocation {
    fn tally(&self) -> Tally {
        Tally::of_revocation(&self.active.file, &self.set.signers())
    }

    /// Whether this key's signature is missing. Once there are enough, any revoker can carry it out (D20).
    pub(super) fn waits_for(&self, key: &PublicKey) -> bool {
        let groups = self.active.file.revocation_groups();
        let is_asked = !self.is_signed_by(key) || quorum::is_met(&groups, &self.set.signers());
        is_asked && keys_of(&groups).any(|listed| listed == *key)
    }

    pub(super) fn is_signed_by(&self, key: &PublicKey) -> bool {
        self.set.entries.contains_key(key)
    }
}

/// A proposed signers file, as something that waits for this key. `None` if it is gone.
pub(super) fn describe_proposal(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    key: &PublicKey,
) -> Result<Option<WaitingFile>, ReadError> {
    let path = layout::pending_signers(project);
    let Some(proposal) = StoredProposal::load(snapshot, &path)? else { return Ok(None) };
    let current = stored::active_signers(snapshot, project)?.map(|active| active.file);
    let consent = Consent { current: current.as_deref(), proposed: &proposal.signers };
    let tally = Tally::of_consent(&consent, &proposal.signatures.signers());
    let request = SignedRequest::parse(&proposal.registration);
    let by = stored::parse_stored(&layout::registration_of(&path), request)?.public_key;
    let agreement = stored::agreement(snapshot, &path)?;
    Ok(Some(WaitingFile {
        kind: WaitingKind::Signers,
        file_path: path,
        project_id: project.clone(),
        tag: None,
        collected: tally.collected,
        needed: tally.needed,
        roles: asked_roles(consent, key),
        since: proposal.metadata.origin.retrieved_at,
        by: Some(by),
        reason: None,
        objections: Vec::new(),
        waits_until: agreement.map(|agreement| agreement.due_at),
        completes: [&proposal.signatures, &proposal.metadata_signatures]
            .into_iter()
            .all(|set| consent.is_complete(&signers_with(set, key))),
    }))
}

/// As admin or master of either file, and as what the proposed file would make of a key that it adds (D15).
fn asked_roles(consent: Consent<'_>, key: &PublicKey) -> Vec<Role> {
    let Some(current) = consent.current else { return explicit_roles(consent.proposed, key) };
    let mut roles = BTreeSet::new();
    for file in [current, consent.proposed] {
        for (role, groups) in [(Role::Admin, file.admin_groups()), (Role::Master, file.master_groups())] {
            if keys_of(groups).any(|listed| listed == *key) {
                roles.insert(role);
            }
        }
    }
    if !current.lists(key) {
        roles.extend(explicit_roles(consent.proposed, key));
    }
    roles.into_iter().collect()
}

/// The roles in which a signers file lists a key.
pub(super) fn explicit_roles(file: &SignersFile, key: &PublicKey) -> Vec<Role> {
    let lists = |role: &Role| {
        file.explicit_groups(*role).is_some_and(|groups| groups.iter().any(|group| group.contains(key)))
    };
    Role::ALL.into_iter().filter(lists).collect()
}

fn signers_with(set: &SignatureSet, key: &PublicKey) -> BTreeSet<PublicKey> {
    let mut signers = set.signers();
    signers.insert(*key);
    signers
}

fn read_revocation(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Revocation>, ReadError> {
    let bytes = snapshot.read(path)?;
    bytes.map(|bytes| stored::parse_stored(path, Revocation::parse(&bytes))).transpose()
}

fn count(Tally { collected, needed }: Tally) -> SignatureCount {
    SignatureCount { collected, needed }
}
