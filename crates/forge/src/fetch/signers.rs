//! Fetches a signers file. If its URL can be read in several ways, exactly one of them must exist.

use countersign_core::documents::metadata::OriginKind;

use super::{error::FetchError, fetcher::Fetcher, route::Redirects};
use crate::{
    shown::shown_url,
    source::{FetchedSigners, OutgoingRequest, Retrieval, SignersSource},
};

impl Fetcher {
    pub async fn fetch_signers(
        &self,
        source: &SignersSource,
        max_bytes: u64,
    ) -> Result<FetchedSigners, FetchError> {
        let (url, is_forge) = (shown_url(&source.url), source.kind != OriginKind::FileServer);
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
