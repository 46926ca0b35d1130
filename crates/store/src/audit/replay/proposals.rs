//! Proposals, rotations that wait, vetoes, withdrawals, objections and rebuilds, run again.

use std::collections::BTreeSet;

use countersign_api::requests::ProposeBody;
use countersign_core::documents::signed_request::{SignedRequest, Withdrawal};
use countersign_core::documents::statement::{SignedStatement, StatementKind};
use countersign_core::documents::{history::EntryFacts, layout, said::Said, signers::SignersOrigin};
use countersign_core::rules::decide::{
    activate::activate_due, proposal::Proposal, rebuild, register, statement, update, withdraw,
};
use countersign_core::rules::{snapshot::Snapshot, stored, stored::StoredProposal};
use countersign_core::values::{key::PublicKey, path::RepoPath, time::Timestamp};

use crate::audit::replay::rerun::{
    Between, Replay, Rerun, accept_forgotten, compare_outcome, read, read_text, refused, signature_in,
    unstored_request,
};
use crate::audit::replay::violation::{MIN_EXPIRY, ReplayFault, Violation, around, end_of};

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
                origin: SignersOrigin { url: url.to_owned(), ..stored.metadata.origin.clone() },
                submitter: *submitter,
                request: unstored_request(*submitter),
            }
        } else {
            self.prove_proposal(project, &stored, time)?
        };
        let mut evidence = evidence_of(project);
        let agreed = time_of_agreement(before, after, project)?.filter(|_| comes_back);
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

// Rotations that wait, run again: that they take effect, and that masters veto them.

impl Replay {
    pub(crate) fn activate(
        between: &Between<'_, impl Snapshot>,
        project: &RepoPath,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, .. } = *between;
        let entry = layout::history_entry(project, stored::history_len(before, project) + 1);
        let now = stored::parse_stored(&entry, EntryFacts::parse(&read(after, &entry)?))?.activated_at;
        let activated = activate_due(before, project, now);
        let (change, ()) = activated.map_err(refused(&layout::pending_signers(project)))?;
        Ok(Rerun { change, evidence: [entry.clone()].into(), stated: Some((entry, now)), outcome: None })
    }

    pub(crate) fn veto(
        between: &Between<'_, impl Snapshot>,
        project: &RepoPath,
        master: &PublicKey,
        completes: bool,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, .. } = *between;
        let file = layout::pending_signers(project);
        let proposal = StoredProposal::load(before, &file)?;
        let digest = proposal.ok_or_else(|| Violation::at(&file, ReplayFault::Absent))?.digest();
        let (document, set) = if completes {
            let record = layout::veto_record(project, &digest);
            (record.clone(), layout::signatures_of(&record))
        } else {
            (layout::pending_veto_of(&file), layout::pending_signatures_of(&layout::veto_of(&file)))
        };
        let text = read_text(after, &document)?;
        let collected = signature_in(after, &set, master)?;
        let (signature, public_key) = (collected.signature, *master);
        let kind = StatementKind::Veto;
        let statement = SignedStatement { kind, file_path: file, text, signature, public_key };
        let vetoed = statement::veto(before, &statement, collected.collected_at);
        let (change, outcome) = vetoed.map_err(refused(&statement.file_path))?;
        Ok(Rerun {
            change,
            evidence: BTreeSet::from([document, set.clone()]),
            stated: Some((set.clone(), collected.collected_at)),
            outcome: compare_outcome(&set, completes, outcome.in_force),
        })
    }
}

/// The time, and the file that states it, at which a proposal came back that then waits, as the commit stored it.
pub(super) fn time_of_agreement(
    before: &impl Snapshot,
    after: &impl Snapshot,
    project: &RepoPath,
) -> Result<Option<(RepoPath, Timestamp)>, Violation> {
    let pending = layout::pending_signers(project);
    let agreement = stored::agreement(after, &pending)?;
    let delay = stored::active_signers(before, project)?.and_then(|active| active.file.rotation_delay());
    let earlier = |(due, delay): (Timestamp, std::time::Duration)| {
        let seconds = i64::try_from(delay.as_secs()).unwrap_or(i64::MAX);
        crate::audit::replay::violation::shift(due, -seconds)
    };
    let agreed = agreement.map(|agreement| agreement.due_at).zip(delay).map(earlier);
    Ok(agreed.map(|agreed| (layout::agreement_of(&pending), agreed)))
}

// Withdrawals and objections again.

impl Replay {
    /// The commit stores the request, which says all.
    pub(crate) fn withdraw(
        &mut self,
        between: &Between<'_, impl Snapshot>,
        index: &RepoPath,
        caller: &PublicKey,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, time } = *between;
        let path = layout::withdrawal_of(index);
        let withdrawal = stored::parse_stored(&path, Withdrawal::parse(&read(after, &path)?))?;
        if withdrawal.body.file_path != *index || withdrawal.request.public_key != *caller {
            return Err(Violation::unproven(&path, "it asks for another withdrawal, or in another's name"));
        }
        self.check_request(&path, &withdrawal.request, around(time), time)?;
        let (mut change, ()) = withdraw::repeat_withdrawal(before, &withdrawal).map_err(refused(index))?;
        accept_forgotten(&mut change, between, index)?;
        Ok(Rerun { change, evidence: [path].into(), stated: None, outcome: None })
    }

    pub(crate) fn object(
        between: &Between<'_, impl Snapshot>,
        index: &RepoPath,
        objector: &PublicKey,
    ) -> Result<Rerun, Violation> {
        let entry = stored::objections(between.after, index)?.entries.remove(objector);
        restate(StatementKind::Objection, entry, index, objector, |statement, now| {
            statement::object(between.before, statement, now)
        })
    }

    pub(crate) fn rebuild(
        between: &Between<'_, impl Snapshot>,
        index: &RepoPath,
        builder: &PublicKey,
    ) -> Result<Rerun, Violation> {
        let entry = stored::rebuilds(between.after, index)?.entries.remove(builder);
        restate(StatementKind::Rebuild, entry, index, builder, |statement, now| {
            rebuild::rebuild(between.before, statement, now)
        })
    }
}

/// Runs a statement again that is kept by its author. The message says whether it stands, or is the same, and is
/// compared.
fn restate<D>(
    kind: StatementKind,
    said: Option<Said<D>>,
    index: &RepoPath,
    author: &PublicKey,
    decide: impl FnOnce(&SignedStatement, Timestamp) -> statement::StatementResult,
) -> Result<Rerun, Violation> {
    let path = kind.path_of(index);
    let said = said.ok_or_else(|| Violation::at(&path, ReplayFault::NoSignature(*author)))?;
    let Said { text, signature, collected_at, document: _ } = said;
    let statement = SignedStatement { kind, file_path: index.clone(), text, signature, public_key: *author };
    let (change, _) = decide(&statement, collected_at).map_err(refused(index))?;
    Ok(Rerun { change, evidence: [path.clone()].into(), stated: Some((path, collected_at)), outcome: None })
}
