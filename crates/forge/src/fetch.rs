//! Guarded fetching (D28): every hop is checked before it is requested, and nothing unbounded is read.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Certificate, Client, ClientBuilder, Response, StatusCode,
    dns::Resolve,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
};
use thiserror::Error;
use url::Url;

use crate::{
    forges::Credential,
    guard::{Guard, Reach},
    resolver::GuardedResolver,
};

pub use error::{FetchError, Hop, HopRefusal, TryAgain, Wait};

mod error;
mod rate_limit;
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
}

/// Where redirects may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Nowhere but to the same scheme, host and port.
    SameOrigin,
    /// Wherever the guard lets a request go.
    Guarded,
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_bytes: u64,
    pub redirects: Redirects,
}

#[derive(Debug, Error)]
#[error("outgoing https cannot be set up")]
pub struct SetupError {
    source: reqwest::Error,
}

/// Makes all outgoing requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher {
    guard: Arc<Guard>,
    timeouts: Timeouts,
    pub(crate) asset_timeout: Duration,
    // A resolver is not told for which scheme it resolves, so each reach has a client of its own.
    to_public: Client,
    to_exceptions: Client,
}

/// What a request says besides its URL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) accept: Option<&'a HeaderValue>,
    /// Sent to the origin that it is for, wherever redirects lead.
    pub(crate) credential: Option<&'a Credential>,
}

/// A response at the end of its redirects, and where that was.
pub(crate) struct Opened<'a> {
    route: Route<'a>,
    response: Response,
    timeouts: Timeouts,
}

/// The URL that was asked for and the one that a redirect led to.
pub(crate) struct Route<'a> {
    given: &'a Url,
    current: Url,
    hop: Hop,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(60),
        }
    }
}

impl Fetcher {
    pub fn new(guard: Guard, timeouts: Timeouts, resolver: Arc<dyn Resolve>) -> Result<Self, SetupError> {
        // Fails where another provider was installed for the process already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let guard = Arc::new(guard);
        let client = |reach| {
            let inner = Arc::clone(&resolver);
            build_client(timeouts, GuardedResolver { guard: Arc::clone(&guard), reach, inner })
        };
        let to_public = client(Reach::PublicAndExceptions)?;
        let to_exceptions = client(Reach::ExceptionsOnly)?;
        Ok(Self { guard, timeouts, asset_timeout: ASSET_TIMEOUT, to_public, to_exceptions })
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

    pub(crate) fn idle_timeout(&self) -> Duration {
        self.timeouts.idle
    }

    /// Follows redirects to a 200 response whose body is still to be read. The caller bounds the time and the size.
    pub(crate) async fn open<'a>(
        &self,
        url: &'a Url,
        mut ask: Ask<'_>,
        redirects: Redirects,
    ) -> Result<Option<Opened<'a>>, FetchError> {
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

    async fn request(&self, route: &Route<'_>, ask: Ask<'_>) -> Result<Response, FetchError> {
        let client = match self.guard.admit(&route.current) {
            Ok(Reach::PublicAndExceptions) => &self.to_public,
            Ok(Reach::ExceptionsOnly) => &self.to_exceptions,
            Err(refusal) => return Err(route.refused(refusal.into())),
        };
        let mut request = client.get(route.current.clone());
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some((name, value)) =
            ask.credential.and_then(|credential| credential.header_for(&route.current))
        {
            request = request.header(name, value);
        }
        request.send().await.map_err(|error| route.failed(&error, self.timeouts))
    }
}

impl Opened<'_> {
    pub(crate) async fn read(mut self, max_bytes: u64) -> Result<Vec<u8>, FetchError> {
        self.check_length(max_bytes)?;
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if (content.len() + chunk.len()) as u64 > max_bytes {
                return Err(self.too_large(max_bytes));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// The next bytes. A body that ends before its Content-Length is an error.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        self.response.chunk().await.map_err(|error| self.route.failed(&error, self.timeouts))
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

impl<'a> Route<'a> {
    fn start(given: &'a Url) -> Self {
        Self { given, current: given.clone(), hop: Hop::AsGiven }
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
fn check_encoding(response: &Response, route: &Route<'_>) -> Result<(), FetchError> {
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if response.headers().get_all(CONTENT_ENCODING).iter().all(is_identity) {
        return Ok(());
    }
    let reason = "it is sent with a Content-Encoding that was not asked for".into();
    Err(FetchError::Broken { url: route.shown(), reason })
}

fn build_client(timeouts: Timeouts, resolver: GuardedResolver) -> Result<Client, SetupError> {
    // Fails where the system has no CA certificates; then those of the browsers, built in, serve as well.
    if let Ok(client) = client_builder(timeouts, resolver.clone()).build() {
        return Ok(client);
    }
    let certificates = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    let certificates = certificates.map(|der| Certificate::from_der(der)).collect::<Result<Vec<_>, _>>();
    certificates
        .and_then(|certificates| client_builder(timeouts, resolver).tls_certs_only(certificates).build())
        .map_err(|source| SetupError { source })
}

fn client_builder(timeouts: Timeouts, resolver: GuardedResolver) -> ClientBuilder {
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    Client::builder()
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(timeouts.connect)
        .read_timeout(timeouts.idle)
        .dns_resolver(resolver)
}
