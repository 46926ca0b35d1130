//! Guarded requests (D28): every hop is checked before it is requested, and nothing unbounded is read.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Response, StatusCode,
    dns::Resolve,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION},
};
use tokio::time::Instant;
use url::Url;

use crate::{forges::Credential, guard::Guard};

pub use crate::https::SetupError;
pub use download::Download;
pub use error::{FetchError, Hop, HopRefusal, TryAgain, Wait};
pub use send::{Post, SendError};

use access::Access;
pub(crate) use pace::{Pace, Rate};

mod access;
mod download;
mod error;
mod pace;
mod rate_limit;
mod send;
mod signers;
#[cfg(test)]
mod tests;

pub const MAX_REDIRECTS: usize = 5;

/// For one asset from its first request to its last byte: the largest allowed one at some 600 KB a second.
const ASSET_TIMEOUT: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection, with name resolution and TLS.
    pub connect: Duration,
    /// For the next bytes.
    pub idle: Duration,
    /// For the whole of one `get`, redirects included.
    pub total: Duration,
    /// After so long a body must have come at the slowest rate that we wait for, and again in each such time (D49).
    pub pace: Duration,
}

/// Where redirects may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Nowhere but to the same scheme, host and port.
    SameOrigin,
    /// Wherever a request may go at all.
    Guarded,
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_bytes: u64,
    pub redirects: Redirects,
}

/// Makes all outgoing requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher {
    access: Access,
    timeouts: Timeouts,
    pub(crate) asset_timeout: Duration,
}

/// What a request says besides its URL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) accept: Option<&'a HeaderValue>,
    /// Sent to the origin that it is for, wherever redirects lead.
    pub(crate) credential: Option<&'a Credential>,
}

/// A response at the end of its redirects, and where that was.
pub(crate) struct Opened {
    route: Route,
    response: Response,
    timeouts: Timeouts,
}

/// The URL that was asked for and the one that a redirect led to.
pub(crate) struct Route {
    given: Url,
    current: Url,
    hop: Hop,
    /// Whether the last redirect led from https to plain http.
    left_tls: bool,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(60),
            pace: Duration::from_secs(15),
        }
    }
}

impl Fetcher {
    /// For a server, which fetches what strangers name: only where the guard lets requests go.
    pub fn new(guard: Guard, timeouts: Timeouts, resolver: Arc<dyn Resolve>) -> Result<Self, SetupError> {
        let access = Access::guarded(guard, timeouts, resolver)?;
        Ok(Self { access, timeouts, asset_timeout: ASSET_TIMEOUT })
    }

    /// For a user at their own machine, who may fetch from wherever they say, through the proxy that their environment
    /// names. Not for a server: nothing keeps these requests out of its own network.
    pub fn for_user(timeouts: Timeouts) -> Result<Self, SetupError> {
        Ok(Self { access: Access::of_user(timeouts)?, timeouts, asset_timeout: ASSET_TIMEOUT })
    }

    /// With this patience for one asset, redirects included. `Timeouts::total` does not bound it.
    #[must_use]
    pub fn with_asset_timeout(mut self, asset_timeout: Duration) -> Self {
        self.asset_timeout = asset_timeout;
        self
    }

    /// The whole content at a URL; `None` where the server says that there is nothing (404, 410).
    pub async fn get(&self, url: &Url, limits: Limits) -> Result<Option<Vec<u8>>, FetchError> {
        let work = async {
            match self.open(url, Ask::default(), limits.redirects).await? {
                Some(opened) => opened.read(limits.max_bytes).await.map(Some),
                None => Ok(None),
            }
        };
        self.in_time(url, self.timeouts.total, work).await
    }

    /// Ends what takes longer than the whole of it may.
    pub(crate) async fn in_time<T, E: From<FetchError>>(
        &self,
        url: &Url,
        total: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match tokio::time::timeout(total, work).await {
            Ok(result) => result,
            Err(_) => Err(Route::start(url).timed_out(Wait::Total(total)).into()),
        }
    }

    pub(crate) fn total_timeout(&self) -> Duration {
        self.timeouts.total
    }

