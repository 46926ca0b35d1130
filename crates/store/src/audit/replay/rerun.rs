//! Running a decision again, with a request that is put together from what the commit stored.

use std::{collections::BTreeMap, collections::BTreeSet, fmt::Display, ops::RangeInclusive, sync::Arc};

use countersign_api::event::Claim;
use countersign_core::documents::index::{PublishedFile, ReleaseIndex};
use countersign_core::documents::layout::{RepositoryMarker, Signable};
use countersign_core::documents::statement::{SignedStatement, StatementKind};
use countersign_core::documents::{
    layout, signatures::Collected, signed_request::SignedRequest, signers::SignersOrigin,
};
use countersign_core::rules::auth::{AuthHeaders, AuthRefusal, VerifiedRequest, verify_request};
use countersign_core::rules::decide::assets::{CollectingLimits, Release};
use countersign_core::rules::decide::{assets, proposal, sign, sign::SignaturesBody, statement};
use countersign_core::rules::snapshot::{Change, Snapshot};
use countersign_core::rules::{decide, place, place::PlaceError, stored};
use countersign_core::values::key::{PublicKey, Signature};
use countersign_core::values::{path::RepoPath, shown::shown_text, time::Timestamp};

use crate::audit::replay::violation::{ReplayFault, SeenNonces, Violation, around};

/// Checks the commits of one history, from the oldest on.
#[derive(Debug)]
pub struct Replay {
    pub(super) speaks_for: SpeaksFor,
    pub(crate) nonces: SeenNonces,
}

/// Whether a signers file of this origin may speak for this project, by the URL alone; if not, why.
pub type SpeaksFor = fn(&SignersOrigin, &RepoPath) -> Result<(), String>;

/// The states before and after a commit, and its time.
pub(crate) struct Between<'a, S> {
    pub(crate) before: &'a S,
    pub(crate) after: &'a S,
    pub(crate) time: Timestamp,
}

/// What a decision gave.
#[derive(Debug)]
pub(crate) struct Rerun {
    pub(crate) change: Change,
    /// The files that the request was put together from.
    pub(crate) evidence: BTreeSet<RepoPath>,
    /// The time of the decision as the commit stored it, and where.
    pub(crate) stated: Option<(RepoPath, Timestamp)>,
    /// The violation, if the decision came to something else than the commit claims.
    pub(crate) outcome: Option<Violation>,
}

impl Replay {
    pub fn new(speaks_for: SpeaksFor) -> Self {
        Self { speaks_for, nonces: SeenNonces::default() }
    }

    /// A request that an earlier commit stored, and no later one may hold.
    pub fn note_request(&mut self, request: &[u8], commit: Timestamp) {
        if let Ok(request) = SignedRequest::parse(request)
            && let Ok(signed) = Timestamp::parse(&request.timestamp)
            && let Ok(verified) = verify_within(&request, &(signed..=signed))
        {
            self.nonces.accept(verified, commit);
        }
    }

    pub(crate) fn rerun(
        &mut self,
        claim: &Claim,
        between: &Between<'_, impl Snapshot>,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, .. } = *between;
        match claim {
            Claim::Create => create(after),
            Claim::Register { project, .. } => self.register(between, project),
            Claim::Update { project, submitter, url, due: _ } => {
                self.update(between, project, submitter, url)
            }
            Claim::Sign { file, signer, completes } => sign(between, file, signer, *completes),
            Claim::Agree { project, signer, due: _ } => {
                sign(between, &layout::pending_signers(project), signer, false)
            }
            Claim::Activate { project } => Self::activate(between, project),
            Claim::Veto { project, master, completes } => Self::veto(between, project, master, *completes),
            Claim::Assets { index, caller } => register_assets(between, index, caller),
            Claim::Withdraw { index, caller } => self.withdraw(between, index, caller),
            Claim::Object { index, objector, stands: _ } => Self::object(between, index, objector),
            Claim::Rebuild { index, builder, is_same: _ } => Self::rebuild(between, index, builder),
            Claim::Revoke { file, revoker, completes } => self.revoke(between, file, revoker, *completes),
            Claim::Drop { project } => {
                let dropped = proposal::drop_pending(before, project);
                let (change, ()) = dropped.map_err(refused(&layout::pending_signers(project)))?;
                Ok(Rerun { change, evidence: BTreeSet::new(), stated: None, outcome: None })
            }
        }
    }

