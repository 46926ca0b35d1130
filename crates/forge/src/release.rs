//! Releases of a forge: what was published, and the digests of its files (D11, D26).

mod document;
mod error;
mod fetch;
mod hash;

use countersign_core::{
    documents::index::AssetName,
    values::{
        digest::{Sha256, Sha512},
        time::Timestamp,
    },
};

use crate::forges::OutgoingRequest;

pub use self::{
    document::read_document,
    error::{AssetProblem, ReleaseError, ReleaseProblem},
};

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
    download: OutgoingRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedAsset {
    pub size: u64,
    pub sha256: Sha256,
    pub sha512: Sha512,
}
