//! One short question over HTTP, and its short answer.

use std::time::Duration;

use countersign_core::values::shown::shown_text;
use countersign_forge::https::SetupError;
use reqwest::{Client, RequestBuilder, header::CONTENT_TYPE};
use thiserror::Error;
use tokio::time::timeout;

use crate::{
    causes::describe,
    direct_http::{direct_client, read_retry_after},
};

/// For the whole of it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait that the other side can ask for.
const MAX_ASKED_WAIT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
pub(crate) struct BriefClient {
    http: Client,
    max_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct BriefAnswer {
    pub(crate) status: u16,
    /// How long the other side wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Error)]
pub(crate) enum BriefError {
    #[error("it did not answer within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    #[error("it cannot be reached: {0}")]
    Transport(String),
    #[error("its answer is longer than {0} bytes")]
    TooLarge(usize),
}

impl BriefClient {
    pub(crate) fn new(max_bytes: usize) -> Result<Self, SetupError> {
        Ok(Self { http: direct_client()?, max_bytes })
    }

    pub(crate) async fn get(&self, url: &str) -> Result<BriefAnswer, BriefError> {
        self.exchange(self.http.get(url)).await
    }

    pub(crate) async fn post(&self, url: &str, body: String) -> Result<BriefAnswer, BriefError> {
        self.exchange(self.http.post(url).header(CONTENT_TYPE, "text/plain; charset=utf-8").body(body)).await
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<BriefAnswer, BriefError> {
        let answered = timeout(TIMEOUT, self.read(request)).await;
        answered.unwrap_or(Err(BriefError::TimedOut))
    }

    async fn read(&self, request: RequestBuilder) -> Result<BriefAnswer, BriefError> {
        let mut response = request.send().await.map_err(|error| unreachable(&error))?;
        let retry_after = read_retry_after(response.headers(), MAX_ASKED_WAIT);
        let (status, mut body) = (response.status().as_u16(), Vec::new());
        while let Some(bytes) = response.chunk().await.map_err(|error| unreachable(&error))? {
            body.extend_from_slice(&bytes);
            if body.len() > self.max_bytes {
                return Err(BriefError::TooLarge(self.max_bytes));
            }
        }
        Ok(BriefAnswer { status, retry_after, body })
    }
}

impl BriefAnswer {
    /// What it says, for a log line.
    pub(crate) fn excerpt(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        shown_text(&text.chars().take(200).collect::<String>())
    }
}

fn unreachable(error: &reqwest::Error) -> BriefError {
    BriefError::Transport(shown_text(&describe(error)))
}
