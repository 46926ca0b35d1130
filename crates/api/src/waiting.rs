//! What waits for whose signature (D18, D21).

use std::collections::BTreeSet;

use countersign_core::{
    documents::{
        layout::{self, Signable},
        signers::keys_of,
    },
    rules::{
        consent::Consent,
        snapshot::{ReadError, Snapshot},
        stored::{self, ReleaseState, StoredProposal},
    },
    values::{key::PublicKey, path::RepoPath},
};

use crate::{answers::PendingResponse, objected::PendingObjection};

/// Who may still sign a file that collects signatures, and who has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collecting {
    pub accepted: BTreeSet<PublicKey>,
    pub signed: BTreeSet<PublicKey>,
}

/// The collection at `path`; `None` if no file there collects signatures, or does so no longer.
pub fn collecting(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Collecting>, ReadError> {
    match layout::signable(path) {
        Some(Signable::Index) => {
            let found = stored::index_signatures(snapshot, path)?;
            let Some((ReleaseState::Collecting, set)) = found else { return Ok(None) };
            let copy = stored::signers_copy(snapshot, path)?;
            let accepted = keys_of(copy.file.artifact_groups()).collect();
            Ok(Some(Collecting { accepted, signed: set.signers() }))
        }
        Some(Signable::PendingSigners { project }) => {
            let Some(proposal) = StoredProposal::load(snapshot, path)? else { return Ok(None) };
            let current = stored::active_signers(snapshot, &project)?.map(|active| active.file);
            let consent = Consent { current: current.as_deref(), proposed: &proposal.signers };
            let accepted = consent.accepted_signers();
            Ok(Some(Collecting { accepted, signed: proposal.signatures.signers() }))
        }
        None => Ok(None),
    }
}

impl PendingResponse {
    /// Lists what there is room for of all that waits for a key, sorted (D21, D41). Strangers can register projects
    /// that name any key, so first registrations get the room that all else leaves.
    pub fn within<'a>(
        most_bytes: usize,
        snapshot: &impl Snapshot,
        waiting: impl Iterator<Item = &'a RepoPath>,
    ) -> Self {
        let is_first = |path: &RepoPath| match layout::signable(path) {
            Some(Signable::PendingSigners { project }) => {
                !snapshot.contains(&layout::active_signers(&project))
            }
            Some(Signable::Index) | None => false,
        };
        let (first, other): (Vec<&RepoPath>, Vec<&RepoPath>) = waiting.partition(|path| is_first(path));
        let (mut file_paths, mut left_out, mut bytes) = (Vec::new(), 0, 0);
        for path in other.into_iter().chain(first) {
            // In JSON: with quotation marks, a comma, and a backslash before each quotation mark in it.
            bytes += path.as_str().len() + path.as_str().matches('"').count() + 3;
            if bytes <= most_bytes { file_paths.push(path.clone()) } else { left_out += 1 }
        }
        file_paths.sort();
        let objections = PendingObjection::within(snapshot, &file_paths);
        Self { file_paths, left_out, revocations: Vec::new(), objections }
    }
}
