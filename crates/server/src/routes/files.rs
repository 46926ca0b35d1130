//! Stored files: raw, as the signers file that governs a path, and as what there is to sign.

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_core::{
    api::FilesToSignResponse, key::encode_base64, layout, path::RepoPath, query, snapshot::ReadError,
};

use crate::{
    app::App,
    auth::Authenticated,
    error::ApiError,
    router::Tail,
    store::{Entry, Head, StoredFile},
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
    match head.entry(&path) {
        Some(Entry::Directory) => Err(ApiError::bad_request(format!("{path} is a directory"))),
        Some(Entry::File(_)) | None => {
            let file = head.read_with_id(&path)?.ok_or_else(|| file_not_found(&path))?;
            Ok(content(file, "application/octet-stream", &headers))
        }
    }
}

pub async fn signers(State(app): State<App>, tail: Tail, headers: HeaderMap) -> Result<Response, ApiError> {
    let path = tail.parse()?;
    let Some(file) = nearest_signers(&app.store().head(), &path)? else {
        return Err(ApiError::not_found(format!(
            "No signers file found for: {path}. Error: No signers file found in parent directories"
        )));
    };
    Ok(content(file, "application/json", &headers))
}

fn nearest_signers(head: &Head, path: &RepoPath) -> Result<Option<StoredFile>, ReadError> {
    let candidates = path.self_and_ancestors().map(|dir| layout::active_signers(&dir));
    candidates.map(|signers| head.read_with_id(&signers)).find_map(Result::transpose).transpose()
}

fn file_not_found(path: &RepoPath) -> ApiError {
    ApiError::not_found(format!("File not found: {path}"))
}

fn content((id, bytes): StoredFile, content_type: &'static str, headers: &HeaderMap) -> Response {
    let tag = format!("\"{id}\"");
    // Whoever keeps a copy asks again before using it: the file at a path may change.
    let caching: [(HeaderName, String); 2] = [(ETAG, tag.clone()), (CACHE_CONTROL, "no-cache".to_owned())];
    if matches_tag(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    let length = bytes.len().to_string();
    let described = [
        (CONTENT_TYPE, content_type),
        (CONTENT_LENGTH, length.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (caching, described, Bytes::from_owner(bytes)).into_response()
}

/// Whether the client has this version already (`If-None-Match`, compared weakly as for any GET).
fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').map(str::trim).any(|given| given == "*" || given.trim_start_matches("W/") == tag)
    })
}
