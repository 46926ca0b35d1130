//! Opening a data directory: the repository, and the nonces beside it.

use std::path::Path;

use countersign_core::{
    documents::repository::RepositoryMarker, rules::decide::create::create, values::json::ParseError,
};
use thiserror::Error;

use crate::{
    audit::replay::SpeaksFor,
    budget::StorageLimits,
    clock::Clock,
    commit::Author,
    data_dir::{DataDir, DataDirError, DirUse, REPOSITORY_DIR},
    disk::Disk,
    error::StoreError,
    nonces::{self, NonceError, Nonces},
    repository::{OpenError, Repository},
    store::{Options, Store, StoreRole},
};

#[derive(Debug, Error)]
pub enum OpenDataError {
    #[error(transparent)]
    Repository(#[from] OpenError),
    #[error("the repository cannot be used: {error}")]
    Format { error: ParseError },
    #[error("the store of used nonces cannot be opened")]
    Nonces(#[from] NonceError),
    #[error("the repository cannot be written")]
    Store(#[from] StoreError),
}

/// What a server would find in its data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundData {
    /// The directory would be made, or filled.
    New,
    Present,
    /// A server is using it now.
    InUse,
}

/// Looks whether a server could start with this directory. Changes nothing, so any user can do this.
pub fn inspect(path: &Path) -> Result<FoundData, StartTrouble> {
    let use_of = DataDir::inspect(path)?;
    let repository = Repository::inspect(&path.join(REPOSITORY_DIR)).map_err(OpenDataError::from)?;
    if let Some(marker) =
        repository.as_ref().map(Repository::marker).transpose().map_err(OpenDataError::from)?.flatten()
    {
        RepositoryMarker::parse(&marker).map_err(|error| OpenDataError::Format { error })?;
    }
    Ok(match (use_of, repository) {
        (DirUse::Held, _) => FoundData::InUse,
        (DirUse::Free, Some(_)) => FoundData::Present,
        (DirUse::Free, None) => FoundData::New,
    })
}

/// Why a server could not use a data directory.
#[derive(Debug, Error)]
pub enum StartTrouble {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Data(#[from] OpenDataError),
}

/// How a server uses its data directory.
#[derive(Debug)]
pub struct OpenSettings {
    pub author: Author,
    pub clock: Clock,
    pub budget: Option<StorageLimits>,
    pub speaks_for: SpeaksFor,
    pub role: StoreRole,
}

#[derive(Debug)]
pub struct OpenedData {
    pub store: Store,
    /// The nonces of a server on its own. Nodes share theirs, and a mirror has none.
    pub nonces: Option<Nonces>,
}

/// Opens the repository and the nonces beside it, and makes both where there are none.
pub fn open_repository(data_dir: &DataDir, settings: OpenSettings) -> Result<OpenedData, OpenDataError> {
    open_repository_on(Disk::default(), data_dir, settings)
}

/// Opens repository and nonces as [`open_repository`] does, on a disk that a test can make fail.
pub fn open_repository_on(
    disk: Disk,
    data_dir: &DataDir,
    settings: OpenSettings,
) -> Result<OpenedData, OpenDataError> {
    let OpenSettings { author, clock, budget, speaks_for, role } = settings;
    let repository = Repository::open_on(disk.clone(), &data_dir.repository())?;
    if let Some(marker) = repository.marker()? {
        RepositoryMarker::parse(&marker).map_err(|error| OpenDataError::Format { error })?;
    }
    // Before the first commit, so that a crash between the two does not look like a restored clone (D38).
    let state = if repository.is_unborn() {
        nonces::RepositoryAge::Unborn
    } else {
        nonces::RepositoryAge::HasCommits
    };
    let nonces = match role {
        StoreRole::Single => Some(Nonces::open_on(disk, &data_dir.nonces(), state, clock.clone())?),
        StoreRole::Node(_) | StoreRole::Follower => {
            // A server on its own that goes on from here does not know what others accepted meanwhile. Without the file
            // it knows that.
            nonces::remove(&data_dir.nonces())?;
            None
        }
    };
    let options = Options { author, clock, initial: create, budget, speaks_for, role };
    Ok(OpenedData { store: Store::start(repository, options)?, nonces })
}
