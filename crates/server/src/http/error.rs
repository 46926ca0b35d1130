//! What a client reads if it does not get what it asked for, and whether the server is healthy.

pub(crate) mod codes;

use std::{error::Error as StdError, sync::Arc};

use axum::{Json, http::StatusCode, http::header::RETRY_AFTER, response::IntoResponse, response::Response};
use countersign_api::{answers::ErrorResponse, error_code::ErrorCode};
use countersign_cluster::node::WrongNodeClock;
use countersign_core::{documents::index::IndexTooLarge, values::shown::shown_text};
use countersign_log::LogRefusal;
use thiserror::Error;
use url::Url;

use crate::follow::outgoing::describe;
use crate::metrics::{Severity, UpstreamFault};

/// What the client reads. The text is safe to show; `source` is only for the log.
#[derive(Debug)]
pub struct ApiError {
    /// What is wrong, for programs. It has the status, too.
    pub code: ErrorCode,
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
    pub source: Option<Box<dyn StdError + Send + Sync>>,
    pub severity: Severity,
}

/// The codes of refusals that pass by themselves, with the seconds after which another try is worth it. An outcome that
/// is unknown has more than clients wait before they repeat a request by themselves.
const PASSING: [(ErrorCode, u64); 16] = [
    (ErrorCode::Busy, 1),
    (ErrorCode::ClockSet, 1),
    (ErrorCode::DatabaseUnreachable, 2),
    (ErrorCode::CheckpointWithheld, 5),
    (ErrorCode::ClockWrong, 5),
    (ErrorCode::LogCatchingUp, 5),
    (ErrorCode::NotLoggedYet, 5),
    (ErrorCode::Starting, 5),
    (ErrorCode::WitnessNotReady, 5),
    (ErrorCode::OutcomeUnknown, 10),
    (ErrorCode::TooManyFollowers, 10),
    (ErrorCode::LogNotCosigned, 30),
    (ErrorCode::DiskFull, 60),
    (ErrorCode::LogStopped, 60),
    (ErrorCode::NodeHalted, 60),
    (ErrorCode::TooManyListeners, 60),
];

/// A refusal that is always the same sentence.
#[derive(Debug, Clone, Copy)]
pub struct FixedError(ErrorCode, &'static str);

impl From<FixedError> for ApiError {
    fn from(FixedError(code, message): FixedError) -> Self {
        Self::new(code, message)
    }
}

impl ApiError {
    pub const NO_SUCH_ROUTE: FixedError = FixedError(ErrorCode::NoSuchRoute, "no such route");
    pub const WRONG_METHOD: FixedError =
        FixedError(ErrorCode::WrongMethod, "this route does not have that method");
    pub const TOO_SLOW: FixedError =
        FixedError(ErrorCode::BodyTooSlow, "the request body did not arrive in time");
    pub const BUSY: FixedError = FixedError(ErrorCode::Busy, "the server is busy: try again in a moment");
    /// The panic itself was logged where it happened.
    pub const PANICKED: FixedError = FixedError(ErrorCode::InternalError, "an unexpected error occurred");
    /// The refusal of a change or a nonce that the disk has no room for (D57).
    pub const DISK_FULL: FixedError = FixedError(
        ErrorCode::DiskFull,
        "the server's disk is full: nothing was changed. Ask its operator to make room, and try again then",
    );
    pub const NO_CATALOGUE_YET: FixedError = FixedError(
        ErrorCode::Starting,
        "the server has just started and still reads what is stored: try again in a moment",
    );
    pub const NO_CONTACT: FixedError = FixedError(
        ErrorCode::NoSuchPage,
        "the operator of this server names no contact for reports about its security",
    );
    pub const NO_LOG: FixedError = FixedError(ErrorCode::NoLog, "this server keeps no log");
    pub const NO_LOG_YET: FixedError = FixedError(
        ErrorCode::LogCatchingUp,
        "the log still catches up with what is stored: try again in a moment",
    );
    pub const NO_SUCH_TILE: FixedError = FixedError(ErrorCode::NoSuchTile, "no tile of a log has this name");
    pub const NO_WITNESS: FixedError = FixedError(ErrorCode::NoWitness, "this server is not a witness");
    pub const NOTHING_COSIGNED: FixedError =
        FixedError(ErrorCode::NothingCosigned, "this witness has cosigned no checkpoint of such a log");
    pub const TOO_MANY_LISTENERS: FixedError = FixedError(
        ErrorCode::TooManyListeners,
        "too many others listen to events. Try again later, or read the state of what you watch",
    );
    pub const TOO_MANY_FOLLOWERS: FixedError =
        FixedError(ErrorCode::TooManyFollowers, "too many others follow the journal. Try again later");

    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        // A busy or stopping server has not failed.
        let severity = if matches!(code.status(), 500 | 507) { Severity::Failure } else { Severity::Refusal };
        let passing = PASSING.iter().find(|(passing, _)| *passing == code);
        let retry_after = passing.map(|(_, seconds)| *seconds);
        Self { code, message: message.into(), retry_after, source: None, severity }
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

    pub fn no_signers(path: &str) -> Self {
        let message =
            format!("No signers file found for: {path}. Error: No signers file found in parent directories");
        Self::new(ErrorCode::NoSignersFile, message)
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(ErrorCode::BodyTooLarge, format!("the request body is larger than {limit} bytes"))
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

    /// The error of a node that cannot store a nonce, or is not up to date.
    pub fn no_database(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server cannot reach its database at the moment, so nothing was changed: try again in a moment";
        Self::new(ErrorCode::DatabaseUnreachable, message).because(source)
    }

    /// The error of a change that a node sent to the database without an answer.
    pub fn unknown_outcome(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server lost its database before it could confirm the change, so whether it was made is not \
                       known: look at the state of what you changed, and try again if nothing happened";
        Self::new(ErrorCode::OutcomeUnknown, message).because(source)
    }

    /// What an upstream did wrong is no failure of this server.
    fn upstream(fault: UpstreamFault, message: impl Into<String>) -> Self {
        let code = match fault {
            UpstreamFault::Missing => ErrorCode::UpstreamMissing,
            UpstreamFault::Unreachable => ErrorCode::UpstreamUnreachable,
            UpstreamFault::Invalid => ErrorCode::UpstreamInvalid,
        };
        Self { severity: Severity::Upstream(fault), ..Self::new(code, message) }
    }

    pub(crate) fn because(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
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
        let reason = LoggedReason { severity: self.severity, reason: self.message.clone(), source };
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
    pub(crate) severity: Severity,
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
    #[error("{0}")]
    Mirror(String),
    #[error("the log signs nothing: {0}")]
    Log(#[from] LogRefusal),
}