    fn revoke(
        &mut self,
        between: &Between<'_, impl Snapshot>,
        file: &RepoPath,
        revoker: &PublicKey,
        completes: bool,
    ) -> Result<Rerun, Violation> {
        let Between { before, after, time } = *between;
        let revocation = layout::revocation_of(file);
        let (document_path, set_path) = if completes {
            (revocation.clone(), layout::signatures_of(&revocation))
        } else {
            (layout::pending_revocation_of(file), layout::pending_revocation_signatures_of(file))
        };
        let text = read_text(after, &document_path)?;
        let collected = signature_in(after, &set_path, revoker)?;
        let statement = SignedStatement {
            kind: StatementKind::Revocation,
            file_path: file.clone(),
            text,
            signature: collected.signature,
            public_key: *revoker,
        };
        let request_path = layout::request_of(&revocation);
        let request = match after.read(&request_path)? {
            Some(bytes) => {
                let request = stored::parse_stored(&request_path, SignedRequest::parse(&bytes))?;
                let body = SignedStatement::parse(statement.kind, request.payload.as_bytes());
                if body.map_err(|error| Violation::unproven(&request_path, error))? != statement {
                    return Err(Violation::unproven(&request_path, "it asks for another revocation"));
                }
                self.check_request(&request_path, &request, around(collected.collected_at), time)?;
                request
            }
            // Where the document names its subject, the request is neither needed nor stored.
            None => unstored_request(*revoker),
        };
        let revoked = statement::revoke(before, &statement, &request, collected.collected_at);
        let (change, outcome) = revoked.map_err(refused(file))?;
        // After a rotation, the signatures may suffice; the signer who carries it out has signed before.
        let earlier = before.read_signatures(&layout::pending_revocation_signatures_of(file))?;
        let is_new = earlier.is_none_or(|set| set.entries.get(revoker) != Some(&collected));
        Ok(Rerun {
            change,
            evidence: [document_path, set_path.clone(), request_path].into(),
            stated: is_new.then(|| (set_path.clone(), collected.collected_at)),
            outcome: compare_outcome(&set_path, completes, outcome.in_force),
        })
    }

    /// Whether a stored request is one that a server would have accepted between these times, before this commit.
    pub(crate) fn check_request(
        &mut self,
        path: &RepoPath,
        request: &SignedRequest,
        when: RangeInclusive<Timestamp>,
        commit: Timestamp,
    ) -> Result<(), Violation> {
        let verified = verify_within(request, &when);
        let verified = verified.map_err(|refusal| Violation::unproven(path, refusal))?;
        let is_new = self.nonces.accept(verified, commit);
        if is_new { Ok(()) } else { Err(Violation::at(path, ReplayFault::UsedNonce)) }
    }
}

/// Proves that a server whose clock showed one of these times would have accepted the request, if its nonce was new.
fn verify_within(
    request: &SignedRequest,
    when: &RangeInclusive<Timestamp>,
) -> Result<VerifiedRequest, AuthRefusal> {
    let headers = AuthHeaders {
        timestamp: &request.timestamp,
        nonce: &request.nonce,
        signature: &request.signature.to_header(),
        public_key: &request.public_key.to_string(),
    };
    let timestamp = Timestamp::parse(&request.timestamp).map_err(|_| AuthRefusal::TimestampFormat)?;
    // Of these times the one at which the request is most welcome: its own, or the one that is nearest to it.
    let now = timestamp.max(*when.start()).min(*when.end());
    verify_request(&headers, request.payload.as_bytes(), now)
}

