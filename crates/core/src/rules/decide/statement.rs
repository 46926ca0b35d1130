//! Revoking a complete file (spec §4.9; D20), vetoing a proposed signers file (D135, D136), and objecting to a release
//! (D123–D125); `rebuild` has the fourth kind. Here is why a statement is refused, how its text and signature are read, how
//! signatures of several keys on one text are collected, and what each kind changes.

use std::{collections::BTreeSet, sync::Arc};

use thiserror::Error;

use crate::documents::signatures::{Collected, SignatureSet};
use crate::documents::signers::{Group, has_member, keys_of};
use crate::documents::statement::{Objection, Revocation, SignedStatement, Statement, StatementKind, Veto};
use crate::documents::{
    index::AssetName, layout, layout::Signable, said::StoredObjection, signed_request::SignedRequest,
};
use crate::rules::decide::proposal::{MAX_DOCUMENT_LEAD, MAX_DOCUMENT_LEAD_MINUTES};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::stored::{ActiveSigners, ReleaseState, StoredProposal};
use crate::rules::{quorum, snapshot, stored};
use crate::values::bounds::{OBJECTIONS, SIGNATURES, VETO_RECORDS};
use crate::values::{
    digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp, wire,
};

/// What became of a statement that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stated {
    /// False while more signatures are needed, where the statement takes an objection back, and where a builder got something
    /// else.
    pub in_force: bool,
}

pub type StatementResult = Result<(Change, Stated), StatementRefusal>;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatementRefusal {
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error("{0} cannot be revoked; only release indexes can. Signers files are rotated instead")]
    NotRevocable(RepoPath),
    #[error("{0} cannot be vetoed; only pending signers files can")]
    NotVetoable(RepoPath),
    #[error("{0} is not a release; you can object only to releases")]
    NotARelease(RepoPath),
    #[error("File has not been fully signed: {0}")]
    NotComplete(RepoPath),
    #[error("File already revoked: {0}")]
    AlreadyRevoked(RepoPath),
    #[error("{0} is revoked already, so there is nothing to object to")]
    Revoked(RepoPath),
    #[error(
        "{0} has no signers in force, and a first registration cannot be vetoed. Its keys can leave it unsigned"
    )]
    FirstRegistration(RepoPath),
    #[error(
        "Veto authorization failed: the signers file in force of {0} has no master_keys, and only masters can veto. \
         An admin can replace the pending file with another one"
    )]
    NoMasters(RepoPath),
    #[error("Invalid {}: {error}", document_name(*.kind))]
    InvalidDocument { kind: StatementKind, error: ParseError },
    #[error("Digest mismatch: subject_digest is not the digest of {0}")]
    DigestMismatch(RepoPath),
    #[error(
        "The veto is not about {0}: its project_id, signers_file_digest or previous names something else"
    )]
    OtherProposal(RepoPath),
    #[error("Digest mismatch: subject_digest is not the digest of {0}. It was corrected: look at it again")]
    OtherIndex(RepoPath),
    #[error("{}", bad_signature(*.0))]
    BadSignature(StatementKind),
    #[error("Revocation authorization failed: {key} may not revoke files of {project}")]
    MayNotRevoke { key: PublicKey, project: RepoPath },
    #[error("Veto authorization failed: {key} is not a master key of {project}")]
    MayNotVeto { key: PublicKey, project: RepoPath },
    #[error("the key {key} is no signer in the current signers file of {project}, so it cannot object")]
    NotASigner { key: PublicKey, project: RepoPath },
    #[error("Revocation authorization failed: without subject_digest the revoker must sign the request, too")]
    NotCaller,
    #[error("subject_digest is required in the revocation document: more than one signature is needed here")]
    SubjectDigestRequired,
    #[error("Revocation authorization failed: `initiator` must be the key that posts the revocation first")]
    NotInitiator,
    #[error("Too late: {file} was due at {since}. Propose other signers")]
    TooLate { file: RepoPath, since: Timestamp },
    #[error("Another {} of {file} is pending, for the reason {reason:?} ({digest}): join that one", .kind.noun())]
    OtherPending { kind: StatementKind, file: RepoPath, reason: String, digest: String },
    #[error("Signature already collected for the key {0}")]
    AlreadySigned(PublicKey),
    #[error(
        "The {}'s timestamp {timestamp} is more than {MAX_DOCUMENT_LEAD_MINUTES} minutes ahead of the server's clock",
        .kind.noun()
    )]
    TimestampAhead { kind: StatementKind, timestamp: Timestamp },
    #[error(
        "The key {key} said something else about this release at {newest}: the {} must be later", .kind.noun()
    )]
    NotLater { kind: StatementKind, key: PublicKey, newest: Timestamp },
    #[error("The key {0} has no objection to this release that it could take back")]
    NothingToTakeBack(PublicKey),
    #[error("{0} has {OBJECTIONS} objections already, and the limit is {OBJECTIONS}")]
    Full(RepoPath),
    #[error("{0} is not a release; only releases are built from a source")]
    NotRebuildable(RepoPath),
    #[error("{0} is revoked, so nothing more is stated about it")]
    NotRebuiltAnyMore(RepoPath),
    #[error("The rebuild is of {named}, and not of {file}")]
    OtherRelease { named: RepoPath, file: RepoPath },
    #[error("the key {key} is not a builder of {project}")]
    NotABuilder { key: PublicKey, project: RepoPath },
    #[error("the key {key} was not a builder when {file} was completed, so it states nothing about it")]
    NotABuilderThen { key: PublicKey, file: RepoPath },
    #[error("{file} lists no file {:?}, or no digest of the kinds that the rebuild has", .name.as_str())]
    NotComparable { name: AssetName, file: RepoPath },
    #[error(
        "The release is complete, so what the key {0} has stated stays: it can only add files of the same commit"
    )]
    AlreadyStated(PublicKey),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

