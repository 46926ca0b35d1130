//! Guarded requests, hop by hop (D28): every hop is checked before it is requested, and nothing unbounded is read.

pub(crate) mod download;
pub(crate) mod error;

use std::{collections::HashMap, sync::Arc, time::Duration, time::UNIX_EPOCH};

use bytes::Bytes;
use countersign_core::documents::signers::SourceKind;
use countersign_core::values::{bounds::REDIRECTS, path::Scheme, time::Timestamp};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, ClientBuilder, Response, StatusCode, dns::Resolve, redirect::Policy};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::fetch::download::FetchRoute;
pub use crate::fetch::download::{Download, Redirects};
use crate::fetch::error::RequestFailure;
pub use crate::fetch::error::{FetchError, Hop, HopRefusal, Timeouts, TryAgain, Wait};
use crate::guard::{Guard, GuardRefusal, GuardedResolver, OTHER_PORT, Reach};
pub use crate::https::SetupError;
use crate::source::{Credential, FetchedSigners, OutgoingRequest, Retrieval, SignersSource};
use crate::{https::https_client, url::bare_url, url::has_user_info};

/// The limit for one asset from its first request to its last byte: the largest allowed one at some 600 KB a second.
const ASSET_TIMEOUT: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    pub max_bytes: u64,
    pub redirects: Redirects,
}

/// Makes all outgoing requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher {
    pub(super) access: FetchAccess,
    pub(crate) timeouts: Timeouts,
    pub(crate) asset_timeout: Duration,
}

impl Fetcher {
    /// A fetcher for a server, which fetches what strangers name: only where the guard lets requests go.
    pub fn new(guard: Guard, timeouts: Timeouts, resolver: Arc<dyn Resolve>) -> Result<Self, SetupError> {
        let access = FetchAccess::guarded(guard, timeouts, resolver)?;
        Ok(Self { access, timeouts, asset_timeout: ASSET_TIMEOUT })
    }

    /// A fetcher for a user at their own machine, who may fetch from wherever they say, through the proxy that their
    /// environment names. Not for a server: nothing keeps these requests out of its own network.
    pub fn for_user(timeouts: Timeouts) -> Result<Self, SetupError> {
        Ok(Self { access: FetchAccess::of_user(timeouts)?, timeouts, asset_timeout: ASSET_TIMEOUT })
    }

    /// Sets the limit for one asset, redirects included. `Timeouts::total` does not bound it.
    #[must_use]
    pub fn with_asset_timeout(mut self, asset_timeout: Duration) -> Self {
        self.asset_timeout = asset_timeout;
        self
    }

    /// Whether a redirect may lead from one URL to another, as far as can be told without resolving its name.
    pub fn check_redirect(&self, from: &Url, to: &Url, redirects: Redirects) -> Result<(), HopRefusal> {
        let mut route = FetchRoute::start(from);
        route.lead_to(to.clone(), redirects)?;
        self.access.client_for(&route).map(drop)
    }

    /// The whole content at a URL; `None` where the server says that there is nothing (404, 410).
    pub async fn get(&self, url: &Url, limits: FetchLimits) -> Result<Option<Vec<u8>>, FetchError> {
        let work = async {
            match self.open(&OutgoingRequest::plain(url.clone()), limits.redirects).await? {
                Some(download) => download.read(limits.max_bytes).await.map(Some),
                None => Ok(None),
            }
        };
        self.in_time(url, self.timeouts.total, work).await
    }

