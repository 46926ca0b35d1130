//! What registration and update have in common: a signers file that the server fetched because a key asked for it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use thiserror::Error;

use crate::documents::signers::{Metadata, SignersFile, SignersOrigin};
use crate::documents::{layout, signatures::SignatureSet, signed_request::SignedRequest};
use crate::rules::snapshot::{Change, ReadError, Snapshot};
use crate::rules::{snapshot, stored, stored::StoredProposal};
use crate::values::{digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp};

/// How far the timestamp of a signers file or an objection may be ahead of the server's clock (D15, D125).
pub const MAX_DOCUMENT_LEAD_MINUTES: u64 = 10;
pub(super) const MAX_DOCUMENT_LEAD: Duration = Duration::from_secs(MAX_DOCUMENT_LEAD_MINUTES * 60);

/// A fetched signers file and the signed request that asked for it.
#[derive(Debug, Clone)]
pub struct Proposal {
    pub project: RepoPath,
    pub signers_bytes: Arc<[u8]>,
    pub origin: SignersOrigin,
    /// The key that the request names as its own.
    pub submitter: PublicKey,
    pub request: SignedRequest,
}

/// The reason why no project can be given these signers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProposalFault {
    #[error("Invalid public key: public_key must be the key that signed the request")]
    NotTheCaller,
    #[error("`{url}` is not a valid signers file: {error}")]
    InvalidSigners { url: String, error: ParseError },
    #[error(
        "The signers file's timestamp {0} is more than {MAX_DOCUMENT_LEAD_MINUTES} minutes ahead of the server's clock"
    )]
    TimestampAhead(Timestamp),
}

/// A key proposes only in its own name (D13).
pub fn check_submitter(submitter: &PublicKey, caller: &PublicKey) -> Result<(), ProposalFault> {
    if submitter == caller { Ok(()) } else { Err(ProposalFault::NotTheCaller) }
}

/// What is in the repository once the proposal is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    pub project: RepoPath,
    /// The keys whose signatures are still needed.
    pub required_signers: BTreeSet<PublicKey>,
}

impl Proposal {
    /// The proposal of a file that counts as retrieved at the time of its change (D191).
    #[must_use]
    pub fn retrieved_at(&self, now: Timestamp) -> Self {
        let origin = SignersOrigin { retrieved_at: now.to_whole_seconds(), ..self.origin.clone() };
        Self { origin, ..self.clone() }
    }

    pub(super) fn parse_signers(&self) -> Result<SignersFile, ProposalFault> {
        let url = &self.origin.retrieval_url;
        SignersFile::parse(&self.signers_bytes)
            .map_err(|error| ProposalFault::InvalidSigners { url: url.clone(), error })
    }

    /// The files to store, without any signature yet.
    pub(super) fn to_stored(&self, signers: SignersFile, previous: Option<Sha512>) -> StoredProposal {
        let metadata = Metadata {
            origin: self.origin.clone(),
            project_id: self.project.clone(),
            signers_file_digest: Sha512::of(&self.signers_bytes),
            previous,
        };
        StoredProposal {
            signers_bytes: self.signers_bytes.clone(),
            signers: Arc::new(signers),
            metadata_bytes: metadata.write().into(),
            metadata,
            registration: self.request.write().into(),
            signatures: SignatureSet::default(),
            metadata_signatures: SignatureSet::default(),
        }
    }

    pub(super) fn commit_message(&self, title: &str) -> String {
        snapshot::message(title, &self.project, &self.submitter)
            + &format!("{}{}\n", snapshot::FROM, self.origin.url)
    }
}

pub(super) fn check_lead(signers: &SignersFile, now: Timestamp) -> Result<(), ProposalFault> {
    let timestamp = signers.timestamp();
    let is_ahead = timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_DOCUMENT_LEAD);
    if is_ahead { Err(ProposalFault::TimestampAhead(timestamp)) } else { Ok(()) }
}

// Removing a pending registration or proposal, on the operator's word (D15).

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DropRefusal {
    #[error("{0} has no pending registration or signers proposal")]
    NothingPending(RepoPath),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

pub fn drop_pending(snapshot: &impl Snapshot, project: &RepoPath) -> Result<(Change, ()), DropRefusal> {
    let mut change = Change::new(format!("{} {project}\n\nBy: the operator\n", snapshot::DROP));
    stored::delete_below(snapshot, &mut change, &layout::pending_dir(project))?;
    if change.is_empty() {
        return Err(DropRefusal::NothingPending(project.clone()));
    }
    Ok((change, ()))
}
