//! Questions to servers that the operator named: one short question over HTTP, its short answer, and why one failed.

use std::{borrow::Cow, error::Error as StdError, fmt, time::Duration};

use countersign_core::values::{path::is_this_machine, shown::shown_text, wire::WITNESS_STOPPED};
use countersign_forge::{https::SetupError, https::https_client, url::parse_bare_url};
use reqwest::header::{
    CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER,
};
use reqwest::{Client, ClientBuilder, RequestBuilder, redirect::Policy};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

/// How long a question and its answer can take together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait that the other side can ask for.
const MAX_ASKED_WAIT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
pub(crate) struct OutgoingClient {
    http: Client,
    /// Opens a connection for each question.
    fresh: Client,
    max_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct BriefAnswer {
    pub(crate) status: u16,
    /// How long the other side wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// A witness that has stopped says so.
    pub(crate) is_stopped: bool,
    pub(crate) version: PageVersion,
    pub(crate) body: Vec<u8>,
}

/// What the other side calls the version of a page, so that it is sent again only if there is another one.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageVersion {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

/// Why a question to another server failed, or its answer was of no use. All of its causes are on one line.
#[derive(Debug)]
pub(crate) struct ExchangeFailure {
    pub(crate) reason: String,
    /// The status, if the other side answered with an error.
    pub(crate) status: Option<u16>,
    /// How long the other side wants to be left alone.
    pub(crate) asked_wait: Option<Duration>,
}

impl ExchangeFailure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), status: None, asked_wait: None }
    }

    pub(crate) fn caused(what: &str, error: &dyn StdError) -> Self {
        Self::new(format!("{what}: {}", shown_text(&describe(error))))
    }
}

impl<E: StdError> From<E> for ExchangeFailure {
    fn from(error: E) -> Self {
        Self::new(shown_text(&describe(&error)))
    }
}

impl fmt::Display for ExchangeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl OutgoingClient {
    pub(crate) fn new(max_bytes: usize) -> Result<Self, SetupError> {
        let fresh = direct_client_with(|builder| builder.pool_max_idle_per_host(0))?;
        Ok(Self { http: direct_client()?, fresh, max_bytes })
    }

    pub(crate) async fn get(&self, url: &str) -> Result<BriefAnswer, ExchangeFailure> {
        self.exchange(|http| http.get(url)).await
    }

    /// Gets a page unless it still has this version; then the status is 304.
    pub(crate) async fn get_newer(
        &self,
        url: &str,
        known: &PageVersion,
    ) -> Result<BriefAnswer, ExchangeFailure> {
        let conditions = [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.modified)];
        let ask = |http: &Client| {
            let conditions = conditions.iter().filter_map(|(name, value)| Some((name, (*value).as_ref()?)));
            conditions.fold(http.get(url), |request, (name, value)| request.header(name, value))
        };
        self.exchange(ask).await
    }

    /// What is posted must do no harm if it comes twice.
    pub(crate) async fn post(&self, url: &str, body: String) -> Result<BriefAnswer, ExchangeFailure> {
        let ask = |http: &Client| {
            http.post(url).header(CONTENT_TYPE, "text/plain; charset=utf-8").body(body.clone())
        };
        self.exchange(ask).await
    }

    /// The other side may close a connection that was idle just as the question is sent. So one that breaks is followed
    /// by another one at once (D212).
    async fn exchange(
        &self,
        ask: impl Fn(&Client) -> RequestBuilder,
    ) -> Result<BriefAnswer, ExchangeFailure> {
        let answered = timeout(TIMEOUT, async {
            match self.read(ask(&self.http)).await {
                Err(error) if !error.is_connect() && !error.is_timeout() => self.read(ask(&self.fresh)).await,
                answered => answered,
            }
        });
        let late = || format!("it did not answer within {} seconds", TIMEOUT.as_secs());
        let answered = answered.await.map_err(|_| ExchangeFailure::new(late()))?;
        let answer = answered.map_err(|error| ExchangeFailure::caused("it cannot be reached", &error))?;
        let too_large = || format!("its answer is longer than {} bytes", self.max_bytes);
        answer.ok_or_else(|| ExchangeFailure::new(too_large()))
    }

    /// The answer; `None` if it is too large.
    async fn read(&self, request: RequestBuilder) -> Result<Option<BriefAnswer>, reqwest::Error> {
        let mut response = request.send().await?;
        let retry_after = read_retry_after(response.headers(), MAX_ASKED_WAIT);
        let is_stopped = response.headers().contains_key(WITNESS_STOPPED);
        let version = PageVersion::of(response.headers());
        let (status, mut body) = (response.status().as_u16(), Vec::new());
        while let Some(bytes) = response.chunk().await? {
            body.extend_from_slice(&bytes);
            if body.len() > self.max_bytes {
                return Ok(None);
            }
        }
        Ok(Some(BriefAnswer { status, retry_after, is_stopped, version, body }))
    }
}

impl PageVersion {
    fn of(headers: &HeaderMap) -> Self {
        // A longer one would be sent back each time.
        let short = |name| headers.get(name).filter(|value: &&HeaderValue| value.len() <= 256).cloned();
        Self { etag: short(ETAG), modified: short(LAST_MODIFIED) }
    }
}

/// Reads the address of a server whose answers must not be changed on the way. http is for this machine only.
pub(crate) fn parse_guarded_url(text: &str) -> Option<Url> {
    let is_guarded = |url: &Url| url.scheme() == "https" || url.host_str().is_some_and(is_this_machine);
    parse_bare_url(text).filter(is_guarded)
}

impl BriefAnswer {
    /// Why this answer is of no use. `who` begins the sentence.
    pub(crate) fn refused(&self, who: &str) -> ExchangeFailure {
        let reason = format!("{who} answered with {}: {}", self.status, self.excerpt());
        ExchangeFailure { reason, status: Some(self.status), asked_wait: self.retry_after }
    }

    /// What it says, for a log line. A server of ours says it as the field `error` of an object.
    pub(crate) fn excerpt(&self) -> String {
        let object: Option<Value> = serde_json::from_slice(&self.body).ok();
        let error = object.as_ref().and_then(|object| object["error"].as_str());
        let text = error.map_or_else(|| String::from_utf8_lossy(&self.body), Cow::Borrowed);
        shown_text(&text.chars().take(400).collect::<String>())
    }
}

/// An error with all its causes on one line.
pub(crate) fn describe(error: &dyn StdError) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

// Requests to servers that the operator named: the origin of a mirror, and witnesses. They can have any address.

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows no redirect, which would be another's choice.
pub(crate) fn direct_client() -> Result<Client, SetupError> {
    direct_client_with(|builder| builder)
}

/// Makes a client like [`direct_client`], with more settings.
pub(crate) fn direct_client_with(
    adapt: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, SetupError> {
    https_client(|builder| {
        adapt(builder.connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none()).referer(false))
    })
}

/// How long the other side wants to be left alone; no longer than `most`.
pub(crate) fn read_retry_after(headers: &HeaderMap, most: Duration) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(most))
}
