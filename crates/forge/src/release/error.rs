//! Why a release cannot be registered, in words that are safe to show.

use countersign_core::{
    documents::index::{AssetName, AssetNameError, IndexTooLarge},
    values::digest::Sha256,
};
use thiserror::Error;

use crate::fetch::FetchError;

#[derive(Debug, Error)]
pub enum ReleaseError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(
        "the forge has no published release `{url}`: it does not exist, is a draft, or is in a private repository \
         that the server has no token for"
    )]
    NotFound { url: String },
    #[error("the forge's API {url} did not answer with a JSON document of a release: {reason}")]
    NotADocument { url: String, reason: String },
    #[error("the release `{url}` cannot be registered: {problem}")]
    Refused { url: String, problem: ReleaseProblem },
    #[error("the asset `{name}` cannot be registered: {problem}")]
    Asset { name: AssetName, problem: AssetProblem },
}

/// What is wrong with what a forge says of a release.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReleaseProblem {
    #[error("it is a draft: publish it first")]
    Draft,
    #[error("its date of release is in the future: register it once it is released")]
    Upcoming,
    #[error("the forge answered with the release of another tag, `{tag}`: write the tag exactly")]
    OtherTag { tag: String },
    #[error("its publication date is not an RFC 3339 time")]
    PublicationDate,
    #[error("it has no assets: attach the files to sign to the release")]
    NoAssets,
    #[error("it has more than {max} assets")]
    TooManyAssets { max: usize },
    #[error(transparent)]
    TooLarge(IndexTooLarge),
    #[error("the asset name `{name}` is not safe to write to: {error}")]
    AssetName { name: String, error: AssetNameError },
    #[error("the asset name `{name}` is used twice")]
    NameUsedTwice { name: String },
    #[error("the asset `{name}` is not completely uploaded: wait for it, or remove it")]
    NotUploaded { name: String },
    #[error("the asset `{name}` has no http(s) URL without user information")]
    AssetUrl { name: String },
    #[error("the published digest of the asset `{name}` is not a SHA-256 digest in hexadecimal")]
    AssetDigest { name: String },
}

#[derive(Debug, Error)]
pub enum AssetProblem {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("{url} was not found")]
    NotFound { url: String },
    #[error("{url} answered with a web page instead of the file")]
    WebPage { url: String },
    #[error("{url} has {received} bytes, and the forge published a size of {published}")]
    Size { url: String, published: u64, received: u64 },
    #[error("{url} has more bytes than the {published} that the forge published")]
    Overlong { url: String, published: u64 },
    #[error("{url} has the SHA-256 digest {received}, and the forge published {published}")]
    Digest { url: String, published: Sha256, received: Sha256 },
    #[error("hashing {url} was interrupted: try again")]
    Interrupted { url: String },
}

impl ReleaseError {
    /// Whether the caller's own URL is at fault (400), rather than what the upstream did (500): D25.
    pub fn is_refused_as_given(&self) -> bool {
        // The URL of an asset is the forge's choice.
        matches!(self, Self::Fetch(error) if error.is_refused_as_given())
    }
}
