//! Withdrawing a release that still collects signatures (D120–D122).

use thiserror::Error;

use crate::documents::signed_request::{WithdrawBody, Withdrawal};
use crate::documents::{layout, layout::Signable, signers::has_member};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{snapshot, stored, stored::ActiveSigners, stored::ReleaseState};
use crate::values::{digest::Sha512, key::PublicKey, path::RepoPath};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WithdrawRefusal {
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error("{0} was withdrawn already")]
    AlreadyWithdrawn(RepoPath),
    #[error(
        "{0} cannot be withdrawn; only releases can. A proposed signers file is replaced by another, and the operator \
         can drop it"
    )]
    NotWithdrawable(RepoPath),
    #[error("{0} is complete, so it can no longer be withdrawn: revoke it with POST /v1/revoke")]
    Complete(RepoPath),
    #[error("{0} is revoked already")]
    Revoked(RepoPath),
    #[error("Digest mismatch: subject_digest is not the digest of {0}. It was corrected: look at it again")]
    OtherIndex(RepoPath),
    #[error(
        "the key {key} may not withdraw this release of {project}. The key that registered it may, while the signers \
         file in force lists it, and every admin key may"
    )]
    NotAllowed { key: PublicKey, project: RepoPath },
    #[error(
        "the key {key} is a registrar of {project}, which withdraws only what no one has signed, rebuilt or objected to. \
         {index} has signatures, rebuilds or objections. An admin of the project can withdraw it, and a signer can register it again"
    )]
    RegistrarCannotWithdraw { key: PublicKey, project: RepoPath, index: RepoPath },
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// The release is gone, its path is free, and the signed request stays as the record of who and why.
pub fn withdraw(snapshot: &impl Snapshot, withdrawal: &Withdrawal) -> Result<(Change, ()), WithdrawRefusal> {
    let decided = repeat_withdrawal(snapshot, withdrawal)?;
    check_registrar(snapshot, &withdrawal.body.file_path, &withdrawal.request.public_key)?;
    Ok(decided)
}

/// What a commit can hold: servers before D223 let a registrar withdraw whatever it had registered. Only a replay asks
/// this.
pub fn repeat_withdrawal(
    snapshot: &impl Snapshot,
    Withdrawal { request, body }: &Withdrawal,
) -> Result<(Change, ()), WithdrawRefusal> {
    let WithdrawBody { file_path: file, subject_digest, .. } = body;
    check_state(snapshot, file)?;
    let caller = request.public_key;
    let active = stored::require_signers_in_force(snapshot, file)?;
    if !may_withdraw(snapshot, &active, file, &caller)? {
        return Err(WithdrawRefusal::NotAllowed { key: caller, project: active.project });
    }
    if let Some(seen) = subject_digest
        && *seen != Sha512::of(&stored::require(snapshot, file)?)
    {
        return Err(WithdrawRefusal::OtherIndex(file.clone()));
    }
    let mut change = Change::new(snapshot::message(snapshot::WITHDRAW, file, &caller));
    change.write(layout::withdrawal_of(file), request.write());
    change.delete(file.clone());
    change.delete(layout::signers_copy_of(file));
    change.delete(layout::pending_signatures_of(file));
    for beside in [layout::registrant_of(file), layout::other_formats_of(file), layout::rebuilds_of(file)] {
        stored::delete_present(snapshot, &mut change, beside);
    }
    stored::retire_objections(snapshot, &mut change, file)?;
    Ok((change, ()))
}

/// A registrar never undoes what people said: it would correct a release by registering another one in its place (D223).
fn check_registrar(
    snapshot: &impl Snapshot,
    index: &RepoPath,
    caller: &PublicKey,
) -> Result<(), WithdrawRefusal> {
    let active = stored::require_signers_in_force(snapshot, index)?;
    let is_untouched = || -> Result<bool, ReadError> {
        Ok(stored::collected_signatures(snapshot, index)?.entries.is_empty()
            && stored::objections(snapshot, index)?.standing().is_empty()
            && stored::rebuilds(snapshot, index)?.is_empty())
    };
    if active.file.has_signer(caller) || is_untouched()? {
        return Ok(());
    }
    let (key, project, index) = (*caller, active.project, index.clone());
    Err(WithdrawRefusal::RegistrarCannotWithdraw { key, project, index })
}

fn check_state(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), WithdrawRefusal> {
    let is_index = layout::signable(file) == Some(Signable::Index);
    if !is_index && stored::is_served(snapshot, file) {
        return Err(WithdrawRefusal::NotWithdrawable(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None if is_index && snapshot.contains(&layout::withdrawal_of(file)) => {
            Err(WithdrawRefusal::AlreadyWithdrawn(file.clone()))
        }
        None => Err(WithdrawRefusal::NotFound(file.clone())),
        Some(ReleaseState::Complete) => Err(WithdrawRefusal::Complete(file.clone())),
        Some(ReleaseState::Revoked) => Err(WithdrawRefusal::Revoked(file.clone())),
        Some(ReleaseState::Collecting) => Ok(()),
    }
}

fn may_withdraw(
    snapshot: &impl Snapshot,
    active: &ActiveSigners,
    index: &RepoPath,
    caller: &PublicKey,
) -> Result<bool, ReadError> {
    if has_member(active.file.admin_groups(), caller) {
        return Ok(true);
    }
    let registered = stored::registrant(snapshot, index)? == Some(*caller);
    // A rotation may have removed the key since.
    Ok(registered && active.file.may_register(caller))
}
