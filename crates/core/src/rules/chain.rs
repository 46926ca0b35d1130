//! The chain of signers files up to the one that signed an artifact: building it (D19) and verifying it.

use std::{collections::BTreeSet, time::Duration};

use thiserror::Error;

use crate::documents::history::{History, HistoryEntry};
use crate::documents::signers::{Metadata, SignersFile};
use crate::documents::{layout, layout::Signable, signatures::SignatureSet};
use crate::rules::{quorum::Consent, snapshot::ReadError, snapshot::Snapshot, stored, stored::ReleaseState};
use crate::values::{
    digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, shown::shown_text, time::Timestamp,
};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChainRefusal {
    #[error("Invalid artifact path: {0}: no signed artifact or active signers file is there")]
    NotSigned(RepoPath),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

/// A chain, as a part of the history of its project: the entries from the first to this one, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedChain {
    pub project: RepoPath,
    pub last: usize,
}

/// Locates the chain up to the signers file that governs `path`.
pub fn locate(snapshot: &impl Snapshot, path: &RepoPath) -> Result<LocatedChain, ChainRefusal> {
    let not_signed = || ChainRefusal::NotSigned(path.clone());
    if let Some(project) = layout::project_of_active_signers(path) {
        if !snapshot.contains(path) {
            return Err(not_signed());
        }
        return match stored::history_len(snapshot, &project) {
            0 => Err(stored::corrupt(path, "its project has no history").into()),
            last => Ok(LocatedChain { project, last }),
        };
    }
    if layout::signable(path) != Some(Signable::Index) {
        return Err(not_signed());
    }
    match stored::index_state(snapshot, path)? {
        Some(ReleaseState::Complete | ReleaseState::Revoked) => {}
        Some(ReleaseState::Collecting) | None => return Err(not_signed()),
    }
    let project = snapshot.governing_project(path).ok_or_else(|| stored::ungoverned(path))?;
    let copy = stored::signers_copy(snapshot, path)?.digest;
    // From the beginning, since a reader of the chain reads all its entries. Bytes never recur in a history: each
    // file's timestamp is later than the one before.
    let mut last = 1;
    while let Some(facts) = snapshot.read_entry_facts(&layout::history_entry(&project, last))? {
        if facts.signers == copy {
            return Ok(LocatedChain { project, last });
        }
        last += 1;
    }
    Err(stored::corrupt(path, "its signers file is not in the project's history").into())
}

/// A chain in which every step was agreed to by those who had to.
#[derive(Debug, Clone)]
pub struct VerifiedChain {
    pub project: RepoPath,
    /// The links in order of activation, never empty.
    pub links: Vec<VerifiedLink>,
}

#[derive(Debug, Clone)]
pub struct VerifiedLink {
    pub signers: SignersFile,
    pub metadata: Metadata,
    /// The digest of the signers file.
    pub digest: Sha512,
    pub metadata_digest: Sha512,
    pub activated_at: Timestamp,
}

impl VerifiedChain {
    /// The signers file at the end of the chain.
    pub fn last(&self) -> &VerifiedLink {
        self.links.last().expect("a verified chain has a link")
    }

    /// The newest link that was proposed by this time: its signers file, or one before it that it had not replaced yet, was in
    /// force then.
    pub fn newest_proposed_until(&self, time: Timestamp) -> usize {
        let is_proposed = |link: &VerifiedLink| link.metadata.origin.retrieved_at <= time;
        self.links.iter().rposition(is_proposed).unwrap_or(0)
    }

    /// The first link of those up to the end that all refuse a release that is not reproduced; `None` if the last does not.
    pub fn rebuilds_required_from(&self) -> Option<usize> {
        let requires =
            |link: &VerifiedLink| link.signers.rebuilds().is_some_and(|rebuilds| rebuilds.required);
        let since = self.links.iter().rposition(|link| !requires(link)).map_or(0, |last| last + 1);
        (since < self.links.len()).then_some(since)
    }

