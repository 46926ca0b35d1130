//! Questions to the catalogue of what is stored (D51), and the task that keeps it near the newest commit.

use std::{sync::Arc, time::Duration};

use axum::Extension;
use countersign_store::{
    catalogue::{Catalogue, Look},
    log::Log,
};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::{error::ApiError, limits::places::Claimant, origin::RequestOrigin, state::App};

/// Between two rounds. Questions bring the catalogue up to date themselves; this keeps what they find to do small, and
/// does at once what many commits have touched.
const REST: Duration = Duration::from_secs(2);
/// How long a question waits after a start. A million files take 5 seconds of one processor (docs/performance.md).
const PATIENCE: Duration = Duration::from_secs(10);

/// Works until it is told to stop.
pub(crate) async fn follow(catalogue: Arc<Catalogue>, log: Arc<Log>, mut stopped: watch::Receiver<bool>) {
    let mut changes = log.subscribe();
    loop {
        changes.borrow_and_update();
        let working = Arc::clone(&catalogue);
        let mut work = spawn_blocking(move || working.catch_up());
        tokio::select! {
            // A panic was logged where it happened. The next round begins anew.
            _ = &mut work => {}
            () = end(&mut stopped) => {
                catalogue.stop();
                let _ = work.await;
                return;
            }
        }
        let next = async {
            sleep(REST).await;
            changes.changed().await
        };
        tokio::select! {
            changed = next => if changed.is_err() { return },
            () = end(&mut stopped) => return,
        }
    }
}

async fn end(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Answers a question outside the runtime, when it is its turn. Soon after a start it waits for the catalogue first.
pub(crate) async fn ask<T: Send + 'static>(
    app: &App,
    origin: Option<&Extension<RequestOrigin>>,
    question: impl FnOnce(&Look<'_>) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let mut readiness = app.catalogue.readiness();
    let waited =
        timeout(PATIENCE, readiness.wait_for(|is_ready| *is_ready)).await.is_ok_and(|ready| ready.is_ok());
    if !waited {
        return Err(ApiError::no_catalogue_yet());
    }
    let client = origin.and_then(|origin| origin.client.as_ref());
    let visitor = Claimant::at(client.map(|client| client.network));
    let catalogue = Arc::clone(&app.catalogue);
    app.questions.run(visitor, move || question(&catalogue.look())).await
}
