//! Revoking a complete file (spec §4.9; D20).

use std::{collections::BTreeSet, sync::Arc};

use thiserror::Error;

use super::titles;
use crate::{
    documents::{
        layout::{self, Signable},
        revocation::Revocation,
        signatures::{Collected, SignatureSet},
        signed_request::SignedRequest,
        signers::{Group, keys_of},
    },
    rules::{
        quorum,
        snapshot::{Change, ReadError, Snapshot},
        stored::{self, ReleaseState},
    },
    values::{
        bounds::SIGNATURES,
        digest::Sha512,
        json::ParseError,
        key::{PublicKey, Signature},
        path::RepoPath,
        time::Timestamp,
    },
};

#[derive(Debug, Clone)]
pub struct RevokeRequest {
    pub file: RepoPath,
    /// The exact text of the revocation document.
    pub revocation_json: String,
    pub signature: Signature,
    pub revoker: PublicKey,
    /// The request itself, which names who called.
    pub request: SignedRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevokeOutcome {
    /// Whether the file is revoked. Otherwise more signatures are needed.
    pub is_revoked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RevokeRefusal {
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error("{0} cannot be revoked; only release indexes can. Signers files are rotated instead")]
    NotRevocable(RepoPath),
    #[error("File has not been fully signed: {0}")]
    NotComplete(RepoPath),
    #[error("File already revoked: {0}")]
    AlreadyRevoked(RepoPath),
    #[error("Invalid revocation document: {0}")]
    InvalidDocument(ParseError),
    #[error("Digest mismatch: subject_digest is not the digest of {0}")]
    DigestMismatch(RepoPath),
    #[error("Revocation authorization failed: the signature does not verify")]
    BadSignature,
    #[error("Revocation authorization failed: {key} may not revoke files of {project}")]
    NotAuthorised { key: PublicKey, project: RepoPath },
    #[error("Revocation authorization failed: without subject_digest the revoker must sign the request, too")]
    NotCaller,
    #[error("subject_digest is required in the revocation document: more than one signature is needed here")]
    SubjectDigestRequired,
    #[error("Revocation authorization failed: `initiator` must be the key that posts the revocation first")]
    NotInitiator,
    #[error("Another revocation of {file} is pending, for the reason {reason:?} ({digest}): join that one")]
    OtherPending { file: RepoPath, reason: String, digest: String },
    #[error("Signature already collected for the key {0}")]
    AlreadySigned(PublicKey),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

pub fn revoke(
    snapshot: &impl Snapshot,
    request: &RevokeRequest,
    now: Timestamp,
) -> Result<(Change, RevokeOutcome), RevokeRefusal> {
    let file = &request.file;
    check_state(snapshot, file)?;
    let document = check_document(snapshot, request)?;
    let active = stored::require_governing_signers(snapshot, file)?;
    let groups = active.file.revocation_groups();
    let revokers: BTreeSet<PublicKey> = keys_of(&groups).collect();
    if !revokers.contains(&request.revoker) {
        return Err(RevokeRefusal::NotAuthorised { key: request.revoker, project: active.project });
    }
    let mut set = join_pending(snapshot, request, &document, &groups)?;
    // Signatures of keys that rotations removed since count for nothing, and stay as long as there is room.
    if set.entries.len() >= SIGNATURES {
        set.entries.retain(|key, _| revokers.contains(key));
    }
    let signature = request.signature;
    set.add(request.revoker, Collected { signature, collected_at: now.to_whole_seconds() });
    let is_revoked = quorum::is_met(&groups, &set.signers());
    if document.subject_digest.is_none() {
        if request.request.public_key != request.revoker {
            return Err(RevokeRefusal::NotCaller);
        }
        if !is_revoked {
            return Err(RevokeRefusal::SubjectDigestRequired);
        }
    }
    let mut change = if is_revoked {
        record_revocation(snapshot, request, &set, active.bytes)?
    } else {
        record_pending(request, &set)
    };
    if document.subject_digest.is_none() {
        change.write(layout::request_of(&layout::revocation_of(file)), request.request.write());
    }
    Ok((change, RevokeOutcome { is_revoked }))
}

fn check_state(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), RevokeRefusal> {
    if !stored::is_served(snapshot, file) {
        return Err(RevokeRefusal::NotFound(file.clone()));
    }
    if layout::signable(file) != Some(Signable::Index) {
        return Err(RevokeRefusal::NotRevocable(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None => Err(RevokeRefusal::NotFound(file.clone())),
        Some(ReleaseState::Collecting) => Err(RevokeRefusal::NotComplete(file.clone())),
        Some(ReleaseState::Revoked) => Err(RevokeRefusal::AlreadyRevoked(file.clone())),
        Some(ReleaseState::Complete) => Ok(()),
    }
}

fn check_document(snapshot: &impl Snapshot, request: &RevokeRequest) -> Result<Revocation, RevokeRefusal> {
    let bytes = request.revocation_json.as_bytes();
    let document = Revocation::parse(bytes).map_err(RevokeRefusal::InvalidDocument)?;
    if let Some(subject) = document.subject_digest
        && subject != Sha512::of(&stored::require(snapshot, &request.file)?)
    {
        return Err(RevokeRefusal::DigestMismatch(request.file.clone()));
    }
    request
        .revoker
        .verify(&Sha512::of(bytes), &request.signature)
        .map_err(|_| RevokeRefusal::BadSignature)?;
    Ok(document)
}

/// The signatures that this one joins: none, or those on the same pending document.
fn join_pending(
    snapshot: &impl Snapshot,
    request: &RevokeRequest,
    document: &Revocation,
    groups: &[Group],
) -> Result<SignatureSet, RevokeRefusal> {
    let path = layout::pending_revocation_of(&request.file);
    if let Some(pending) = snapshot.read(&path)? {
        let set = stored::begun_signatures(snapshot, &request.file)?;
        if *pending == *request.revocation_json.as_bytes() {
            // A rotation may have made these signatures enough; then any of their signers can carry it out.
            if set.entries.contains_key(&request.revoker) && !quorum::is_met(groups, &set.signers()) {
                return Err(RevokeRefusal::AlreadySigned(request.revoker));
            }
            return Ok(set);
        }
        // A rotation may have left the pending document without a signature that counts.
        if keys_of(groups).any(|key| set.entries.contains_key(&key)) {
            let reason = stored::parse_stored(&path, Revocation::parse(&pending))?.reason;
            let digest = Sha512::of(&pending).to_prefixed();
            return Err(RevokeRefusal::OtherPending { file: request.file.clone(), reason, digest });
        }
    }
    match document.initiator {
        Some(initiator) if initiator != request.revoker => Err(RevokeRefusal::NotInitiator),
        Some(_) | None => Ok(SignatureSet::default()),
    }
}

fn record_pending(request: &RevokeRequest, set: &SignatureSet) -> Change {
    let file = &request.file;
    let message = titles::message(titles::RECORD_REVOCATION, file, &request.revoker);
    let mut change = Change::new(message);
    change.write(layout::pending_revocation_of(file), request.revocation_json.as_bytes());
    change.write(layout::pending_revocation_signatures_of(file), set.write());
    change
}

/// Records a revocation. `signers` is the signers file that authorises it.
fn record_revocation(
    snapshot: &impl Snapshot,
    request: &RevokeRequest,
    set: &SignatureSet,
    signers: Arc<[u8]>,
) -> Result<Change, ReadError> {
    let file = &request.file;
    let revocation = layout::revocation_of(file);
    let mut change = Change::new(titles::message(titles::REVOKE, file, &request.revoker));
    change.write(layout::signatures_of(&revocation), set.write());
    change.write(layout::signers_copy_of(&revocation), signers);
    change.write(revocation.clone(), request.revocation_json.as_bytes());
    let signatures = layout::signatures_of(file);
    change.write(layout::revoked_signatures_of(file), stored::require(snapshot, &signatures)?);
    change.delete(signatures);
    // No other program knows of a revocation, so nothing that they would accept is handed out any more.
    stored::delete_other_formats(snapshot, &mut change, file);
    for pending in [layout::pending_revocation_of(file), layout::pending_revocation_signatures_of(file)] {
        stored::delete_present(snapshot, &mut change, pending);
    }
    Ok(change)
}
