//! Questions to the catalogue of what is stored (D51), and the thread that keeps it near the newest commit.

use std::{io, sync::Arc, time::Duration};

use axum::Extension;
use countersign_store::catalogue::{Catalogue, Look};
use tokio::time::timeout;

use crate::http::{error::ApiError, sending::run_in_turn};
use crate::limits::{connections::RequestOrigin, semaphore::Claimant};
use crate::{api::state::App, follow::background::Rounds};

/// The pause between two rounds. Questions bring the catalogue up to date themselves. The rounds leave them little to
/// do, and handle at once what many commits have touched.
const REST: Duration = Duration::from_secs(2);
/// How long a question waits after a start. A million files take 5 seconds of one processor (docs/performance.md).
const PATIENCE: Duration = Duration::from_secs(10);

/// Keeps the catalogue near the newest commit. `Catalogue::stop` ends a round early.
pub(crate) fn follow(catalogue: &Arc<Catalogue>) -> io::Result<Rounds> {
    let catalogue = Arc::clone(catalogue);
    Rounds::start("catalogue", REST, move || catalogue.catch_up())
}

/// Soon after a start the catalogue is not there yet.
pub(crate) async fn wait_until_ready(app: &App) -> Result<(), ApiError> {
    let mut readiness = app.catalogue.readiness();
    let waited = timeout(PATIENCE, readiness.wait_for(|is_ready| *is_ready)).await;
    let is_ready = waited.is_ok_and(|ready| ready.is_ok());
    if is_ready { Ok(()) } else { Err(ApiError::no_catalogue_yet()) }
}

/// Answers a question outside the runtime, when it is its turn.
pub(crate) async fn ask<T: Send + 'static>(
    app: &App,
    origin: Option<&Extension<RequestOrigin>>,
    question: impl FnOnce(&Look<'_>) -> T + Send + 'static,
) -> Result<T, ApiError> {
    wait_until_ready(app).await?;
    let client = origin.and_then(|origin| origin.client.as_ref());
    let visitor = Claimant::at(client.map(|client| client.network));
    let catalogue = Arc::clone(&app.catalogue);
    run_in_turn(&app.questions, visitor, move || question(&catalogue.look())).await
}
