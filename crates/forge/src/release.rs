//! Releases of a forge: what was published, and the digests of its files (D11, D26).

mod asset;
mod document;
mod error;
mod fetch;
mod hash;

use crate::{
    forges::ReleaseSource,
    shown::{shown_text, shown_url},
};

pub use self::{
    asset::{Asset, HashedAsset, ReleaseMetadata},
    error::{AssetProblem, ReleaseError, ReleaseProblem},
};

/// Reads a forge's document without fetching it.
pub fn read_document(
    source: &ReleaseSource,
    bytes: &[u8],
    max_assets: usize,
) -> Result<ReleaseMetadata, ReleaseError> {
    let release = document::parse(source.kind, bytes).map_err(|error| {
        let (url, reason) = (shown_url(source.api_project.as_str()), shown_text(&error.to_string()));
        ReleaseError::NotADocument { url, reason }
    })?;
    let refuse = |problem| ReleaseError::Refused { url: shown_url(&source.url), problem };
    release.into_metadata(source, max_assets).map_err(refuse)
}
