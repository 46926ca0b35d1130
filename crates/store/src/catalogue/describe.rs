//! Releases and what waits, as answers tell of them, read from a head.

use std::collections::BTreeSet;

use countersign_api::catalogue::{
    ListedObjection, ListedRebuilds, ListedRelease, ReleaseState, WaitingFile, WaitingKind,
};
use countersign_core::documents::signers::{Role, SignersFile, has_member};
use countersign_core::documents::{layout, signatures::SignatureSet};
use countersign_core::rules::reproduction::Reproduction;
use countersign_core::rules::{quorum, quorum::Consent, quorum::Tally};
use countersign_core::rules::{snapshot::ReadError, snapshot::Snapshot, stored};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::describe::proposal::summarise_proposal;
use countersign_explain::describe::release::{RevocationDescription, summarise_release};
use countersign_explain::reproduction::list_asked;

use crate::catalogue::facts::Seconds;

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

    /// Describes the release for a list. `None` if there is no such release any more.
    pub(super) fn describe(&self, snapshot: &impl Snapshot) -> Result<Option<ListedRelease>, ReadError> {
        let Some(release) = summarise_release(snapshot, &self.path)? else { return Ok(None) };
        let revoked = RevocationDescription::in_force(snapshot, &self.path)?;
        Ok(Some(ListedRelease {
            index_path: self.path.clone(),
            project_id: self.project.clone(),
            tag: self.tag(),
            state: release.state,
            file_name: None,
            registered_at: time_of(self.registered_at),
            completed_at: release.last_signed_at.filter(|_| release.state != ReleaseState::Collecting),
            revoked_at: revoked.as_ref().and_then(|revoked| revoked.signatures.last_signed()),
            revocation_begun: release.begun.as_ref().map(|begun| begun.tally),
            revocation_reason: revoked.or(release.begun).map(|revocation| revocation.reason),
            signatures: release.tally,
            objections: release.objections.standing().len(),
            rebuilds: release.reproduction.as_ref().map(ListedRebuilds::of),
        }))
    }

    /// Describes the revocation that was begun as something that waits for this key, if it `is_wanted`.
    pub(super) fn describe_begun(
        &self,
        snapshot: &impl Snapshot,
        key: &PublicKey,
        is_wanted: impl FnOnce(&RevocationDescription) -> bool,
    ) -> Result<Option<WaitingFile>, ReadError> {
        let begun = RevocationDescription::begun(snapshot, &self.path)?.filter(is_wanted);
        let Some(begun) = begun else { return Ok(None) };
        let since = begun.signatures.first_signed().unwrap_or(begun.timestamp);
        let signed = signers_with(&begun.signatures, key);
        Ok(Some(WaitingFile {
            by: begun.initiator,
            completes: quorum::is_met(&begun.signers.revocation_groups(), &signed),
            reason: Some(begun.reason),
            ..self.waiting(WaitingKind::Revocation, begun.tally, Role::Revocation, since)
        }))
    }

    /// Describes the release as something that waits for an artifact signer. `None` if it no longer collects
    /// signatures.
    pub(super) fn describe_waiting(
        &self,
        snapshot: &impl Snapshot,
        key: &PublicKey,
    ) -> Result<Option<WaitingFile>, ReadError> {
        let release = summarise_release(snapshot, &self.path)?;
        let release = release.filter(|release| release.state == ReleaseState::Collecting);
        let Some(release) = release else { return Ok(None) };
        let (since, signed) = (time_of(self.registered_at), signers_with(&release.signatures, key));
        Ok(Some(WaitingFile {
            by: stored::registrant(snapshot, &self.path)?,
            objections: ListedObjection::list(&release.objections),
            rebuilds: release.reproduction.as_ref().map(ListedRebuilds::of),
            completes: quorum::is_met(release.signers.file.artifact_groups(), &signed),
            ..self.waiting(WaitingKind::Release, release.tally, Role::Artifact, since)
        }))
    }

    /// Describes the release as something that a builder is asked to build. `None` if it is not, or not any more.
    pub(super) fn describe_unbuilt(
        &self,
        snapshot: &impl Snapshot,
        key: &PublicKey,
    ) -> Result<Option<WaitingFile>, ReadError> {
        let Some(release) = summarise_release(snapshot, &self.path)? else { return Ok(None) };
        let is_asked =
            |found: &Reproduction| release.state != ReleaseState::Revoked && list_asked(found).contains(key);
        let Some(reproduction) = release.reproduction.filter(is_asked) else { return Ok(None) };
        let since = time_of(self.registered_at);
        Ok(Some(WaitingFile {
            by: stored::registrant(snapshot, &self.path)?,
            objections: ListedObjection::list(&release.objections),
            rebuilds: Some(ListedRebuilds::of(&reproduction)),
            completes: reproduction.files.values().all(|agreed| {
                let with_key = agreed.iter().copied().chain([*key]).collect();
                quorum::is_met(reproduction.groups(), &with_key)
            }),
            ..self.waiting(WaitingKind::Rebuild, reproduction.tally, Role::Builder, since)
        }))
    }

    fn waiting(&self, kind: WaitingKind, tally: Tally, role: Role, since: Timestamp) -> WaitingFile {
        let file = WaitingFile::new(kind, self.path.clone(), self.project.clone(), tally, since);
        WaitingFile { tag: self.tag(), roles: vec![role], ..file }
    }
}

/// Whether a revocation lacks this key's signature. Once there are enough, any revoker can carry it out (D20).
pub(super) fn waits_for(begun: &RevocationDescription, key: &PublicKey) -> bool {
    let (groups, signed) = (begun.signers.revocation_groups(), begun.signatures.signers());
    let is_asked = !signed.contains(key) || quorum::is_met(&groups, &signed);
    is_asked && has_member(&groups, key)
}

/// A proposed signers file, as something that waits for this key. `None` if it is gone.
pub(super) fn describe_proposal(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    key: &PublicKey,
) -> Result<Option<WaitingFile>, ReadError> {
    let Some(summary) = summarise_proposal(snapshot, project)? else { return Ok(None) };
    let consent = summary.consent();
    Ok(Some(WaitingFile {
        roles: asked_roles(consent, key),
        by: summary.submitter,
        waits_until: summary.waits_until,
        completes: [&summary.signatures, &summary.metadata_signatures]
            .into_iter()
            .all(|set| consent.is_complete(&signers_with(set, key))),
        ..WaitingFile::new(
            WaitingKind::Signers,
            summary.path.clone(),
            project.clone(),
            summary.tally,
            summary.metadata.origin.retrieved_at,
        )
    }))
}

/// The roles in which a key is asked to sign: as admin or master of either file, and as what the proposed file would
/// make of a key that it adds (D15).
fn asked_roles(consent: Consent<'_>, key: &PublicKey) -> Vec<Role> {
    let Some(current) = consent.current else { return explicit_roles(consent.proposed, key) };
    let mut roles = BTreeSet::new();
    for file in [current, consent.proposed] {
        for (role, groups) in [(Role::Admin, file.admin_groups()), (Role::Master, file.master_groups())] {
            if has_member(groups, key) {
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
    let lists = |role: &Role| file.explicit_groups(*role).is_some_and(|groups| has_member(groups, key));
    Role::ALL.into_iter().filter(lists).collect()
}

fn signers_with(set: &SignatureSet, key: &PublicKey) -> BTreeSet<PublicKey> {
    let mut signers = set.signers();
    signers.insert(*key);
    signers
}
