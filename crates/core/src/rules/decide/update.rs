//! Proposing new signers for a registered project (spec §4.2; D13, D15).

use std::collections::BTreeSet;

use thiserror::Error;

use crate::documents::history::{self, Agreement, HistoryEntry};
use crate::documents::signers::{SignersFile, has_member};
use crate::documents::{layout, signed_request::SignedRequest};
use crate::rules::decide::proposal::{Proposal, ProposalFault, Proposed, check_lead, check_submitter};
use crate::rules::decide::statement::find_veto;
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{quorum::Consent, snapshot, stored, stored::ActiveSigners, stored::StoredProposal};
use crate::values::{bounds::HISTORY_BYTES, digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UpdateRefusal {
    #[error(transparent)]
    Fault(#[from] ProposalFault),
    #[error("Project not registered: {0}. Register the repo first with POST /v1/register_repo")]
    NotRegistered(RepoPath),
    #[error("No active signers file for {0}: its registration still waits for signatures")]
    NotActive(RepoPath),
    #[error("Invalid public key: {key} is no signer in the current signers file of {project}")]
    NotListed { key: PublicKey, project: RepoPath },
    #[error("The signers file's timestamp {proposed} must be later than the current one's, {current}")]
    TimestampNotLater { proposed: Timestamp, current: Timestamp },
    #[error(
        "Another signers update of {0} is pending; only a current admin or master key can replace it. \
         Sign the pending one, or ask an admin"
    )]
    OtherPending(RepoPath),
    #[error(
        "A master key proposed or signed the pending signers update of {0}. Until the rotation delay has passed since \
         then, and while it waits to take effect, only a current master key can replace it. Sign it, or ask a master"
    )]
    MastersPending(RepoPath),
    #[error(
        "The masters of {project} have vetoed this signers file: {reason:?}. Propose another one; a new timestamp makes \
         it another"
    )]
    Vetoed { project: RepoPath, reason: String },
    #[error(
        "The signers history of {project} would have up to {bytes} bytes with this signers file, and the limit is \
         {HISTORY_BYTES}: propose a smaller file"
    )]
    HistoryFull { project: RepoPath, bytes: usize },
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// Whether this key may propose anything for this project: asked before the file is fetched.
pub fn check_update(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    submitter: &PublicKey,
) -> Result<ActiveSigners, UpdateRefusal> {
    let Some(active) = stored::active_signers(snapshot, project)? else {
        let is_pending = snapshot.contains(&layout::pending_signers(project));
        let refusal = if is_pending { UpdateRefusal::NotActive } else { UpdateRefusal::NotRegistered };
        return Err(refusal(project.clone()));
    };
    if !active.file.has_signer(submitter) {
        return Err(UpdateRefusal::NotListed { key: *submitter, project: project.clone() });
    }
    Ok(active)
}

pub fn update(
    snapshot: &impl Snapshot,
    proposal: &Proposal,
    now: Timestamp,
) -> Result<(Change, Proposed), UpdateRefusal> {
    let project = &proposal.project;
    check_submitter(&proposal.submitter, &proposal.request.public_key)?;
    let active = check_update(snapshot, project, &proposal.submitter)?;
    let pending_path = layout::pending_signers(project);
    let pending = StoredProposal::load(snapshot, &pending_path)?;
    if let Some(pending) = &pending
        && pending.signers_bytes == proposal.signers_bytes
    {
        return Ok((Change::default(), proposed(project, &active.file, pending)));
    }
    let signers = proposal.parse_signers()?;
    let (later, current) = (signers.timestamp(), active.file.timestamp());
    if later <= current {
        return Err(UpdateRefusal::TimestampNotLater { proposed: later, current });
    }
    check_lead(&signers, now)?;
    if let Some(pending) = &pending {
        check_replace(snapshot, &active, pending, &proposal.submitter, now)?;
    }
    if let Some(veto) = find_veto(snapshot, project, &Sha512::of(&proposal.signers_bytes))? {
        return Err(UpdateRefusal::Vetoed { project: project.clone(), reason: veto.veto });
    }
    let title = if pending.is_some() { snapshot::REPLACE } else { snapshot::PROPOSE };
    let mut change = Change::new(proposal.commit_message(title));
    if let Some(pending) = &pending {
        pending.write_to(&mut change, &layout::superseded_signers(project, &pending.digest()));
    }
    let stored = match take_back_superseded(snapshot, proposal, &mut change)? {
        Some(superseded) => superseded,
        None => proposal.to_stored(signers, Some(Sha512::of(&active.bytes))),
    };
    check_history_room(snapshot, &active, &stored, now)?;
    stored.write_to(&mut change, &pending_path);
    let consent = Consent { current: Some(&active.file), proposed: &stored.signers };
    let signed = stored.signed();
    // One that waited before it was replaced has all consent, and no one could sign it once more.
    if let Some(delay) = consent.delay(&signed).filter(|_| signed.iter().all(|one| consent.is_complete(one)))
    {
        let agreement = Agreement::new(now, delay);
        change.message += &snapshot::due_line(&agreement);
        change.write(layout::agreement_of(&pending_path), agreement.write());
    }
    // What waited beside the replaced file goes with it.
    stored::delete_below(snapshot, &mut change, &layout::pending_dir(project))?;
    Ok((change, proposed(project, &active.file, &stored)))
}

