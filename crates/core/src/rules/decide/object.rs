//! Objecting to a release, and taking the objection back (D123–D125). It blocks nothing.

use crate::documents::statement::{Objection, SignedStatement};
use crate::documents::{layout, layout::Signable, objections::StoredObjection};
use crate::rules::decide::proposal::MAX_LEAD;
use crate::rules::decide::statement::{Stated, StatementRefusal, StatementResult, read, verify};
use crate::rules::{snapshot, snapshot::Change, snapshot::Snapshot, stored, stored::ReleaseState};
use crate::values::{bounds::OBJECTIONS, digest::Sha512, path::RepoPath, time::Timestamp};

pub fn object(snapshot: &impl Snapshot, statement: &SignedStatement, now: Timestamp) -> StatementResult {
    // What is stored must allow the same decision again.
    let now = now.to_whole_seconds();
    let SignedStatement { file_path: file, text, signature, public_key: objector, .. } = statement;
    check_state(snapshot, file)?;
    let document = check_document(snapshot, statement, now)?;
    let mut objections = stored::objections(snapshot, file)?;
    let earlier = objections.entries.get(objector).map(|earlier| &earlier.document);
    let stands = document.text.is_some();
    // Also a key that a rotation removed since: no one else can take back what it said.
    let takes_back = !stands && earlier.is_some();
    let active = stored::require_governing_signers(snapshot, file)?;
    if !takes_back && !active.file.lists(objector) {
        return Err(StatementRefusal::NotASigner { key: *objector, project: active.project });
    }
    match earlier {
        Some(earlier) if document.timestamp <= earlier.timestamp => {
            return Err(StatementRefusal::NotLater { key: *objector, newest: earlier.timestamp });
        }
        Some(Objection { text: Some(_), .. }) => {}
        Some(_) | None if !stands => return Err(StatementRefusal::NothingToTakeBack(*objector)),
        Some(_) => {}
        None if objections.entries.len() >= OBJECTIONS => return Err(StatementRefusal::Full(file.clone())),
        None => {}
    }
    let entry = StoredObjection { text: text.clone(), document, signature: *signature, collected_at: now };
    objections.entries.insert(*objector, entry);
    let title = if stands { snapshot::OBJECT } else { snapshot::TAKE_BACK_OBJECTION };
    let mut change = Change::new(snapshot::message(title, file, objector));
    change.write(layout::objections_of(file), objections.write());
    Ok((change, Stated { in_force: stands }))
}

fn check_state(snapshot: &impl Snapshot, file: &RepoPath) -> Result<(), StatementRefusal> {
    if layout::signable(file) != Some(Signable::Index) && stored::is_served(snapshot, file) {
        return Err(StatementRefusal::NotARelease(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None => Err(StatementRefusal::NotFound(file.clone())),
        Some(ReleaseState::Revoked) => Err(StatementRefusal::Revoked(file.clone())),
        Some(ReleaseState::Collecting | ReleaseState::Complete) => Ok(()),
    }
}

fn check_document(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    now: Timestamp,
) -> Result<Objection, StatementRefusal> {
    let document = read(statement, Objection::parse)?;
    verify(statement)?;
    if document.subject_digest != Sha512::of(&stored::require(snapshot, &statement.file_path)?) {
        return Err(StatementRefusal::OtherIndex(statement.file_path.clone()));
    }
    if document.timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_LEAD) {
        return Err(StatementRefusal::TimestampAhead(document.timestamp));
    }
    Ok(document)
}
