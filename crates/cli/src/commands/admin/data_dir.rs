//! The data directory of a server that is stopped.

use std::path::{Path, PathBuf};

use countersign_forge::origin::speaks_for;
use countersign_server::{config::GivenSettings, mirror::memory::MirrorMemory};
use countersign_store::open::{OpenSettings, OpenedData, open_repository};
use countersign_store::{StoreRole, clock::Clock, data_dir::DataDir, data_dir::DataDirError};

use super::owner;
use crate::{args::FileArgs, error::CliError};

/// No budget: an operator can always clean up.
pub(super) fn open_stopped(file: &GivenSettings, path: &Path) -> Result<(DataDir, OpenedData), CliError> {
    let data_dir = lock_stopped(path)?;
    // A mirror makes no commits of its own, and keeps no nonces.
    let role = if is_mirror(&data_dir)? { StoreRole::Follower } else { StoreRole::Single };
    let settings =
        OpenSettings { author: file.author()?, clock: Clock::system(), budget: None, speaks_for, role };
    let opened = open_repository(&data_dir, settings)?;
    Ok((data_dir, opened))
}

pub(super) fn is_mirror(data_dir: &DataDir) -> Result<bool, CliError> {
    let origin = MirrorMemory::at(data_dir.path()).origin();
    Ok(origin.map_err(|error| CliError::other(error.to_string(), "check the disk").because(error))?.is_some())
}

pub(super) fn lock_stopped(path: &Path) -> Result<DataDir, CliError> {
    owner::refuse_other_user(path)?;
    DataDir::lock(path).map_err(|error| match error {
        DataDirError::InUse { .. } => CliError::other(
            error.to_string(),
            "a server that runs without its socket (its log says why), or another command: stop it first",
        ),
        DataDirError::NotADirectory { .. }
        | DataDirError::NotWritable { .. }
        | DataDirError::Unusable { .. } => error.into(),
    })
}

/// The configuration, and the directory in which a server has kept its state.
pub(super) fn find_data_dir(files: FileArgs) -> Result<(GivenSettings, PathBuf), CliError> {
    let file = GivenSettings::read(files.config.as_deref())?;
    let path = files.data_dir.unwrap_or_else(|| file.data_dir());
    if !DataDir::has_repository_at(&path) {
        let message = format!("there is no repository in the data directory {}", path.display());
        return Err(CliError::other(message, "name it with --data-dir"));
    }
    Ok((file, path))
}
