//! Checking that a whole history was made by the rules, commit by commit. Only reads: it takes no lock, and a server may
//! be at work beside it.
//!
//! What the rules are, [`replay`] knows. Here commits become states, and states differences.

mod difference;
mod open;
mod plain;
pub mod replay;
mod report;
mod walk;

use std::path::Path;

use gix::ObjectId;

use self::replay::SpeaksFor;
pub use self::report::{AuditEvent, CheckError, Checked, Finding};

/// Checks the history of `main` in a data directory, a bare repository or a clone: all of it, or what came after a
/// commit whose state is taken as it is. Which project a URL may speak for, `speaks_for` knows.
pub fn check(
    dir: &Path,
    since: Option<ObjectId>,
    speaks_for: SpeaksFor,
    tell: &mut dyn FnMut(AuditEvent<'_>),
) -> Result<Checked, CheckError> {
    let opened = open::open(dir)?;
    walk::walk(&opened, since, speaks_for, tell)
}
