//! What every answer has in common: an id, a line in the log, and an answer even after a panic.

use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{net::IpAddr, panic::AssertUnwindSafe, panic::catch_unwind, sync::Arc};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header::CACHE_CONTROL, header::DATE};
use axum::{Router, response::IntoResponse as _, response::Response};
use countersign_core::values::wire;
use countersign_store::machine::clock::{LAST_SECOND, since_1970};
use hyper::{Request, body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;
use tokio::{runtime::Handle, task::JoinSet};
use tracing::{Instrument as _, Span, field::Empty};

use crate::http::{error::ApiError, error::LoggedReason, request::check_host, request::new_request_id};
use crate::limits::connections::{Connections, RequestSender, TrustedProxies};
use crate::limits::{Limiter, MeteredClient, client_wait::ClientWait};
use crate::metrics::{RequestKind, RequestKinds, Requests, Severity};
use crate::{operate::tls::Tls, serve::due::DueRotations};

const REQUEST_ID: HeaderName = HeaderName::from_static(wire::HEADER_REQUEST_ID);
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

/// What accepts connections on a listener, and answers their requests.
#[derive(Debug)]
pub struct Service<R> {
    pub connections: Arc<Connections>,
    pub tls: Option<Arc<Tls>>,
    pub router: Router,
    /// Asked before the router.
    pub read: R,
    pub kinds: &'static RequestKinds,
    pub requests: Arc<Requests>,
    pub limiter: Option<Arc<Limiter>>,
    pub proxies: Arc<TrustedProxies>,
    /// Signers that take effect before a request is answered.
    pub due: DueRotations,
    /// Works on requests that take longer than a read.
    pub workers: Handle,
}

/// The client at the other end of a connection.
#[derive(Debug)]
pub struct ConnectionContext<R> {
    pub service: Arc<Service<R>>,
    /// The address at the other end.
    pub peer: IpAddr,
    pub client: Option<MeteredClient>,
    /// Whether the peer is a trusted proxy. If so, the client is the one that the proxy names.
    pub is_proxy: bool,
    pub client_wait: Arc<ClientWait>,
}

impl<R> ConnectionContext<R> {
    /// The address that a trusted proxy speaks for.
    fn forwarded(&self, headers: &HeaderMap) -> Option<IpAddr> {
        if self.is_proxy { self.service.proxies.client_of(headers) } else { None }
    }

    fn metered(&self, address: IpAddr) -> Option<MeteredClient> {
        self.service.limiter.as_ref().map(|limiter| limiter.client(address))
    }
}

/// Gives each request an id, which its log lines and its answer carry. The router answers what `read` does not.
pub(crate) async fn answer<R: Read>(
    context: &ConnectionContext<R>,
    request: Request<Incoming>,
    started: Instant,
) -> Response {
    context.service.due.settle().await;
    let id = new_request_id();
    let (method, uri) = (&request.method().clone(), &request.uri().clone());
    let kind = context.service.kinds.kind_of(uri.path());
    // Reads are many and change nothing. They are logged only at debug level, or when they fail.
    let is_read = method.is_safe();
    let is_plain_read = is_read && !request.headers().contains_key(wire::HEADER_PUBLIC_KEY);
    let forwarded = context.forwarded(request.headers());
    let address = forwarded.unwrap_or(context.peer);
    // What is learnt about the request later: who calls, and about what.
    let span = if is_plain_read {
        tracing::debug_span!("request", id, %method, path = uri.path(), %address)
    } else {
        tracing::error_span!(
            "request", id, %method, path = uri.path(), %address,
            key = Empty, claimed_key = Empty, project = Empty, file = Empty
        )
    };
    let forwarded = forwarded.and_then(|address| context.metered(address));
    let client = forwarded.as_ref().or(context.client.as_ref());
    let kinds = context.service.kinds;
    let limited = client.filter(|_| kinds.is_limited(kind) || !is_read);
    let admitted = limited.map_or(Ok(None), |client| {
        client.charge_request(started)?;
        kinds.is_page(kind).then(|| client.share_pages()).transpose()
    });
    // Held until there is an answer.
    let (_page, admitted) = match admitted {
        Ok(page) => (page, Ok(())),
        Err(limited) => (None, Err(ApiError::from(limited))),
    };
    // A read changes nothing that could outlive its panic.
    let ask =
        AssertUnwindSafe(|| match admitted.and_then(|()| check_host(request.version(), request.headers())) {
            Ok(()) => (context.service.read)(RequestHead { method, uri, headers: request.headers() }),
            Err(refused) => Some(refused.into_response()),
        });
    let mut response = match span.in_scope(|| catch_unwind(ask)).unwrap_or_else(|_| Some(panicked())) {
        Some(response) => response,
        None => {
            let client_wait = Some(Arc::clone(&context.client_wait));
            let sender = RequestSender { client: client.cloned(), client_wait };
            answer_routed(&context.service, request, sender, &span).await
        }
    };
    let asked = Asked { id: &id, method, uri, address, is_plain_read };
    asked.finish(&context.service.requests, span, kind, started.elapsed(), &mut response);
    complete(&mut response, id);
    response
}

/// Adds the headers that every answer has.
pub(crate) fn complete(response: &mut Response, id: String) {
    // Caches store even a 404 unasked, such as the one that says that a release is not revoked.
    response.headers_mut().entry(CACHE_CONTROL).or_insert(NO_STORE);
    if let Some(date) = http_date() {
        response.headers_mut().insert(DATE, date);
    }
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
}

/// The `Date` of an answer; `None` if the clock is outside the range of that header, where hyper would panic.
pub(crate) fn http_date() -> Option<HeaderValue> {
    write_date(since_1970()?.as_secs())
}

pub fn write_date(seconds: u64) -> Option<HeaderValue> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST_SECOND)?;
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::from_str(&date).ok()
}

