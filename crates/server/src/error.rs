//! The one mapping from refusals and failures to status codes (spec §7, D25, D30).

use std::error::Error as StdError;

use axum::{
    Json,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use countersign_api::answers::ErrorResponse;
use countersign_core::{
    documents::index::IndexTooLarge,
    rules::{
        auth::AuthRefusal,
        chain::ChainRefusal,
        decide::{
            ProposalFault, assets::AssetsRefusal, register::RegisterRefusal, revoke::RevokeRefusal,
            sign::SignRefusal, update::UpdateRefusal,
        },
        query::StatusRefusal,
        snapshot::ReadError,
    },
    values::{json::ParseError, path::PathError, shown::shown_text},
};
use countersign_forge::checksums::file::{ChecksumsError, TooManyFiles};
use countersign_forge::{fetch::FetchError, url::UrlRefusal};

use url::Url;

use crate::{
    blocks::ChangeBlocked,
    gravity::{Gravity, UpstreamFault},
    health::NotReady,
    limits::{
        Limited,
        caps::CapRefusal,
        places::{GaveWay, NoPlace},
    },
    mirror::state::NotTheOrigin,
    upstream::{UpstreamError, releases::DownloadError},
};
use countersign_store::{StoreError, nonces::NonceError};

/// For a disk that fails. Only the log names the file.
const NOTHING_STORED: &str = "the server cannot store anything at the moment, so nothing was changed: its disk may be full. Its log says why; \
     try again later";

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

    /// What a node cannot do without the others.
    pub fn no_database(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "the server cannot reach its database at the moment. Whether the change was made is not known: try \
                       again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(2).because(source)
    }

    /// Soon after a start.
    pub fn no_catalogue_yet() -> Self {
        let message = "the server has just started and still reads what is stored: try again in a moment";
        Self { retry_after: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
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
        let reason = LoggedReason {
            gravity: self.gravity,
            reason: self.message.clone(),
            source: self.source.as_deref().map(describe),
        };
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

/// An error with all its causes on one line.
fn describe(error: &(dyn StdError + Send + Sync + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The same status for every case.
macro_rules! refused_with {
    ($($status:ident: $($error:ty),+;)+) => {$($(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::refused(StatusCode::$status, &error)
            }
        }
    )+)+};
}

refused_with! {
    UNAUTHORIZED: AuthRefusal;
    FORBIDDEN: ChangeBlocked, NotTheOrigin;
    SERVICE_UNAVAILABLE: NotReady;
    BAD_REQUEST: ParseError, UrlRefusal;
}

/// Invalid content from a forge is the forge's fault, not the caller's: 500 (D25). The log gets the causes as well.
macro_rules! invalid_upstream {
    ($($error:ty),+) => {$(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::internal(error.to_string(), error).blaming(UpstreamFault::Invalid)
            }
        }
    )+};
}

invalid_upstream!(ChecksumsError, TooManyFiles);

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        Self::internal(error.to_string(), error)
    }
}

impl From<NonceError> for ApiError {
    fn from(error: NonceError) -> Self {
        match error {
            NonceError::Used => Self::unauthorized("the nonce was used before"),
            NonceError::Forgotten => Self::unauthorized(
                "whether the nonce was used before is not known any more, since the server's clock was wrong for a \
                 while: sign the request again; if that is refused as well, the operator can help (docs/operations.md, \
                 The clock)",
            ),
            NonceError::Busy => Self::busy(),
            error if error.is_disk_full() => Self::disk_full().because(error),
            error @ NonceError::Unavailable(_) => Self::internal(NOTHING_STORED, error),
        }
    }
}

impl From<Limited> for ApiError {
    fn from(limited: Limited) -> Self {
        let refused = Self::refused(StatusCode::TOO_MANY_REQUESTS, &limited).retry_after(limited.seconds);
        Self { gravity: Gravity::Flood, ..refused }
    }
}

impl From<NoPlace> for ApiError {
    fn from(_: NoPlace) -> Self {
        Self::busy()
    }
}

impl From<GaveWay> for ApiError {
    fn from(gave_way: GaveWay) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, &gave_way).retry_after(1)
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::bad_request(format!("Invalid path: {error}"))
    }
}

impl From<FetchError> for ApiError {
    fn from(error: FetchError) -> Self {
        if error.is_refused_as_given() {
            return Self::refused(StatusCode::BAD_REQUEST, &error);
        }
        let fault = UpstreamFault::from(&error);
        Self::internal(error.to_string(), error).blaming(fault)
    }
}

impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Busy => Self::busy(),
            UpstreamError::GaveWay(gave_way) => gave_way.into(),
            UpstreamError::Fetch(error) => error.into(),
            UpstreamError::Download(error) => error.into(),
            UpstreamError::Missing(url) => Self::missing_upstream(&url),
        }
    }
}

