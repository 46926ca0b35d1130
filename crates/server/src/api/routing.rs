//! How routes are made, each with its description, and what their handlers get of a request.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Uri, header::CONTENT_TYPE, request::Parts};
use axum::routing::{MethodRouter, get, post};
use axum::{Router, extract::FromRequestParts, handler::Handler, response::Response};
use countersign_api::error_code::ErrorCode;
use countersign_core::values::path::RepoPath;
use countersign_store::catalogue::Look;

use crate::api::openapi::{self, Endpoint, Row};
use crate::api::state::{App, wait_until_ready};
use crate::http::{error::ApiError, request::Query, sending::run_in_turn};
use crate::limits::connections::RequestSender;

// The table of routes. Each route brings its part of the reference and cannot be added without it.

#[derive(Debug, Default)]
pub struct RouteTable {
    pub router: Router<App>,
    pub rows: Vec<Row>,
}

impl RouteTable {
    pub fn get<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H, endpoint: Endpoint) -> Self {
        self.route(path, get(handler)).with_row("GET", path.to_owned(), endpoint)
    }

    pub fn post<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H, endpoint: Endpoint) -> Self {
        self.route(path, post(handler)).with_row("POST", path.to_owned(), endpoint)
    }

    /// Adds a route for everything below a directory. The rest of the target is one path, which can contain slashes.
    pub fn get_below<H: Handler<T, App>, T: 'static>(
        self,
        dir: &str,
        handler: H,
        endpoint: Endpoint,
    ) -> Self {
        // A catch-all does not match the empty path, which has its own answer (D6).
        self.route(&format!("{dir}/"), get(handler.clone()))
            .route(&format!("{dir}/{{*path}}"), get(handler))
            .with_row("GET", format!("{dir}/{{path}}"), endpoint)
    }

    /// Adds another spelling of a route, which has its description already.
    pub fn also_get<H: Handler<T, App>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.route(path, get(handler))
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        Self { router: self.router.merge(other.router), ..self }
    }

    fn route(self, path: &str, methods: MethodRouter<App>) -> Self {
        Self { router: self.router.route(path, methods), ..self }
    }

    fn with_row(mut self, method: &'static str, path: String, endpoint: Endpoint) -> Self {
        self.rows.push(Row { method, path, endpoint });
        self
    }
}

// What handlers get of a request.

/// A request without its body, and what answers it.
#[derive(Debug, Clone)]
pub struct Question {
    pub app: App,
    /// The client to charge.
    pub sender: RequestSender,
    pub headers: HeaderMap,
    pub uri: Uri,
}

impl Question {
    pub fn of(parts: &Parts, app: &App) -> Self {
        let (sender, headers) = (RequestSender::of(parts), parts.headers.clone());
        Self { app: Arc::clone(app), sender, headers, uri: parts.uri.clone() }
    }

    /// What follows `/v1/<route>/`, unparsed.
    pub fn tail(&self) -> &str {
        self.uri.path().splitn(4, '/').nth(3).unwrap_or_default()
    }

    /// The path that follows `/v1/<route>/`.
    pub fn path(&self) -> Result<RepoPath, ApiError> {
        parse_tail(self.tail())
    }

    /// The parameters behind the question mark.
    pub(crate) fn query(&self, known: &[&str]) -> Result<Query<'_>, ApiError> {
        Query::parse(self.uri.query().unwrap_or_default(), known)
    }

    /// Asks the catalogue outside the runtime, when it is its turn.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        find: impl FnOnce(&Look<'_>) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        wait_until_ready(&self.app).await?;
        let catalogue = Arc::clone(&self.app.catalogue);
        run_in_turn(&self.app.questions, self.sender.claimant(), move || find(&catalogue.look())).await
    }

    /// Sends an answer in JSON. It waits for room if it is large (D45).
    pub(crate) async fn send_json(&self, answer: Bytes) -> Result<Response, ApiError> {
        Ok(with_type(self.app.sending.answer(answer, &self.sender).await?, JSON))
    }
}

impl FromRequestParts<App> for Question {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self::of(parts, app))
    }
}

pub(crate) const JSON: HeaderValue = HeaderValue::from_static(openapi::JSON);

pub(crate) fn with_type(mut response: Response, content_type: HeaderValue) -> Response {
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The path at the end of a route, percent-decoded once.
pub fn parse_tail(tail: &str) -> Result<RepoPath, ApiError> {
    let decoded =
        decode(tail).ok_or_else(|| ApiError::new(ErrorCode::InvalidPath, "Invalid path: it is not UTF-8"))?;
    Ok(RepoPath::parse(&decoded)?)
}

/// The text, percent-decoded once; none if it is not UTF-8 then.
pub fn decode(tail: &str) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode_str(tail).decode_utf8().ok()
}