fn document_name(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Revocation => "revocation document",
        StatementKind::Veto | StatementKind::Objection | StatementKind::Rebuild => kind.noun(),
    }
}

fn bad_signature(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Revocation => "Revocation authorization failed: the signature does not verify",
        StatementKind::Veto => "Veto authorization failed: the signature does not verify",
        StatementKind::Objection => "Invalid signature: it does not verify for the objection",
        StatementKind::Rebuild => "Invalid signature: it does not verify for the rebuild",
    }
}

/// Reads the text of a statement as the document of one kind.
pub(super) fn read<D>(
    statement: &SignedStatement,
    parse: fn(&[u8]) -> Result<D, ParseError>,
) -> Result<D, StatementRefusal> {
    let invalid = |error| StatementRefusal::InvalidDocument { kind: statement.kind, error };
    parse(statement.text.as_bytes()).map_err(invalid)
}

pub(super) fn verify(statement: &SignedStatement) -> Result<(), StatementRefusal> {
    let SignedStatement { kind, text, signature, public_key, .. } = statement;
    let verified = public_key.verify(&Sha512::of(text.as_bytes()), signature);
    verified.map_err(|_| StatementRefusal::BadSignature(*kind))
}

/// The signatures that this one joins: those on the same text. The first one fixes the text, as long as a key that counts
/// stands behind it. `None` begins anew.
fn join_pending(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    groups: &[Group],
) -> Result<Option<SignatureSet>, StatementRefusal> {
    let SignedStatement { kind, file_path: file, text, public_key, .. } = statement;
    let statement_path = kind.path_of(file);
    let path = layout::pending_of(&statement_path);
    let Some(pending) = snapshot.read(&path)? else { return Ok(None) };
    let set = stored::collected_signatures(snapshot, &statement_path)?;
    if *pending == *text.as_bytes() {
        // A rotation may have made these signatures enough; then any of their signers can carry it out.
        if set.entries.contains_key(public_key) && !quorum::is_met(groups, &set.signers()) {
            return Err(StatementRefusal::AlreadySigned(*public_key));
        }
        return Ok(Some(set));
    }
    // A rotation may have left the pending document without a signature that counts.
    if !keys_of(groups).any(|key| set.entries.contains_key(&key)) {
        return Ok(None);
    }
    let document = stored::parse_stored(&path, Statement::parse(*kind, &pending))?;
    let reason = document.reason().unwrap_or_default().to_owned();
    let digest = Sha512::of(&pending).to_prefixed();
    Err(StatementRefusal::OtherPending { kind: *kind, file: file.clone(), reason, digest })
}

/// Records a statement that needs more signatures.
fn record_pending(change: &mut Change, statement: &SignedStatement, set: &SignatureSet) {
    let statement_path = statement.kind.path_of(&statement.file_path);
    change.write(layout::pending_of(&statement_path), statement.text.as_bytes());
    change.write(layout::pending_signatures_of(&statement_path), set.write());
}

