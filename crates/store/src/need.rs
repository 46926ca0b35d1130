//! What a change needs of the storage budget, and which reserves are open to it (D44, D172). The budget itself knows no
//! files.

use countersign_api::claim::Claim;
use countersign_core::{
    documents::{layout, signers::keys_of},
    rules::{
        snapshot::{Change, Snapshot as _},
        stored,
    },
    values::{path::RepoPath, wire},
};

use crate::{
    budget::Need,
    snapshot::{head::Head, index::Index},
};

/// What a change needs that goes on top of `head`. `None` if it is about no project.
pub(crate) fn need_of(head: &Head, change: &Change, bytes: u64) -> Option<Need> {
    let project = project_of(&head.index, change)?;
    let is_established = head.contains(&layout::active_signers(&project));
    let is_protection = change.files.keys().any(|path| {
        layout::project_with_signers_at(path).is_some() || path.file_name().contains(wire::REVOCATION_SUFFIX)
    });
    let is_of_masters = is_protection && is_of_masters(head, &project, &change.message);
    Some(Need { project, is_established, is_protection, is_of_masters, bytes })
}

/// The project that a change is about: the one in whose directory it lies, or the new one that it makes.
fn project_of(index: &Index, change: &Change) -> Option<RepoPath> {
    let mut paths = change.files.keys();
    let known = |path: &RepoPath| path.self_and_ancestors().find(|dir| index.is_project(dir));
    let found =
        paths.clone().find_map(known).or_else(|| paths.clone().find_map(layout::project_with_signers_at));
    found.or_else(|| paths.next().map(|path| path.parent().unwrap_or_else(|| path.clone())))
}

/// Whether thieves of admin keys could not have had it stored (D172): a master says it, or the signers have waited.
fn is_of_masters(head: &Head, project: &RepoPath, message: &str) -> bool {
    let says = match Claim::parse(message) {
        Some(Claim::Activate { .. }) => return true,
        Some(Claim::Update { submitter: key, .. } | Claim::Sign { signer: key, .. }) => key,
        Some(Claim::Agree { signer: key, .. } | Claim::Veto { master: key, .. }) => key,
        Some(
            Claim::Create
            | Claim::Register { .. }
            | Claim::Assets { .. }
            | Claim::Withdraw { .. }
            | Claim::Object { .. }
            | Claim::Revoke { .. }
            | Claim::Drop { .. },
        )
        | None => return false,
    };
    let active = stored::active_signers(head, project).ok().flatten();
    active.is_some_and(|active| keys_of(active.file.master_groups()).any(|master| master == says))
}
