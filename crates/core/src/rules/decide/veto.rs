//! Vetoing a proposed signers file (D135, D136): the masters of the file in force say no.

use crate::documents::statement::{SignedStatement, Veto};
use crate::documents::{layout, layout::Signable, signatures::Collected, signers::keys_of};
use crate::rules::decide::statement::{
    Stated, StatementRefusal, StatementResult, join_pending, read, record_pending, verify,
};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{quorum, snapshot, stored, stored::ActiveSigners, stored::StoredProposal};
use crate::values::{bounds::VETO_RECORDS, digest::Sha512, path::RepoPath, time::Timestamp, wire};

pub fn veto(snapshot: &impl Snapshot, statement: &SignedStatement, now: Timestamp) -> StatementResult {
    let SignedStatement { file_path: file, text, signature, public_key: master, .. } = statement;
    let Some(Signable::PendingSigners { project }) = layout::signable(file) else {
        return Err(StatementRefusal::NotVetoable(file.clone()));
    };
    let proposal = StoredProposal::load(snapshot, file)?;
    let digest = proposal.ok_or_else(|| StatementRefusal::NotFound(file.clone()))?.digest();
    let active = stored::active_signers(snapshot, &project)?;
    let active = active.ok_or_else(|| StatementRefusal::FirstRegistration(project.clone()))?;
    check_document(statement, &active, &digest)?;
    check_master(statement, &active)?;
    if let Some(agreement) = stored::agreement(snapshot, file)?
        && agreement.due_at <= now
    {
        return Err(StatementRefusal::TooLate { file: file.clone(), since: agreement.due_at });
    }
    let masters = active.file.master_groups();
    let mut set = join_pending(snapshot, statement, masters)?.unwrap_or_default();
    set.add(*master, Collected { signature: *signature, collected_at: now.to_whole_seconds() });
    let is_vetoed = quorum::is_met(masters, &set.signers());
    let title = if is_vetoed { snapshot::VETO } else { snapshot::RECORD_VETO };
    let mut change = Change::new(snapshot::message(title, &project, master));
    if is_vetoed {
        let record = layout::veto_record(&project, &digest);
        forget_oldest(snapshot, &mut change, &project)?;
        change.write(layout::signatures_of(&record), set.write());
        change.write(record, text.as_bytes());
        stored::delete_below(snapshot, &mut change, &layout::pending_dir(&project))?;
    } else {
        record_pending(&mut change, statement, &set);
    }
    Ok((change, Stated { in_force: is_vetoed }))
}

/// The veto of a signers file with this digest, if the masters in force have vetoed it (D136).
pub fn find_veto(
    snapshot: &impl Snapshot,
    project: &RepoPath,
    digest: &Sha512,
) -> Result<Option<Veto>, ReadError> {
    let path = layout::veto_record(project, digest);
    snapshot.read(&path)?.map(|bytes| stored::parse_stored(&path, Veto::parse(&bytes))).transpose()
}

fn check_document(
    statement: &SignedStatement,
    active: &ActiveSigners,
    digest: &Sha512,
) -> Result<(), StatementRefusal> {
    let document = read(statement, Veto::parse)?;
    let is_this = document.project_id == active.project
        && document.signers_file_digest == *digest
        && document.previous == Sha512::of(&active.bytes);
    if is_this { Ok(()) } else { Err(StatementRefusal::OtherProposal(statement.file_path.clone())) }
}

fn check_master(statement: &SignedStatement, active: &ActiveSigners) -> Result<(), StatementRefusal> {
    let (project, masters) = (active.project.clone(), active.file.master_groups());
    if masters.is_empty() {
        return Err(StatementRefusal::NoMasters(project));
    }
    verify(statement)?;
    let key = statement.public_key;
    let is_master = keys_of(masters).any(|master| master == key);
    if is_master { Ok(()) } else { Err(StatementRefusal::MayNotVeto { key, project }) }
}

/// What is left of a proposal that the masters vetoed, until the next activation (D136).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VetoRecord {
    /// The time of the last signature.
    pub vetoed_at: Option<Timestamp>,
    /// The path of the veto.
    pub path: RepoPath,
}

/// The records of a project, the oldest first.
pub fn list_records(snapshot: &impl Snapshot, project: &RepoPath) -> Result<Vec<VetoRecord>, ReadError> {
    let files = snapshot.files_below(&layout::vetoed_dir(project))?;
    let mut records = Vec::new();
    for path in files.into_iter().filter(|path| path.file_name() == wire::VETO_FILE) {
        let set = stored::present_signatures(snapshot, &layout::signatures_of(&path))?;
        records.push(VetoRecord { vetoed_at: set.last_signed(), path });
    }
    records.sort();
    Ok(records)
}

/// Leaves room for one more record. What is forgotten can be proposed again, and vetoed again.
fn forget_oldest(snapshot: &impl Snapshot, change: &mut Change, project: &RepoPath) -> Result<(), ReadError> {
    let mut records = list_records(snapshot, project)?;
    let superfluous = (records.len() + 1).saturating_sub(VETO_RECORDS);
    for record in records.drain(..superfluous) {
        change.delete(layout::signatures_of(&record.path));
        change.delete(record.path);
    }
    Ok(())
}
