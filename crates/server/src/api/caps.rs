//! How much may wait or change at a time, so that strangers and single keys cannot fill a repository. The figures are
//! the operator's: they protect the server, and say nothing about which history is a legal one.

use std::{collections::BTreeSet, time::Duration};

use countersign_api::error_code::ErrorCode;
use countersign_core::documents::{layout, signed_request::SignedRequest, signers::keys_of};
use countersign_core::rules::snapshot::{ReadError, Snapshot};
use countersign_core::rules::{decide::proposal::Proposal, stored, stored::StoredProposal};
use countersign_core::values::bounds::{PATH_BYTES, SUPERSEDED_BYTES};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};

use crate::{http::error::ApiError, operate::config::ServiceLimits};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What the journal writes to remove a file, besides its path.
const REMOVAL_BYTES: usize = "D \n".len();
/// Files of a replaced proposal: signers, metadata, signatures of both, the request and the agreement.
const FILES_OF_PROPOSAL: usize = 6;

impl ServiceLimits {
    /// Checks that there is room for one more registration. One that expired, or that this one replaces, takes no room.
    pub fn check_register(
        &self,
        snapshot: &impl Snapshot,
        project: &RepoPath,
        expiry: Duration,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let capped = [
            // The first name, however many groups are inside: its owner can create as many groups as they like.
            (project.owner_dir(), self.registrations_per_owner, "registrations_per_owner"),
            (project.host_dir(), self.registrations_per_host, "registrations_per_host"),
        ];
        for (dir, cap, key) in capped {
            let Some(dir) = dir else { continue };
            let waits = |since: &Timestamp| now.ahead_of(*since).is_none_or(|age| age < expiry);
            let pending = snapshot.pending_registrations(&dir).iter().filter(|since| waits(since)).count();
            if pending >= cap {
                let message = format!(
                    "{pending} registrations below {dir} still wait for signatures: complete one, or ask the operator to drop one \
                     or to raise limits.{key}"
                );
                return Err(ApiError::new(ErrorCode::TooManyRegistrations, message));
            }
        }
        Ok(())
    }

    /// Checks that the project may have new signers again. This is asked before the file is fetched.
    pub fn check_rotations(
        &self,
        snapshot: &impl Snapshot,
        project: &RepoPath,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        // The first entry is the registration. Entries are in order of activation, so the one that is so many before
        // the next says whether all since then came within a day.
        let oldest = stored::history_len(snapshot, project).checked_sub(self.rotations_per_day);
        let Some(oldest) = oldest.filter(|oldest| *oldest > 0) else { return Ok(()) };
        let age = now.ahead_of(stored::entry_facts(snapshot, project, oldest + 1)?.activated_at);
        let wait = age.and_then(|age| DAY.checked_sub(age)).filter(|wait| !wait.is_zero());
        let Some(wait) = wait else { return Ok(()) };
        let (rotations, seconds) = (self.rotations_per_day, wait.as_secs() + 1);
        let message = format!(
            "The signers of {project} were changed {rotations} times within a day: try again in {seconds} seconds"
        );
        Err(ApiError::new(ErrorCode::TooManyRotations, message).retry_after(seconds))
    }

    /// Checks that the project may have one more proposal.
    pub fn check_update(
        &self,
        snapshot: &impl Snapshot,
        proposal: &Proposal,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let project = &proposal.project;
        self.check_rotations(snapshot, project, now)?;
        let Some(pending) = StoredProposal::load(snapshot, &layout::pending_signers(project))? else {
            return Ok(());
        };
        let known = layout::superseded_signers(project, &Sha512::of(&proposal.signers_bytes));
        if pending.signers_bytes == proposal.signers_bytes || snapshot.contains(&known) {
            return Ok(());
        }
        let mut files = snapshot.files_below(&layout::superseded_dir(project))?;
        // New signers remove all of them, each with a line of the journal (D202).
        let removed: usize = files.iter().map(|file| file.as_str().len() + REMOVAL_BYTES).sum();
        let one_more = FILES_OF_PROPOSAL * (PATH_BYTES + REMOVAL_BYTES);
        files.retain(|file| file.file_name() == known.file_name());
        let superseded = files.len();
        if removed + one_more > SUPERSEDED_BYTES {
            let message = format!(
                "{superseded} proposals of {project} were replaced already, with paths so long that one more would leave no room \
                 to change the project's signers: propose one of them again, complete the pending one, or let the masters veto it"
            );
            return Err(ApiError::new(ErrorCode::TooManyProposals, message));
        }
        if superseded < self.superseded_per_project || self.has_share(snapshot, proposal, &files)? {
            return Ok(());
        }
        let message = format!(
            "{superseded} proposals of {project} were replaced already: propose one of them again, complete the pending one, let \
             the masters veto it, or ask the operator to raise limits.superseded_per_project"
        );
        Err(ApiError::new(ErrorCode::TooManyProposals, message))
    }

    /// Whether the submitter has some of its share of the project's proposals left (D171). What one admin proposes does
    /// not keep the others from proposing.
    fn has_share(
        &self,
        snapshot: &impl Snapshot,
        proposal: &Proposal,
        superseded: &[RepoPath],
    ) -> Result<bool, ReadError> {
        let Some(active) = stored::active_signers(snapshot, &proposal.project)? else { return Ok(false) };
        let (admins, masters) = (active.file.admin_groups(), active.file.master_groups());
        let leaders: BTreeSet<PublicKey> = keys_of(admins).chain(keys_of(masters)).collect();
        let share = (self.superseded_per_project / leaders.len().max(1)).max(1);
        let mut own = 0;
        for file in superseded {
            let path = layout::registration_of(file);
            let request = SignedRequest::parse(&stored::require(snapshot, &path)?);
            let proposer = stored::parse_stored(&path, request)?.public_key;
            own += usize::from(proposer == proposal.submitter);
        }
        Ok(leaders.contains(&proposal.submitter) && own < share)
    }
}
