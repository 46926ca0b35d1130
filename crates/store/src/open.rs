//! Opening a data directory: the repository, and the nonces beside it.

use countersign_core::{
    documents::repository::RepositoryMarker, rules::decide::create::create, values::json::ParseError,
};
use thiserror::Error;

use crate::{
    budget::StorageLimits,
    clock::Clock,
    commit::Author,
    data_dir::DataDir,
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
