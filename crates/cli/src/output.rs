//! What is shown to a person.

use std::error::Error;

/// An error with its causes, one a line.
pub(crate) fn print_error(error: &dyn Error) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}
