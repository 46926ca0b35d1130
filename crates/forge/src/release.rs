//! Releases of a forge: what was published, and the digests of its files (D11, D26).

mod asset;
mod document;
mod error;
mod fetch;
mod hash;
#[cfg(test)]
mod tests;

use crate::{forges::ReleaseSource, shown::shown_text};

pub use self::{
    asset::{Asset, HashedAsset, ReleaseMetadata},
    error::{AssetProblem, ReleaseError, ReleaseProblem},
};

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
