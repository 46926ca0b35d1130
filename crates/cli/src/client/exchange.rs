//! One request and its whole answer, bounded in time and size.

use std::time::Duration;

use countersign_api::answers::ToldError;
use countersign_core::values::{shown::shown_text, wire};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};

pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// No text of an error is longer.
const ERROR_BYTES: usize = 64 << 10;
/// Of our server it has 25 characters.
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

#[derive(Debug)]
pub(super) enum ExchangeError {
    Transport(reqwest::Error),
    TooLong { max_bytes: usize },
}

pub(super) async fn exchange(
    request: RequestBuilder,
    timeout: Duration,
    max_bytes: usize,
) -> Result<Answer, ExchangeError> {
    let response = request.timeout(timeout).send().await.map_err(ExchangeError::Transport)?;
    Answer::read(response, max_bytes).await
}

impl Answer {
    pub(super) async fn read(mut response: Response, max_bytes: usize) -> Result<Self, ExchangeError> {
        let status = response.status();
        let headers = response.headers();
        let text = |name| header_text(headers, name);
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
        while let Some(chunk) = response.chunk().await.map_err(ExchangeError::Transport)? {
            if answer.bytes.len() + chunk.len() > max_bytes {
                return Err(ExchangeError::TooLong { max_bytes });
            }
            answer.bytes.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// What a Countersign server says of every error.
    pub(super) fn told(&self) -> Option<ToldError> {
        ToldError::parse(&self.bytes)
    }

    /// The same for people.
    pub(super) fn error_text(&self) -> Option<String> {
        self.told().map(|told| told.error)
    }

    pub(super) fn is_web_page(&self) -> bool {
        self.content_type.starts_with("text/html")
    }
}

/// Safe to show.
fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| shown_text(&String::from_utf8_lossy(value.as_bytes())))
}
