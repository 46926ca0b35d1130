//! The signers history behind an artifact.

use axum::{
    Extension,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};

use countersign_core::values::path::RepoPath;

use super::{
    files::{JSON, sized},
    history::{HistoryEntries, chain_at_hand},
};
use crate::{
    error::ApiError,
    origin::RequestOrigin,
    routing::tail::{Tail, parse_tail},
    state::App,
};

pub(crate) async fn chain(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    tail: Tail,
) -> Result<Response, ApiError> {
    let path = parse_artifact(&tail.0)?;
    let head = app.store.head();
    let entries = app.sending.read(move || HistoryEntries::chain(head, &path)).await??;
    let length = entries.len();
    let body = entries.send(&app, origin.as_deref()).await?;
    Ok(sized(body, JSON, length))
}

/// The same without waiting; `None` leaves the request to the handler.
pub(crate) fn read_chain(app: &App, tail: &str) -> Result<Option<Response>, ApiError> {
    let chain = chain_at_hand(app, &parse_artifact(tail)?)?;
    Ok(chain.map(|chain| ([(CONTENT_TYPE, JSON)], chain).into_response()))
}

fn parse_artifact(tail: &str) -> Result<RepoPath, ApiError> {
    parse_tail(tail)
        .map_err(|error| ApiError { message: format!("Invalid artifact path: {}", error.message), ..error })
}
