//! One file per command.

use std::{io, path::PathBuf};

use countersign_core::decide::drop::DropRefusal;
use countersign_server::{
    app::StartError,
    config::{ConfigError, ConfigFile},
    data_dir::DataDirError,
    store::StoreError,
};
use thiserror::Error;

use crate::args::FileArgs;

pub(crate) mod admin;
pub(crate) mod serve;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error("the repository could not be changed")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Drop(#[from] DropRefusal),
    #[error("there is no repository in the data directory {}: name it with --data-dir", .0.display())]
    NoRepository(PathBuf),
    #[error("{what}")]
    Io { what: &'static str, source: io::Error },
}

impl CliError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

fn read_config(args: &FileArgs) -> Result<ConfigFile, CliError> {
    match &args.config {
        Some(path) => Ok(ConfigFile::read(path)?),
        None => Ok(ConfigFile::default()),
    }
}

/// The runtime that server code runs in.
fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::io("the asynchronous runtime could not be started"))
}
