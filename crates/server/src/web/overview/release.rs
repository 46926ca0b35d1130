//! A release: its files, who has signed them, who has not, and whether it is revoked.

use super::{GroupProgress, Member, Names, Tally};
use countersign_api::signed::{begun_signatures, last_signed, read_state};
use countersign_core::{
    documents::{
        index::ReleaseIndex,
        layout,
        objections::StandingObjection,
        revocation::Revocation,
        signatures::SignatureSet,
        signers::{Role, Signer, SignersFile},
        withdrawal::Withdrawal,
    },
    rules::{
        snapshot::{ReadError, Snapshot},
        stored,
    },
    values::{digest::Sha512, other_format::OtherFormat, path::RepoPath, time::Timestamp},
};
use countersign_explain::strength::effective_groups;

pub use countersign_api::catalogue::ReleaseState;

#[derive(Debug, Clone)]
pub struct ReleaseOverview {
    pub path: RepoPath,
    pub index: ReleaseIndex,
    /// Of the index.
    pub digest: Sha512,
    pub state: ReleaseState,
    pub tally: Tally,
    /// Groups of artifact signers; all must be met.
    pub groups: Vec<GroupProgress>,
    /// When the last required signature came.
    pub completed_at: Option<Timestamp>,
    /// False if another signers file has replaced the one under which it was signed.
    pub has_current_signers: bool,
    pub revocation: Option<RevocationOverview>,
    /// A revocation that waits for more signatures.
    pub begun_revocation: Option<RevocationOverview>,
    /// How many have signed for other programs; only formats in which one has.
    pub formats: Vec<(OtherFormat, usize)>,
    /// Those that stand, the oldest first.
    pub objections: Vec<ObjectionOverview>,
    /// To contents that it had before, the first that went first.
    pub earlier_objections: Vec<ObjectionOverview>,
}

/// What a signer holds against a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectionOverview {
    pub signer: Signer,
    /// Whether the signers file in force still lists the signer.
    pub is_listed: bool,
    pub text: String,
    /// According to the signer.
    pub timestamp: Timestamp,
}

/// Who took a release back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithdrawalOverview {
    pub project: RepoPath,
    pub signer: Signer,
    pub reason: String,
    /// When the request was signed.
    pub at: Option<Timestamp>,
    /// To this release and to contents that it had before.
    pub objections: Vec<ObjectionOverview>,
}

#[derive(Debug, Clone)]
pub struct RevocationOverview {
    pub reason: String,
    /// According to the signer who began it.
    pub timestamp: Timestamp,
    pub signed: Vec<Member>,
    pub groups: Vec<GroupProgress>,
}

/// What a line about a release shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseSummary {
    pub state: ReleaseState,
    pub tally: Tally,
    /// Of a revocation that waits for more signatures.
    pub begun: Option<Tally>,
    /// When its newest signature came.
    pub last_signed_at: Option<Timestamp>,
    /// How many signers object to it.
    pub objections: usize,
}

/// `None` if there is no release at `path`.
pub fn describe_release(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<ReleaseOverview>, ReadError> {
    let Some((state, set)) = read_state(snapshot, path)? else { return Ok(None) };
    let bytes = stored::require(snapshot, path)?;
    let index = stored::parse_stored(path, ReleaseIndex::parse(&bytes))?;
    let governing = stored::signers_copy(snapshot, path)?;
    let current = stored::governing_signers(snapshot, path)?;
    let names = Names::of([&*governing.file]);
    let groups = governing.file.artifact_groups();
    let (objections, earlier_objections) = match &current {
        Some(current) => (
            list_objections(&current.file, stored::objections(snapshot, path)?.standing()),
            list_objections(&current.file, stored::earlier_objections(snapshot, path)?.said()),
        ),
        None => (Vec::new(), Vec::new()),
    };
    let completed_at = if state == ReleaseState::Collecting { None } else { last_signed(&set) };
    let begun_revocation = match &current {
        Some(current) => read_begun_revocation(snapshot, path, &current.file)?,
        None => None,
    };
    Ok(Some(ReleaseOverview {
        path: path.clone(),
        digest: Sha512::of(&bytes),
        index,
        state,
        tally: Tally::of(groups, &set.signers()),
        groups: groups.iter().map(|group| GroupProgress::of(group, &set, &names)).collect(),
        completed_at,
        has_current_signers: current.is_some_and(|current| current.bytes == governing.bytes),
        revocation: read_revocation(snapshot, path)?,
        begun_revocation,
        formats: count_formats(snapshot, path)?,
        objections,
        earlier_objections,
    }))
}

fn list_objections<'a>(
    current: &SignersFile,
    said: impl IntoIterator<Item = StandingObjection<'a>>,
) -> Vec<ObjectionOverview> {
    let names = Names::of([current]);
    let overview = |objection: StandingObjection<'_>| ObjectionOverview {
        signer: names.signer(objection.key),
        is_listed: current.lists(&objection.key),
        text: objection.text.to_owned(),
        timestamp: objection.timestamp,
    };
    said.into_iter().map(overview).collect()
}

