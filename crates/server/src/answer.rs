//! What every answer has in common: an id, a line in the log, and that a panic is answered too.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
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
use tracing::{Instrument as _, Span};
use uuid::{Uuid, fmt::Simple};

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
    let id = RequestId::new();
    let started = Instant::now();
    let (method, uri) = (request.method(), request.uri());
    // Reads are many and change nothing: they are logged only where somebody looks at details, or where they fail.
    let is_read = method.is_safe();
    let span = if is_read {
        tracing::debug_span!("request", id = id.as_str(), %method, path = uri.path())
    } else {
        tracing::info_span!("request", id = id.as_str(), %method, path = uri.path())
    };
    // Nothing that a read was changing outlives its panic.
    let ask = AssertUnwindSafe(|| read((method, uri, request.headers())));
    let mut response = match span.in_scope(|| catch_unwind(ask)).unwrap_or_else(|_| Some(panicked())) {
        Some(mut response) => {
            report_failure(&span, &id, (method, uri), &mut response);
            response
        }
        None => {
            let (method, uri) = (method.clone(), uri.clone());
            let mut response = answer_routed(router, request, &span).await;
            report_failure(&span, &id, (&method, &uri), &mut response);
            response
        }
    };
    if !span.is_disabled() {
        let (status, ms) = (response.status().as_u16(), started.elapsed().as_secs_f64() * 1_000.0);
        span.in_scope(|| match is_read {
            true => tracing::debug!(status, ms, "answered"),
            false => tracing::info!(status, ms, "answered"),
        });
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

async fn answer_routed(router: &Router, request: Request<Incoming>, span: &Span) -> Response {
    let work = TowerToHyperService::new(router.clone()).call(request);
    let work = AssertUnwindSafe(work).catch_unwind().instrument(span.clone());
    match work.await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => panicked(),
    }
}

/// The panic itself was reported where it happened.
fn panicked() -> Response {
    ApiError::panicked().into_response()
}

/// Where the span of a read is not recorded, the line itself says which request it was.
fn report_failure(span: &Span, id: &RequestId, asked: (&Method, &Uri), response: &mut Response) {
    let Some(Failure { message, source }) = response.extensions_mut().remove() else { return };
    let status = response.status().as_u16();
    if span.is_disabled() {
        let (id, (method, uri)) = (id.as_str(), asked);
        tracing::error!(id, %method, path = uri.path(), message, source, status);
    } else {
        span.in_scope(|| tracing::error!(message, source, status));
    }
}

/// Different for every request of every run.
struct RequestId([u8; RequestId::BYTES]);

impl RequestId {
    const RUN_BYTES: usize = 16;
    const BYTES: usize = Self::RUN_BYTES + 1 + 8;

    fn new() -> Self {
        static RUN: LazyLock<[u8; Simple::LENGTH]> = LazyLock::new(|| {
            let mut digits = [0; Simple::LENGTH];
            Uuid::new_v4().simple().encode_lower(&mut digits);
            digits
        });
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut id = [b'-'; Self::BYTES];
        id[..Self::RUN_BYTES].copy_from_slice(&RUN[..Self::RUN_BYTES]);
        let mut left = COUNT.fetch_add(1, Ordering::Relaxed);
        for digit in id[Self::RUN_BYTES + 1..].iter_mut().rev() {
            *digit = b"0123456789abcdef"[(left % 16) as usize];
            left /= 16;
        }
        Self(id)
    }

    fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}