/// Works on a request away from the connection's thread, which serves others meanwhile. Ends with the connection.
async fn answer_routed<R: Read>(
    service: &Service<R>,
    mut request: Request<Incoming>,
    sender: RequestSender,
    span: &Span,
) -> Response {
    request.extensions_mut().insert(sender);
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
    ApiError::from(ApiError::PANICKED).into_response()
}

/// A request, as its log line names it.
struct Asked<'a> {
    id: &'a str,
    method: &'a Method,
    uri: &'a Uri,
    address: IpAddr,
    is_plain_read: bool,
}

impl Asked<'_> {
    /// Counts and logs the answer: one line for each request.
    fn finish(
        &self,
        requests: &Requests,
        span: Span,
        kind: RequestKind,
        took: Duration,
        response: &mut Response,
    ) {
        let status = response.status();
        requests.record(kind, status, took);
        let told = response.extensions_mut().remove::<LoggedReason>();
        let severity = told.as_ref().map(|told| told.severity);
        if let Some(Severity::Upstream(fault)) = severity {
            requests.note_upstream(fault);
        }
        let is_grave = matches!(severity, Some(Severity::Upstream(_) | Severity::Failure));
        let span = if span.is_disabled() && is_grave {
            // A read that turns out to be worth a line.
            let Self { id, method, uri, address, .. } = self;
            tracing::error_span!("request", id, %method, path = uri.path(), %address)
        } else {
            span
        };
        if span.is_disabled() {
            return;
        }
        let is_refused = status.is_client_error() || status.is_server_error();
        let is_detail = self.is_plain_read || (self.method.is_safe() && !is_refused);
        let (reason, source) = told.map(|told| (told.reason, told.source)).unzip();
        let (status, ms, source) = (status.as_u16(), rounded_ms(took), source.flatten());
        span.in_scope(|| match severity {
            Some(Severity::Failure) => tracing::error!(status, ms, reason, source, "answered"),
            Some(Severity::Upstream(_)) => tracing::warn!(status, ms, reason, source, "answered"),
            Some(Severity::Flood) => tracing::debug!(status, ms, reason, "answered"),
            Some(Severity::Refusal) | None if is_detail => tracing::debug!(status, ms, reason, "answered"),
            Some(Severity::Refusal) | None => tracing::info!(status, ms, reason, source, "answered"),
        });
    }
}

/// Milliseconds with three significant digits.
fn rounded_ms(took: Duration) -> f64 {
    let ms = took.as_secs_f64() * 1_000.0;
    let digits = (2.0 - ms.log10().floor()).clamp(0.0, 3.0);
    let scale = 10_f64.powf(digits);
    (ms * scale).round() / scale
}
