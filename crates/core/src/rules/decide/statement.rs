//! What the decisions about statements share: why one is refused, how its text and signature are read, and how signatures of
//! several keys on one text are collected.

use thiserror::Error;

use crate::documents::statement::{SignedStatement, Statement, StatementKind};
use crate::documents::{layout, signatures::SignatureSet, signers::Group, signers::keys_of};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{decide::proposal::MAX_LEAD_MINUTES, quorum, stored};
use crate::values::{
    bounds::OBJECTIONS, digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp,
};

/// What became of a statement that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stated {
    /// False while more signatures are needed, and where the statement takes an objection back.
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
    #[error("the key {key} is not in the current signers file of {project}, so it cannot object")]
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
        "The objection's timestamp {0} is more than {MAX_LEAD_MINUTES} minutes ahead of the server's clock"
    )]
    TimestampAhead(Timestamp),
    #[error("The key {key} said something else about this release at {newest}: the objection must be later")]
    NotLater { key: PublicKey, newest: Timestamp },
    #[error("The key {0} has no objection to this release that it could take back")]
    NothingToTakeBack(PublicKey),
    #[error("{0} has {OBJECTIONS} objections already, and the limit is {OBJECTIONS}")]
    Full(RepoPath),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

fn document_name(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Revocation => "revocation document",
        StatementKind::Veto | StatementKind::Objection => kind.noun(),
    }
}

fn bad_signature(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Revocation => "Revocation authorization failed: the signature does not verify",
        StatementKind::Veto => "Veto authorization failed: the signature does not verify",
        StatementKind::Objection => "Invalid signature: it does not verify for the objection",
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
pub(super) fn join_pending(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    groups: &[Group],
) -> Result<Option<SignatureSet>, StatementRefusal> {
    let SignedStatement { kind, file_path: file, text, public_key, .. } = statement;
    let place = kind.path_of(file);
    let path = layout::pending_of(&place);
    let Some(pending) = snapshot.read(&path)? else { return Ok(None) };
    let set = stored::collected_signatures(snapshot, &place)?;
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
pub(super) fn record_pending(change: &mut Change, statement: &SignedStatement, set: &SignatureSet) {
    let place = statement.kind.path_of(&statement.file_path);
    change.write(layout::pending_of(&place), statement.text.as_bytes());
    change.write(layout::pending_signatures_of(&place), set.write());
}