/// `None` if no release was withdrawn here, or another one is here now.
pub fn describe_withdrawal(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<WithdrawalOverview>, ReadError> {
    let Some(Withdrawal { request, body }) = stored::withdrawal(snapshot, path)? else { return Ok(None) };
    let current = stored::governing_signers(snapshot, path)?;
    let earlier = stored::earlier_objections(snapshot, path)?;
    Ok(current.map(|current| WithdrawalOverview {
        objections: list_objections(&current.file, earlier.said()),
        signer: Names::of([&*current.file]).signer(request.public_key),
        project: current.project,
        reason: body.reason,
        at: Timestamp::parse(&request.timestamp).ok(),
    }))
}

fn count_formats(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Vec<(OtherFormat, usize)>, ReadError> {
    let stored = stored::other_formats(snapshot, path)?;
    let counts = OtherFormat::ALL.map(|format| (format, stored.count(format)));
    Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// `None` if there is no release at `path`.
pub fn summarise_release(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<ReleaseSummary>, ReadError> {
    let Some((state, set)) = read_state(snapshot, path)? else { return Ok(None) };
    let signers = stored::signers_copy(snapshot, path)?;
    let tally = Tally::of(signers.file.artifact_groups(), &set.signers());
    let begun = tally_begun_revocation(snapshot, path)?;
    let objections = stored::objections(snapshot, path)?.standing().len();
    Ok(Some(ReleaseSummary { state, tally, begun, last_signed_at: last_signed(&set), objections }))
}

fn tally_begun_revocation(snapshot: &impl Snapshot, path: &RepoPath) -> Result<Option<Tally>, ReadError> {
    if !snapshot.contains(&layout::pending_revocation_of(path)) {
        return Ok(None);
    }
    let Some(current) = stored::governing_signers(snapshot, path)? else { return Ok(None) };
    let signed = begun_signatures(snapshot, path)?.signers();
    Ok(Some(Tally::of_revocation(&current.file, &signed)))
}

fn read_revocation(
    snapshot: &impl Snapshot,
    path: &RepoPath,
) -> Result<Option<RevocationOverview>, ReadError> {
    let document = layout::revocation_of(path);
    let Some(bytes) = snapshot.read(&document)? else { return Ok(None) };
    let signers = stored::signers_copy(snapshot, &document)?;
    let set = snapshot.read_signatures(&layout::signatures_of(&document))?.unwrap_or_default();
    describe_revocation(&document, &bytes, &set, &signers.file).map(Some)
}

fn read_begun_revocation(
    snapshot: &impl Snapshot,
    path: &RepoPath,
    current: &SignersFile,
) -> Result<Option<RevocationOverview>, ReadError> {
    let document = layout::pending_revocation_of(path);
    let Some(bytes) = snapshot.read(&document)? else { return Ok(None) };
    let set = begun_signatures(snapshot, path)?;
    describe_revocation(&document, &bytes, &set, current).map(Some)
}

fn describe_revocation(
    path: &RepoPath,
    bytes: &[u8],
    set: &SignatureSet,
    signers: &SignersFile,
) -> Result<RevocationOverview, ReadError> {
    let document = stored::parse_stored(path, Revocation::parse(bytes))?;
    let names = Names::of([signers]);
    let groups = effective_groups(signers, Role::Revocation);
    Ok(RevocationOverview {
        reason: document.reason,
        timestamp: document.timestamp,
        signed: names.list_signed(set),
        groups: groups.iter().map(|group| GroupProgress::of(group, set, &names)).collect(),
    })
}
