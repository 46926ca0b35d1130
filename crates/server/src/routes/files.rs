//! Stored files: raw, as the signers file that governs a path, and as what there is to sign.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_core::{api::FilesToSignResponse, key::encode_base64, path::RepoPath, query};

use crate::{
    app::App,
    auth::Authenticated,
    error::ApiError,
    router::{Tail, parse_tail},
    store::{Entry, Found, Head, ObjectId, unreadable},
};

const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// Forty hexadecimal digits and two quotation marks.
const TAG_BYTES: usize = 42;

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
    read_raw(&app, tail.as_str(), &headers)
}

pub async fn signers(State(app): State<App>, tail: Tail, headers: HeaderMap) -> Result<Response, ApiError> {
    read_signers(&app, tail.as_str(), &headers)
}

pub fn read_raw(app: &App, tail: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let head = app.store().glance();
    // As nearly everybody asks.
    let file = if tail.contains('%') { None } else { head.file_as_spelled(tail) };
    if let Some(file) = file {
        return serve(&head, tail, file, OCTET_STREAM, headers);
    }
    let path = parse_tail(tail)?;
    if let Some(file) = head.file(&path) {
        return serve(&head, tail, file, OCTET_STREAM, headers);
    }
    match head.entry(&path) {
        Some(Entry::Directory) => Err(ApiError::bad_request(format!("{path} is a directory"))),
        Some(Entry::File(_)) | None => Err(file_not_found(&path)),
    }
}

pub fn read_signers(app: &App, tail: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let path = parse_tail(tail)?;
    let head = app.store().glance();
    match head.nearest_signers(&path) {
        Some(file) => serve(&head, tail, file, JSON, headers),
        None => Err(no_signers(path.as_str())),
    }
}

pub fn no_signers(path: &str) -> ApiError {
    ApiError::not_found(format!(
        "No signers file found for: {path}. Error: No signers file found in parent directories"
    ))
}

fn file_not_found(path: &RepoPath) -> ApiError {
    ApiError::not_found(format!("File not found: {path}"))
}

/// A stored file that was found for `tail`, or that the client has it already.
fn serve(
    head: &Head,
    tail: &str,
    file: Found<'_>,
    content_type: HeaderValue,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let tag = entity_tag(&file.id);
    let mut response = if matches_tag(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let content = match head.content(file) {
            Ok(content) => content,
            Err(error) => return Err(unreadable(&parse_tail(tail)?, &error).into()),
        };
        let mut response = Response::new(Body::from(content));
        // Room for all that will be there, so that it is made once.
        *response.headers_mut() = HeaderMap::with_capacity(8);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        response
    };
    // Whoever keeps a copy asks again before using it: the file at a path may change.
    response.headers_mut().insert(CACHE_CONTROL, NO_CACHE);
    if let Ok(tag) = HeaderValue::from_bytes(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// The id of a blob between quotation marks.
fn entity_tag(id: &ObjectId) -> [u8; TAG_BYTES] {
    let mut tag = [b'"'; TAG_BYTES];
    let _ = id.hex_to_buf(&mut tag[1..TAG_BYTES - 1]);
    tag
}

/// Whether the client has this version already (`If-None-Match`, compared weakly as for any GET).
pub(crate) fn matches_tag(headers: &HeaderMap, tag: &[u8]) -> bool {
    let is_ours = |given: &str| given == "*" || given.trim_start_matches("W/").as_bytes() == tag;
    let mut given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given.any(|value| value.split(',').map(str::trim).any(is_ours))
}
