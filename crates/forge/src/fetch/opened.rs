//! Reading the body of a response, never more and never longer than it may take.

use bytes::Bytes;
use reqwest::{Response, header::CONTENT_TYPE};
use tokio::time::Instant;

use super::{
    error::{FetchError, Wait},
    pace::{DOCUMENT_RATE, Pace, Timeouts},
    route::FetchRoute,
};

/// A response at the end of its redirects, and where that was.
pub(crate) struct OpenedResponse {
    route: FetchRoute,
    response: Response,
    timeouts: Timeouts,
    pace: Option<Pace>,
}

impl OpenedResponse {
    pub(super) fn new(route: FetchRoute, response: Response, timeouts: Timeouts) -> Self {
        Self { route, response, timeouts, pace: None }
    }

    pub(crate) async fn read(mut self, max_bytes: u64) -> Result<Vec<u8>, FetchError> {
        self.check_length(max_bytes)?;
        self.set_slowest_rate(DOCUMENT_RATE);
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if (content.len() + chunk.len()) as u64 > max_bytes {
                return Err(self.too_large(max_bytes));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// From now on the server must not only drip.
    pub(crate) fn set_slowest_rate(&mut self, bytes_per_second: u64) {
        self.pace = Some(Pace::start(bytes_per_second, self.timeouts.pace));
    }

    /// The next bytes. A body that ends before its Content-Length is an error.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let idle = Instant::now() + self.timeouts.idle;
        loop {
            let mut until = idle;
            if let Some(pace) = &mut self.pace {
                if pace.end() <= Instant::now() && !pace.begin_next() {
                    return Err(self.route.too_slow(pace));
                }
                until = idle.min(pace.end());
            }
            match tokio::time::timeout_at(until, self.response.chunk()).await {
                Ok(chunk) => {
                    let chunk = chunk.map_err(|error| self.route.failed(&error, self.timeouts))?;
                    if let Some(pace) = &mut self.pace {
                        pace.note(chunk.as_ref().map_or(0, Bytes::len));
                    }
                    return Ok(chunk);
                }
                Err(_) if idle <= Instant::now() => {
                    return Err(self.route.timed_out(Wait::Idle(self.timeouts.idle)));
                }
                Err(_) => {}
            }
        }
    }

    /// Refuses early what announces too much.
    pub(crate) fn check_length(&self, max_bytes: u64) -> Result<(), FetchError> {
        if self.length().is_some_and(|length| length > max_bytes) {
            return Err(self.too_large(max_bytes));
        }
        Ok(())
    }

    /// As announced.
    pub(crate) fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    pub(crate) fn too_large(&self, max_bytes: u64) -> FetchError {
        FetchError::TooLarge { url: self.shown(), max_bytes }
    }

    pub(crate) fn shown(&self) -> String {
        self.route.shown()
    }

    /// In lower case, without parameters; empty where the server does not say.
    pub(crate) fn media_type(&self) -> String {
        let value = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = value.unwrap_or_default().split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    }

    pub(crate) fn is_html(&self) -> bool {
        matches!(&*self.media_type(), "text/html" | "application/xhtml+xml")
    }
}
