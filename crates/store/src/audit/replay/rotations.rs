//! Rotations that wait, run again: that they take effect, and that masters veto them.

use std::collections::BTreeSet;

use super::{
    rerun::{Between, Replay, Rerun, compare_outcome, read, read_text, refused, signature_in},
    times::MAX_WAIT,
    violation::{ReplayFault, Violation},
};
use countersign_core::{
    documents::{
        history::EntryFacts,
        layout,
        statement::{SignedStatement, StatementKind},
    },
    rules::{
        decide::{activate::activate_due, veto},
        snapshot::Snapshot,
        stored::{self, StoredProposal},
    },
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

impl Replay {
    pub(crate) fn activate(
        between: &Between<'_, impl Snapshot>,
        project: &RepoPath,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, time } = *between;
        let entry = layout::history_entry(project, stored::history_len(before, project) + 1);
        let recorded = stored::parse_stored(&entry, EntryFacts::parse(&read(after, &entry)?))?.activated_at;
        // After a clock was ahead, the history is ahead of the clock, and the commit alone says when it was done.
        let is_ahead = recorded.ahead_of(time).is_some_and(|lead| lead > MAX_WAIT);
        let now = if is_ahead { time } else { recorded };
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
        let vetoed = veto::veto(before, &statement, collected.collected_at);
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
        super::times::shift(due, -seconds)
    };
    let agreed = agreement.map(|agreement| agreement.due_at).zip(delay).map(earlier);
    Ok(agreed.map(|agreed| (layout::agreement_of(&pending), agreed)))
}
