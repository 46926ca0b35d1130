//! Fetches what a forge's API says of a release.

use bytes::Bytes;
use countersign_core::values::bounds::RELEASE_DESCRIPTION_BYTES;
use countersign_core::values::digest::{HexDigest, Sha256, Sha512};
use sha2::{Digest, digest::Output};
use tokio::{sync::mpsc, task::JoinHandle};
use url::Url;

use crate::fetch::{Fetcher, Redirects, download::Download, error::ASSET_RATE};
use crate::release::{Asset, AssetProblem, GitlabProject, HashedAsset, ReleaseError, ReleaseMetadata};
use crate::source::{ForgeKind, OutgoingRequest, ReleaseSource};
use crate::{release, url::bare_url, url::shown_text};

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
        Err(ReleaseError::NotFound { url: bare_url(&source.url) })
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
        let release = release::parse(source, &shown, &bytes)?;
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
        let by_id = Url::parse(&format!("{projects}/{id}/")).ok()?;
        Some(ReleaseSource { credential: Some(credential.with_own_url(by_id)), ..source.clone() })
    }
}

fn ask(source: &ReleaseSource, url: &Url) -> OutgoingRequest {
    let (url, credential) = (url.clone(), source.credential.clone());
    OutgoingRequest { url, accept: Some("application/json"), credential }
}

// Streams an asset through both hash functions at once; it is never held as a whole.

/// How many chunks the network may be ahead of a hash function.
const CHUNKS_AHEAD: usize = 8;

impl Fetcher {
    /// Reads the asset, compares it with what the forge published, and computes its digests. `progress` is told the
    /// number of bytes so far.
    pub async fn hash_asset(
        &self,
        asset: &Asset,
        max_bytes: u64,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<HashedAsset, ReleaseError> {
        let request = &asset.download;
        let work = async {
            let not_found =
                || AssetProblem::NotFound { url: format!("`{}`", bare_url(request.url.as_str())) };
            let mut download = self.open(request, Redirects::Guarded).await?.ok_or_else(not_found)?;
            check_head(asset, &mut download, max_bytes)?;
            let hashing = Hashing::start();
            download.set_slowest_rate(ASSET_RATE);
            let interrupted = |download: &Download| AssetProblem::Interrupted { url: download.shown() };
            while let Some(chunk) = download.chunk().await? {
                let size = download.received;
                if let Some(published) = asset.size.filter(|published| size > *published) {
                    return Err(AssetProblem::Overlong { url: download.shown(), published });
                }
                hashing.push(chunk).await.ok_or_else(|| interrupted(&download))?;
                progress(size);
            }
            let (sha256, sha512) = hashing.finish().await.ok_or_else(|| interrupted(&download))?;
            let size = download.received;
            check_size(asset, &download, size)?;
            match asset.sha256.filter(|published| *published != sha256) {
                Some(published) => {
                    Err(AssetProblem::Digest { url: download.shown(), published, received: sha256 })
                }
                None => Ok(HashedAsset { size, sha256, sha512 }),
            }
        };
        let hashed = self.in_time(&request.url, self.asset_timeout, work).await;
        hashed.map_err(|problem| ReleaseError::Asset { name: asset.name.clone(), problem })
    }
}

fn check_head(asset: &Asset, download: &mut Download, max_bytes: u64) -> Result<(), AssetProblem> {
    download.set_maximum(max_bytes)?;
    if asset.size.is_some_and(|size| size > max_bytes) {
        return Err(download.too_large().into());
    }
    if let Some(announced) = download.length() {
        check_size(asset, download, announced)?;
    }
    // Where a login is needed, forges send their page for it with status 200.
    let name = asset.name.as_str().to_ascii_lowercase();
    let may_be_html = name.ends_with(".html") || name.ends_with(".htm") || name.ends_with(".xhtml");
    if download.is_html() && !may_be_html && asset.sha256.is_none() {
        return Err(AssetProblem::WebPage { url: download.shown() });
    }
    Ok(())
}

fn check_size(asset: &Asset, download: &Download, received: u64) -> Result<(), AssetProblem> {
    match asset.size.filter(|published| *published != received) {
        Some(published) => Err(AssetProblem::Size { url: download.shown(), published, received }),
        None => Ok(()),
    }
}

/// Hashes on two threads, so that the slower function alone sets the pace, and none of the runtime's own. Dropping it
/// ends them.
struct Hashing {
    lanes: [mpsc::Sender<Bytes>; 2],
    sha256: JoinHandle<Output<sha2::Sha256>>,
    sha512: JoinHandle<Output<sha2::Sha512>>,
}

/// The methods give `None` if a thread ended early. It panicked, or the runtime shuts down.
impl Hashing {
    fn start() -> Self {
        let ((first, sha256), (second, sha512)) =
            (start_lane::<sha2::Sha256>(), start_lane::<sha2::Sha512>());
        Self { lanes: [first, second], sha256, sha512 }
    }

    async fn push(&self, chunk: Bytes) -> Option<()> {
        for lane in &self.lanes {
            lane.send(chunk.clone()).await.ok()?;
        }
        Some(())
    }

    async fn finish(self) -> Option<(Sha256, Sha512)> {
        drop(self.lanes);
        let (sha256, sha512) = (self.sha256.await.ok()?, self.sha512.await.ok()?);
        Some((HexDigest::from_bytes(sha256.into()), HexDigest::from_bytes(sha512.into())))
    }
}

/// A thread that hashes what it is sent, until the sender is gone.
fn start_lane<D: Digest>() -> (mpsc::Sender<Bytes>, JoinHandle<Output<D>>)
where
    Output<D>: Send + 'static,
{
    let (chunks, mut received) = mpsc::channel::<Bytes>(CHUNKS_AHEAD);
    let result = tokio::task::spawn_blocking(move || {
        let mut hasher = D::new();
        while let Some(chunk) = received.blocking_recv() {
            hasher.update(&chunk);
        }
        hasher.finalize()
    });
    (chunks, result)
}
