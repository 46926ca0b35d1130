//! Proposing signers again: the signed request and the file are both stored, and must fit each other.

use std::collections::BTreeSet;

use super::{
    rerun::{Between, Replay, Rerun, refused, unstored_request},
    rotations,
    times::{MIN_EXPIRY, around, end_of},
    violation::{ReplayFault, Violation},
};
use countersign_api::requests::ProposeBody;
use countersign_core::{
    documents::{layout, metadata::Origin, signed_request::SignedRequest},
    rules::{
        decide::{Proposal, register, update},
        snapshot::Snapshot,
        stored::{self, StoredProposal},
    },
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

impl Replay {
    pub(crate) fn register(
        &mut self,
        between: &Between<'_, impl Snapshot>,
        project: &RepoPath,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, time } = *between;
        let stored = load_pending(after, project)?;
        let proposal = self.prove_proposal(project, &stored, time)?;
        let registered = register::register(before, &proposal, MIN_EXPIRY, latest(&proposal, time));
        let (change, _) = registered.map_err(refused(&layout::pending_signers(project)))?;
        let stated = Some(retrieved_at(project, &stored));
        Ok(Rerun { change, evidence: evidence_of(project), stated, outcome: None })
    }

    pub(crate) fn update(
        &mut self,
        between: &Between<'_, impl Snapshot>,
        project: &RepoPath,
        submitter: &PublicKey,
        url: &str,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, time } = *between;
        let stored = load_pending(after, project)?;
        let superseded = layout::superseded_signers(project, &stored.digest());
        let superseded = StoredProposal::load(before, &superseded)?;
        let comes_back =
            superseded.is_some_and(|superseded| superseded.signers_bytes == stored.signers_bytes);
        let proposal = if comes_back {
            // It keeps the request that first asked for it. The one that brought it back is known by the message alone.
            Proposal {
                project: project.clone(),
                signers_bytes: stored.signers_bytes.clone(),
                origin: Origin { url: url.to_owned(), ..stored.metadata.origin.clone() },
                submitter: *submitter,
                request: unstored_request(*submitter),
            }
        } else {
            self.prove_proposal(project, &stored, time)?
        };
        let mut evidence = evidence_of(project);
        let agreed = rotations::time_of_agreement(before, after, project)?.filter(|_| comes_back);
        let now = match &agreed {
            Some((path, agreed)) => {
                evidence.insert(path.clone());
                *agreed
            }
            None => latest(&proposal, time),
        };
        let updated = update::update(before, &proposal, now);
        let (change, _) = updated.map_err(refused(&layout::pending_signers(project)))?;
        let stated = if comes_back { agreed } else { Some(retrieved_at(project, &stored)) };
        Ok(Rerun { change, evidence, stated, outcome: None })
    }

    /// The proposal, if the stored request asks for exactly this.
    fn prove_proposal(
        &mut self,
        project: &RepoPath,
        stored: &StoredProposal,
        commit: Timestamp,
    ) -> Result<Proposal, Violation> {
        let pending = layout::pending_signers(project);
        let path = layout::registration_of(&pending);
        let request = stored::parse_stored(&path, SignedRequest::parse(&stored.registration))?;
        let body = ProposeBody::parse(request.payload.as_bytes());
        let body = body.map_err(|error| Violation::unproven(&path, error))?;
        let origin = stored.metadata.origin.clone();
        if origin.retrieved_at != origin.retrieved_at.to_whole_seconds() {
            return Err(Violation::at(
                &layout::metadata_of(&pending),
                ReplayFault::Fraction(origin.retrieved_at),
            ));
        }
        if body.signers_file_url != origin.url {
            return Err(Violation::unproven(&path, "it asks for a signers file from another URL"));
        }
        // The file was there after the request had been received, had waited for its turn, and had been fetched for.
        self.check_request(&path, &request, around(origin.retrieved_at), commit)?;
        let misplaced = |reason: String| Violation::at(&pending, ReplayFault::Misplaced(reason));
        project.check_storable_dir().map_err(|error| misplaced(error.to_string()))?;
        (self.speaks_for)(&origin, project).map_err(misplaced)?;
        Ok(Proposal {
            project: project.clone(),
            signers_bytes: stored.signers_bytes.clone(),
            origin,
            submitter: body.public_key,
            request,
        })
    }
}

/// The latest that the clock can have shown for the decision: it was taken after the file was fetched, and before the
/// commit was made. The later it is, the more it allows.
fn latest(proposal: &Proposal, commit: Timestamp) -> Timestamp {
    end_of(commit.max(proposal.origin.retrieved_at))
}

fn load_pending(after: &impl Snapshot, project: &RepoPath) -> Result<StoredProposal, Violation> {
    let path = layout::pending_signers(project);
    StoredProposal::load(after, &path)?.ok_or_else(|| Violation::at(&path, ReplayFault::Absent))
}

fn evidence_of(project: &RepoPath) -> BTreeSet<RepoPath> {
    let path = layout::pending_signers(project);
    [layout::metadata_of(&path), layout::registration_of(&path), path].into()
}

fn retrieved_at(project: &RepoPath, stored: &StoredProposal) -> (RepoPath, Timestamp) {
    let path = layout::metadata_of(&layout::pending_signers(project));
    (path, stored.metadata.origin.retrieved_at)
}