// Objecting to a release, and taking the objection back (D123–D125). It blocks nothing.

pub fn object(snapshot: &impl Snapshot, statement: &SignedStatement, now: Timestamp) -> StatementResult {
    // What is stored must allow the same decision again.
    let now = now.to_whole_seconds();
    let SignedStatement { file_path: file, text, signature, public_key: objector, .. } = statement;
    check_objectable(snapshot, file)?;
    let document = check_objection(snapshot, statement, now)?;
    let mut objections = stored::objections(snapshot, file)?;
    let earlier = objections.entries.get(objector).map(|earlier| &earlier.document);
    let stands = document.text.is_some();
    // Also a key that a rotation removed since: no one else can take back what it said.
    let takes_back = !stands && earlier.is_some();
    let active = stored::require_signers_in_force(snapshot, file)?;
    if !takes_back && !active.file.has_signer(objector) {
        return Err(StatementRefusal::NotASigner { key: *objector, project: active.project });
    }
    match earlier {
        Some(earlier) if document.timestamp <= earlier.timestamp => {
            let newest = earlier.timestamp;
            return Err(StatementRefusal::NotLater { kind: statement.kind, key: *objector, newest });
        }
        Some(Objection { text: Some(_), .. }) => {}
        Some(_) | None if !stands => return Err(StatementRefusal::NothingToTakeBack(*objector)),
        Some(_) => {}
        None if objections.entries.len() >= OBJECTIONS => return Err(StatementRefusal::Full(file.clone())),
        None => {}
    }
    let entry = StoredObjection { text: text.clone(), document, signature: *signature, collected_at: now };
    objections.entries.insert(*objector, entry);
    let title = if stands { snapshot::OBJECT } else { snapshot::TAKE_BACK_OBJECTION };
    let mut change = Change::new(snapshot::message(title, file, objector));
    change.write(layout::objections_of(file), objections.write());
    Ok((change, Stated { in_force: stands }))
}

