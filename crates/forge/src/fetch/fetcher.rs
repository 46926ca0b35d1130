//! The requests themselves, hop by hop.

use std::{sync::Arc, time::Duration};

use countersign_core::values::bounds::REDIRECTS;
use reqwest::{
    Response,
    dns::Resolve,
    header::{ACCEPT, CONTENT_ENCODING, HeaderValue, LOCATION},
};
use url::Url;

use super::{
    access::FetchAccess,
    download::Download,
    error::{FetchError, HopRefusal, Wait},
    pace::Timeouts,
    rate_limit,
    route::{FetchRoute, Redirects},
};
use crate::{
    guard::Guard,
    https::SetupError,
    source::{OutgoingRequest, credential::Credential},
};

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
                _ => return Err(rate_limit::bad_status(&route, credential.is_some(), &response)),
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
