//! What a staple proves about a release (D86): as of when, by which witnesses, and whether it is revoked or the newest. Whether
//! the log continues what a user saw of it, `log_pin` says.

use std::{collections::BTreeSet, slice, time::Duration};

use thiserror::Error;

use crate::log::checkpoint::{Checkpoint, CheckpointError, Cosignature, InclusionProof, SignedCheckpoint};
use crate::log::record::{LoggedState, ProjectRecord, Record, ReleaseRecord};
use crate::log::trie::{BitsDoNotRise, TriePath};
use crate::log::{note::Note, policy::Policy, status::StatusProof, tree};
use crate::values::{
    digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp, verifier_key::VerifierKey,
};
use crate::{documents::transparency::Transparency, proof::bundle::Staple, proof::verify::VerifiedArtifact};

/// Clocks differ. A witness further ahead than this is wrong, or lies about how fresh the state is.
pub(super) const MAX_AHEAD_SECONDS: i64 = 300;
const _: () = assert!(MAX_AHEAD_SECONDS == 5 * 60, "the message says so");

/// What the staple should be about: a release that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StapleSubject {
    pub index_path: RepoPath,
    pub index_digest: Sha512,
    pub project: RepoPath,
    /// All signers files of the project's chain, in their order.
    pub signers: Vec<Sha512>,
    /// All keys in the signers files.
    pub signer_keys: BTreeSet<PublicKey>,
}

/// The log and the witnesses that are believed.
#[derive(Debug, Clone, Copy)]
pub enum LogTrust<'a> {
    Policy(&'a Policy),
    /// A log's key that was pinned, or that the server names: no witness is known.
    Key(&'a VerifierKey),
    /// No log is known: all of it is the server's word.
    Unknown,
}

/// What a staple proves, or, without witnesses, what the server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freshness {
    /// The checkpoint, to be pinned: a later one must continue it.
    pub checkpoint: Checkpoint,
    /// The log's key, if one was known and has signed.
    pub log_key: Option<VerifierKey>,
    /// The latest time at which enough witnesses had seen no newer state. `None`: by the word of log or server alone.
    pub as_of: Option<Timestamp>,
    /// The cosignatures of all known witnesses, at most one each.
    pub cosignatures: Vec<Cosignature>,
    pub quorum: QuorumCount,
    /// The state of the release.
    pub state: LoggedState,
    /// The number of the release: it was the n-th of its project to be completed.
    pub number: u32,
    /// How many releases were completed after it; 0 if it is the newest.
    pub newer: u32,
    /// The indexes of the newest of those, the newest first.
    pub newer_indexes: Vec<RepoPath>,
    pub signers: LoggedSigners,
}

/// Witnesses whose cosignatures count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuorumCount {
    /// The fewest witnesses that can be enough.
    pub needed: usize,
    pub cosigned: usize,
    pub witnesses: usize,
    /// How many of those that have cosigned replay the rules, by the word of the policy; `None` if it says that of
    /// none.
    pub replaying: Option<usize>,
}

