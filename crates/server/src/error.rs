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
            InvalidSigners, NotTheCaller, assets::AssetsRefusal, caps::CapRefusal, register::RegisterRefusal,
            revoke::RevokeRefusal, sign::SignRefusal, update::UpdateRefusal,
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
    health::NotReady,
    limits::{
        Limited,
        places::{GaveWay, NoPlace},
    },
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
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None, source: None }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
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
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Upstream content that is too large to store counts as invalid (D25).
    pub fn oversized_upstream(source: &str, error: IndexTooLarge) -> Self {
        Self::internal(format!("the release `{}` cannot be registered: {error}", shown_text(source)), error)
    }

    pub fn busy() -> Self {
        let busy = Self::new(StatusCode::SERVICE_UNAVAILABLE, "the server is busy: try again in a moment");
        Self { retry_after: Some(1), ..busy }
    }

    /// Soon after a start.
    pub fn no_catalogue_yet() -> Self {
        let message = "the server has just started and still reads what is stored: try again in a moment";
        Self { retry_after: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    pub fn too_many_listeners() -> Self {
        let message =
            "too many others listen to events. Try again later, or read the state of what you watch";
        Self { retry_after: Some(60), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    fn refused(status: StatusCode, refusal: &impl StdError) -> Self {
        Self::new(status, refusal.to_string())
    }

    fn internal(message: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: message.into(),
            retry_after: None,
            source: Some(source.into()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // A busy or stopping server has not failed, and repeated requests must not fill the log.
        let failure = (self.status == StatusCode::INTERNAL_SERVER_ERROR).then(|| LoggedFailure {
            message: self.message.clone(),
            source: self.source.as_deref().map(describe),
        });
        let mut response = (self.status, Json(ErrorResponse { error: self.message })).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if let Some(failure) = failure {
            response.extensions_mut().insert(failure);
        }
        response
    }
}

/// A failure of the server, on its way to the log. The code that sends the answer knows the request.
#[derive(Debug, Clone)]
pub(crate) struct LoggedFailure {
    pub(crate) message: String,
    pub(crate) source: Option<String>,
}

/// An error with all its causes on one line.
fn describe(error: &(dyn StdError + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl From<AuthRefusal> for ApiError {
    fn from(refusal: AuthRefusal) -> Self {
        Self::refused(StatusCode::UNAUTHORIZED, &refusal)
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
            error @ NonceError::Unavailable(_) => Self::internal(NOTHING_STORED, error),
        }
    }
}

impl From<Limited> for ApiError {
    fn from(limited: Limited) -> Self {
        let refused = Self::refused(StatusCode::TOO_MANY_REQUESTS, &limited);
        Self { retry_after: Some(limited.seconds), ..refused }
    }
}

impl From<NoPlace> for ApiError {
    fn from(_: NoPlace) -> Self {
        Self::busy()
    }
}

impl From<GaveWay> for ApiError {
    fn from(_: GaveWay) -> Self {
        let message = "this request had to make room for others that waited. Try again in a moment";
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }
}

impl From<NotReady> for ApiError {
    fn from(reason: NotReady) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, &reason)
    }
}

impl From<ParseError> for ApiError {
    fn from(error: ParseError) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, &error)
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::bad_request(format!("Invalid path: {error}"))
    }
}

impl From<UrlRefusal> for ApiError {
    fn from(refusal: UrlRefusal) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, &refusal)
    }
}

impl From<FetchError> for ApiError {
    fn from(error: FetchError) -> Self {
        if error.is_refused_as_given() {
            return Self::refused(StatusCode::BAD_REQUEST, &error);
        }
        Self::internal(error.to_string(), error)
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
                Self::internal(error.to_string(), error)
            }
        }
    }
}

impl From<ChecksumsError> for ApiError {
    fn from(error: ChecksumsError) -> Self {
        Self::internal(error.to_string(), error)
    }
}

impl From<TooManyFiles> for ApiError {
    fn from(error: TooManyFiles) -> Self {
        Self::internal(error.to_string(), error)
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        Self::internal(error.to_string(), error)
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
                let refused = Self::refused(StatusCode::TOO_MANY_REQUESTS, over);
                return Self { retry_after: Some(over.seconds), ..refused };
            }
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

impl From<NotTheCaller> for ApiError {
    fn from(refusal: NotTheCaller) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, &refusal)
    }
}

