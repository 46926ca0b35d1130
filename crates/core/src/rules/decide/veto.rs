//! Vetoing a proposed signers file (D135, D136): the masters of the file in force say no.

use thiserror::Error;

use super::titles;
use crate::{
    documents::{
        layout::{self, Signable},
        signatures::{Collected, SignatureSet},
        signers::keys_of,
        veto::Veto,
    },
    rules::{
        quorum,
        snapshot::{Change, ReadError, Snapshot},
        stored::{self, ActiveSigners, StoredProposal},
    },
    values::{
        bounds::VETO_RECORDS,
        digest::Sha512,
        json::ParseError,
        key::{PublicKey, Signature},
        path::RepoPath,
        time::Timestamp,
        wire,
    },
};

#[derive(Debug, Clone)]
pub struct VetoRequest {
    /// The pending signers file.
    pub file: RepoPath,
    /// The exact text of the veto.
    pub veto_json: String,
    pub signature: Signature,
    pub master: PublicKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VetoOutcome {
    /// Whether the file is vetoed. Otherwise more signatures are needed.
    pub is_vetoed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VetoRefusal {
    #[error("{0} cannot be vetoed; only pending signers files can")]
    NotVetoable(RepoPath),
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error(
        "{0} has no signers in force, and a first registration cannot be vetoed. Its keys can leave it unsigned"
    )]
    FirstRegistration(RepoPath),
    #[error(
        "Veto authorization failed: the signers file in force of {0} has no master_keys, and only masters can veto. \
         An admin can replace the pending file with another one"
    )]
    NoMasters(RepoPath),
    #[error("Invalid veto: {0}")]
    InvalidDocument(ParseError),
    #[error(
        "The veto is not about {0}: its project_id, signers_file_digest or previous names something else"
    )]
    OtherProposal(RepoPath),
    #[error("Veto authorization failed: the signature does not verify")]
    BadSignature,
    #[error("Veto authorization failed: {key} is not a master key of {project}")]
    NotAuthorised { key: PublicKey, project: RepoPath },
    #[error("Too late: {file} was due at {since}. Propose other signers")]
    TooLate { file: RepoPath, since: Timestamp },
    #[error("Another veto of {file} is pending, for the reason {reason:?} ({digest}): join that one")]
    OtherPending { file: RepoPath, reason: String, digest: String },
    #[error("Signature already collected for the key {0}")]
    AlreadySigned(PublicKey),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

pub fn veto(
    snapshot: &impl Snapshot,
    request: &VetoRequest,
    now: Timestamp,
) -> Result<(Change, VetoOutcome), VetoRefusal> {
    let file = &request.file;
    let Some(Signable::PendingSigners { project }) = layout::signable(file) else {
        return Err(VetoRefusal::NotVetoable(file.clone()));
    };
    let proposal = StoredProposal::load(snapshot, file)?;
    let digest = proposal.ok_or_else(|| VetoRefusal::NotFound(file.clone()))?.digest();
    let active = stored::active_signers(snapshot, &project)?;
    let active = active.ok_or_else(|| VetoRefusal::FirstRegistration(project.clone()))?;
    check_document(request, &active, &digest)?;
    check_master(request, &active)?;
    if let Some(agreement) = stored::agreement(snapshot, file)?
        && agreement.due_at <= now
    {
        return Err(VetoRefusal::TooLate { file: file.clone(), since: agreement.due_at });
    }
    let mut set = join_pending(snapshot, request)?;
    let (signature, collected_at) = (request.signature, now.to_whole_seconds());
    set.add(request.master, Collected { signature, collected_at });
    let is_vetoed = quorum::is_met(active.file.master_groups(), &set.signers());
    let title = if is_vetoed { titles::VETO } else { titles::RECORD_VETO };
    let mut change = Change::new(titles::message(title, &project, &request.master));
    if is_vetoed {
        let record = layout::veto_record(&project, &digest);
        forget_oldest(snapshot, &mut change, &project)?;
        change.write(layout::signatures_of(&record), set.write());
        change.write(record, request.veto_json.as_bytes());
        stored::delete_below(snapshot, &mut change, &layout::pending_dir(&project))?;
    } else {
        change.write(layout::pending_veto_of(file), request.veto_json.as_bytes());
        change.write(layout::pending_signatures_of(&layout::veto_of(file)), set.write());
    }
    Ok((change, VetoOutcome { is_vetoed }))
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

fn check_document(request: &VetoRequest, active: &ActiveSigners, digest: &Sha512) -> Result<(), VetoRefusal> {
    let document = Veto::parse(request.veto_json.as_bytes()).map_err(VetoRefusal::InvalidDocument)?;
    let is_this = document.project_id == active.project
        && document.signers_file_digest == *digest
        && document.previous == Sha512::of(&active.bytes);
    if is_this { Ok(()) } else { Err(VetoRefusal::OtherProposal(request.file.clone())) }
}

fn check_master(request: &VetoRequest, active: &ActiveSigners) -> Result<(), VetoRefusal> {
    let (project, masters) = (active.project.clone(), active.file.master_groups());
    if masters.is_empty() {
        return Err(VetoRefusal::NoMasters(project));
    }
    request
        .master
        .verify(&Sha512::of(request.veto_json.as_bytes()), &request.signature)
        .map_err(|_| VetoRefusal::BadSignature)?;
    let is_master = keys_of(masters).any(|key| key == request.master);
    if is_master { Ok(()) } else { Err(VetoRefusal::NotAuthorised { key: request.master, project }) }
}

/// The signatures that this one joins: none, or those on the same text. The first fixes it.
fn join_pending(snapshot: &impl Snapshot, request: &VetoRequest) -> Result<SignatureSet, VetoRefusal> {
    let (file, path) = (&request.file, layout::pending_veto_of(&request.file));
    let Some(pending) = snapshot.read(&path)? else { return Ok(SignatureSet::default()) };
    if *pending != *request.veto_json.as_bytes() {
        let reason = stored::parse_stored(&path, Veto::parse(&pending))?.veto;
        let digest = Sha512::of(&pending).to_prefixed();
        return Err(VetoRefusal::OtherPending { file: file.clone(), reason, digest });
    }
    let set = stored::collected_signatures(snapshot, &layout::veto_of(file))?;
    if set.entries.contains_key(&request.master) {
        return Err(VetoRefusal::AlreadySigned(request.master));
    }
    Ok(set)
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
