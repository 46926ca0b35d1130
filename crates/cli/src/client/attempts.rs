//! Requests to a server: which are signed, one exchange bounded in time and size, and when it is repeated (D63).

use std::time::Duration;

use countersign_api::requests::{AssetsBody, ProposeBody, SignaturesBody, SignedStatement, WithdrawBody};
use countersign_api::{answers::ErrorBody, error_code::ErrorCode};
use countersign_core::documents::statement::StatementKind;
use countersign_core::values::{shown::shown_text, wire, wire::routes};
use countersign_forge::{guard::find_refusal, https::find_tls_problem};
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use thiserror::Error;

use crate::words::error::CliError;

/// The pauses before the second and the third try.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];
/// A server that asks for a longer pause is left to the user.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a second request could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// A repeated request does no more than the first. Reading is such a request, and so is a signature, which the
    /// server takes once.
    Harmless,
    /// A repeated request is another change. The client repeats it only if the server did nothing with the first.
    Harmful,
}

/// How long to wait before the request is sent again, at least `pause`. `None` if it should not be.
pub(super) fn next_pause(
    pause: Duration,
    outcome: &Result<Answer, ExchangeError>,
    repetition: Repetition,
) -> Option<Duration> {
    let (asked, can_help) = match outcome {
        Ok(answer) => (answer.retry_after, is_passing(answer, repetition)),
        Err(ExchangeError::Transport(error)) => (None, is_transient(error, repetition)),
        Err(ExchangeError::TooLong { .. } | ExchangeError::Other(_)) => (None, false),
    };
    let is_soon = asked.is_none_or(|asked| asked <= MAX_RETRY_AFTER);
    (can_help && is_soon).then(|| asked.unwrap_or(pause).max(pause))
}

/// A proxy's 502 or 504 leaves open what the server did. A 503 of the server says that it did nothing, unless its code
/// says that it does not know.
fn is_passing(answer: &Answer, repetition: Repetition) -> bool {
    match repetition {
        Repetition::Harmless => matches!(
            answer.status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        ),
        Repetition::Harmful => {
            let did_nothing = |told: ErrorBody| told.known_code() != Some(ErrorCode::OutcomeUnknown);
            answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.told().is_some_and(did_nothing)
        }
    }
}

fn is_transient(error: &reqwest::Error, repetition: Repetition) -> bool {
    if find_tls_problem(error).is_some() || find_refusal(error).is_some() || error.is_builder() {
        return false;
    }
    match repetition {
        // If no answer comes in time, three tries would not help either.
        Repetition::Harmless => error.is_connect() || !error.is_timeout(),
        Repetition::Harmful => error.is_connect(),
    }
}

// One request and its answer, bounded in time and size.

pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of an error's text.
const ERROR_BYTES: usize = 64 << 10;
/// The most characters of a request's id. Those of our server have 25.
const MAX_REQUEST_ID: usize = 64;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) bytes: Vec<u8>,
    /// The server's log has it too.
    pub(super) request_id: Option<String>,
    pub(super) content_type: String,
    pub(super) location: Option<String>,
    pub(super) retry_after: Option<Duration>,
}

