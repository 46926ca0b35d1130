//! How routes are made: each with its description, and the path at its end.

use std::borrow::Cow;

use axum::routing::{MethodRouter, get, post};
use axum::{Router, extract::FromRequestParts, handler::Handler, http::request::Parts};
use countersign_api::error_code::ErrorCode;
use countersign_core::values::path::RepoPath;

use crate::api::{openapi::Endpoint, openapi::Row, state::App};
use crate::http::error::ApiError;

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

// The path at the end of a route.

/// What follows `/v1/<route>/`, unparsed: authentication comes first (D30).
#[derive(Debug)]
pub struct Tail(pub String);

impl Tail {
    pub fn parse(&self) -> Result<RepoPath, ApiError> {
        parse_tail(&self.0)
    }
}

/// The path, percent-decoded once.
pub fn parse_tail(tail: &str) -> Result<RepoPath, ApiError> {
    let decoded =
        decode(tail).ok_or_else(|| ApiError::new(ErrorCode::InvalidPath, "Invalid path: it is not UTF-8"))?;
    Ok(RepoPath::parse(&decoded)?)
}

/// The text, percent-decoded once; none if it is not UTF-8 then.
pub fn decode(tail: &str) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode_str(tail).decode_utf8().ok()
}

impl<S: Sync> FromRequestParts<S> for Tail {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let tail = parts.uri.path().splitn(4, '/').nth(3).unwrap_or_default();
        Ok(Self(tail.to_owned()))
    }
}
