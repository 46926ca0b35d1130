//! For monitoring: does the server answer, and can it accept changes?

use std::time::Instant;

use axum::{Json, extract::State};
use countersign_api::answers::HealthResponse;

use crate::{error::ApiError, observe, state::App};

pub async fn healthz() -> Json<HealthResponse> {
    Json(HealthResponse { status: "ok", log: None })
}

pub async fn readyz(State(app): State<App>) -> Result<Json<HealthResponse>, ApiError> {
    app.readiness()?;
    let log = observe::stats().is_failing(Instant::now()).then_some("failing");
    Ok(Json(HealthResponse { status: "ready", log }))
}