fn check_objectable(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), StatementRefusal> {
    if layout::signable(file) != Some(Signable::Index) && stored::is_served(snapshot, file) {
        return Err(StatementRefusal::NotARelease(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None => Err(StatementRefusal::NotFound(file.clone())),
        Some(ReleaseState::Revoked) => Err(StatementRefusal::Revoked(file.clone())),
        Some(ReleaseState::Collecting | ReleaseState::Complete) => Ok(()),
    }
}

fn check_objection(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    now: Timestamp,
) -> Result<Objection, StatementRefusal> {
    let document = read(statement, Objection::parse)?;
    verify(statement)?;
    if document.subject_digest != Sha512::of(&stored::require(snapshot, &statement.file_path)?) {
        return Err(StatementRefusal::OtherIndex(statement.file_path.clone()));
    }
    if document.timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_DOCUMENT_LEAD) {
        return Err(StatementRefusal::TimestampAhead { kind: statement.kind, timestamp: document.timestamp });
    }
    Ok(document)
}

// Revoking a complete file (spec §4.9; D20).

/// Revokes under the signers in force. A client accepts a revocation under any signers file from the release's own on
/// (`core::proof::verify`). `request` is the request itself, which names who called.
pub fn revoke(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    request: &SignedRequest,
    now: Timestamp,
) -> StatementResult {
    let SignedStatement { file_path: file, signature, public_key: revoker, .. } = statement;
    check_revocable(snapshot, file)?;
    let document = check_revocation(snapshot, statement)?;
    let active = stored::require_signers_in_force(snapshot, file)?;
    let groups = active.file.revocation_groups();
    let revokers: BTreeSet<PublicKey> = keys_of(&groups).collect();
    if !revokers.contains(revoker) {
        return Err(StatementRefusal::MayNotRevoke { key: *revoker, project: active.project });
    }
    let mut set = join_or_begin(snapshot, statement, &document, &groups)?;
    // Signatures of keys that rotations removed since count for nothing, and stay as long as there is room.
    if set.entries.len() >= SIGNATURES {
        set.entries.retain(|key, _| revokers.contains(key));
    }
    set.add(*revoker, Collected { signature: *signature, collected_at: now.to_whole_seconds() });
    let is_revoked = quorum::is_met(&groups, &set.signers());
    if document.subject_digest.is_none() {
        if request.public_key != *revoker {
            return Err(StatementRefusal::NotCaller);
        }
        if !is_revoked {
            return Err(StatementRefusal::SubjectDigestRequired);
        }
    }
    let title = if is_revoked { snapshot::REVOKE } else { snapshot::RECORD_REVOCATION };
    let mut change = Change::new(snapshot::message(title, file, revoker));
    if is_revoked {
        record_revocation(snapshot, &mut change, statement, &set, active.bytes)?;
    } else {
        record_pending(&mut change, statement, &set);
    }
    if document.subject_digest.is_none() {
        change.write(layout::request_of(&layout::revocation_of(file)), request.write());
    }
    Ok((change, Stated { in_force: is_revoked }))
}

fn check_revocable(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), StatementRefusal> {
    if !stored::is_served(snapshot, file) {
        return Err(StatementRefusal::NotFound(file.clone()));
    }
    if layout::signable(file) != Some(Signable::Index) {
        return Err(StatementRefusal::NotRevocable(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None => Err(StatementRefusal::NotFound(file.clone())),
        Some(ReleaseState::Collecting) => Err(StatementRefusal::NotComplete(file.clone())),
        Some(ReleaseState::Revoked) => Err(StatementRefusal::AlreadyRevoked(file.clone())),
        Some(ReleaseState::Complete) => Ok(()),
    }
}

fn check_revocation(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
) -> Result<Revocation, StatementRefusal> {
    let document = read(statement, Revocation::parse)?;
    if let Some(subject) = document.subject_digest
        && subject != Sha512::of(&stored::require(snapshot, &statement.file_path)?)
    {
        return Err(StatementRefusal::DigestMismatch(statement.file_path.clone()));
    }
    verify(statement)?;
    Ok(document)
}

fn join_or_begin(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    document: &Revocation,
    groups: &[Group],
) -> Result<SignatureSet, StatementRefusal> {
    match (join_pending(snapshot, statement, groups)?, document.initiator) {
        (Some(set), _) => Ok(set),
        (None, Some(initiator)) if initiator != statement.public_key => Err(StatementRefusal::NotInitiator),
        (None, Some(_) | None) => Ok(SignatureSet::default()),
    }
}

/// Records a revocation. `signers` is the signers file that authorises it.
fn record_revocation(
    snapshot: &impl Snapshot,
    change: &mut Change,
    statement: &SignedStatement,
    set: &SignatureSet,
    signers: Arc<[u8]>,
) -> Result<(), ReadError> {
    let file = &statement.file_path;
    let revocation = layout::revocation_of(file);
    change.write(layout::signatures_of(&revocation), set.write());
    change.write(layout::signers_copy_of(&revocation), signers);
    change.write(revocation, statement.text.as_bytes());
    let signatures = layout::signatures_of(file);
    change.write(layout::revoked_signatures_of(file), stored::require(snapshot, &signatures)?);
    change.delete(signatures);
    // No other program knows of a revocation, so nothing that they would accept is handed out any more.
    stored::delete_other_formats(snapshot, change, file);
    for pending in [layout::pending_revocation_of(file), layout::pending_revocation_signatures_of(file)] {
        stored::delete_present(snapshot, change, pending);
    }
    Ok(())
}

// Vetoing a proposed signers file (D135, D136): the masters of the file in force say no.

pub fn veto(snapshot: &impl Snapshot, statement: &SignedStatement, now: Timestamp) -> StatementResult {
    let SignedStatement { file_path: file, text, signature, public_key: master, .. } = statement;
    let Some(Signable::PendingSigners { project }) = layout::signable(file) else {
        return Err(StatementRefusal::NotVetoable(file.clone()));
    };
    let proposal = StoredProposal::load(snapshot, file)?;
    let digest = proposal.ok_or_else(|| StatementRefusal::NotFound(file.clone()))?.digest();
    let active = stored::active_signers(snapshot, &project)?;
    let active = active.ok_or_else(|| StatementRefusal::FirstRegistration(project.clone()))?;
    check_veto(statement, &active, &digest)?;
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
    snapshot.read_document(&layout::veto_record(project, digest), Veto::parse)
}

fn check_veto(
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
    if has_member(masters, &key) { Ok(()) } else { Err(StatementRefusal::MayNotVeto { key, project }) }
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
