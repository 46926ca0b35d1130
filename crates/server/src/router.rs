//! The route table, and what every response has in common.

use std::time::Instant;

use axum::{
    Router,
    extract::{FromRequestParts, Request},
    http::{HeaderValue, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use countersign_core::path::RepoPath;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{
    app::App,
    error::ApiError,
    routes::{assets, chain, files, pending, ping, propose, revoke, signatures},
};

pub const REQUEST_ID: &str = "x-request-id";

pub fn build(app: App) -> Router {
    let routes = Router::new()
        .route("/v1/register_repo", post(propose::register_repo))
        .route("/v1/update_signers", post(propose::update_signers))
        .route("/v1/signatures", post(signatures::submit))
        .route("/v1/revoke", post(revoke::revoke))
        .route("/v1/assets", post(assets::register))
        .route("/v1/pending_signatures", get(pending::list))
        .route("/v1/ping", get(ping::ping));
    let with_path = [
        ("signatures", get(signatures::status)),
        ("files-to-sign", get(files::to_sign)),
        ("files", get(files::raw)),
        ("get_signers", get(files::signers)),
        ("get_signers_chain", get(chain::chain)),
        ("get_artifact_signers_chain", get(chain::chain)),
    ];
    let routes = with_path.into_iter().fold(routes, |routes, (name, handler)| {
        // A catch-all does not match the empty path, which has an answer of its own (D6).
        routes
            .route(&format!("/v1/{name}/"), handler.clone())
            .route(&format!("/v1/{name}/{{*path}}"), handler)
    });
    routes
        .fallback(async || ApiError::not_found("no such route"))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
        .layer(CatchPanicLayer::custom(|_| ApiError::panicked().into_response()))
        .layer(middleware::from_fn(observe))
        .with_state(app)
}

/// Gives each request an id, which its log lines and its response carry.
async fn observe(request: Request, next: Next) -> Response {
    let id = Uuid::new_v4().to_string();
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    async move {
        let started = Instant::now();
        let is_read = request.method().is_safe();
        let mut response = next.run(request).await;
        let (status, elapsed) = (response.status().as_u16(), started.elapsed());
        let ms = elapsed.as_secs_f64() * 1_000.0;
        // Reads are many and change nothing.
        if is_read {
            tracing::debug!(status, ms, "answered");
        } else {
            tracing::info!(status, ms, "answered");
        }
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    }
    .instrument(span)
    .await
}

/// What follows `/v1/<route>/`, not looked at yet: authentication comes first (D30).
#[derive(Debug)]
pub struct Tail(String);

impl Tail {
    /// The path that is meant, percent-decoded once.
    pub fn parse(&self) -> Result<RepoPath, ApiError> {
        let decoded = percent_encoding::percent_decode_str(&self.0).decode_utf8();
        let decoded = decoded.map_err(|_| ApiError::bad_request("Invalid path: it is not UTF-8"))?;
        Ok(RepoPath::parse(&decoded)?)
    }
}

impl<S: Sync> FromRequestParts<S> for Tail {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let tail = parts.uri.path().splitn(4, '/').nth(3).unwrap_or_default();
        Ok(Self(tail.to_owned()))
    }
}
