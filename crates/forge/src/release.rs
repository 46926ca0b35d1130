//! Releases of a forge: what was published, and the digests of its files (D11, D26).

mod asset;
mod document;
mod error;
mod fetch;
mod hash;

pub use self::{
    asset::{Asset, HashedAsset, ReleaseMetadata},
    document::read_document,
    error::{AssetProblem, ReleaseError, ReleaseProblem},
};
