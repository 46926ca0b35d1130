//! A release as its forge published it, and its files as they were hashed.

use countersign_core::{
    documents::index::AssetName,
    values::{
        digest::{Sha256, Sha512},
        time::Timestamp,
    },
};

use crate::source::OutgoingRequest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseMetadata {
    pub published_on: Option<Timestamp>,
    /// The assets; never empty, and each name once.
    pub assets: Vec<Asset>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    pub name: AssetName,
    /// The public URL, for the index.
    pub source: String,
    /// The size as published.
    pub size: Option<u64>,
    /// The digest as published.
    pub sha256: Option<Sha256>,
    pub(super) download: OutgoingRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedAsset {
    pub size: u64,
    pub sha256: Sha256,
    pub sha512: Sha512,
}
