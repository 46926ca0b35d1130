//! What a client reads if it does not get what it asked for.

mod statuses;

use std::error::Error as StdError;

use axum::{
    Json,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use countersign_api::answers::ErrorResponse;
use countersign_core::{documents::index::IndexTooLarge, values::shown::shown_text};
use countersign_store::StoreError;
use url::Url;

use crate::{
    causes::describe,
    gravity::{Gravity, UpstreamFault},
};

/// What the client reads. The text is safe to show; `source` is only for the log.
#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
    pub source: Option<Box<dyn StdError + Send + Sync>>,
    pub gravity: Gravity,
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        // A busy or stopping server has not failed.
        let is_failure =
            matches!(status, StatusCode::INTERNAL_SERVER_ERROR | StatusCode::INSUFFICIENT_STORAGE);
        let gravity = if is_failure { Gravity::Failure } else { Gravity::Refusal };
        Self { status, message: message.into(), retry_after: None, source: None, gravity }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub fn no_such_route() -> Self {
        Self::not_found("no such route")
    }

    pub fn no_signers(path: &str) -> Self {
        Self::not_found(format!(
            "No signers file found for: {path}. Error: No signers file found in parent directories"
        ))
    }

    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the request body is larger than {limit} bytes"))
    }

    pub fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time")
    }

    pub fn wrong_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this route does not have that method")
    }

    /// The panic itself was logged where it happened.
    pub fn panicked() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "an unexpected error occurred")
    }

    /// A fetch can find nothing. That is an error only if the server needs the file.
    pub fn missing_upstream(url: &Url) -> Self {
        let message = format!("`{url}` answered that there is no such file (404)");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message).blaming(UpstreamFault::Missing)
    }

    /// Upstream content that is too large to store counts as invalid (D25).
    pub fn oversized_upstream(source: &str, error: IndexTooLarge) -> Self {
        let message = format!("the release `{}` cannot be registered: {error}", shown_text(source));
        Self::internal(message, error).blaming(UpstreamFault::Invalid)
    }

    pub fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the server is busy: try again in a moment").retry_after(1)
    }

    /// For a node that cannot store a nonce, or is not up to date.
    pub fn no_database(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server cannot reach its database at the moment, so nothing was changed: try again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(2).because(source)
    }

    /// For a change that a node has sent to the database. The time is longer than clients wait before they repeat a
    /// request by themselves.
    pub fn unknown_outcome(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server lost its database before it could confirm the change, so whether it was made is not \
                       known: look at the state of what you changed, and try again if nothing happened";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(10).because(source)
    }

    /// Soon after a start.
    pub fn no_catalogue_yet() -> Self {
        let message = "the server has just started and still reads what is stored: try again in a moment";
        Self { retry_after: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    pub fn no_log() -> Self {
        Self::not_found("this server keeps no log")
    }

    pub fn no_witness() -> Self {
        Self::not_found("this server is not a witness")
    }

    pub fn nothing_cosigned() -> Self {
        Self::not_found("this witness has cosigned no checkpoint of such a log")
    }

    pub fn no_such_tile() -> Self {
        Self::not_found("no tile of a log has this name")
    }

    /// Soon after a start.
    pub fn no_log_yet() -> Self {
        let message = "the log still catches up with what is stored: try again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(5)
    }

    pub fn too_many_listeners() -> Self {
        let message =
            "too many others listen to events. Try again later, or read the state of what you watch";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(60)
    }

    pub fn too_many_followers() -> Self {
        let message = "too many others follow the journal. Try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(10)
    }

    pub fn unreadable_journal(error: StoreError) -> Self {
        Self::internal("the journal cannot be read", error)
    }

    /// For a change or nonce that the disk has no room for (D57).
    pub fn disk_full() -> Self {
        let message = "the server's disk is full: nothing was changed. Ask its operator to make room, and try again then";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, message).retry_after(60)
    }

    fn because(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// What an upstream did wrong is no failure of this server.
    fn blaming(self, fault: UpstreamFault) -> Self {
        Self { gravity: Gravity::Upstream(fault), ..self }
    }

    fn refused(status: StatusCode, refusal: &impl StdError) -> Self {
        Self::new(status, refusal.to_string())
    }

    fn internal(message: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message).because(source)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // Many messages quote their cause already.
        let source = self.source.as_deref().map(|source| describe(source));
        let source = source.filter(|source| !self.message.contains(source.as_str()));
        let reason = LoggedReason { gravity: self.gravity, reason: self.message.clone(), source };
        let mut response = (self.status, Json(ErrorResponse { error: self.message })).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(reason);
        response
    }
}

/// Why a request was refused or failed, on its way to the log. The code that sends the answer knows the request.
#[derive(Debug, Clone)]
pub(crate) struct LoggedReason {
    pub(crate) gravity: Gravity,
    pub(crate) reason: String,
    pub(crate) source: Option<String>,
}
