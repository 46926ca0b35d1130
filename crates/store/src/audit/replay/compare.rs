//! What is between two states beside what the rules give.

use std::collections::BTreeSet;

use super::{Fault, Violation};
use countersign_core::{
    rules::snapshot::{Change, Snapshot},
    values::path::RepoPath,
};

/// Reads every file that the change writes, also where it expects the content that was there before: what cannot be
/// read is a violation, too.
pub(crate) fn compare(
    change: &Change,
    before: &impl Snapshot,
    after: &impl Snapshot,
    touched: &BTreeSet<RepoPath>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, expected) in &change.files {
        let found = match after.read(path) {
            Ok(found) => found,
            Err(error) => {
                violations.push(error.into());
                continue;
            }
        };
        let fault = match (expected, found) {
            (Some(expected), Some(found)) if *expected == found => continue,
            (None, None) => continue,
            (Some(_), Some(_)) => Fault::Different,
            (Some(_), None) if touched.contains(path) => Fault::Lost,
            (Some(_), None) => Fault::NotWritten,
            (None, Some(_)) => Fault::NotRemoved,
        };
        violations.push(Violation::at(path, fault));
    }
    for path in touched.iter().filter(|path| !change.files.contains_key(*path)) {
        let fault = match (before.contains(path), after.contains(path)) {
            (false, _) => Fault::Added,
            (true, true) => Fault::Changed,
            (true, false) => Fault::Removed,
        };
        violations.push(Violation::at(path, fault));
    }
    violations
}
