//! The page that Prometheus reads.

use axum::{
    http::{HeaderValue, header::CONTENT_TYPE},
    response::IntoResponse,
};

use super::metrics_page;
use crate::{metrics::RequestKinds, state::App};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(crate) fn show(app: &App, kinds: &RequestKinds) -> impl IntoResponse + use<> {
    ([(CONTENT_TYPE, TEXT)], metrics_page::render(app, kinds))
}
