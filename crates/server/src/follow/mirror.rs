//! A mirror: follows another server over its journal, checks every commit by the rules, and serves what is public
//! (D74–D76). A data directory becomes a mirror's, and stops being one, here.

pub mod exchange;
pub(crate) mod history;
pub(crate) mod log;
pub mod memory;
pub mod state;

use std::sync::Arc;

use countersign_store::store::{OpenDataError, OpenSettings, open_repository};
use countersign_store::{Repository, Store, machine::data_dir::DataDir, nonces};

use crate::follow::background::BoxedError;
pub use crate::follow::mirror::exchange::MirrorSettings;
use crate::follow::mirror::exchange::{CommitAfter, JournalClient};
use crate::follow::mirror::memory::MirrorMemory;
pub use crate::follow::mirror::state::MirrorState;
pub(crate) use crate::follow::mirror::{history::HistoryCopier, log::LogCopier};

/// Opens what a mirror serves. A repository that was not a mirror's must be a part of the origin's.
pub(crate) async fn open(
    data_dir: &DataDir,
    settings: MirrorSettings,
    opening: OpenSettings,
) -> Result<(Store, Arc<MirrorState>), BoxedError> {
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
    Ok((opened.store, state))
}

async fn check_known(data_dir: &DataDir, origin: &JournalClient) -> Result<(), BoxedError> {
    let found = Repository::inspect(&data_dir.repository()).map_err(OpenDataError::from)?;
    let Some(tip) = found.and_then(|repository| repository.tip()) else { return Ok(()) };
    let (dir, origin_address) = (data_dir.path().display(), &origin.address);
    match origin.next_after(Some(tip)).await {
        Ok(CommitAfter::Next(_) | CommitAfter::Nothing) => Ok(()),
        Ok(CommitAfter::Unknown) => Err(format!(
            "the repository in {dir} is not a mirror of {origin_address}: {origin_address} does not know its newest commit {tip}. \
             Choose an empty data directory"
        )
        .into()),
        Err(failure) => Err(format!(
            "the repository in {dir} does not belong to a mirror yet, and {origin_address} cannot be asked whether it knows the \
             newest commit {tip}: {failure}"
        )
        .into()),
    }
}

/// `serve` on a mirror's directory: from now on it is a server of its own. A crash on the way leaves a mirror, and no
/// nonces of the time before.
pub(crate) fn promote(data_dir: &DataDir) -> Result<(), BoxedError> {
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