/// The project's signers in the log, compared with the chain that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedSigners {
    /// The chain ends with the newest.
    Newest,
    /// There are newer signers, which the chain does not show. `history` counts all.
    Replaced { history: u32 },
    /// The chain shows newer ones, which were not yet in force then.
    LogIsBehind { history: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StapleError {
    #[error("its checkpoint cannot be used: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("the key {0} is a signer's and also a log's or a witness's; each needs a key of its own")]
    SignersKey(PublicKey),
    #[error("the time of the witness {witness} is more than five minutes ahead; check your clock")]
    FromTheFuture { witness: String },
    #[error(
        "too few witnesses have cosigned its checkpoint: {} of {}, and at least {} are needed",
        .0.cosigned, .0.witnesses, .0.needed
    )]
    TooFewWitnesses(QuorumCount),
    #[error("its leaf is not the last one in the log; the state that it shows is older than its checkpoint")]
    NotTheLastLeaf,
    #[error("its leaf is not in the log")]
    NotInTheLog,
    #[error(transparent)]
    Bits(#[from] BitsDoNotRise),
    #[error("its record of the {0} is not in the status map")]
    NotInTheMap(&'static str),
    #[error("it is about another release")]
    OtherRelease,
    #[error("it is about another index of this release")]
    OtherIndex,
    #[error("it is about another project")]
    OtherProject,
    #[error("its records contradict each other")]
    Contradiction,
    #[error("the signers file in the log is not the one in the project's chain")]
    OtherSigners,
}

/// How old a proof from `as_of` is. Clocks differ: one from ahead of ours is from now.
pub fn age(as_of: Timestamp, now: Timestamp) -> Duration {
    now.ahead_of(as_of).unwrap_or_default()
}

/// Whether a proof from `as_of` says too little about now.
pub fn is_too_old(as_of: Timestamp, now: Timestamp, most: Duration) -> bool {
    age(as_of, now) > most
}

/// Checks everything but the age, of which the caller knows how much is too much ([`is_too_old`]). That the release is
/// revoked, not the newest, or signed by replaced signers, is a result and no error.
pub fn verify(
    staple: &Staple,
    subject: &StapleSubject,
    trust: LogTrust<'_>,
    now: Timestamp,
) -> Result<Freshness, StapleError> {
    let checkpoint = Checkpoint::parse(staple.proof.note.text())?;
    let attested = verify_checkpoint(&staple.proof.note, subject, trust, now)?;
    verify_inclusions(staple, &checkpoint)?;
    let StatusProof { release, project, .. } = &staple.statuses;
    check_subject(release, project, subject)?;
    // The path of the release proves its number, and that of the project the count; the log could still lie about one.
    let newer = project.completed.checked_sub(release.number).ok_or(StapleError::Contradiction)?;
    if project.newest().any(|(number, index)| (number == release.number) != (*index == release.path)) {
        return Err(StapleError::Contradiction);
    }
    let is_newer = |(number, index): (u32, &RepoPath)| (number > release.number).then(|| index.clone());
    Ok(Freshness {
        checkpoint,
        log_key: attested.log_key,
        as_of: attested.as_of,
        cosignatures: attested.cosignatures,
        quorum: attested.quorum,
        state: release.state,
        number: release.number,
        newer,
        newer_indexes: project.newest().filter_map(is_newer).collect(),
        signers: compare_signers(project, &subject.signers)?,
    })
}

fn verify_checkpoint(
    note: &Note,
    subject: &StapleSubject,
    trust: LogTrust<'_>,
    now: Timestamp,
) -> Result<Attested, StapleError> {
    let (logs, witnesses) = match trust {
        LogTrust::Policy(policy) => (policy.log_keys(), policy.witness_keys()),
        LogTrust::Key(key) => (vec![key.clone()], Vec::new()),
        LogTrust::Unknown => return Ok(Attested::default()),
    };
    let mut keys = logs.iter().chain(&witnesses).filter_map(VerifierKey::ed25519);
    if let Some(key) = keys.find(|key| subject.signer_keys.contains(key)) {
        return Err(StapleError::SignersKey(key));
    }
    let signed = SignedCheckpoint::open(note, &logs, &witnesses)?;
    let cosignatures = list_cosignatures(&signed, now)?;
    let log_key = Some(signed.log_key().clone());
    let (as_of, quorum) = match trust {
        LogTrust::Policy(policy) => count_witnesses(policy, &cosignatures)?,
        LogTrust::Key(_) | LogTrust::Unknown => (None, QuorumCount::default()),
    };
    Ok(Attested { log_key, as_of, cosignatures, quorum })
}

/// Counts which witnesses of a policy have cosigned a checkpoint of this log. The time is the latest one at which enough of them had
/// seen no newer state; `None` if the policy needs no witness.
pub fn count_cosigned(
    note: &Note,
    log: &VerifierKey,
    policy: &Policy,
    now: Timestamp,
) -> Result<(Option<Timestamp>, QuorumCount), StapleError> {
    let signed = SignedCheckpoint::open(note, slice::from_ref(log), &policy.witness_keys())?;
    count_witnesses(policy, &list_cosignatures(&signed, now)?)
}

fn list_cosignatures(signed: &SignedCheckpoint, now: Timestamp) -> Result<Vec<Cosignature>, StapleError> {
    let cosignatures: Vec<Cosignature> = signed.cosignatures().cloned().collect();
    match cosignatures.iter().find(|cosignature| is_ahead(cosignature.time, now)) {
        Some(ahead) => Err(StapleError::FromTheFuture { witness: ahead.witness.name().to_owned() }),
        None => Ok(cosignatures),
    }
}

/// The leaf is the last one in the tree, and both records are in its map.
fn verify_inclusions(staple: &Staple, checkpoint: &Checkpoint) -> Result<(), StapleError> {
    let InclusionProof { index, hashes, .. } = &staple.proof;
    // An older leaf is in the tree too, and has an older state.
    if index + 1 != checkpoint.size {
        return Err(StapleError::NotTheLastLeaf);
    }
    tree::verify_inclusion(&staple.leaf.hash(), *index, checkpoint.size, hashes, &checkpoint.root)
        .map_err(|_| StapleError::NotInTheLog)?;
    let StatusProof { release, release_path, project, project_path } = &staple.statuses;
    let is_in_map = |record: Record, path: &TriePath| {
        path.root(&record.key(), record.text().as_bytes()).map(|root| root == staple.leaf.state)
    };
    if !is_in_map(Record::Release(release.clone()), release_path)? {
        return Err(StapleError::NotInTheMap("release"));
    }
    if !is_in_map(Record::Project(project.clone()), project_path)? {
        return Err(StapleError::NotInTheMap("project"));
    }
    Ok(())
}

impl StapleSubject {
    pub fn of(artifact: &VerifiedArtifact) -> Self {
        let links = &artifact.chain.links;
        Self {
            index_path: artifact.path.clone(),
            index_digest: artifact.index_digest,
            project: artifact.chain.project.clone(),
            signers: links.iter().map(|link| link.digest).collect(),
            signer_keys: links.iter().flat_map(|link| link.signers.keys()).collect(),
        }
    }
}

/// What is known of a checkpoint beside its text.
#[derive(Default)]
struct Attested {
    log_key: Option<VerifierKey>,
    as_of: Option<Timestamp>,
    cosignatures: Vec<Cosignature>,
    quorum: QuorumCount,
}

fn is_ahead(time: u64, now: Timestamp) -> bool {
    let time = i64::try_from(time).unwrap_or(i64::MAX);
    time.saturating_sub(now.unix_seconds()) > MAX_AHEAD_SECONDS
}

fn count_witnesses(
    policy: &Policy,
    cosignatures: &[Cosignature],
) -> Result<(Option<Timestamp>, QuorumCount), StapleError> {
    let times = cosignatures.iter().map(|cosignature| (cosignature.witness.clone(), cosignature.time));
    let cosigned: BTreeSet<VerifierKey> = times.clone().map(|(key, _)| key).collect();
    let (counted, replaying) = (policy.quorum_witnesses(), policy.replaying_keys());
    let replaying: Vec<_> = counted.iter().filter(|witness| witness.is_subset(&replaying)).collect();
    let has_cosigned = |witness: &BTreeSet<VerifierKey>| !witness.is_disjoint(&cosigned);
    let quorum = policy.tolerance().map_or(QuorumCount::default(), |tolerance| QuorumCount {
        needed: tolerance.needed,
        cosigned: counted.iter().filter(|witness| has_cosigned(witness)).count(),
        witnesses: tolerance.witnesses,
        replaying: (!replaying.is_empty())
            .then(|| replaying.iter().filter(|witness| has_cosigned(witness)).count()),
    });
    if !policy.is_met(&cosigned) {
        return Err(StapleError::TooFewWitnesses(quorum));
    }
    // A time that is not ahead of the clock is one of the calendar.
    let as_of = policy.as_of(times).and_then(|time| i64::try_from(time).ok());
    Ok((as_of.and_then(|time| Timestamp::from_unix_seconds(time).ok()), quorum))
}

fn check_subject(
    release: &ReleaseRecord,
    project: &ProjectRecord,
    subject: &StapleSubject,
) -> Result<(), StapleError> {
    if release.path != subject.index_path {
        return Err(StapleError::OtherRelease);
    }
    if release.index != subject.index_digest {
        return Err(StapleError::OtherIndex);
    }
    if project.path != subject.project { Err(StapleError::OtherProject) } else { Ok(()) }
}

/// The n-th signers file in the log must be the n-th of the chain. A chain that ends earlier does not show the newest.
fn compare_signers(project: &ProjectRecord, chain: &[Sha512]) -> Result<LoggedSigners, StapleError> {
    let history = project.history;
    let length = usize::try_from(history).unwrap_or(usize::MAX);
    match chain.get(length.saturating_sub(1)) {
        None => Ok(LoggedSigners::Replaced { history }),
        Some(signers) if *signers != project.signers => Err(StapleError::OtherSigners),
        Some(_) if length == chain.len() => Ok(LoggedSigners::Newest),
        Some(_) => Ok(LoggedSigners::LogIsBehind { history }),
    }
}

// The policy that a signers file gives (D91).

impl Transparency {
    pub fn policy(&self) -> Policy {
        Policy::of_groups(self.log().clone(), self.witnesses())
            .expect("no key occurs twice and each threshold can be reached: checked in parse")
    }
}
