//! Stating what a builder got from the source of a release (D260). It completes nothing, and blocks nothing.

use std::collections::BTreeSet;

use crate::documents::statement::{Rebuild, SignedStatement};
use crate::documents::{
    index::ReleaseIndex, layout, layout::Signable, said::Said, signers::SignersFile, signers::keys_of,
};
use crate::rules::decide::proposal::MAX_DOCUMENT_LEAD;
use crate::rules::decide::statement::{Stated, StatementRefusal, StatementResult, read, verify};
use crate::rules::reproduction::compare;
use crate::rules::snapshot::{Change, Snapshot};
use crate::rules::{snapshot, stored, stored::ReleaseState};
use crate::values::{bounds::REBUILDS, digest::Sha512, key::PublicKey, time::Timestamp};

/// `in_force` of the outcome: whether the builder got the same.
pub fn rebuild(snapshot: &impl Snapshot, statement: &SignedStatement, now: Timestamp) -> StatementResult {
    // What is stored must allow the same decision again.
    let now = now.to_whole_seconds();
    let SignedStatement { file_path: file, text, signature, public_key: builder, .. } = statement;
    let state = check_rebuildable(snapshot, statement)?;
    let document = read(statement, Rebuild::parse)?;
    verify(statement)?;
    let index_bytes = stored::require(snapshot, file)?;
    if document.rebuild_of != *file {
        return Err(StatementRefusal::OtherRelease { named: document.rebuild_of, file: file.clone() });
    }
    if document.subject_digest != Sha512::of(&index_bytes) {
        return Err(StatementRefusal::OtherIndex(file.clone()));
    }
    if document.timestamp.ahead_of(now).is_some_and(|lead| lead > MAX_DOCUMENT_LEAD) {
        return Err(StatementRefusal::TimestampAhead { kind: statement.kind, timestamp: document.timestamp });
    }
    let builders = check_builder(snapshot, statement, state)?;
    let index = stored::parse_stored(file, ReleaseIndex::parse(&index_bytes))?;
    let compared = compare(&index, &document);
    if let Some((name, _)) = compared.iter().find(|(_, is_same)| is_same.is_none()) {
        return Err(StatementRefusal::NotComparable { name: (*name).clone(), file: file.clone() });
    }
    let is_same = compared.iter().all(|(_, is_same)| *is_same == Some(true));
    let mut rebuilds = stored::rebuilds(snapshot, file)?;
    if let Some(Said { document: earlier, .. }) = rebuilds.entries.get(builder) {
        if state == ReleaseState::Complete && !document.adds_to(earlier) {
            return Err(StatementRefusal::AlreadyStated(*builder));
        }
        let newest = earlier.timestamp;
        if document.timestamp <= newest {
            return Err(StatementRefusal::NotLater { kind: statement.kind, key: *builder, newest });
        }
    }
    // What those said counts for nothing whom a rotation has removed since. While there is room, it stays, so that no one
    // can hand in an older word of one who comes back.
    if rebuilds.entries.len() >= REBUILDS {
        rebuilds.entries.retain(|key, _| builders.contains(key));
    }
    let said = Said { text: text.clone(), document, signature: *signature, collected_at: now };
    rebuilds.entries.insert(*builder, said);
    let title = if is_same { snapshot::REBUILD } else { snapshot::REBUILD_OTHERWISE };
    let mut change = Change::new(snapshot::message(title, file, builder));
    change.write(layout::rebuilds_of(file), rebuilds.write());
    Ok((change, Stated { in_force: is_same }))
}

fn check_rebuildable(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
) -> Result<ReleaseState, StatementRefusal> {
    let file = &statement.file_path;
    if layout::signable(file) != Some(Signable::Index) && stored::is_served(snapshot, file) {
        return Err(StatementRefusal::NotRebuildable(file.clone()));
    }
    match stored::index_state(snapshot, file)? {
        None => Err(StatementRefusal::NotFound(file.clone())),
        Some(ReleaseState::Revoked) => Err(StatementRefusal::NotRebuiltAnyMore(file.clone())),
        Some(state) => Ok(state),
    }
}

/// Checks that the key is a builder now, and of this release. Returns the builders of the release.
fn check_builder(
    snapshot: &impl Snapshot,
    statement: &SignedStatement,
    state: ReleaseState,
) -> Result<BTreeSet<PublicKey>, StatementRefusal> {
    let SignedStatement { file_path: file, public_key: builder, .. } = statement;
    let active = stored::require_signers_in_force(snapshot, file)?;
    let builders_of = |signers: &SignersFile| keys_of(signers.builder_groups()).collect::<BTreeSet<_>>();
    let mut builders = builders_of(&active.file);
    if !builders.contains(builder) {
        return Err(StatementRefusal::NotABuilder { key: *builder, project: active.project });
    }
    if state == ReleaseState::Complete {
        builders = builders_of(&stored::signers_copy(snapshot, file)?.file);
    }
    if !builders.contains(builder) {
        return Err(StatementRefusal::NotABuilderThen { key: *builder, file: file.clone() });
    }
    Ok(builders)
}
