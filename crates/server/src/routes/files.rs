//! Stored files: raw, as the signers file that governs a path, and as what there is to sign.

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_core::{
    api::FilesToSignResponse, key::encode_base64, layout, path::RepoPath, query, snapshot::ReadError, stored,
};

use crate::{
    app::App,
    auth::Authenticated,
    error::ApiError,
    router::Tail,
    store::{Entry, Head},
};

pub async fn to_sign(
    State(app): State<App>,
    tail: Tail,
    _: Authenticated,
) -> Result<Json<FilesToSignResponse>, ApiError> {
    let path = tail.parse()?;
    let files = query::files_to_sign(&*app.store().head(), &path)?;
    let files = files.ok_or_else(|| file_not_found(&path))?;
    let files = files.iter().map(|(path, bytes)| (path.to_string(), encode_base64(bytes))).collect();
    Ok(Json(FilesToSignResponse { files }))
}

pub async fn raw(State(app): State<App>, tail: Tail, headers: HeaderMap) -> Result<Response, ApiError> {
    let path = tail.parse()?;
    let head = app.store().head();
    if head.entry(&path) == Some(Entry::Directory) {
        return Err(ApiError::bad_request(format!("{path} is a directory")));
    }
    let file = serve(&head, &path, "application/octet-stream", &headers)?;
    file.ok_or_else(|| file_not_found(&path))
}

pub async fn signers(State(app): State<App>, tail: Tail, headers: HeaderMap) -> Result<Response, ApiError> {
    let path = tail.parse()?;
    let head = app.store().head();
    for dir in path.self_and_ancestors() {
        let signers = layout::active_signers(&dir);
        if let Some(response) = serve(&head, &signers, "application/json", &headers)? {
            return Ok(response);
        }
    }
    Err(ApiError::not_found(format!(
        "No signers file found for: {path}. Error: No signers file found in parent directories"
    )))
}

fn file_not_found(path: &RepoPath) -> ApiError {
    ApiError::not_found(format!("File not found: {path}"))
}

/// The file at `path`, or that the client has it already; `None` where there is none.
fn serve(
    head: &Head,
    path: &RepoPath,
    content_type: &'static str,
    headers: &HeaderMap,
) -> Result<Option<Response>, ReadError> {
    let Some(Entry::File(id)) = head.entry(path) else { return Ok(None) };
    let tag = format!("\"{id}\"");
    let is_known = matches_tag(headers, &tag);
    // Whoever keeps a copy asks again before using it: the file at a path may change.
    let caching = [(ETAG, tag), (CACHE_CONTROL, "no-cache".to_owned())];
    if is_known {
        return Ok(Some((StatusCode::NOT_MODIFIED, caching).into_response()));
    }
    let bytes = stored::require(head, path)?;
    let length = bytes.len().to_string();
    let described = [
        (CONTENT_TYPE, content_type),
        (CONTENT_LENGTH, length.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok(Some((caching, described, Bytes::from_owner(bytes)).into_response()))
}

/// Whether the client has this version already (`If-None-Match`, compared weakly as for any GET).
fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').map(str::trim).any(|given| given == "*" || given.trim_start_matches("W/") == tag)
    })
}
