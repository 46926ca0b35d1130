//! What waits for the caller's signature.

use axum::{Json, extract::State};
use countersign_core::api::PendingResponse;

use crate::{app::App, auth::Authenticated};

pub async fn list(State(app): State<App>, request: Authenticated) -> Json<PendingResponse> {
    let head = app.store().head();
    let file_paths = head.index.waiting_for(&request.caller).map(ToString::to_string).collect();
    Json(PendingResponse { file_paths })
}