impl From<RegisterRefusal> for ApiError {
    fn from(refusal: RegisterRefusal) -> Self {
        use RegisterRefusal as R;
        let status = match refusal {
            R::AlreadyRegistered(_) | R::InProgress(_) | R::Overlaps { .. } => StatusCode::CONFLICT,
            R::NotTheCaller(_) | R::NotListed(_) | R::TimestampAhead(_) => StatusCode::BAD_REQUEST,
            R::InvalidSigners(error) => return invalid_signers(error),
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}

impl From<UpdateRefusal> for ApiError {
    fn from(refusal: UpdateRefusal) -> Self {
        use UpdateRefusal as R;
        let status = match refusal {
            R::NotTheCaller(_)
            | R::NotRegistered(_)
            | R::NotActive(_)
            | R::NotListed { .. }
            | R::TimestampNotLater { .. }
            | R::TimestampAhead(_) => StatusCode::BAD_REQUEST,
            R::OtherPending(_) | R::HistoryFull { .. } => StatusCode::CONFLICT,
            R::InvalidSigners(error) => return invalid_signers(error),
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}

impl From<CapRefusal> for ApiError {
    fn from(refusal: CapRefusal) -> Self {
        match refusal {
            CapRefusal::Registrations { .. } | CapRefusal::Superseded { .. } => {
                Self::refused(StatusCode::CONFLICT, &refusal)
            }
            CapRefusal::Rotations { wait_seconds, .. } => {
                let refused = Self::refused(StatusCode::TOO_MANY_REQUESTS, &refusal);
                Self { retry_after: Some(wait_seconds), ..refused }
            }
            CapRefusal::Stored(error) => error.into(),
        }
    }
}

/// Invalid content from a forge is the forge's fault, not the caller's: 500 (D25).
fn invalid_signers(error: InvalidSigners) -> ApiError {
    ApiError::internal(error.to_string(), error)
}

impl From<SignRefusal> for ApiError {
    fn from(refusal: SignRefusal) -> Self {
        use SignRefusal as R;
        let status = match refusal {
            R::MissingPrimary(_)
            | R::MissingMetadata(_)
            | R::UnexpectedPath(_)
            | R::NotFound(_)
            | R::NotSignable(_)
            | R::BadSignature(_) => StatusCode::BAD_REQUEST,
            R::NotAllowed { .. } => StatusCode::FORBIDDEN,
            R::AlreadyComplete(_) | R::Revoked(_) | R::AlreadySigned(_) => StatusCode::CONFLICT,
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}

impl From<AssetsRefusal> for ApiError {
    fn from(refusal: AssetsRefusal) -> Self {
        use AssetsRefusal as R;
        let status = match refusal {
            R::NoSigners(_) => StatusCode::BAD_REQUEST,
            R::NotASigner { .. } => StatusCode::FORBIDDEN,
            R::AlreadyRegistered(_) | R::TooManyCollecting { .. } => StatusCode::CONFLICT,
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}

impl From<RevokeRefusal> for ApiError {
    fn from(refusal: RevokeRefusal) -> Self {
        use RevokeRefusal as R;
        let status = match refusal {
            R::NotFound(_) => StatusCode::NOT_FOUND,
            R::NotComplete(_) | R::OtherPending { .. } | R::AlreadySigned(_) => StatusCode::CONFLICT,
            R::NotRevocable(_)
            | R::AlreadyRevoked(_)
            | R::InvalidDocument(_)
            | R::DigestMismatch(_)
            | R::BadSignature
            | R::NotAuthorised { .. }
            | R::NotCaller
            | R::SubjectDigestRequired
            | R::NotInitiator => StatusCode::BAD_REQUEST,
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}

impl From<StatusRefusal> for ApiError {
    fn from(refusal: StatusRefusal) -> Self {
        use StatusRefusal as R;
        let status = match refusal {
            R::NotFound(_) | R::NoSigners(_) => StatusCode::NOT_FOUND,
            R::NotASigner { .. } => StatusCode::FORBIDDEN,
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}

impl From<ChainRefusal> for ApiError {
    fn from(refusal: ChainRefusal) -> Self {
        use ChainRefusal as R;
        let status = match refusal {
            R::NotSigned(_) => StatusCode::BAD_REQUEST,
            R::Stored(error) => return error.into(),
        };
        Self::refused(status, &refusal)
    }
}
