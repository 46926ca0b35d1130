//! What a URL was found to mean: the project or release, and the requests that read it.

pub(crate) mod credential;
pub(crate) mod kind;

use countersign_core::{documents::metadata::OriginKind, values::path::RepoPath};
use url::Url;

use self::{credential::Credential, kind::ForgeKind};

/// The place at which a signers file is to be read, and the project that it speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignersSource {
    pub kind: OriginKind,
    pub project: RepoPath,
    /// The URL as given.
    pub url: String,
    /// The requests for the file; several if the URL does not tell the branch from the path: then exactly one of them
    /// must exist. For each, the ways to ask for it, of which the next is taken where one finds nothing.
    pub retrievals: Vec<Vec<Retrieval>>,
    /// Whether the branch must have a `/` in its name for the file to be in an allowed place.
    pub needs_slashed_branch: bool,
}

/// A GET request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRequest {
    pub url: Url,
    /// The media type to ask for.
    pub accept: Option<&'static str>,
    /// The credential, sent only to the origin that it is for, wherever redirects lead.
    pub credential: Option<Credential>,
}

/// One request for a signers file, in a form that can only name a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrieval {
    pub request: OutgoingRequest,
    /// The branch's own page in the API, which must exist first: a raw URL alone would let the forge decide where the
    /// branch's name ends.
    pub branch: Option<Url>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedSigners {
    pub bytes: Vec<u8>,
    /// The URL as requested, not where a redirect led.
    pub retrieval_url: String,
}

/// The place at which a release is to be read, and the directory that its index belongs into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSource {
    pub kind: ForgeKind,
    pub project: RepoPath,
    pub tag: String,
    /// The page of the release as given, without a query.
    pub url: String,
    /// The directory of the index, `<project>/releases/tag/<tag>`.
    pub dir: RepoPath,
    /// The URL of the project in the API.
    pub api_project: Url,
    /// Spellings of one request, to be tried in this order.
    pub api_urls: Vec<Url>,
    pub credential: Option<Credential>,
}

impl OutgoingRequest {
    pub(crate) fn plain(url: Url) -> Self {
        Self { url, accept: None, credential: None }
    }
}
