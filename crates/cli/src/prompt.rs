//! Questions to the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::error::CliError;

/// Whether questions are asked or answered by --yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Ask,
    Given,
}

/// Asks before something is done that signs or publishes. Only a plain `y` or `yes` goes on.
pub(crate) fn confirm(confirmation: Confirmation, question: &str) -> Result<(), CliError> {
    if ask(confirmation, question)? {
        return Ok(());
    }
    Err(CliError::other("nothing was done: the question was not answered with yes", "run it again"))
}

/// Whether the answer is yes.
pub(crate) fn ask(confirmation: Confirmation, question: &str) -> Result<bool, CliError> {
    if confirmation == Confirmation::Given {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(CliError::usage(
            format!("{question} No one can be asked: standard input is not a terminal"),
            "look at what is shown above, and pass --yes if that is what you want",
        ));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = io::stderr().flush().and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.map_err(|error| {
        CliError::other("the answer could not be read", "pass --yes instead").because(error)
    })?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
