//! Sends to a URL that the operator chose (D28): behind the same guard, and never on to where a redirect leads.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, Response, header::HeaderMap};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{
    error::{HopRefusal, RequestFailure, TryAgain, Wait},
    fetcher::Fetcher,
    rate_limit,
    route::FetchRoute,
};

/// What is read of an answer, so that its connection can be used again. We do not look at it.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// What is sent.
#[derive(Debug, Clone)]
pub struct Post {
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The limit for all of it, from resolving the name to the end of the answer.
    pub timeout: Duration,
}

/// Why a message is not known to have arrived. Names the scheme, host and port alone: the rest of such a URL is often a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    #[error("nothing is sent to `{to}`: {reason}")]
    Refused { to: String, reason: HopRefusal },
    #[error("`{to}` answered with status {status}")]
    Status { to: String, status: u16, again: Option<TryAgain> },
    #[error(
        "`{to}` answered with status {status}, and redirects are not followed: use the URL that it leads to"
    )]
    Redirected { to: String, status: u16 },
    #[error("`{to}` timed out: {wait}")]
    TimedOut { to: String, wait: Wait },
    #[error("`{to}` could not be reached: {reason}")]
    Broken { to: String, reason: String },
}

impl SendError {
    /// The time at which the receiver wants to be asked again, if it says so.
    pub fn again(&self) -> Option<TryAgain> {
        if let Self::Status { again, .. } = self { *again } else { None }
    }

    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

impl Fetcher {
    /// Whether anything may be sent to a URL, as far as can be told without resolving its name.
    pub fn check_target(&self, url: &Url) -> Result<(), SendError> {
        self.client(url).map(drop)
    }

    fn client(&self, url: &Url) -> Result<&Client, SendError> {
        let client = self.access.client_for(&FetchRoute::start(url));
        client.map_err(|reason| SendError::Refused { to: shown_origin(url), reason })
    }

    /// Sends a POST request. It arrived if the answer is a 2xx; what else the answer says is ignored.
    pub async fn post(&self, url: &Url, post: Post) -> Result<(), SendError> {
        let (to, deadline) = (shown_origin(url), Instant::now() + post.timeout);
        let request = self.client(url)?.post(url.clone()).headers(post.headers).body(post.body);
        let response = match timeout_at(deadline, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(SendError::new(to, RequestFailure::of(&error, self.timeouts, url))),
            Err(_) => return Err(SendError::TimedOut { to, wait: Wait::Total(post.timeout) }),
        };
        let status = response.status();
        let again = rate_limit::retry_after(response.headers());
        // Whether the rest of the answer comes changes nothing.
        let _ = timeout_at(deadline, discard(response)).await;
        match status.as_u16() {
            _ if status.is_success() => Ok(()),
            status @ 300..=399 => Err(SendError::Redirected { to, status }),
            status => Err(SendError::Status { to, status, again }),
        }
    }
}

impl SendError {
    fn new(to: String, failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Refused(reason) => Self::Refused { to, reason: reason.into() },
            RequestFailure::TimedOut(wait) => Self::TimedOut { to, wait },
            RequestFailure::Broken(reason) => Self::Broken { to, reason },
        }
    }
}

async fn discard(mut response: Response) {
    let mut read = 0;
    while read <= MAX_ANSWER_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        read += chunk.len();
    }
}

fn shown_origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
