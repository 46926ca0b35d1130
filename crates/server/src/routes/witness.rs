//! A witness of logs (D94), as c2sp.org/tlog-witness says.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    http::{
        HeaderName, HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_core::{
    log::proofs::WitnessRequest,
    values::{bounds::WITNESS_REQUEST_BYTES, digest::Sha256, wire},
};
use countersign_log::{CosignRefusal, LogWitness};

use crate::{auth::read_public_body, error::ApiError, state::App, witness};

const TEXT: &str = "text/plain; charset=utf-8";

pub(crate) async fn add_checkpoint(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let witness = find_witness(&app)?;
    let body = read_public_body(&app, request, WITNESS_REQUEST_BYTES).await?;
    let request = WitnessRequest::parse(&body).map_err(CosignRefusal::Malformed)?;
    match witness::cosign(&witness, request, &app.clock, app.role.mirror()).await {
        Ok(cosignature) => Ok((headers(TEXT), cosignature.line.to_string()).into_response()),
        Err(CosignRefusal::OtherSize(size)) => {
            // The log wants to read the size alone.
            let status = ApiError::from(CosignRefusal::OtherSize(size)).status();
            Ok((status, headers(wire::LOG_SIZE_TYPE), format!("{size}\n")).into_response())
        }
        Err(refusal) => {
            let is_stopped = matches!(refusal, CosignRefusal::Stopped(_));
            let mut response = ApiError::from(refusal).into_response();
            if is_stopped {
                let name = HeaderName::from_static(wire::WITNESS_STOPPED);
                response.headers_mut().insert(name, HeaderValue::from_static("until its operator decides"));
            }
            Ok(response)
        }
    }
}

pub(crate) async fn checkpoint(
    State(app): State<App>,
    Path(origin): Path<String>,
) -> Result<Response, ApiError> {
    let witness = find_witness(&app)?;
    let origin = Sha256::parse(&origin).ok_or_else(ApiError::nothing_cosigned)?;
    let note = witness.checkpoint_of(&origin)?.ok_or_else(ApiError::nothing_cosigned)?;
    Ok((headers(TEXT), note).into_response())
}

fn find_witness(app: &App) -> Result<Arc<LogWitness>, ApiError> {
    app.witness.clone().ok_or_else(ApiError::no_witness)
}

fn headers(content_type: &'static str) -> [(HeaderName, HeaderValue); 3] {
    [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]
}
