//! One file per command.

use countersign_server::config::ConfigFile;
use tokio::runtime::{Builder, Runtime};

use crate::{args::FileArgs, error::CliError};

pub(crate) mod admin;
pub(crate) mod bundle;
pub(crate) mod chain;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod download;
pub(crate) mod fsck;
pub(crate) mod keygen;
pub(crate) mod pending;
pub(crate) mod ping;
pub(crate) mod propose;
pub(crate) mod release;
pub(crate) mod revoke;
pub(crate) mod serve;
pub(crate) mod serve_files;
pub(crate) mod sign;
pub(crate) mod signers;
pub(crate) mod status;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod watch;

fn read_config(args: &FileArgs) -> Result<ConfigFile, CliError> {
    match &args.config {
        Some(path) => Ok(ConfigFile::read(path)?),
        None => Ok(ConfigFile::default()),
    }
}

/// The runtime that server code runs in.
fn runtime() -> Result<Runtime, CliError> {
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
