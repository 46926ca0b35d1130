//! What every answer has in common: an id, a line in the log, and that a panic is answered too.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use axum::{
    Router,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Uri},
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use hyper::{Request, body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::error::{ApiError, Failure};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Method, target and headers of a request.
pub(crate) type Asked<'a> = (&'a Method, &'a Uri, &'a HeaderMap);

/// Gives each request an id, which its log lines and its answer carry. What `read` does not answer, `router` does.
pub(crate) async fn answer(
    router: &Router,
    read: &impl Fn(Asked<'_>) -> Option<Response>,
    request: Request<Incoming>,
) -> Response {
    let id = new_id();
    let started = Instant::now();
    // Reads are many and change nothing: they are logged only where somebody looks at details, or where they fail.
    let is_read = request.method().is_safe();
    let span = if is_read {
        tracing::debug_span!("request", id, method = %request.method(), path = request.uri().path())
    } else {
        tracing::info_span!("request", id, method = %request.method(), path = request.uri().path())
    };
    let asked = is_read.then(|| (request.method().clone(), request.uri().clone()));
    let work = AssertUnwindSafe(async {
        match read((request.method(), request.uri(), request.headers())) {
            Some(response) => response,
            None => match TowerToHyperService::new(router.clone()).call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
        }
    })
    .catch_unwind();
    let answered = if span.is_disabled() { work.await } else { work.instrument(span.clone()).await };
    // The panic itself was reported where it happened.
    let mut response = answered.unwrap_or_else(|_| ApiError::panicked().into_response());
    if let Some(failure) = response.extensions_mut().remove::<Failure>() {
        report(&span, &id, asked, response.status().as_u16(), &failure);
    }
    if !span.is_disabled() {
        let (status, ms) = (response.status().as_u16(), started.elapsed().as_secs_f64() * 1_000.0);
        span.in_scope(|| match is_read {
            true => tracing::debug!(status, ms, "answered"),
            false => tracing::info!(status, ms, "answered"),
        });
    }
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(id)) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Where the span of a read is not recorded, the line itself says which request it was.
fn report(span: &tracing::Span, id: &str, asked: Option<(Method, Uri)>, status: u16, failure: &Failure) {
    let Failure { message, source } = failure;
    match asked.filter(|_| span.is_disabled()) {
        Some((method, uri)) => {
            tracing::error!(id, %method, path = uri.path(), message, source, status);
        }
        None => span.in_scope(|| tracing::error!(message, source, status)),
    }
}

/// Different for every request of every run.
fn new_id() -> String {
    static RUN: LazyLock<String> = LazyLock::new(|| Uuid::new_v4().simple().to_string()[..16].to_owned());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{:08x}", *RUN, COUNT.fetch_add(1, Ordering::Relaxed))
}
