//! Revoking a complete file (spec §4.9; D20).

use std::{collections::BTreeSet, sync::Arc};

use crate::documents::signatures::{Collected, SignatureSet};
use crate::documents::signers::{Group, keys_of};
use crate::documents::statement::{Revocation, SignedStatement};
use crate::documents::{layout, layout::Signable, signed_request::SignedRequest};
use crate::rules::decide::statement::{
    Stated, StatementRefusal, StatementResult, join_pending, read, record_pending, verify,
};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{quorum, snapshot, stored, stored::ReleaseState};
use crate::values::{bounds::SIGNATURES, digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};

/// `request` is the request itself, which names who called.
pub fn revoke(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    request: &SignedRequest,
    now: Timestamp,
) -> StatementResult {
    let SignedStatement { file_path: file, signature, public_key: revoker, .. } = statement;
    check_state(snapshot, file)?;
    let document = check_document(snapshot, statement)?;
    let active = stored::require_governing_signers(snapshot, file)?;
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

fn check_state(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), StatementRefusal> {
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

fn check_document(
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