impl From<DownloadError> for ApiError {
    fn from(error: DownloadError) -> Self {
        match &error {
            DownloadError::Release(release) if release.is_refused_as_given() => {
                Self::refused(StatusCode::BAD_REQUEST, &error)
            }
            DownloadError::Busy => Self::busy(),
            DownloadError::GaveWay => GaveWay.into(),
            DownloadError::Release(_) | DownloadError::TimedOut(_) | DownloadError::Ended => {
                let gravity = Gravity::from(&error);
                Self { gravity, ..Self::internal(error.to_string(), error) }
            }
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = match &error {
            StoreError::Busy => return Self::busy(),
            StoreError::Conflict { path } => {
                let message = format!("{path} is a file where a directory is needed, or the reverse");
                return Self::new(StatusCode::CONFLICT, message);
            }
            StoreError::OverBudget(over) => {
                return Self::refused(StatusCode::TOO_MANY_REQUESTS, over).retry_after(over.seconds);
            }
            StoreError::Unordered(_) => return Self::no_database(error),
            StoreError::Halted(_) => {
                return Self::refused(StatusCode::SERVICE_UNAVAILABLE, &error).retry_after(60);
            }
            StoreError::Io(disk) if disk.is_full() => return Self::disk_full().because(error),
            StoreError::Io(_) => NOTHING_STORED,
            // A rule should have refused this earlier.
            StoreError::TooLarge { .. } => return Self::internal(error.to_string(), error),
            StoreError::Corrupt { .. } | StoreError::Panicked | StoreError::Closed => {
                "the change could not be committed to the repository"
            }
        };
        Self::internal(message, error)
    }
}

impl From<ProposalFault> for ApiError {
    fn from(fault: ProposalFault) -> Self {
        match fault {
            ProposalFault::NotTheCaller | ProposalFault::TimestampAhead(_) => {
                Self::refused(StatusCode::BAD_REQUEST, &fault)
            }
            // Invalid content from a forge is the forge's fault, not the caller's (D25).
            ProposalFault::InvalidSigners { .. } => {
                Self::internal(fault.to_string(), fault).blaming(UpstreamFault::Invalid)
            }
        }
    }
}

impl From<CapRefusal> for ApiError {
    fn from(refusal: CapRefusal) -> Self {
        match refusal {
            CapRefusal::Registrations { .. } | CapRefusal::Superseded { .. } => {
                Self::refused(StatusCode::CONFLICT, &refusal)
            }
            CapRefusal::Rotations { wait_seconds, .. } => {
                Self::refused(StatusCode::TOO_MANY_REQUESTS, &refusal).retry_after(wait_seconds)
            }
            CapRefusal::Stored(error) => error.into(),
        }
    }
}

/// The status of each case. A case that holds a failure becomes what the failure becomes.
macro_rules! refusals {
    ($($refusal:ident { $($status:ident: $cases:pat,)+ => $($failed:ident)|+ })+) => {$(
        impl From<$refusal> for ApiError {
            fn from(refusal: $refusal) -> Self {
                use $refusal as R;
                let status = match refusal {
                    $($cases => StatusCode::$status,)+
                    $(R::$failed(error) => return error.into(),)+
                };
                Self::refused(status, &refusal)
            }
        }
    )+};
}

refusals! {
    RegisterRefusal {
        CONFLICT: R::AlreadyRegistered(_) | R::InProgress(_) | R::Overlaps { .. },
        BAD_REQUEST: R::NotListed(_),
        => Fault | Stored
    }
    UpdateRefusal {
        BAD_REQUEST: R::NotRegistered(_) | R::NotActive(_) | R::NotListed { .. } | R::TimestampNotLater { .. },
        CONFLICT: R::OtherPending(_) | R::HistoryFull { .. },
        => Fault | Stored
    }
    SignRefusal {
        BAD_REQUEST: R::MissingPrimary(_) | R::MissingMetadata(_) | R::UnexpectedPath(_) | R::NotFound(_)
            | R::NotSignable(_) | R::BadSignature(_),
        FORBIDDEN: R::NotAllowed { .. },
        CONFLICT: R::AlreadyComplete(_) | R::Revoked(_) | R::AlreadySigned(_),
        => Stored
    }
    AssetsRefusal {
        BAD_REQUEST: R::NoSigners(_),
        FORBIDDEN: R::NotASigner { .. },
        CONFLICT: R::AlreadyRegistered(_) | R::TooManyCollecting { .. },
        => Stored
    }
    RevokeRefusal {
        NOT_FOUND: R::NotFound(_),
        CONFLICT: R::NotComplete(_) | R::OtherPending { .. } | R::AlreadySigned(_),
        BAD_REQUEST: R::NotRevocable(_) | R::AlreadyRevoked(_) | R::InvalidDocument(_) | R::DigestMismatch(_)
            | R::BadSignature | R::NotAuthorised { .. } | R::NotCaller | R::SubjectDigestRequired
            | R::NotInitiator,
        => Stored
    }
    StatusRefusal {
        NOT_FOUND: R::NotFound(_) | R::NoSigners(_),
        FORBIDDEN: R::NotASigner { .. },
        => Stored
    }
    ChainRefusal {
        BAD_REQUEST: R::NotSigned(_),
        => Stored
    }
}
