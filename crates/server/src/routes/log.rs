//! The log of all commits: checkpoints, tiles, and staples (D89).

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_core::{
    log::{checkpoint::Checkpoint, note::Note, tile::TileName},
    values::bounds::NOTE_BYTES,
};
use countersign_log::{CosignRefusal, TransparencyLog};
use serde_json::json;

use crate::{
    asking::{CosigningStats, take_cosignatures},
    auth::read_public_body,
    error::ApiError,
    routing::tail::Tail,
    state::App,
};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What is signed stays as it is.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const FOR_SECONDS: HeaderValue = HeaderValue::from_static("public, max-age=2");

pub(crate) async fn checkpoint(State(app): State<App>) -> Result<Response, ApiError> {
    let note = find_log(&app)?.checkpoint_note().ok_or_else(ApiError::no_log_yet)?;
    Ok(answer(note.as_str().to_owned(), TEXT, FOR_SECONDS))
}

/// For mirrors, which do not know how many cosignatures are enough.
pub(crate) async fn cosigned(State(app): State<App>) -> Result<Response, ApiError> {
    let note = find_log(&app)?.cosigned_note().ok_or_else(ApiError::no_log_yet)?;
    Ok(answer(note, TEXT, FOR_SECONDS))
}

pub(crate) async fn key(State(app): State<App>) -> Result<Response, ApiError> {
    Ok(answer(format!("{}\n", find_log(&app)?.key()), TEXT, FOR_SECONDS))
}

/// From a witness that cannot be asked (D96).
pub(crate) async fn cosignature(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let log = find_log(&app)?;
    let body = read_public_body(&app, request, NOTE_BYTES).await?;
    let note = Note::parse(&body).map_err(|error| CosignRefusal::Malformed(error.into()))?;
    let checkpoint = Checkpoint::parse(note.text()).map_err(CosignRefusal::Malformed)?;
    let size = checkpoint.size;
    let now = app.now();
    let added = app.sending.read(move || take_cosignatures(&log, &checkpoint, &note, now)).await??;
    CosigningStats::note_cosigned(&app.cosigning, size, &added);
    Ok(Json(json!({ "size": size })).into_response())
}

pub(crate) async fn tile(State(app): State<App>, tail: Tail) -> Result<Response, ApiError> {
    let log = find_log(&app)?;
    let name = TileName::parse(&tail.0).ok_or_else(ApiError::no_such_tile)?;
    let bytes = app.sending.read(move || log.tile(&name)).await??;
    Ok(answer(bytes, OCTET_STREAM, FOR_EVER))
}

pub(crate) async fn proof(State(app): State<App>, tail: Tail) -> Result<Response, ApiError> {
    let (path, log, store) = (tail.parse()?, find_log(&app)?, Arc::clone(&app.store));
    let staple = app.sending.read(move || log.staple(|| store.head(), &path).1).await??;
    Ok(answer(staple.write(), JSON, FOR_SECONDS))
}

fn find_log(app: &App) -> Result<Arc<TransparencyLog>, ApiError> {
    app.log.get().cloned().ok_or_else(ApiError::no_log)
}

fn answer(body: impl IntoResponse, content_type: HeaderValue, caching: HeaderValue) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CACHE_CONTROL, caching);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
