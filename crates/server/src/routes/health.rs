//! For whoever watches over the server: does it answer, and can it accept changes?

use axum::{Json, extract::State};
use countersign_core::api::HealthResponse;

use crate::{app::App, error::ApiError};

pub async fn healthz() -> Json<HealthResponse> {
    Json(HealthResponse { status: "ok" })
}

pub async fn readyz(State(app): State<App>) -> Result<Json<HealthResponse>, ApiError> {
    app.readiness()?;
    Ok(Json(HealthResponse { status: "ready" }))
}
