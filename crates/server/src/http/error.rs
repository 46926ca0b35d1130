//! What a client reads if it does not get what it asked for, and whether the server is healthy.

pub(crate) mod codes;

use std::{error::Error as StdError, sync::Arc};

use axum::{Json, http::StatusCode, http::header::RETRY_AFTER, response::IntoResponse, response::Response};
use countersign_api::{answers::ErrorResponse, error_code::ErrorCode};
use countersign_cluster::node::WrongNodeClock;
use countersign_core::{documents::index::IndexTooLarge, values::shown::shown_text};
use countersign_log::LogRefusal;
use countersign_store::StoreError;
use thiserror::Error;
use url::Url;

use crate::follow::{mirror::MirrorTrouble, outgoing::describe};
use crate::metrics::severity::{Severity, UpstreamFault};

/// What the client reads. The text is safe to show; `source` is only for the log.
#[derive(Debug)]
pub struct ApiError {
    /// What is wrong, for programs. It has the status, too.
    pub code: ErrorCode,
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
    pub source: Option<Box<dyn StdError + Send + Sync>>,
    pub gravity: Severity,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        // A busy or stopping server has not failed.
        let gravity = if matches!(code.status(), 500 | 507) { Severity::Failure } else { Severity::Refusal };
        Self { code, message: message.into(), retry_after: None, source: None, gravity }
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// A parameter, a part of the path or a header that the route does not accept.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParameter, message)
    }

    /// Bytes that are no request of HTTP/1.1, or no whole one.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::MalformedRequest, message)
    }

    pub fn no_such_route() -> Self {
        Self::new(ErrorCode::NoSuchRoute, "no such route")
    }

    pub fn no_signers(path: &str) -> Self {
        let message =
            format!("No signers file found for: {path}. Error: No signers file found in parent directories");
        Self::new(ErrorCode::NoSignersFile, message)
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(ErrorCode::BodyTooLarge, format!("the request body is larger than {limit} bytes"))
    }

    pub fn too_slow() -> Self {
        Self::new(ErrorCode::BodyTooSlow, "the request body did not arrive in time")
    }

    pub fn wrong_method() -> Self {
        Self::new(ErrorCode::WrongMethod, "this route does not have that method")
    }

    /// The panic itself was logged where it happened.
    pub fn panicked() -> Self {
        Self::new(ErrorCode::InternalError, "an unexpected error occurred")
    }

    /// A fetch can find nothing. That is an error only if the server needs the file.
    pub fn missing_upstream(url: &Url) -> Self {
        let message = format!("`{url}` answered that there is no such file (404)");
        Self::upstream(UpstreamFault::Missing, message)
    }

    /// Upstream content that is too large to store counts as invalid (D25).
    pub fn oversized_upstream(source: &str, error: IndexTooLarge) -> Self {
        let message = format!("the release `{}` cannot be registered: {error}", shown_text(source));
        Self::upstream(UpstreamFault::Invalid, message).because(error)
    }

    pub fn busy() -> Self {
        Self::new(ErrorCode::Busy, "the server is busy: try again in a moment").retry_after(1)
    }

    /// The error of a node that cannot store a nonce, or is not up to date.
    pub fn no_database(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server cannot reach its database at the moment, so nothing was changed: try again in a moment";
        Self::new(ErrorCode::DatabaseUnreachable, message).retry_after(2).because(source)
    }

    /// The error of a change that a node sent to the database without an answer. The time is longer than clients wait
    /// before they repeat a request by themselves.
    pub fn unknown_outcome(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server lost its database before it could confirm the change, so whether it was made is not \
                       known: look at the state of what you changed, and try again if nothing happened";
        Self::new(ErrorCode::OutcomeUnknown, message).retry_after(10).because(source)
    }

    /// Soon after a start.
    pub fn no_catalogue_yet() -> Self {
        let message = "the server has just started and still reads what is stored: try again in a moment";
        Self::new(ErrorCode::Starting, message).retry_after(5)
    }

    pub fn no_log() -> Self {
        Self::new(ErrorCode::NoLog, "this server keeps no log")
    }

    pub fn no_witness() -> Self {
        Self::new(ErrorCode::NoWitness, "this server is not a witness")
    }

    pub fn nothing_cosigned() -> Self {
        Self::new(ErrorCode::NothingCosigned, "this witness has cosigned no checkpoint of such a log")
    }

    pub fn no_such_tile() -> Self {
        Self::new(ErrorCode::NoSuchTile, "no tile of a log has this name")
    }

    /// Soon after a start.
    pub fn no_log_yet() -> Self {
        let message = "the log still catches up with what is stored: try again in a moment";
        Self::new(ErrorCode::LogCatchingUp, message).retry_after(5)
    }

    pub fn too_many_listeners() -> Self {
        let message =
            "too many others listen to events. Try again later, or read the state of what you watch";
        Self::new(ErrorCode::TooManyListeners, message).retry_after(60)
    }

    pub fn too_many_followers() -> Self {
        let message = "too many others follow the journal. Try again later";
        Self::new(ErrorCode::TooManyFollowers, message).retry_after(10)
    }

    pub fn unreadable_journal(error: StoreError) -> Self {
        Self::new(ErrorCode::StorageFailed, "the journal cannot be read").because(error)
    }

    /// The error of a change or a nonce that the disk has no room for (D57).
    pub fn disk_full() -> Self {
        let message = "the server's disk is full: nothing was changed. Ask its operator to make room, and try again then";
        Self::new(ErrorCode::DiskFull, message).retry_after(60)
    }

    /// What an upstream did wrong is no failure of this server.
    fn upstream(fault: UpstreamFault, message: impl Into<String>) -> Self {
        let code = match fault {
            UpstreamFault::Missing => ErrorCode::UpstreamMissing,
            UpstreamFault::Unreachable => ErrorCode::UpstreamUnreachable,
            UpstreamFault::Invalid => ErrorCode::UpstreamInvalid,
        };
        Self { gravity: Severity::Upstream(fault), ..Self::new(code, message) }
    }

    fn because(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    fn refused(code: ErrorCode, refusal: &impl StdError) -> Self {
        Self::new(code, refusal.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // Many messages quote their cause already.
        let source = self.source.as_deref().map(|source| describe(source));
        let source = source.filter(|source| !self.message.contains(source.as_str()));
        let reason = LoggedReason { gravity: self.gravity, reason: self.message.clone(), source };
        let (status, code) = (self.status(), self.code);
        let mut response = (status, Json(ErrorResponse { error: self.message, code })).into_response();
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
    pub(crate) gravity: Severity,
    pub(crate) reason: String,
    pub(crate) source: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotReady {
    #[error("the server is stopping")]
    Stopping,
    #[error("the last change could not be committed to the repository")]
    Store,
    #[error("the last nonce could not be stored")]
    Nonces,
    #[error("the server's disk is full: its operator must make room")]
    DiskFull,
    #[error("the server's clock is behind its newest change: its operator must set it")]
    Clock,
    #[error("the database cannot be reached")]
    Database,
    #[error("this node is too far behind the others")]
    Lagging,
    #[error(transparent)]
    NodeClock(#[from] WrongNodeClock),
    #[error("this node has stopped following the others: {0}")]
    Halted(Arc<String>),
    #[error(transparent)]
    Mirror(#[from] MirrorTrouble),
    #[error("the log signs nothing: {0}")]
    Log(#[from] LogRefusal),
}
