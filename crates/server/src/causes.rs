//! Why something failed.

use std::error::Error as StdError;

/// An error with all its causes on one line.
pub(crate) fn describe(error: &dyn StdError) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