fn create(after: &impl Snapshot) -> Result<Rerun, Violation> {
    let path = RepositoryMarker::path();
    let marker = stored::parse_stored(&path, RepositoryMarker::parse(&read(after, &path)?))?;
    let change = decide::register::create(marker.created_at);
    Ok(Rerun {
        change,
        evidence: [path.clone()].into(),
        stated: Some((path, marker.created_at)),
        outcome: None,
    })
}

fn sign(
    between: &Between<'_, impl Snapshot>,
    file: &RepoPath,
    signer: &PublicKey,
    completes: bool,
) -> Result<Rerun, Violation> {
    let Between { before, after, .. } = *between;
    // Each signed file, and the file beside which the commit put its signatures.
    let mut signed = vec![(file.clone(), file.clone())];
    if let Some(Signable::PendingSigners { project }) = layout::signable(file) {
        let beside = if completes { layout::active_signers(&project) } else { file.clone() };
        signed =
            vec![(file.clone(), beside.clone()), (layout::metadata_of(file), layout::metadata_of(&beside))];
    }
    let mut signatures = BTreeMap::new();
    let (mut evidence, mut stated) = (BTreeSet::new(), None);
    for (path, beside) in signed {
        let set_path =
            if completes { layout::signatures_of(&beside) } else { layout::pending_signatures_of(&beside) };
        let collected = signature_in(after, &set_path, signer)?;
        signatures.insert(path, collected.signature);
        evidence.insert(set_path.clone());
        stated.get_or_insert((set_path, collected.collected_at));
    }
    let (set_path, now) = stated.expect("the file itself is among the signed ones");
    let formats_path = layout::other_formats_of(file);
    // Who has signed once cannot sign again, so what is there of this signer came with this signature.
    let other_formats = stored::other_formats(after, file)?.entries.remove(signer).unwrap_or_default();
    evidence.insert(formats_path);
    let submission =
        SignaturesBody { file_path: file.clone(), public_key: *signer, signatures, other_formats };
    let (change, outcome) = sign::sign(before, &submission, now).map_err(refused(file))?;
    // Signers that wait have all signatures, and are not in force.
    let is_done = outcome.is_complete && outcome.waits_until.is_none();
    let outcome = compare_outcome(&set_path, completes, is_done);
    Ok(Rerun { change, evidence, stated: Some((set_path, now)), outcome })
}

fn register_assets(
    between: &Between<'_, impl Snapshot>,
    path: &RepoPath,
    caller: &PublicKey,
) -> Result<Rerun, Violation> {
    let Between { before, after, .. } = *between;
    let misplaced = |reason: String| Violation::at(path, ReplayFault::Misplaced(reason));
    let index = stored::parse_stored(path, ReleaseIndex::parse(&read(after, path)?))?;
    let dir = path.parent().filter(|dir| layout::index_in(dir) == *path);
    let dir = dir.ok_or_else(|| misplaced("it is not the path of an index".to_owned()))?;
    dir.check_storable_dir().map_err(|error| misplaced(error.to_string()))?;
    check_release(&index, path, &dir).map_err(misplaced)?;
    check_content(&index)
        .map_err(|reason| Violation::at(path, ReplayFault::Unreadable(reason.to_owned())))?;
    let (project, mirrored_on) = (index.project_id, index.mirrored_on);
    let release = Release {
        dir,
        release_url: index.release_url,
        published_on: index.published_on,
        published_files: index.published_files,
    };
    // How many may collect at a time is the operator's choice, and may have been another one then.
    let written = release.write_index(&project, mirrored_on).map_err(refused(path))?;
    let registered = assets::register_assets(before, &written, caller, CollectingLimits::NONE);
    let (mut change, _) = registered.map_err(refused(path))?;
    accept_forgotten(&mut change, between, path)?;
    let stated = Some((path.clone(), mirrored_on));
    Ok(Rerun { change, evidence: [path.clone()].into(), stated, outcome: None })
}

