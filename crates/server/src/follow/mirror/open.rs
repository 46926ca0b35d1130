//! A data directory that becomes a mirror's, and one that stops being one (D76).

use std::sync::Arc;

use countersign_forge::https::SetupError;
use countersign_store::store::{OpenDataError, OpenSettings, open_repository};
use countersign_store::{ObjectId, Repository, Store, machine::data_dir::DataDir, nonces};
use thiserror::Error;

use crate::follow::mirror::exchange::{AskError, JournalClient, MirrorSettings, describe};
use crate::follow::mirror::{memory::MemoryError, memory::MirrorMemory, state::MirrorState};

#[derive(Debug, Error)]
pub enum MirrorError {
    #[error(transparent)]
    Data(#[from] OpenDataError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("the memory of the mirror cannot be used")]
    Memory(#[from] MemoryError),
    #[error(
        "the repository in {dir} is not a mirror of {origin}: {origin} does not know its newest commit {tip}. Choose an empty \
         data directory"
    )]
    OtherHistory { dir: String, origin: String, tip: ObjectId },
    #[error(
        "the repository in {dir} does not belong to a mirror yet, and {origin} cannot be asked whether it knows the newest commit \
         {tip}: {reason}"
    )]
    Unasked { dir: String, origin: String, tip: ObjectId, reason: String },
}

pub(crate) struct OpenedMirror {
    pub(crate) store: Store,
    pub(crate) state: Arc<MirrorState>,
}

/// Opens what a mirror serves. A repository that was not a mirror's must be a part of the origin's.
pub(crate) async fn open(
    data_dir: &DataDir,
    settings: MirrorSettings,
    opening: OpenSettings,
) -> Result<OpenedMirror, MirrorError> {
    let MirrorSettings { origin, max_lag } = settings;
    let memory = MirrorMemory::at(data_dir.path());
    let followed = memory.origin()?;
    let is_same = followed.as_deref() == Some(origin.as_str());
    match followed {
        Some(_) if is_same => {}
        Some(before) => tracing::info!(%origin, before, "the mirror follows another address from now on"),
        None => check_known(data_dir, &JournalClient::new(origin.clone(), max_lag)?).await?,
    }
    // What the origin accepts meanwhile is not known here, so this removes the nonces.
    let opened = open_repository(data_dir, opening)?;
    if !is_same {
        memory.set_origin(&origin)?;
    }
    let is_empty = opened.store.head().commit.is_null();
    let state = Arc::new(MirrorState::new(origin, max_lag, memory, is_empty)?);
    Ok(OpenedMirror { store: opened.store, state })
}

async fn check_known(data_dir: &DataDir, origin: &JournalClient) -> Result<(), MirrorError> {
    let found = Repository::inspect(&data_dir.repository()).map_err(OpenDataError::from)?;
    let Some(tip) = found.and_then(|repository| repository.tip()) else { return Ok(()) };
    let (dir, address) = (data_dir.path().display().to_string(), origin.address().to_string());
    match origin.next_after(Some(tip)).await {
        Ok(_) => Ok(()),
        Err(AskError::UnknownCommit(tip)) => Err(MirrorError::OtherHistory { dir, origin: address, tip }),
        Err(error) => Err(MirrorError::Unasked { dir, origin: address, tip, reason: describe(&error) }),
    }
}

/// `serve` on a mirror's directory: from now on it is a server of its own. A crash on the way leaves a mirror, and no
/// nonces of the time before.
pub(crate) fn promote(data_dir: &DataDir) -> Result<(), MirrorError> {
    let memory = MirrorMemory::at(data_dir.path());
    let Some(origin) = memory.origin()? else { return Ok(()) };
    nonces::remove(&data_dir.nonces()).map_err(OpenDataError::from)?;
    memory.forget_refusal()?;
    memory.forget_origin()?;
    // A server on its own keeps its own log. What may stay of the copy does no harm.
    let _ = std::fs::remove_dir_all(data_dir.log_copy());
    tracing::warn!(origin, "this was a mirror: from now on it is a server of its own, and accepts changes");
    Ok(())
}
