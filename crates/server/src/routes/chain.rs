//! The signers history behind an artifact.

use axum::{Json, extract::State};
use countersign_core::{api::ChainResponse, chain};

use crate::{app::App, error::ApiError, router::Tail};

pub async fn chain(State(app): State<App>, tail: Tail) -> Result<Json<ChainResponse>, ApiError> {
    let path = tail.parse().map_err(|error| ApiError {
        message: format!("Invalid artifact path: {}", error.message),
        ..error
    })?;
    let history = chain::build(&*app.store().head(), &path)?;
    Ok(Json(ChainResponse { history }))
}
