//! Fetches what a forge's API says of a release.

use countersign_core::values::bounds::RELEASE_DESCRIPTION_BYTES;
use url::Url;

use super::{
    asset::ReleaseMetadata,
    document::{self, GitlabProject},
    error::ReleaseError,
};
use crate::{
    fetch::{Fetcher, Redirects},
    shown::{shown_text, shown_url},
    source::{OutgoingRequest, ReleaseSource, kind::ForgeKind},
};

const MAX_DOCUMENT_BYTES: u64 = RELEASE_DESCRIPTION_BYTES as u64;

impl Fetcher {
    /// What the forge published under this tag: not more than `max_assets`, with safe and distinct names.
    pub async fn fetch_release(
        &self,
        source: &ReleaseSource,
        max_assets: usize,
    ) -> Result<ReleaseMetadata, ReleaseError> {
        for url in &source.api_urls {
            let work = self.read_document(source, url, max_assets);
            if let Some(metadata) = self.in_time(url, self.timeouts.total, work).await? {
                return Ok(metadata);
            }
        }
        Err(ReleaseError::NotFound { url: shown_url(&source.url) })
    }

    async fn read_document(
        &self,
        source: &ReleaseSource,
        url: &Url,
        max_assets: usize,
    ) -> Result<Option<ReleaseMetadata>, ReleaseError> {
        let Some(opened) = self.open(&ask(source, url), Redirects::SameOrigin).await? else {
            return Ok(None);
        };
        let (shown, media_type) = (opened.shown(), opened.media_type());
        // Small servers and proxies know no better type than these two; the parser decides.
        let may_be_json = matches!(&*media_type, "" | "text/plain" | "application/octet-stream")
            || media_type.ends_with("/json")
            || media_type.ends_with("+json");
        if !may_be_json {
            let reason = format!("it sent `{}`. Is `api` of the forge right?", shown_text(&media_type));
            return Err(ReleaseError::NotADocument { url: shown, reason });
        }
        let bytes = opened.read(MAX_DOCUMENT_BYTES).await?;
        let release = document::parse(source, &shown, &bytes)?;
        let numbered = if release.names_a_number() { self.with_number(source).await } else { None };
        release.into_metadata(numbered.as_ref().unwrap_or(source), max_assets).map(Some)
    }

    /// Adds the project's number, by which GitLab also knows projects, and by which packages are usually linked.
    /// Whether it is the project's own, only GitLab can tell: where it does not, the token stays with the project's
    /// name.
    async fn with_number(&self, source: &ReleaseSource) -> Option<ReleaseSource> {
        let credential = source.credential.clone().filter(|_| source.kind == ForgeKind::Gitlab)?;
        let request = ask(source, &source.api_project);
        let opened = self.open(&request, Redirects::SameOrigin).await.ok()??;
        let bytes = opened.read(MAX_DOCUMENT_BYTES).await.ok()?;
        let GitlabProject { id } = serde_json::from_slice(&bytes).ok()?;
        let (projects, _) = source.api_project.as_str().rsplit_once('/')?;
        let place = Url::parse(&format!("{projects}/{id}/")).ok()?;
        Some(ReleaseSource { credential: Some(credential.with_place(place)), ..source.clone() })
    }
}

fn ask(source: &ReleaseSource, url: &Url) -> OutgoingRequest {
    let (url, credential) = (url.clone(), source.credential.clone());
    OutgoingRequest { url, accept: Some("application/json"), credential }
}
