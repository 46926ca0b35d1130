//! What waits for the caller's signature.

use axum::{Json, extract::State};
use countersign_core::{api::PendingResponse, query};

use crate::{app::App, auth::Authenticated};

pub async fn list(State(app): State<App>, request: Authenticated) -> Json<PendingResponse> {
    let head = app.store().head();
    let waiting = head.index.waiting_for(&request.caller);
    let told = query::bounded_pending(waiting, |file| head.index.is_registration(file));
    Json(PendingResponse { file_paths: told.into_iter().map(ToString::to_string).collect() })
}
