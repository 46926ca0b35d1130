//! The runtime that a command needs before it begins.

use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;

/// The runtime that server code runs in.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_multi_thread().enable_all().build().map_err(no_runtime)
}

/// The runtime of the client: it waits for one thing at a time.
pub(crate) fn client_runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

fn no_runtime(error: std::io::Error) -> CliError {
    CliError::other("the asynchronous runtime could not be started", "check the limits of processes")
        .because(error)
}
