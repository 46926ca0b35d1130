//! Reading a file of any size piece by piece, at the reader's own pace.

use std::fmt;

use bytes::Bytes;
use url::Url;

use super::{error::FetchError, fetcher::Fetcher, opened::OpenedResponse, route::Redirects};
use crate::forges::source::OutgoingRequest;

/// A file that is being received.
pub struct Download {
    opened: OpenedResponse,
    max_bytes: Option<u64>,
    received: u64,
}

impl Fetcher {
    /// Follows redirects to the file, whose bytes are still to be read; `None` where the server says that there is
    /// nothing (404, 410). The whole may take as long as it takes: only connecting and each wait for bytes have an end.
    pub async fn open_download(
        &self,
        url: &Url,
        max_bytes: Option<u64>,
    ) -> Result<Option<Download>, FetchError> {
        let Some(opened) = self.open(&OutgoingRequest::plain(url.clone()), Redirects::Guarded).await? else {
            return Ok(None);
        };
        if let Some(max_bytes) = max_bytes {
            opened.check_length(max_bytes)?;
        }
        Ok(Some(Download { opened, max_bytes, received: 0 }))
    }
}

impl Download {
    /// As announced; `None` where the server does not say.
    pub fn length(&self) -> Option<u64> {
        self.opened.length()
    }

    /// Whether it is announced as a web page. Where a file is not public, forges send their login page with status 200.
    pub fn is_html(&self) -> bool {
        self.opened.is_html()
    }

    /// The next bytes, `None` after the last. A file that ends before its announced length is an error, and so is one
    /// that grows beyond the maximum.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let Some(chunk) = self.opened.chunk().await? else {
            return Ok(None);
        };
        self.received += chunk.len() as u64;
        match self.max_bytes.filter(|max_bytes| self.received > *max_bytes) {
            Some(max_bytes) => Err(self.opened.too_large(max_bytes)),
            None => Ok(Some(chunk)),
        }
    }
}

/// Without the query, where signed tokens stand.
impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.opened.shown();
        f.debug_struct("Download")
            .field("url", &url)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
