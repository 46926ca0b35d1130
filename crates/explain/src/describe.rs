//! Describes how far a release or proposed signers have come, from one state of the repository. Pages, the catalogue
//! and the client show these descriptions; none of them puts its own together.

pub mod proposal;
pub mod release;

use std::collections::BTreeSet;

use countersign_core::documents::{layout, layout::Signable};
use countersign_core::rules::{quorum::Tally, snapshot::ReadError, snapshot::Snapshot, stored::ReleaseState};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath};

use crate::describe::proposal::{ProposalDescription, describe_proposal};
use crate::describe::release::{ReleaseDescription, describe_release};
use crate::progress::{Names, groups_text};

/// How far a file has come that collects signatures, or did.
#[derive(Debug, Clone)]
pub enum Description {
    Release(Box<ReleaseDescription>),
    Proposal(Box<ProposalDescription>),
}

/// Describes what is at the path of an index or of a pending signers file. `None` if nothing is there.
pub fn describe(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Description>, ReadError> {
    Ok(match layout::signable(path) {
        Some(Signable::Index) => describe_release(snapshot, path)?.map(Box::new).map(Description::Release),
        Some(Signable::PendingSigners { project }) => {
            describe_proposal(snapshot, &project)?.map(Box::new).map(Description::Proposal)
        }
        None => None,
    })
}

impl Description {
    pub fn state(&self) -> ReleaseState {
        match self {
            Self::Release(release) => release.state,
            Self::Proposal(_) => ReleaseState::Collecting,
        }
    }

    /// The digest of the file itself.
    pub fn digest(&self) -> Sha512 {
        match self {
            Self::Release(release) => release.digest,
            Self::Proposal(proposal) => proposal.digest,
        }
    }

    /// The keys that have signed it.
    pub fn signed(&self) -> BTreeSet<PublicKey> {
        match self {
            Self::Release(release) => release.signatures.signers(),
            Self::Proposal(proposal) => proposal.signatures.signers(),
        }
    }

    /// The keys whose signature brings it nearer.
    pub fn missing(&self) -> BTreeSet<PublicKey> {
        match self {
            Self::Release(release) => release.missing.clone(),
            Self::Proposal(proposal) => proposal.missing.iter().map(|signer| signer.key).collect(),
        }
    }

    /// The names of its signers.
    pub fn names(&self) -> &Names {
        match self {
            Self::Release(release) => &release.names,
            Self::Proposal(proposal) => &proposal.names,
        }
    }

    /// Says how far it is, what is missing and from whom, as in `has 1 of 2; 1 more from bob or carol` (D240).
    pub fn progress(&self) -> String {
        match self {
            Self::Release(release) => groups_text(&release.groups),
            Self::Proposal(proposal) => proposal.progress(),
        }
    }

    /// Says how far a begun revocation or veto is, and who can join it.
    pub fn begun_progress(&self) -> Option<String> {
        let groups = match self {
            Self::Release(release) => &release.begun_revocation.as_ref()?.groups,
            Self::Proposal(proposal) => &proposal.veto.as_ref()?.groups,
        };
        Some(groups_text(groups))
    }

    pub fn tally(&self) -> Tally {
        match self {
            Self::Release(release) => release.tally,
            Self::Proposal(proposal) => proposal.tally,
        }
    }
}
