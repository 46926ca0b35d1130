//! Opening a data directory: the repository, and the nonces beside it.

use std::path::Path;

use countersign_core::{
    documents::repository::RepositoryMarker, rules::decide::create::create, values::json::ParseError,
};
use thiserror::Error;

use crate::{
    budget::StorageLimits,
    clock::Clock,
    commit::Author,
    data_dir::{DataDir, DataDirError, DirUse, REPOSITORY_DIR},
    error::StoreError,
    nonces::{self, NonceError, Nonces},
    repository::{OpenError, Repository},
    store::{Options, Store},
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

#[derive(Debug)]
pub struct OpenedData {
    pub store: Store,
    pub nonces: Nonces,
}

/// Opens the repository and the nonces beside it, and makes both where there are none.
pub fn open_repository(
    data_dir: &DataDir,
    author: Author,
    clock: &Clock,
    budget: Option<StorageLimits>,
) -> Result<OpenedData, OpenDataError> {
    let repository = Repository::open(&data_dir.repository())?;
    if let Some(marker) = repository.marker()? {
        RepositoryMarker::parse(&marker).map_err(|error| OpenDataError::Format { error })?;
    }
    let now = clock.now();
    // Before the first commit, so that a crash between the two does not look like a restored clone (D38).
    let state = if repository.is_unborn() {
        nonces::RepositoryAge::Unborn
    } else {
        nonces::RepositoryAge::HasCommits
    };
    let nonces = Nonces::open(&data_dir.nonces(), state, clock.clone())?;
    let options = Options { author, clock: clock.clone(), initial: create(now), budget };
    Ok(OpenedData { store: Store::start(repository, options)?, nonces })
}