#[derive(Debug, Error)]
pub(super) enum ExchangeError {
    #[error(transparent)]
    Transport(#[from] reqwest::Error),
    #[error("the answer has more than {max_bytes} bytes")]
    TooLong { max_bytes: usize },
    /// It was not sent, or it is known already what to say.
    #[error(transparent)]
    Other(#[from] CliError),
}

/// One exchange. The inner error is an answer other than success.
pub(super) async fn exchange(
    request: RequestBuilder,
    timeout: Duration,
    max_bytes: usize,
) -> Result<Result<Answer, Answer>, ExchangeError> {
    let response = request.timeout(timeout).send().await?;
    let answer = Answer::read(response, max_bytes).await?;
    Ok(if answer.status.is_success() { Ok(answer) } else { Err(answer) })
}

impl Answer {
    pub(super) async fn read(mut response: Response, max_bytes: usize) -> Result<Self, ExchangeError> {
        let status = response.status();
        let headers = response.headers();
        let safe = |value: &HeaderValue| shown_text(&String::from_utf8_lossy(value.as_bytes()));
        let text = |name: &str| headers.get(name).map(safe);
        let seconds = text(RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
        let mut answer = Self {
            status,
            bytes: Vec::new(),
            request_id: text(wire::HEADER_REQUEST_ID).filter(|id| id.len() <= MAX_REQUEST_ID),
            content_type: text(CONTENT_TYPE.as_str()).unwrap_or_default(),
            location: text(LOCATION.as_str()),
            retry_after: seconds.map(Duration::from_secs),
        };
        let max_bytes = if status.is_success() { max_bytes } else { ERROR_BYTES };
        while let Some(chunk) = response.chunk().await? {
            if answer.bytes.len() + chunk.len() > max_bytes {
                return Err(ExchangeError::TooLong { max_bytes });
            }
            answer.bytes.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// What a Countersign server says of every error, with a text that explains it to people.
    pub(super) fn told(&self) -> Option<ErrorBody> {
        ErrorBody::parse(&self.bytes)
    }

    pub(super) fn is_web_page(&self) -> bool {
        self.content_type.starts_with("text/html")
    }
}

// The requests that are signed.

/// How long the server may take to fetch a signers file from a forge.
const FETCH_TIMEOUT: Duration = Duration::from_secs(150);
/// How long the server may take to download all assets of a release.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);

/// A signed request, and how it is sent.
#[derive(Debug)]
pub(crate) struct ServerCall {
    pub(super) method: Method,
    pub(super) route: &'static str,
    pub(super) timeout: Duration,
    pub(super) repetition: Repetition,
    /// The name of the request in messages.
    pub(super) title: &'static str,
    pub(super) body: String,
}

impl ServerCall {
    pub(crate) fn ping() -> Self {
        let (method, timeout, repetition) = (Method::GET, ANSWER_TIMEOUT, Repetition::Harmless);
        Self { method, route: routes::PING, timeout, repetition, title: "a ping", body: String::new() }
    }

    /// A request that can be sent again, and is answered soon.
    fn post(route: &'static str, title: &'static str, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).expect("bodies of requests are plain objects");
        Self { method: Method::POST, route, title, body, ..Self::ping() }
    }

    /// A request for which the server fetches something.
    fn fetching(self, timeout: Duration) -> Self {
        Self { timeout, repetition: Repetition::Harmful, ..self }
    }

    pub(crate) fn register(body: &ProposeBody) -> Self {
        Self::post(routes::REGISTER_REPO, "a registration", body).fetching(FETCH_TIMEOUT)
    }

    pub(crate) fn update(body: &ProposeBody) -> Self {
        Self::post(routes::UPDATE_SIGNERS, "an update of signers", body).fetching(FETCH_TIMEOUT)
    }

    pub(crate) fn assets(body: &AssetsBody) -> Self {
        Self::post(routes::ASSETS, "a release", body).fetching(RELEASE_TIMEOUT)
    }

    pub(super) fn signatures(body: &SignaturesBody) -> Self {
        Self::post(routes::SIGNATURES, "a signature", body)
    }

    pub(super) fn withdraw(body: &WithdrawBody) -> Self {
        Self::post(routes::WITHDRAW, "a withdrawal", body)
    }

    pub(super) fn state(statement: &SignedStatement) -> Self {
        let route = match statement.kind {
            StatementKind::Revocation => routes::REVOKE,
            StatementKind::Veto => routes::VETO,
            StatementKind::Objection => routes::OBJECT,
            StatementKind::Rebuild => routes::REBUILD,
        };
        Self::post(route, statement.kind.title(), statement)
    }
}