    /// Follows redirects to a 200 response whose body is still to be read. The caller bounds the time and the size.
    pub(crate) async fn open(
        &self,
        url: &Url,
        mut ask: Ask<'_>,
        redirects: Redirects,
    ) -> Result<Option<Opened>, FetchError> {
        let mut route = Route::start(url);
        for _ in 0..=MAX_REDIRECTS {
            // Once elsewhere, a redirect back is a stranger's choice, and is followed without the token.
            ask.credential = ask.credential.filter(|credential| credential.is_for(&route.current));
            let response = self.request(&route, ask).await?;
            match response.status() {
                StatusCode::OK => {
                    check_encoding(&response, &route)?;
                    return Ok(Some(Opened { route, response, timeouts: self.timeouts }));
                }
                StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    route.follow(response.headers().get(LOCATION), redirects)?
                }
                _ => return Err(rate_limit::bad_status(&route, ask, &response)),
            }
        }
        Err(route.refused(HopRefusal::TooManyRedirects))
    }

    async fn request(&self, route: &Route, ask: Ask<'_>) -> Result<Response, FetchError> {
        let client = self.access.client_for(route).map_err(|refusal| route.refused(refusal))?;
        let mut request = client.get(route.current.clone());
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some((name, value)) =
            ask.credential.and_then(|credential| credential.header_for(&route.current))
        {
            request = request.header(name, value);
        }
        let Timeouts { connect, idle, total: _, pace: _ } = self.timeouts;
        match tokio::time::timeout(connect + idle, request.send()).await {
            Ok(sent) => sent.map_err(|error| route.failed(&error, self.timeouts)),
            Err(_) => Err(route.timed_out(Wait::Idle(idle))),
        }
    }
}

impl Opened {
    pub(crate) async fn read(mut self, max_bytes: u64) -> Result<Vec<u8>, FetchError> {
        self.check_length(max_bytes)?;
        let mut content = Vec::new();
        let mut pace = self.pace(Rate::DOCUMENT);
        while let Some(chunk) = self.chunk_at(&mut pace).await? {
            if (content.len() + chunk.len()) as u64 > max_bytes {
                return Err(self.too_large(max_bytes));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// The next bytes. A body that ends before its Content-Length is an error.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let idle = self.timeouts.idle;
        match tokio::time::timeout(idle, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| self.route.failed(&error, self.timeouts)),
            Err(_) => Err(self.route.timed_out(Wait::Idle(idle))),
        }
    }

    /// From now on, for `chunk_at`.
    pub(crate) fn pace(&self, rate: Rate) -> Pace {
        Pace::start(rate, self.timeouts.pace)
    }

    /// The next bytes, from a server that must not only drip.
    pub(crate) async fn chunk_at(&mut self, pace: &mut Pace) -> Result<Option<Bytes>, FetchError> {
        let idle = Instant::now() + self.timeouts.idle;
        loop {
            if pace.end() <= Instant::now() && !pace.begin_next() {
                return Err(self.route.too_slow(pace));
            }
            match tokio::time::timeout_at(idle.min(pace.end()), self.response.chunk()).await {
                Ok(chunk) => {
                    let chunk = chunk.map_err(|error| self.route.failed(&error, self.timeouts))?;
                    pace.note(chunk.as_ref().map_or(0, Bytes::len));
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

impl Route {
    fn start(given: &Url) -> Self {
        Self { given: given.clone(), current: given.clone(), hop: Hop::AsGiven, left_tls: false }
    }

    fn follow(&mut self, location: Option<&HeaderValue>, redirects: Redirects) -> Result<(), FetchError> {
        let Some(location) = location else {
            return Err(FetchError::Broken {
                url: self.shown(),
                reason: "it redirects without saying where to".into(),
            });
        };
        let target = location.to_str().ok().and_then(|text| self.current.join(text).ok());
        let previous = self.current.clone();
        self.hop = Hop::Redirect;
        let Some(target) = target else {
            return Err(self.refused(HopRefusal::NotAUrl));
        };
        self.current = target;
        self.left_tls = previous.scheme() == "https" && self.current.scheme() == "http";
        if redirects == Redirects::SameOrigin && !is_same_origin(&previous, &self.current) {
            return Err(self.refused(HopRefusal::OtherOrigin));
        }
        Ok(())
    }
}

pub(crate) fn is_same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}

/// Decoding is off, so encoded bytes would be stored and hashed as if they were the file.
fn check_encoding(response: &Response, route: &Route) -> Result<(), FetchError> {
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if response.headers().get_all(CONTENT_ENCODING).iter().all(is_identity) {
        return Ok(());
    }
    let reason = "it is sent with a Content-Encoding that was not asked for".into();
    Err(FetchError::Broken { url: route.shown(), reason })
}
