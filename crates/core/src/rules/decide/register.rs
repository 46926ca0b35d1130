//! Registering a project (spec §4.1; D13–D15, D35).

use std::{collections::BTreeSet, time::Duration};

use thiserror::Error;

use crate::documents::{layout, layout::FORMAT, layout::RepositoryMarker};
use crate::rules::decide::proposal::{Proposal, ProposalFault, Proposed, check_lead, check_submitter};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{quorum::Consent, snapshot, stored, stored::StoredProposal};
use crate::values::{key::PublicKey, path::RepoPath, time::Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RegisterRefusal {
    #[error(transparent)]
    Fault(#[from] ProposalFault),
    #[error("Project already registered: {0}")]
    AlreadyRegistered(RepoPath),
    #[error("Registration already in progress for project {0}: collect its signatures")]
    InProgress(RepoPath),
    #[error("The project {project} overlaps with the project {other}: projects do not nest")]
    Overlaps { project: RepoPath, other: RepoPath },
    #[error("Invalid public key: {0} is no signer in the signers file")]
    NotListed(PublicKey),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// Whether the project could be registered now: asked before its signers file is fetched.
pub fn check_register(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    expiry: Duration,
    now: Timestamp,
) -> Result<(), RegisterRefusal> {
    let others = snapshot.projects_overlapping(project);
    if let Some(other) = others.into_iter().find(|other| other != project) {
        return Err(RegisterRefusal::Overlaps { project: project.clone(), other });
    }
    if snapshot.contains(&layout::active_signers(project)) {
        return Err(RegisterRefusal::AlreadyRegistered(project.clone()));
    }
    match StoredProposal::load(snapshot, &layout::pending_signers(project))? {
        Some(pending) if !has_expired(&pending, expiry, now) => {
            Err(RegisterRefusal::InProgress(project.clone()))
        }
        Some(_) | None => Ok(()),
    }
}

pub fn register(
    snapshot: &impl Snapshot,
    proposal: &Proposal,
    expiry: Duration,
    now: Timestamp,
) -> Result<(Change, Proposed), RegisterRefusal> {
    let project = &proposal.project;
    check_submitter(&proposal.submitter, &proposal.request.public_key)?;
    check_register(snapshot, project, expiry, now)?;
    let signers = proposal.parse_signers()?;
    if !signers.has_signer(&proposal.submitter) {
        return Err(RegisterRefusal::NotListed(proposal.submitter));
    }
    check_lead(&signers, now)?;
    let consent = Consent { current: None, proposed: &signers };
    let required_signers = consent.missing_signers(&BTreeSet::new());
    let mut change = Change::new(proposal.commit_message(snapshot::REGISTER));
    proposal.to_stored(signers, None).write_to(&mut change, &layout::pending_signers(project));
    // Whatever an expired registration left beside these files goes with it.
    stored::delete_below(snapshot, &mut change, &layout::pending_dir(project))?;
    Ok((change, Proposed { project: project.clone(), required_signers }))
}

/// A registration that was not completed in time no longer blocks others (D15).
fn has_expired(pending: &StoredProposal, expiry: Duration, now: Timestamp) -> bool {
    now.ahead_of(pending.metadata.origin.retrieved_at).is_some_and(|age| age >= expiry)
}

// The first commit of every repository: its format marker (D38).

pub fn create(now: Timestamp) -> Change {
    let mut change = Change::new(format!("{}\n", snapshot::CREATE));
    let marker = RepositoryMarker { format: FORMAT, created_at: now.to_whole_seconds() };
    change.write(RepositoryMarker::path(), marker.write());
    change
}
