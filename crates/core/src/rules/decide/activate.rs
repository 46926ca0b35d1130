//! Putting signers into effect (D15, D16): at once, or after the delay of those before them (D130–D134).

use thiserror::Error;

use crate::documents::{history::Agreement, history::HistoryEntry, layout, signatures::SignatureSet};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{quorum::Consent, snapshot, stored, stored::StoredProposal};
use crate::values::{path::RepoPath, time::Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ActivateRefusal {
    #[error("no signers file of {0} waits to take effect")]
    NothingWaits(RepoPath),
    #[error("the signers file of {project} that has all consent takes effect at {until}, not before")]
    NotDue { project: RepoPath, until: Timestamp },
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// Puts the pending signers file into effect whose time has come. No one asks for it: the server does it by itself.
pub fn activate_due(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    now: Timestamp,
) -> Result<(Change, ()), ActivateRefusal> {
    let nothing = || ActivateRefusal::NothingWaits(project.clone());
    let path = layout::pending_signers(project);
    let proposal = StoredProposal::load(snapshot, &path)?.ok_or_else(nothing)?;
    let agreement = stored::agreement(snapshot, &path)?.ok_or_else(nothing)?;
    if now < agreement.due_at {
        return Err(ActivateRefusal::NotDue { project: project.clone(), until: agreement.due_at });
    }
    let active = stored::active_signers(snapshot, project)?.ok_or_else(nothing)?;
    let consent = Consent { current: Some(&active.file), proposed: &proposal.signers };
    let signed = proposal.signed();
    let delay = consent.delay(&signed).filter(|_| signed.iter().all(|signed| consent.is_complete(signed)));
    let delay = delay.ok_or_else(|| stored::corrupt(&path, "it waits, and the rules do not let it wait"))?;
    // No client would accept a history that cannot tell the wait.
    if agreement.due_at.ahead_of(agreement.agreed_at).is_none_or(|waited| waited < delay) {
        return Err(stored::corrupt(&path, "the calendar ends before it has waited").into());
    }
    let change =
        Change::new(format!("{} {project}\n\nAgreed: {}\n", snapshot::ACTIVATE, agreement.agreed_at));
    Ok((activate(snapshot, change, &proposal, &Activation { project, now, agreement: Some(agreement) })?, ()))
}

/// The activation of a proposal, and its time.
pub(super) struct Activation<'a> {
    pub project: &'a RepoPath,
    pub now: Timestamp,
    /// The agreement that it has waited with, if it has.
    pub agreement: Option<Agreement>,
}

/// Puts a proposal into effect: history, active files, and every index that still collects (D15, D16).
pub(super) fn activate(
    snapshot: &impl Snapshot,
    mut change: Change,
    proposal: &StoredProposal,
    activation: &Activation<'_>,
) -> Result<Change, ReadError> {
    let Activation { project, now, agreement } = activation;
    let pending = layout::pending_signers(project);
    let text = |path: &RepoPath, bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| stored::corrupt(path, "it is not UTF-8"))
    };
    let entry = HistoryEntry {
        signers_config: text(&pending, &proposal.signers_bytes)?,
        signatures: proposal.signatures.clone(),
        metadata: text(&layout::metadata_of(&pending), &proposal.metadata_bytes)?,
        metadata_signatures: proposal.metadata_signatures.clone(),
        timestamp: now.to_whole_seconds(),
        agreed_at: agreement.map(|agreement| agreement.agreed_at),
    };
    let number = stored::history_len(snapshot, project) + 1;
    change.write(layout::history_entry(project, number), entry.write());

    let active = layout::active_signers(project);
    let metadata = layout::metadata_of(&active);
    change.write(active.clone(), proposal.signers_bytes.clone());
    change.write(layout::registration_of(&active), proposal.registration.clone());
    change.write(layout::signatures_of(&active), proposal.signatures.write());
    change.write(layout::signatures_of(&metadata), proposal.metadata_signatures.write());
    change.write(metadata, proposal.metadata_bytes.clone());
    for dir in [layout::pending_dir(project), layout::superseded_dir(project), layout::vetoed_dir(project)] {
        stored::delete_below(snapshot, &mut change, &dir)?;
    }

    for index in snapshot.collecting_indexes(project) {
        change.write(layout::signers_copy_of(&index), proposal.signers_bytes.clone());
        change.write(layout::pending_signatures_of(&index), SignatureSet::default().write());
        stored::delete_other_formats(snapshot, &mut change, &index);
    }
    Ok(change)
}
