//! Fetching a signers file: where its URL can be read in several ways, exactly one of them must exist.

use countersign_core::documents::metadata::OriginKind;

use super::{error::FetchError, fetcher::Fetcher, route::Redirects};
use crate::{
    forges::source::{FetchedSigners, OutgoingRequest, Retrieval, SignersSource},
    shown::shown_url,
};

impl Fetcher {
    pub async fn fetch_signers(
        &self,
        source: &SignersSource,
        max_bytes: u64,
    ) -> Result<FetchedSigners, FetchError> {
        let mut found = None;
        for retrieval in &source.retrievals {
            let work = self.retrieve_either_way(retrieval, max_bytes);
            let Some(fetched) = self.in_time(&retrieval.request.url, self.total_timeout(), work).await?
            else {
                continue;
            };
            if found.replace(fetched).is_some() {
                return Err(FetchError::Ambiguous { url: shown_url(&source.url) });
            }
        }
        let url = shown_url(&source.url);
        found.ok_or(match source.kind {
            OriginKind::FileServer => FetchError::NotOnServer { url },
            OriginKind::Github | OriginKind::Gitlab | OriginKind::Forgejo if source.needs_slashed_branch => {
                FetchError::NoSuchBranch { url }
            }
            OriginKind::Github | OriginKind::Gitlab | OriginKind::Forgejo => FetchError::NoSuchFile { url },
        })
    }

    async fn retrieve_either_way(
        &self,
        retrieval: &Retrieval,
        max_bytes: u64,
    ) -> Result<Option<FetchedSigners>, FetchError> {
        let ways = std::iter::successors(Some(retrieval), |way| way.otherwise.as_deref());
        for way in ways {
            if !self.has_branch(way).await? {
                continue;
            }
            if let Some(bytes) = self.retrieve(way, max_bytes).await? {
                return Ok(Some(FetchedSigners { bytes, retrieval_url: way.request.url.to_string() }));
            }
        }
        Ok(None)
    }

    /// Whether the branch is there, in case that must be known before.
    async fn has_branch(&self, retrieval: &Retrieval) -> Result<bool, FetchError> {
        let Some(branch) = &retrieval.branch else { return Ok(true) };
        let answer = self.open(&OutgoingRequest::plain(branch.clone()), Redirects::SameOrigin).await?;
        Ok(answer.is_some_and(|opened| !opened.is_html()))
    }

    async fn retrieve(&self, retrieval: &Retrieval, max_bytes: u64) -> Result<Option<Vec<u8>>, FetchError> {
        let Some(opened) = self.open(&retrieval.request, Redirects::SameOrigin).await? else {
            return Ok(None);
        };
        if retrieval.refuses_html && opened.is_html() {
            return Err(FetchError::WebPage { url: opened.shown() });
        }
        opened.read(max_bytes).await.map(Some)
    }
}
