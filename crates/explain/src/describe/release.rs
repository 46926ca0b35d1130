//! A release: its files, who has signed them, who has not, and whether it is revoked.

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::documents::said::{ObjectionsFile, StandingObjection};
use countersign_core::documents::signers::{Signer, SignersFile};
use countersign_core::documents::{
    index::ReleaseIndex, layout, signatures::SignatureSet, signed_request::Withdrawal, statement::Revocation,
};
use countersign_core::rules::reproduction::Reproduction;
use countersign_core::rules::snapshot::{ReadError, Snapshot, StoredSigners};
use countersign_core::rules::{quorum::Tally, stored, stored::ReleaseState};
use countersign_core::values::{
    digest::Sha512, key::PublicKey, other_format::OtherFormat, path::RepoPath, time::Timestamp,
};

use crate::progress::{GroupProgress, Member, Names, describe_groups};
use crate::reproduction::different_text;
use crate::words::Doubts;

/// What a page about a release shows.
#[derive(Debug, Clone)]
pub struct ReleaseDescription {
    pub path: RepoPath,
    pub index: ReleaseIndex,
    /// The digest of the index.
    pub digest: Sha512,
    pub state: ReleaseState,
    pub tally: Tally,
    /// Groups of artifact signers; all must be met.
    pub groups: Vec<GroupProgress>,
    /// The signatures on the index.
    pub signatures: SignatureSet,
    /// The keys whose signature brings it nearer.
    pub missing: BTreeSet<PublicKey>,
    /// What the signers are called under whom it was signed.
    pub names: Names,
    /// The time of the last required signature.
    pub completed_at: Option<Timestamp>,
    /// Whether the signers file under which it was signed is still in force.
    pub has_current_signers: bool,
    pub revocation: Option<RevocationDescription>,
    /// A revocation that waits for more signatures.
    pub begun_revocation: Option<RevocationDescription>,
    /// How many have signed for other programs; only formats in which one has.
    pub formats: Vec<(OtherFormat, usize)>,
    /// The objections that stand, the oldest first.
    pub objections: Vec<ObjectionDescription>,
    /// Objections to contents that it had before, the first that went first.
    pub earlier_objections: Vec<ObjectionDescription>,
    /// How far builders have reproduced it; `None` if no signers file that counts names any.
    pub reproduction: Option<Reproduction>,
}

/// What a line about a release shows.
#[derive(Debug, Clone)]
pub struct ReleaseSummary {
    pub state: ReleaseState,
    pub tally: Tally,
    /// The time of its newest signature.
    pub last_signed_at: Option<Timestamp>,
    /// The signatures on the index.
    pub signatures: SignatureSet,
    /// The signers under whom it is signed (D16).
    pub signers: StoredSigners,
    /// A revocation that waits for more signatures.
    pub begun: Option<RevocationDescription>,
    pub objections: ObjectionsFile,
    /// How far builders have reproduced it; `None` if no signers file that counts names any.
    pub reproduction: Option<Reproduction>,
}

/// A revocation, in force or begun.
#[derive(Debug, Clone)]
pub struct RevocationDescription {
    pub reason: String,
    /// The time, according to the signer who began it.
    pub timestamp: Timestamp,
    /// Who began it, if its document or a signature says so.
    pub initiator: Option<PublicKey>,
    pub tally: Tally,
    pub groups: Vec<GroupProgress>,
    /// The signers who have signed it, in order of time.
    pub signed: Vec<Member>,
    pub signatures: SignatureSet,
    /// The signers who revoke.
    pub signers: Arc<SignersFile>,
}

/// What a signer holds against a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectionDescription {
    pub signer: Signer,
    /// Whether the signers file in force still lists the signer.
    pub is_listed: bool,
    pub text: String,
    /// The time, according to the signer.
    pub timestamp: Timestamp,
    /// Names the content that is meant.
    pub subject_digest: Sha512,
}

/// The withdrawal of a release: who took it back, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithdrawalDescription {
    pub project: RepoPath,
    pub signer: Signer,
    pub reason: String,
    /// The time at which the request was signed.
    pub at: Option<Timestamp>,
    /// Objections to this release and to contents that it had before.
    pub objections: Vec<ObjectionDescription>,
}

impl ReleaseDescription {
    /// What speaks against it, in the words of every verdict (D238).
    pub fn doubts(&self) -> Doubts {
        Doubts {
            begun: self.begun_revocation.as_ref().map(|begun| (begun.tally, begun.reason.clone())),
            different: self.reproduction.as_ref().and_then(different_text),
            objections: self.objections.iter().map(|objection| objection.text.clone()).collect(),
        }
    }
}