    /// The link whose signers file has this digest. There is at most one: each file is later than the one before.
    pub fn position(&self, signers: &Sha512) -> Option<usize> {
        self.links.iter().position(|link| link.digest == *signers)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{fault}", named_entry(*entry, fault))]
pub struct ChainError {
    /// The number of the entry, counted from 0.
    pub entry: usize,
    pub fault: ChainFault,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChainFault {
    #[error("the signers history is empty")]
    Empty,
    #[error("the signers file is invalid: {0}")]
    Signers(ParseError),
    #[error("the metadata is invalid: {0}")]
    Metadata(ParseError),
    #[error("the metadata belongs to the project {}", shown_text(.0.as_str()))]
    OtherProject(RepoPath),
    #[error("the metadata belongs to another signers file")]
    OtherSigners,
    #[error("it does not continue the entry before")]
    Broken,
    #[error("its time is not later than that of the entry before")]
    NotLater,
    #[error("the signature of {0} does not verify")]
    BadSignature(PublicKey),
    #[error("required signatures are missing")]
    NotAgreed,
    #[error(
        "the previous signers file delays rotations and its masters did not agree, so `agreed_at` is required"
    )]
    NoAgreement,
    #[error("it has `agreed_at`, but the previous signers file sets no delay for it")]
    NeedlessAgreement,
    #[error("its `agreed_at` is before the previous signers file took effect")]
    AgreedTooEarly,
    #[error("it was agreed to or took effect before its signers file was fetched")]
    BeforeFetched,
    #[error("required signatures were missing at its `agreed_at`")]
    NotAgreedThen,
    #[error("it took effect before the delay of the previous signers file was over")]
    Hasty,
}

/// An empty history has no entry that could be named.
fn named_entry(entry: usize, fault: &ChainFault) -> String {
    if *fault == ChainFault::Empty {
        return String::new();
    }
    format!("entry {entry} of the signers history: ")
}

/// Checks a chain from its root. Whether the root is the right one, only its user can know.
pub fn verify(history: &History, project: &RepoPath) -> Result<VerifiedChain, ChainError> {
    let mut links: Vec<VerifiedLink> = Vec::new();
    for (entry, recorded) in history.entries.iter().enumerate() {
        let link =
            verify_link(recorded, project, links.last()).map_err(|fault| ChainError { entry, fault })?;
        links.push(link);
    }
    if links.is_empty() {
        return Err(ChainError { entry: 0, fault: ChainFault::Empty });
    }
    Ok(VerifiedChain { project: project.clone(), links })
}

fn verify_link(
    entry: &HistoryEntry,
    project: &RepoPath,
    previous: Option<&VerifiedLink>,
) -> Result<VerifiedLink, ChainFault> {
    let signers = SignersFile::parse(entry.signers_config.as_bytes()).map_err(ChainFault::Signers)?;
    let metadata = Metadata::parse(entry.metadata.as_bytes()).map_err(ChainFault::Metadata)?;
    let digest = Sha512::of(entry.signers_config.as_bytes());
    if metadata.project_id != *project {
        return Err(ChainFault::OtherProject(metadata.project_id));
    }
    if metadata.signers_file_digest != digest {
        return Err(ChainFault::OtherSigners);
    }
    if metadata.previous != previous.map(|link| link.digest) {
        return Err(ChainFault::Broken);
    }
    if previous.is_some_and(|link| {
        link.signers.timestamp() >= signers.timestamp() || link.activated_at > entry.timestamp
    }) {
        return Err(ChainFault::NotLater);
    }
    let consent = Consent { current: previous.map(|link| &link.signers), proposed: &signers };
    let sets = [(&entry.signers_config, &entry.signatures), (&entry.metadata, &entry.metadata_signatures)];
    for (text, set) in sets {
        if !consent.is_complete(&verify_set(text, set)?) {
            return Err(ChainFault::NotAgreed);
        }
    }
    check_delay(entry, &consent, previous)?;
    check_fetched(entry, &metadata)?;
    let metadata_digest = Sha512::of(entry.metadata.as_bytes());
    Ok(VerifiedLink { signers, metadata, digest, metadata_digest, activated_at: entry.timestamp })
}

/// How far a clock can have been set back between two times that an honest server wrote (D222). It is as far as `fsck`
/// lets a time be from that of its commit, and a sixth of the shortest delay.
const MAX_BEFORE_FETCH: Duration = Duration::from_secs(10 * 60);

/// The signers signed when their file was fetched, so no one can have agreed to it before (D222). What was agreed to took
/// effect later, as `check_delay` has seen.
fn check_fetched(entry: &HistoryEntry, metadata: &Metadata) -> Result<(), ChainFault> {
    let lead = metadata.origin.retrieved_at.ahead_of(entry.agreed_at.unwrap_or(entry.timestamp));
    if lead.is_some_and(|lead| lead > MAX_BEFORE_FETCH) { Err(ChainFault::BeforeFetched) } else { Ok(()) }
}

/// Whether it waited as long as the file before it demands (D133). The times are those of the server.
fn check_delay(
    entry: &HistoryEntry,
    consent: &Consent<'_>,
    previous: Option<&VerifiedLink>,
) -> Result<(), ChainFault> {
    let sets = [&entry.signatures, &entry.metadata_signatures];
    let delay = consent.delay(&sets.map(SignatureSet::signers));
    let (previous, delay, agreed_at) = match (previous.zip(delay), entry.agreed_at) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(ChainFault::NeedlessAgreement),
        (Some(_), None) => return Err(ChainFault::NoAgreement),
        (Some((previous, delay)), Some(agreed_at)) => (previous, delay, agreed_at),
    };
    if agreed_at < previous.activated_at {
        return Err(ChainFault::AgreedTooEarly);
    }
    if !sets.iter().all(|set| consent.is_complete(&set.signers_until(agreed_at))) {
        return Err(ChainFault::NotAgreedThen);
    }
    let waited = entry.timestamp.ahead_of(agreed_at);
    if waited.is_some_and(|waited| waited >= delay) { Ok(()) } else { Err(ChainFault::Hasty) }
}

fn verify_set(text: &str, set: &SignatureSet) -> Result<BTreeSet<PublicKey>, ChainFault> {
    set.verify(text.as_bytes()).map_err(|(key, _)| ChainFault::BadSignature(key))
}