/// Whether the history has room for this proposal with the signatures of everyone who may sign it (D41): whatever is
/// proposed can also take effect.
fn check_history_room(
    snapshot: &impl Snapshot,
    active: &ActiveSigners,
    proposal: &StoredProposal,
    now: Timestamp,
) -> Result<(), UpdateRefusal> {
    let project = &active.project;
    let facts = stored::history_facts(snapshot, project, stored::history_len(snapshot, project))?;
    let consent = Consent { current: Some(&active.file), proposed: &proposal.signers };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (signers, metadata) = (text(&proposal.signers_bytes), text(&proposal.metadata_bytes));
    let largest = HistoryEntry::largest_assembled(signers, metadata, &consent.accepted_signers(), now);
    let bytes = history::grown_len(&facts, largest);
    if bytes <= HISTORY_BYTES {
        return Ok(());
    }
    Err(UpdateRefusal::HistoryFull { project: project.clone(), bytes })
}

/// A proposal that was replaced before comes back with its metadata and signatures (D15).
fn take_back_superseded(
    snapshot: &impl Snapshot,
    proposal: &Proposal,
    change: &mut Change,
) -> Result<Option<StoredProposal>, ReadError> {
    let path = layout::superseded_signers(&proposal.project, &Sha512::of(&proposal.signers_bytes));
    let Some(superseded) = StoredProposal::load(snapshot, &path)? else { return Ok(None) };
    // The directory is named by a short digest: only the bytes say that it is the same file.
    if superseded.signers_bytes != proposal.signers_bytes {
        return Ok(None);
    }
    let dir = path.parent().expect("a superseded file has a directory");
    stored::delete_below(snapshot, change, &dir)?;
    Ok(Some(superseded))
}

/// Whether this key may put another file in the place of the pending one.
fn check_replace(
    snapshot: &impl Snapshot,
    active: &ActiveSigners,
    pending: &StoredProposal,
    submitter: &PublicKey,
    now: Timestamp,
) -> Result<(), UpdateRefusal> {
    let ActiveSigners { project, file, .. } = active;
    if has_member(file.master_groups(), submitter) {
        return Ok(());
    }
    if !has_member(file.admin_groups(), submitter) {
        return Err(UpdateRefusal::OtherPending(project.clone()));
    }
    // Else a thief of one admin key could keep the masters from ever agreeing to anything (D170).
    if is_kept_for_masters(snapshot, active, pending, now)? {
        return Err(UpdateRefusal::MastersPending(project.clone()));
    }
    Ok(())
}

/// Whether only masters may replace the pending file: one of them proposed or signed it, and it waits already, or the delay
/// since then is not over.
fn is_kept_for_masters(
    snapshot: &impl Snapshot,
    active: &ActiveSigners,
    pending: &StoredProposal,
    now: Timestamp,
) -> Result<bool, ReadError> {
    let Some(delay) = active.file.rotation_delay() else { return Ok(false) };
    let pending_path = layout::pending_signers(&active.project);
    let path = layout::registration_of(&pending_path);
    let proposer = stored::parse_stored(&path, SignedRequest::parse(&pending.registration))?.public_key;
    let signed = pending.signatures.entries.iter().map(|(key, one)| (*key, one.collected_at));
    let said = signed.chain([(proposer, pending.metadata.origin.retrieved_at)]);
    let by_masters = said.filter(|(key, _)| has_member(active.file.master_groups(), key));
    let Some(last) = by_masters.map(|(_, said_at)| said_at).max() else { return Ok(false) };
    Ok(now < last.later(delay) || stored::agreement(snapshot, &pending_path)?.is_some())
}

fn proposed(project: &RepoPath, current: &SignersFile, stored: &StoredProposal) -> Proposed {
    let signed: BTreeSet<PublicKey> = stored.signatures.signers();
    let consent = Consent { current: Some(current), proposed: &stored.signers };
    Proposed { project: project.clone(), required_signers: consent.missing_signers(&signed) }
}
