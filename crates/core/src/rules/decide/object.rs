//! Objecting to a release, and taking the objection back (D123–D125). It blocks nothing.

use thiserror::Error;

use super::{
    proposal::{MAX_LEAD, MAX_LEAD_MINUTES},
    titles,
};
use crate::{
    documents::{
        layout::{self, Signable},
        objections::{ObjectBody, Objection, StoredObjection},
    },
    rules::{
        snapshot::{Change, ReadError, Snapshot},
        stored::{self, ReleaseState},
    },
    values::{
        bounds::OBJECTIONS, digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objected {
    /// Whether the objection stands. Otherwise the document takes one back.
    pub stands: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ObjectRefusal {
    #[error("File not found: {0}")]
    NotFound(RepoPath),
    #[error("{0} is not a release; you can object only to releases")]
    NotARelease(RepoPath),
    #[error("{0} is revoked already, so there is nothing to object to")]
    Revoked(RepoPath),
    #[error("Invalid objection: {0}")]
    InvalidDocument(ParseError),
    #[error("Digest mismatch: subject_digest is not the digest of {0}. It was corrected: look at it again")]
    OtherIndex(RepoPath),
    #[error("Invalid signature: it does not verify for the objection")]
    BadSignature,
    #[error(
        "The objection's timestamp {0} is more than {MAX_LEAD_MINUTES} minutes ahead of the server's clock"
    )]
    TimestampAhead(Timestamp),
    #[error("the key {key} is not in the current signers file of {project}, so it cannot object")]
    NotASigner { key: PublicKey, project: RepoPath },
    #[error("The key {key} said something else about this release at {newest}: the objection must be later")]
    NotLater { key: PublicKey, newest: Timestamp },
    #[error("The key {0} has no objection to this release that it could take back")]
    NothingToTakeBack(PublicKey),
    #[error("{0} has {OBJECTIONS} objections already, and the limit is {OBJECTIONS}")]
    Full(RepoPath),
    #[error(transparent)]
    Stored(#[from] ReadError),
}

pub fn object(
    snapshot: &impl Snapshot,
    request: &ObjectBody,
    now: Timestamp,
) -> Result<(Change, Objected), ObjectRefusal> {
    // What is stored must allow the same decision again.
    let now = now.to_whole_seconds();
    let ObjectBody { file_path: file, public_key: objector, .. } = request;
    check_state(snapshot, file)?;
    let document = check_document(snapshot, request, now)?;
    let mut objections = stored::objections(snapshot, file)?;
    let earlier = objections.entries.get(objector).map(|earlier| &earlier.document);
    let stands = document.text.is_some();
    // Also a key that a rotation removed since: no one else can take back what it said.
    let takes_back = !stands && earlier.is_some();
    let active = stored::require_governing_signers(snapshot, file)?;
    if !takes_back && !active.file.lists(objector) {
        return Err(ObjectRefusal::NotASigner { key: *objector, project: active.project });
    }
    match earlier {
        Some(earlier) if document.timestamp <= earlier.timestamp => {
            return Err(ObjectRefusal::NotLater { key: *objector, newest: earlier.timestamp });
        }
        Some(Objection { text: Some(_), .. }) => {}
        Some(_) | None if !stands => return Err(ObjectRefusal::NothingToTakeBack(*objector)),
        Some(_) => {}
        None if objections.entries.len() >= OBJECTIONS => return Err(ObjectRefusal::Full(file.clone())),
        None => {}
    }
    let entry = StoredObjection {
        text: request.objection_json.clone(),
        document,
        signature: request.signature,
        collected_at: now,
    };
    objections.entries.insert(*objector, entry);
    let title = if stands { titles::OBJECT } else { titles::TAKE_BACK_OBJECTION };
    let mut change = Change::new(titles::message(title, file, objector));
    change.write(layout::objections_of(file), objections.write());
    Ok((change, Objected { stands }))
}

fn check_state(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), ObjectRefusal> {
    if layout::signable(file) != Some(Signable::Index) && stored::is_served(snapshot, file) {
        return Err(ObjectRefusal::NotARelease(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None => Err(ObjectRefusal::NotFound(file.clone())),
        Some(ReleaseState::Revoked) => Err(ObjectRefusal::Revoked(file.clone())),
        Some(ReleaseState::Collecting | ReleaseState::Complete) => Ok(()),
    }
}

fn check_document(
    snapshot: &impl Snapshot,
    request: &ObjectBody,
    now: Timestamp,
) -> Result<Objection, ObjectRefusal> {
    let bytes = request.objection_json.as_bytes();
    let document = Objection::parse(bytes).map_err(ObjectRefusal::InvalidDocument)?;
    let digest = Sha512::of(bytes);
    request.public_key.verify(&digest, &request.signature).map_err(|_| ObjectRefusal::BadSignature)?;
    if document.subject_digest != Sha512::of(&stored::require(snapshot, &request.file_path)?) {
        return Err(ObjectRefusal::OtherIndex(request.file_path.clone()));
    }
    if document.timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_LEAD) {
        return Err(ObjectRefusal::TimestampAhead(document.timestamp));
    }
    Ok(document)
}