/// Servers before D224 kept no objections to a content that went. Their commits leave the file of earlier objections as
/// it was.
pub(super) fn accept_forgotten(
    change: &mut Change,
    between: &Between<'_, impl Snapshot>,
    index: &RepoPath,
) -> Result<(), Violation> {
    let path = layout::earlier_objections_of(index);
    if change.files.contains_key(&path) && between.before.read(&path)? == between.after.read(&path)? {
        change.files.remove(&path);
    }
    Ok(())
}

/// Whether an index is about the release of its directory, as far as the server sees to it. Where the assets of a
/// forge's release lie is the forge's affair; who downloads them looks more closely (`place::check_place`).
fn check_release(index: &ReleaseIndex, path: &RepoPath, dir: &RepoPath) -> Result<(), String> {
    let Some(url) = &index.release_url else {
        return place::check_place(index, path).map_err(|error| error.to_string());
    };
    let is_here = dir.self_and_ancestors().any(|project| place::release_tag_at(url, &project, dir).is_some());
    if is_here { Ok(()) } else { Err(PlaceError::OtherRelease(shown_text(url)).to_string()) }
}

/// What an index of the server never is, by its form alone. Release pages are read on forges; but a host may have been
/// a file server when the project was registered, so what the signers file says of its origin proves nothing here.
fn check_content(index: &ReleaseIndex) -> Result<(), &'static str> {
    if index.published_files.is_empty() {
        return Err("it lists no file, and the server makes no such index");
    }
    let all = |knows: fn(&PublishedFile) -> bool| index.published_files.iter().all(knows);
    match &index.release_url {
        None if index.published_on.is_some() || !all(|file| file.size.is_none()) => {
            Err("it says when files were published, or how long they are, and checksums files do not tell")
        }
        Some(_)
            if !all(|file| {
                file.size.is_some() && file.digests.sha256.is_some() && file.digests.sha512.is_some()
            }) =>
        {
            Err("it lacks a size or a digest, and the server downloads the files of a release to know them")
        }
        None | Some(_) => Ok(()),
    }
}

pub(super) fn compare_outcome(file: &RepoPath, claimed: bool, is_complete: bool) -> Option<Violation> {
    let fault = match (claimed, is_complete) {
        (true, false) => "it is made complete, but its signatures do not reach the threshold in force",
        (false, true) => "its signatures reach the threshold in force, but it is not made complete",
        (true, true) | (false, false) => return None,
    };
    Some(Violation::at(file, ReplayFault::Other(fault)))
}

pub(super) fn signature_in(
    after: &impl Snapshot,
    set: &RepoPath,
    signer: &PublicKey,
) -> Result<Collected, Violation> {
    let signatures = after.read_signatures(set)?.ok_or_else(|| Violation::at(set, ReplayFault::Absent))?;
    signatures
        .entries
        .get(signer)
        .copied()
        .ok_or_else(|| Violation::at(set, ReplayFault::NoSignature(*signer)))
}

/// A stand-in for a request that no file of the commit holds. A decision that would store it gives another change than
/// the commit, since no key can have signed this.
pub(crate) fn unstored_request(public_key: PublicKey) -> SignedRequest {
    SignedRequest {
        timestamp: String::new(),
        nonce: String::new(),
        payload: String::new(),
        public_key,
        signature: Signature::from_bytes([0; 64]),
    }
}

pub(crate) fn read(after: &impl Snapshot, path: &RepoPath) -> Result<Arc<[u8]>, Violation> {
    after.read(path)?.ok_or_else(|| Violation::at(path, ReplayFault::Absent))
}

pub(super) fn read_text(after: &impl Snapshot, path: &RepoPath) -> Result<String, Violation> {
    String::from_utf8(read(after, path)?.to_vec())
        .map_err(|_| Violation::at(path, ReplayFault::Unreadable("it is not UTF-8".to_owned())))
}

pub(crate) fn refused<R: Display>(subject: &RepoPath) -> impl FnOnce(R) -> Violation {
    move |refusal| Violation::at(subject, ReplayFault::Refused(refusal.to_string()))
}