/// Describes the release at `path`; `None` if there is no release.
pub fn describe_release(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<ReleaseDescription>, ReadError> {
    let Some(summary) = summarise_release(snapshot, path)? else { return Ok(None) };
    let ReleaseSummary { state, tally, last_signed_at, signatures, signers, begun, objections, reproduction } =
        summary;
    let bytes = stored::require(snapshot, path)?;
    let index = stored::parse_stored(path, ReleaseIndex::parse(&bytes))?;
    let current = stored::signers_in_force(snapshot, path)?;
    let (objections, earlier_objections) = match &current {
        Some(current) => (
            list_objections(&current.file, objections.standing()),
            list_objections(&current.file, stored::earlier_objections(snapshot, path)?.said()),
        ),
        None => (Vec::new(), Vec::new()),
    };
    let formats = stored::other_formats(snapshot, path)?;
    let formats = OtherFormat::ALL.map(|format| (format, formats.count(format))).into_iter();
    let names = Names::of([&*signers.file]);
    let groups = describe_groups(signers.file.artifact_groups(), &signatures, &names);
    // A group that has enough signatures asks its members for nothing more.
    let open = groups.iter().filter(|group| !group.is_met());
    let missing = open.flat_map(GroupProgress::not_signed).map(|member| member.signer.key).collect();
    Ok(Some(ReleaseDescription {
        path: path.clone(),
        digest: Sha512::of(&bytes),
        index,
        state,
        tally,
        groups,
        signatures,
        missing,
        names,
        completed_at: last_signed_at.filter(|_| state != ReleaseState::Collecting),
        has_current_signers: current.is_some_and(|current| current.bytes == signers.bytes),
        revocation: RevocationDescription::in_force(snapshot, path)?,
        begun_revocation: begun,
        formats: formats.filter(|(_, count)| *count > 0).collect(),
        objections,
        earlier_objections,
        reproduction,
    }))
}

/// Reads less than [`describe_release`], for lists. `None` if there is no release at `path`.
pub fn summarise_release(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<ReleaseSummary>, ReadError> {
    let Some((state, signatures)) = stored::index_signatures(snapshot, path)? else { return Ok(None) };
    let signers = stored::signers_copy(snapshot, path)?;
    let mut reproduction = Reproduction::read(snapshot, path, &signers)?;
    if let Some(active) =
        reproduction.is_some().then(|| stored::signers_in_force(snapshot, path)).transpose()?
    {
        reproduction = reproduction.zip(active).map(|(found, active)| found.asked_under(&active.file));
    }
    Ok(Some(ReleaseSummary {
        state,
        tally: Tally::of(signers.file.artifact_groups(), &signatures.signers()),
        last_signed_at: signatures.last_signed(),
        signatures,
        signers,
        begun: RevocationDescription::begun(snapshot, path)?,
        objections: stored::objections(snapshot, path)?,
        reproduction,
    }))
}

/// Describes the withdrawal at `path`; `None` if no release was withdrawn here, or another one is here now.
pub fn describe_withdrawal(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<WithdrawalDescription>, ReadError> {
    let Some(Withdrawal { request, body }) = stored::withdrawal(snapshot, path)? else { return Ok(None) };
    let current = stored::signers_in_force(snapshot, path)?;
    let earlier = stored::earlier_objections(snapshot, path)?;
    Ok(current.map(|current| WithdrawalDescription {
        objections: list_objections(&current.file, earlier.said()),
        signer: Names::of([&*current.file]).signer(request.public_key),
        project: current.project,
        reason: body.reason,
        at: Timestamp::parse(&request.timestamp).ok(),
    }))
}

impl RevocationDescription {
    /// The revocation of the release at `path` that took effect.
    pub fn in_force(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Self>, ReadError> {
        let path = layout::revocation_of(path);
        let Some(document) = snapshot.read_document(&path, Revocation::parse)? else { return Ok(None) };
        let set = stored::present_signatures(snapshot, &layout::signatures_of(&path))?;
        Ok(Some(Self::of(document, set, stored::signers_copy(snapshot, &path)?.file)))
    }

    /// The revocation of the release at `path` that waits for more signatures: those of the signers in force.
    pub fn begun(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Self>, ReadError> {
        let pending = layout::pending_revocation_of(path);
        let Some(document) = snapshot.read_document(&pending, Revocation::parse)? else { return Ok(None) };
        let active = stored::require_signers_in_force(snapshot, path)?;
        Ok(Some(Self::of(document, stored::begun_signatures(snapshot, path)?, active.file)))
    }

    fn of(document: Revocation, signatures: SignatureSet, signers: Arc<SignersFile>) -> Self {
        let names = Names::of([&*signers]);
        let signed = names.list_signed(&signatures);
        Self {
            reason: document.reason,
            timestamp: document.timestamp,
            initiator: document.initiator.or(signed.first().map(|member| member.signer.key)),
            tally: Tally::of_revocation(&signers, &signatures.signers()),
            groups: describe_groups(&signers.revocation_groups(), &signatures, &names),
            signed,
            signatures,
            signers,
        }
    }
}

/// What signers said, in the words of a description. `current` are the signers in force.
pub fn list_objections<'a>(
    current: &SignersFile,
    said: impl IntoIterator<Item = StandingObjection<'a>>,
) -> Vec<ObjectionDescription> {
    let names = Names::of([current]);
    let describe = |objection: StandingObjection<'_>| ObjectionDescription {
        signer: names.signer(objection.key),
        is_listed: current.lists(&objection.key),
        text: objection.text.to_owned(),
        timestamp: objection.timestamp,
        subject_digest: objection.subject_digest,
    };
    said.into_iter().map(describe).collect()
}
