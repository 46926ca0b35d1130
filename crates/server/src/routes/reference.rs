//! The API's description for programs.

use axum::{
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ETAG, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};

use super::files::matches_tag;
use crate::{openapi::Reference, state::App};

pub async fn document(State(app): State<App>, headers: HeaderMap) -> Response {
    let document: &'static Reference = app.reference;
    let tag = document.tag();
    // Viewers of OpenAPI documents run on other origins, and everything in this one is public.
    let common = [
        (ETAG, tag),
        (CACHE_CONTROL, "no-cache"),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    if matches_tag(&headers, tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let content = Bytes::from_static(document.bytes());
    (common, [(CONTENT_TYPE, "application/json")], content).into_response()
}
