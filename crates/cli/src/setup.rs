//! What a command needs before it begins: the configuration, and a runtime.

use countersign_server::config::ConfigFile;
use tokio::runtime::{Builder, Runtime};

use crate::{args::FileArgs, error::CliError};

pub(crate) fn read_config(args: &FileArgs) -> Result<ConfigFile, CliError> {
    match &args.config {
        Some(path) => Ok(ConfigFile::read(path)?),
        None => Ok(ConfigFile::default()),
    }
}

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
