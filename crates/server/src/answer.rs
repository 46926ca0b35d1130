//! What every answer has in common: an id, a line in the log, and an answer even after a panic.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use axum::{
    Router,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{CACHE_CONTROL, DATE},
    },
    response::{IntoResponse as _, Response},
};
use hyper::{Request, body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;
use tokio::{runtime::Handle, task::JoinSet};
use tracing::{Instrument as _, Span};

use crate::{
    date::http_date,
    error::{ApiError, LoggedFailure},
    host::check_host,
    limits::{Limiter, MeteredClient},
    metrics::{RequestKinds, Requests},
    origin::RequestOrigin,
    patience::Patience,
    proxies::TrustedProxies,
    request_id::new_request_id,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
}

/// Answers some requests by their heads alone.
pub trait Read: Fn(RequestHead<'_>) -> Option<Response> + Clone + Send + Sync + 'static {}

impl<R: Fn(RequestHead<'_>) -> Option<Response> + Clone + Send + Sync + 'static> Read for R {}

/// What answers the requests on a listener.
#[derive(Debug)]
pub struct Service<R> {
    pub router: Router,
    /// Asked before the router.
    pub read: R,
    pub kinds: &'static RequestKinds,
    pub requests: Arc<Requests>,
    pub limiter: Option<Arc<Limiter>>,
    pub proxies: Arc<TrustedProxies>,
    /// Works on requests that take longer than a read.
    pub workers: Handle,
}

/// The client at the other end of a connection.
#[derive(Debug)]
pub struct Visitor<R> {
    pub service: Arc<Service<R>>,
    pub client: Option<MeteredClient>,
    /// If so, the client is the one that the proxy names.
    pub is_proxy: bool,
    pub patience: Arc<Patience>,
    /// The number of the connection.
    pub number: u64,
}

impl<R> Visitor<R> {
    /// The client that a trusted proxy speaks for.
    fn forwarded(&self, headers: &HeaderMap) -> Option<MeteredClient> {
        let limiter = self.service.limiter.as_ref().filter(|_| self.is_proxy)?;
        Some(limiter.client(self.service.proxies.client_of(headers)?))
    }
}

/// Gives each request an id, which its log lines and its answer carry. The router answers what `read` does not.
pub(crate) async fn answer<R: Read>(
    visitor: &Visitor<R>,
    request: Request<Incoming>,
    started: Instant,
) -> Response {
    let id = new_request_id();
    let (method, uri) = (request.method(), request.uri());
    let kind = visitor.service.kinds.kind_of(uri.path());
    // Reads are many and change nothing. They are logged only at debug level, or when they fail.
    let is_read = method.is_safe();
    let span = if is_read {
        tracing::debug_span!("request", id, %method, path = uri.path())
    } else {
        tracing::info_span!("request", id, %method, path = uri.path())
    };
    let forwarded = visitor.forwarded(request.headers());
    let client = forwarded.as_ref().or(visitor.client.as_ref());
    let admitted = client
        .filter(|_| visitor.service.kinds.is_limited(kind) || !is_read)
        .map_or(Ok(()), |client| client.charge_request(started));
    // A read changes nothing that could outlive its panic.
    let admitted = admitted.map_err(ApiError::from);
    let ask =
        AssertUnwindSafe(|| match admitted.and_then(|()| check_host(request.version(), request.headers())) {
            Ok(()) => (visitor.service.read)(RequestHead { method, uri, headers: request.headers() }),
            Err(refused) => Some(refused.into_response()),
        });
    let mut response = match span.in_scope(|| catch_unwind(ask)).unwrap_or_else(|_| Some(panicked())) {
        Some(mut response) => {
            report_failure(&span, &id, (method, uri), &mut response);
            response
        }
        None => {
            let (method, uri) = (method.clone(), uri.clone());
            let origin = RequestOrigin { client: client.cloned(), patience: Arc::clone(&visitor.patience) };
            let mut response = answer_routed(&visitor.service, request, origin, &span).await;
            report_failure(&span, &id, (&method, &uri), &mut response);
            response
        }
    };
    let (status, took) = (response.status(), started.elapsed());
    visitor.service.requests.record(visitor.number, kind, status, took);
    if !span.is_disabled() {
        let ms = took.as_secs_f64() * 1_000.0;
        // A client that asks too often must not fill the log.
        let is_detail = is_read || status == StatusCode::TOO_MANY_REQUESTS;
        span.in_scope(|| match is_detail {
            true => tracing::debug!(status = status.as_u16(), ms, "answered"),
            false => tracing::info!(status = status.as_u16(), ms, "answered"),
        });
    }
    // Caches store even a 404 unasked, such as the one that says that a release is not revoked.
    response.headers_mut().entry(CACHE_CONTROL).or_insert(NO_STORE);
    if let Some(date) = http_date() {
        response.headers_mut().insert(DATE, date);
    }
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Works on a request away from the connection's thread, which serves others meanwhile. Ends with the connection.
async fn answer_routed<R: Read>(
    service: &Service<R>,
    mut request: Request<Incoming>,
    origin: RequestOrigin,
    span: &Span,
) -> Response {
    request.extensions_mut().insert(origin);
    let mut work = JoinSet::new();
    let asked = TowerToHyperService::new(service.router.clone()).call(request);
    work.spawn_on(asked.instrument(span.clone()), &service.workers);
    match work.join_next().await {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(never))) => match never {},
        Some(Err(_)) | None => panicked(),
    }
}

/// The panic itself was logged where it happened.
fn panicked() -> Response {
    ApiError::panicked().into_response()
}

/// If the span of a read is not recorded, the line itself names the request.
fn report_failure(span: &Span, id: &str, asked: (&Method, &Uri), response: &mut Response) {
    let Some(LoggedFailure { message, source }) = response.extensions_mut().remove() else { return };
    let status = response.status().as_u16();
    if span.is_disabled() {
        let (method, uri) = asked;
        tracing::error!(id, %method, path = uri.path(), message, source, status);
    } else {
        span.in_scope(|| tracing::error!(message, source, status));
    }
}
