//! The page that Prometheus reads.

use axum::{
    extract::State,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::IntoResponse,
};

use crate::{app::App, metrics};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub async fn metrics(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, TEXT)], metrics::render(&app))
}
