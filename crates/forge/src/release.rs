//! Releases of a forge: what was published, and the digests of its files (D11, D26).

use countersign_core::{
    documents::index::AssetName,
    values::{
        digest::{Sha256, Sha512},
        time::Timestamp,
    },
};
use reqwest::header::HeaderValue;
use url::Url;

use crate::{
    forges::{Credential, ReleaseSource},
    shown::shown_text,
};

pub use error::{AssetProblem, ReleaseError, ReleaseProblem};

mod document;
mod error;
mod fetch;
mod hash;
#[cfg(test)]
mod tests;

/// Reads a forge's document without fetching it; the error is its message. For fuzzing.
#[doc(hidden)]
pub fn read_document(
    source: &ReleaseSource,
    bytes: &[u8],
    max_assets: usize,
) -> Result<ReleaseMetadata, String> {
    let release =
        document::parse(source.forge_kind, bytes).map_err(|error| shown_text(&error.to_string()))?;
    release.into_metadata(source, max_assets).map_err(|problem| problem.to_string())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseMetadata {
    pub published_on: Option<Timestamp>,
    /// Never empty; each name once.
    pub assets: Vec<Asset>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    pub name: AssetName,
    /// The public URL, for the index.
    pub source: String,
    /// As published.
    pub size: Option<u64>,
    /// As published.
    pub sha256: Option<Sha256>,
    download: Download,
}

/// The request for an asset's content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Download {
    accept: Option<HeaderValue>,
    url: Url,
    credential: Option<Credential>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedAsset {
    pub size: u64,
    pub sha256: Sha256,
    pub sha512: Sha512,
}
