//! What every answer has in common: an id, a line in the log, and that a panic is answered too.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use axum::{
    Router,
    http::{HeaderName, HeaderValue, Method, Uri},
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use hyper::{Request, body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::error::{ApiError, Failure};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives each request an id, which its log lines and its answer carry.
pub(crate) async fn answer(router: Router, request: Request<Incoming>) -> Result<Response, Infallible> {
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
    let work = AssertUnwindSafe(TowerToHyperService::new(router).call(request)).catch_unwind();
    let answered = if span.is_disabled() { work.await } else { work.instrument(span.clone()).await };
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        // The panic itself was reported where it happened.
        Err(_) => ApiError::panicked().into_response(),
    };
    let status = response.status().as_u16();
    let ms = started.elapsed().as_secs_f64() * 1_000.0;
    if let Some(failure) = response.extensions_mut().remove::<Failure>() {
        report(&span, &id, asked, status, &failure);
    }
    span.in_scope(|| {
        if is_read {
            tracing::debug!(status, ms, "answered");
        } else {
            tracing::info!(status, ms, "answered");
        }
    });
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(id)) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    Ok(response)
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