    /// Follows redirects to the file, whose bytes are still to be read; `None` where the server says that there is
    /// nothing (404, 410). The whole may take as long as it takes: only connecting and each wait for bytes have an end.
    pub async fn open_download(
        &self,
        url: &Url,
        max_bytes: Option<u64>,
    ) -> Result<Option<Download>, FetchError> {
        let mut opened = self.open(&OutgoingRequest::plain(url.clone()), Redirects::Guarded).await?;
        if let Some(download) = &mut opened {
            download.set_maximum(max_bytes.unwrap_or(u64::MAX))?;
        }
        Ok(opened)
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
            Err(_) => Err(FetchRoute::start(url).timed_out(Wait::Total(total)).into()),
        }
    }

    /// Checks that a server answers, whatever it answers, and that it knows the token of the request.
    pub async fn ask(&self, request: &OutgoingRequest) -> Result<(), FetchError> {
        let route = FetchRoute::start(&request.url);
        let response = self.request(&route, request.accept, request.credential.as_ref()).await?;
        let is_refused = response.status() == StatusCode::UNAUTHORIZED && request.credential.is_some();
        if is_refused { Err(bad_status(&route, true, &response)) } else { Ok(()) }
    }

    /// Follows redirects to a 200 response whose body is still to be read. The caller bounds the time and the size.
    pub(crate) async fn open(
        &self,
        request: &OutgoingRequest,
        redirects: Redirects,
    ) -> Result<Option<Download>, FetchError> {
        let mut route = FetchRoute::start(&request.url);
        let mut credential = request.credential.as_ref();
        for _ in 0..=REDIRECTS {
            // Once elsewhere, a redirect back is a stranger's choice, and is followed without the token.
            credential = credential.filter(|credential| credential.is_for(&route.current));
            let response = self.request(&route, request.accept, credential).await?;
            match response.status().as_u16() {
                200 => {
                    check_encoding(&response, &route)?;
                    return Ok(Some(Download::new(route, response, self.timeouts)));
                }
                404 | 410 => return Ok(None),
                301 | 302 | 303 | 307 | 308 => route.follow(response.headers().get(LOCATION), redirects)?,
                _ => return Err(bad_status(&route, credential.is_some(), &response)),
            }
        }
        Err(route.refused(HopRefusal::TooManyRedirects))
    }

    async fn request(
        &self,
        route: &FetchRoute,
        accept: Option<&'static str>,
        credential: Option<&Credential>,
    ) -> Result<Response, FetchError> {
        let client = self.access.client_for(route).map_err(|refusal| route.refused(refusal))?;
        let accept = accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept)));
        let headers =
            accept.into_iter().chain(credential.map(|credential| credential.header.clone())).collect();
        let request = client.get(route.current.clone()).headers(headers);
        let Timeouts { connect, idle, total: _, pace: _ } = self.timeouts;
        match tokio::time::timeout(connect + idle, request.send()).await {
            Ok(sent) => sent.map_err(|error| route.failed(&error, self.timeouts)),
            Err(_) => Err(route.timed_out(Wait::Idle(idle))),
        }
    }
}

/// Refuses an encoded body. Decoding is off, so encoded bytes would be stored and hashed as if they were the file.
fn check_encoding(response: &Response, route: &FetchRoute) -> Result<(), FetchError> {
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if response.headers().get_all(CONTENT_ENCODING).iter().all(is_identity) {
        return Ok(());
    }
    Err(route.broken("it is sent with a Content-Encoding that was not asked for".into()))
}

// Says where requests may go: a server's, behind its guard (D28); a user's own, wherever they say.

/// How much an HTTP/2 server may send before we acknowledge it. With the usual 2 MiB, a line with a round trip of 100
/// ms would carry 20 MB a second at most.
const USER_WINDOW_BYTES: u32 = 16 << 20;

#[derive(Debug, Clone)]
pub(super) enum FetchAccess {
    Guarded {
        guard: Arc<Guard>,
        // A resolver is not told for which scheme and port it resolves. So each reach has a client of its own, for each
        // class of ports: those that exceptions name, and all others.
        clients: Arc<HashMap<(u16, Reach), Client>>,
    },
    OfUser {
        client: Client,
    },
}

impl FetchAccess {
    pub(super) fn guarded(
        guard: Guard,
        timeouts: Timeouts,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, SetupError> {
        let guard = Arc::new(guard);
        let client = |port, reach| {
            let inner = Arc::clone(&resolver);
            let resolver = GuardedResolver { guard: Arc::clone(&guard), reach, port, inner };
            https_client(|builder| {
                let builder = set_up(builder, timeouts).no_proxy();
                builder.read_timeout(timeouts.idle).dns_resolver(resolver.clone())
            })
        };
        let mut clients = HashMap::new();
        for port in guard.port_classes() {
            for reach in [Reach::PublicAndExceptions, Reach::ExceptionsOnly] {
                clients.insert((port, reach), client(port, reach)?);
            }
        }
        Ok(Self::Guarded { guard, clients: Arc::new(clients) })
    }

    pub(super) fn of_user(timeouts: Timeouts) -> Result<Self, SetupError> {
        // No `read_timeout`: it also counts the time in which we do not ask for the next bytes, so that a program which
        // was stopped for a while would find its download timed out. `Download::chunk` counts only its own waiting.
        let client = https_client(|builder| {
            set_up(builder, timeouts)
                .http2_initial_stream_window_size(USER_WINDOW_BYTES)
                .http2_initial_connection_window_size(USER_WINDOW_BYTES)
        })?;
        Ok(Self::OfUser { client })
    }

    /// The client that may make the next request of this route.
    pub(super) fn client_for(&self, route: &FetchRoute) -> Result<&Client, HopRefusal> {
        match self {
            Self::Guarded { guard, clients } => {
                let reach = guard.admit(&route.current)?;
                let port = route.current.port_or_known_default().unwrap_or(OTHER_PORT);
                let client = clients.get(&(port, reach)).or_else(|| clients.get(&(OTHER_PORT, reach)));
                Ok(client.expect("every reach has a client for other ports"))
            }
            Self::OfUser { client } => {
                let url = &route.current;
                if Scheme::parse(url.scheme()).is_none() {
                    return Err(HopRefusal::NotHttp);
                }
                if has_user_info(url) {
                    return Err(GuardRefusal::UserInfo.into());
                }
                if route.left_tls {
                    return Err(HopRefusal::LeavesTls);
                }
                Ok(client)
            }
        }
    }
}

/// What all clients have in common: redirects are ours to follow, and bytes come as the file has them.
fn set_up(builder: ClientBuilder, timeouts: Timeouts) -> ClientBuilder {
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    builder.default_headers(headers).redirect(Policy::none()).referer(false).connect_timeout(timeouts.connect)
}

// Answers of a server that was asked too often, and when it may be asked again.

/// The error for a status other than 200. A refused token is only at fault where one was sent.
pub(super) fn bad_status(route: &FetchRoute, had_token: bool, response: &Response) -> FetchError {
    let (url, status) = (route.shown(), response.status());
    let is_denial = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let again = try_again(status, response.headers());
    let status = status.as_u16();
    match again {
        Some(again) => FetchError::RateLimited { url, status, again },
        None if is_denial && had_token => FetchError::TokenRefused { url, status },
        None => FetchError::Status { url, status },
    }
}

/// Reads when to try again. GitHub says `x-ratelimit-…`, GitLab `RateLimit-…`; both give the reset as seconds since
/// 1970.
fn try_again(status: StatusCode, headers: &HeaderMap) -> Option<TryAgain> {
    let is_certain = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        // GitHub's spelling of it; without these headers it means what it says.
        StatusCode::FORBIDDEN => false,
        _ => return None,
    };
    if let Some(again) = retry_after(headers) {
        return Some(again);
    }
    for (remaining, reset) in
        [("x-ratelimit-remaining", "x-ratelimit-reset"), ("ratelimit-remaining", "ratelimit-reset")]
    {
        let reset = header_text(headers, reset).and_then(|text| text.parse::<i64>().ok());
        // The reset is sent with every answer, whatever remains.
        if header_text(headers, remaining) == Some("0") || (is_certain && reset.is_some()) {
            return Some(reset.map_or(TryAgain::Later, reset_time));
        }
    }
    (is_certain || headers.contains_key(RETRY_AFTER)).then_some(TryAgain::Later)
}

/// Seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<TryAgain> {
    let text = header_text(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse() {
        return Some(TryAgain::In(Duration::from_secs(seconds)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(date.as_secs()).ok()?;
    Timestamp::from_unix_seconds(seconds).ok().map(TryAgain::At)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// The IETF draft's `RateLimit-Reset` counts seconds from now; no server's clock stands before 2001.
fn reset_time(reset: i64) -> TryAgain {
    const YEAR_2001: i64 = 1_000_000_000;
    match u64::try_from(reset) {
        Ok(seconds) if reset < YEAR_2001 => TryAgain::In(Duration::from_secs(seconds)),
        _ => Timestamp::from_unix_seconds(reset).map_or(TryAgain::Later, TryAgain::At),
    }
}

// Sends to a URL that the operator chose (D28): behind the same guard, and never on to where a redirect leads.

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
        let again = retry_after(response.headers());
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

// Fetches a signers file. If its URL can be read in several ways, exactly one of them must exist.

impl Fetcher {
    pub async fn fetch_signers(
        &self,
        source: &SignersSource,
        max_bytes: u64,
    ) -> Result<FetchedSigners, FetchError> {
        let (url, is_forge) = (bare_url(&source.url), source.kind != SourceKind::FileServer);
        let mut found = None;
        for ways in &source.retrievals {
            let work = async {
                for way in ways {
                    if let Some(bytes) = self.retrieve(way, is_forge, max_bytes).await? {
                        return Ok(Some(FetchedSigners {
                            bytes,
                            retrieval_url: way.request.url.to_string(),
                        }));
                    }
                }
                Ok(None)
            };
            let fetched = self.in_time(&ways[0].request.url, self.timeouts.total, work).await?;
            if fetched.is_some() && found.is_some() {
                return Err(FetchError::Ambiguous { url });
            }
            found = found.or(fetched);
        }
        found.ok_or(if !is_forge {
            FetchError::NotOnServer { url }
        } else if source.needs_slashed_branch {
            FetchError::NoSuchBranch { url }
        } else {
            FetchError::NoSuchFile { url }
        })
    }

    async fn retrieve(
        &self,
        way: &Retrieval,
        is_forge: bool,
        max_bytes: u64,
    ) -> Result<Option<Vec<u8>>, FetchError> {
        if let Some(branch) = &way.branch {
            let answer = self.open(&OutgoingRequest::plain(branch.clone()), Redirects::SameOrigin).await?;
            if answer.is_none_or(|opened| opened.is_html()) {
                return Ok(None);
            }
        }
        let Some(opened) = self.open(&way.request, Redirects::SameOrigin).await? else {
            return Ok(None);
        };
        // Forges answer with a page where a file is missing or a login is; a file server may send what it likes.
        if is_forge && opened.is_html() {
            return Err(FetchError::WebPage { url: opened.shown() });
        }
        opened.read(max_bytes).await.map(Some)
    }
}
