//! What every answer has in common: an id, a line in the log, and that a panic is answered too.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use axum::{
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{CACHE_CONTROL, DATE},
    },
    response::{IntoResponse as _, Response},
};
use hyper::{Request, body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;
use tokio::task::JoinSet;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use crate::{
    clock::http_date,
    error::{ApiError, Failure},
    host::check_host,
    limits::Client,
    listen::{Patience, Service},
    metrics::Route,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Method, target and headers of a request.
pub(crate) type Asked<'a> = (&'a Method, &'a Uri, &'a HeaderMap);

/// Answers some requests by their heads alone.
pub trait Read: Fn(Asked<'_>) -> Option<Response> + Clone + Send + Sync + 'static {}

impl<R: Fn(Asked<'_>) -> Option<Response> + Clone + Send + Sync + 'static> Read for R {}

/// Whoever is at the other end of a connection.
pub(crate) struct Visitor<R> {
    pub(crate) service: Arc<Service<R>>,
    pub(crate) client: Option<Client>,
    /// Then the client is somebody else, where the proxy says who.
    pub(crate) is_proxy: bool,
    pub(crate) patience: Arc<Patience>,
    /// Of the connection.
    pub(crate) number: u64,
}

/// What handlers may know of where a request came from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) client: Option<Client>,
    pub(crate) patience: Arc<Patience>,
}

impl<R> Visitor<R> {
    /// The client that a trusted proxy speaks for.
    fn forwarded(&self, headers: &HeaderMap) -> Option<Client> {
        let limiter = self.service.limiter.as_ref().filter(|_| self.is_proxy)?;
        Some(limiter.client(self.service.proxies.client_of(headers)?))
    }
}

/// Gives each request an id, which its log lines and its answer carry. What `read` does not answer, the router does.
pub(crate) async fn answer<R: Read>(
    visitor: &Visitor<R>,
    request: Request<Incoming>,
    started: Instant,
) -> Response {
    let id = RequestId::new();
    let (method, uri) = (request.method(), request.uri());
    let route = Route::of(uri.path());
    // Reads are many and change nothing: they are logged only where somebody looks at details, or where they fail.
    let is_read = method.is_safe();
    let span = if is_read {
        tracing::debug_span!("request", id = id.as_str(), %method, path = uri.path())
    } else {
        tracing::info_span!("request", id = id.as_str(), %method, path = uri.path())
    };
    let forwarded = visitor.forwarded(request.headers());
    let client = forwarded.as_ref().or(visitor.client.as_ref());
    let admitted = client
        .filter(|_| route.is_limited() || !is_read)
        .map_or(Ok(()), |client| client.charge_request(started));
    // Nothing that a read was changing outlives its panic.
    let admitted = admitted.map_err(ApiError::from);
    let ask =
        AssertUnwindSafe(|| match admitted.and_then(|()| check_host(request.version(), request.headers())) {
            Ok(()) => (visitor.service.read)((method, uri, request.headers())),
            Err(refused) => Some(refused.into_response()),
        });
    let mut response = match span.in_scope(|| catch_unwind(ask)).unwrap_or_else(|_| Some(panicked())) {
        Some(mut response) => {
            report_failure(&span, &id, (method, uri), &mut response);
            response
        }
        None => {
            let (method, uri) = (method.clone(), uri.clone());
            let origin = Origin { client: client.cloned(), patience: Arc::clone(&visitor.patience) };
            let mut response = answer_routed(&visitor.service, request, origin, &span).await;
            report_failure(&span, &id, (&method, &uri), &mut response);
            response
        }
    };
    let (status, took) = (response.status(), started.elapsed());
    visitor.service.requests.record(visitor.number, route, status, took);
    if !span.is_disabled() {
        let ms = took.as_secs_f64() * 1_000.0;
        // Whoever asks too often shall not fill the log.
        let is_detail = is_read || status == StatusCode::TOO_MANY_REQUESTS;
        span.in_scope(|| match is_detail {
            true => tracing::debug!(status = status.as_u16(), ms, "answered"),
            false => tracing::info!(status = status.as_u16(), ms, "answered"),
        });
    }
    // Caches keep even a 404 on their own account, such as the one that says that a release is not revoked.
    response.headers_mut().entry(CACHE_CONTROL).or_insert(NO_STORE);
    if let Some(date) = http_date() {
        response.headers_mut().insert(DATE, date);
    }
    if let Ok(value) = HeaderValue::try_from(id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Away from the connection's thread, which serves others meanwhile. Ends with the connection.
async fn answer_routed<R: Read>(
    service: &Service<R>,
    mut request: Request<Incoming>,
    origin: Origin,
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
pub(crate) struct RequestId(String);

impl RequestId {
    /// A `Uuid` for each would ask the system for random bytes with every request.
    pub(crate) fn new() -> Self {
        static RUN: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{:016x}-{:08x}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn no_two_requests_have_the_same_id_whatever_thread_they_are_on() {
        let ids = || (0..3_000).map(|_| RequestId::new().as_str().to_owned()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(ids)).collect();
        let ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 12_000);
        assert!(ids.iter().all(|id| id.len() == 25 && id[..16] == ids[0][..16]));
    }
}
