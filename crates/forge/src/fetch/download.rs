//! Says where redirects may lead, and reads the body of a response piece by piece, never more and never longer than it
//! may take.

use std::fmt;

use bytes::Bytes;
use reqwest::{Response, header::CONTENT_TYPE, header::HeaderValue};
use tokio::time::Instant;
use url::Url;

use crate::fetch::error::{DOCUMENT_RATE, FetchError, Hop, HopRefusal, Pace, RequestFailure, Timeouts, Wait};
use crate::url::bare_url;

/// A file that is being received, from the end of its redirects.
pub struct Download {
    route: FetchRoute,
    response: Response,
    timeouts: Timeouts,
    pace: Option<Pace>,
    max_bytes: u64,
    /// How many bytes came so far.
    pub(crate) received: u64,
}

impl Download {
    pub(super) fn new(route: FetchRoute, response: Response, timeouts: Timeouts) -> Self {
        Self { route, response, timeouts, pace: None, max_bytes: u64::MAX, received: 0 }
    }

    /// The length as announced; `None` if the server does not say.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Whether the body is announced as a web page. Where a file is not public, forges send their login page with
    /// status 200.
    pub fn is_html(&self) -> bool {
        matches!(&*self.media_type(), "text/html" | "application/xhtml+xml")
    }

    /// The next bytes, `None` after the last. A file that ends before its announced length is an error, and so is one
    /// that grows beyond the maximum.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let idle = Instant::now() + self.timeouts.idle;
        let chunk = loop {
            let mut until = idle;
            if let Some(pace) = &mut self.pace {
                if pace.end() <= Instant::now() && !pace.begin_next() {
                    return Err(self.route.too_slow(pace));
                }
                until = idle.min(pace.end());
            }
            match tokio::time::timeout_at(until, self.response.chunk()).await {
                Ok(chunk) => break chunk.map_err(|error| self.route.failed(&error, self.timeouts))?,
                Err(_) if idle <= Instant::now() => {
                    return Err(self.route.timed_out(Wait::Idle(self.timeouts.idle)));
                }
                Err(_) => {}
            }
        };
        let bytes = chunk.as_ref().map_or(0, Bytes::len) as u64;
        self.received += bytes;
        if let Some(pace) = &mut self.pace {
            pace.bytes += bytes;
        }
        if self.received > self.max_bytes { Err(self.too_large()) } else { Ok(chunk) }
    }

    pub(crate) async fn read(mut self, max_bytes: u64) -> Result<Vec<u8>, FetchError> {
        self.set_maximum(max_bytes)?;
        self.set_slowest_rate(DOCUMENT_RATE);
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// Refuses early what announces too much.
    pub(crate) fn set_maximum(&mut self, max_bytes: u64) -> Result<(), FetchError> {
        self.max_bytes = max_bytes;
        if self.length().is_some_and(|length| length > max_bytes) { Err(self.too_large()) } else { Ok(()) }
    }

    /// Sets the slowest rate: from now on the server must not only drip.
    pub(crate) fn set_slowest_rate(&mut self, bytes_per_second: u64) {
        self.pace = Some(Pace::start(bytes_per_second, self.timeouts.pace));
    }

    pub(crate) fn too_large(&self) -> FetchError {
        FetchError::TooLarge { url: self.shown(), max_bytes: self.max_bytes }
    }

    pub(crate) fn shown(&self) -> String {
        self.route.shown()
    }

    /// The media type in lower case, without parameters; empty if the server does not say.
    pub(crate) fn media_type(&self) -> String {
        let value = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = value.unwrap_or_default().split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    }
}

/// Shows a download without the query of its URL, where signed tokens stand.
impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Download").field(&self.shown()).finish_non_exhaustive()
    }
}

// The way of one request through its redirects, and what is sent along.

/// The places to which redirects may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Redirects may lead nowhere but to the same scheme, host and port: signers files, answers of APIs, discovery.
    SameOrigin,
    /// Redirects may lead wherever a request may go at all: assets and downloads.
    Guarded,
}

/// The URL that was asked for and the one that a redirect led to.
pub(crate) struct FetchRoute {
    pub(super) given: Url,
    pub(super) current: Url,
    pub(super) hop: Hop,
    /// Whether the last redirect led from https to plain http.
    pub(super) left_tls: bool,
}

impl FetchRoute {
    pub(super) fn start(given: &Url) -> Self {
        Self { given: given.clone(), current: given.clone(), hop: Hop::AsGiven, left_tls: false }
    }

    pub(super) fn follow(
        &mut self,
        location: Option<&HeaderValue>,
        redirects: Redirects,
    ) -> Result<(), FetchError> {
        let missing = || self.broken("it redirects without saying where to".into());
        let location = location.ok_or_else(missing)?;
        let target = location.to_str().ok().and_then(|text| self.current.join(text).ok());
        self.hop = Hop::Redirect;
        let led = target.ok_or(HopRefusal::NotAUrl).and_then(|target| self.lead_to(target, redirects));
        led.map_err(|refusal| self.refused(refusal))
    }

    pub(super) fn lead_to(&mut self, target: Url, redirects: Redirects) -> Result<(), HopRefusal> {
        let previous = std::mem::replace(&mut self.current, target);
        self.left_tls = previous.scheme() == "https" && self.current.scheme() == "http";
        if redirects == Redirects::SameOrigin && previous.origin() != self.current.origin() {
            return Err(HopRefusal::OtherOrigin);
        }
        Ok(())
    }

    pub(crate) fn shown(&self) -> String {
        let given = bare_url(self.given.as_str());
        if self.current == self.given {
            return format!("`{given}`");
        }
        format!("`{given}`, redirected to `{}`,", bare_url(self.current.as_str()))
    }

    pub(super) fn refused(&self, reason: HopRefusal) -> FetchError {
        FetchError::Refused { url: self.shown(), hop: self.hop, reason }
    }

    pub(super) fn timed_out(&self, wait: Wait) -> FetchError {
        FetchError::TimedOut { url: self.shown(), wait }
    }

    pub(super) fn too_slow(&self, pace: &Pace) -> FetchError {
        let Pace { bytes_per_second, window, .. } = *pace;
        FetchError::TooSlow { url: self.shown(), bytes_per_second, window }
    }

    pub(super) fn failed(&self, error: &reqwest::Error, timeouts: Timeouts) -> FetchError {
        match RequestFailure::of(error, timeouts, &self.current) {
            RequestFailure::Refused(refusal) => self.refused(refusal.into()),
            RequestFailure::TimedOut(wait) => self.timed_out(wait),
            RequestFailure::Broken(reason) => self.broken(reason),
        }
    }

    pub(super) fn broken(&self, reason: String) -> FetchError {
        FetchError::Broken { url: self.shown(), reason }
    }
}
