//! Releases of a forge: what was published, and the digests of its files (D11, D26).

mod fetch;

use std::{collections::HashSet, fmt};

use countersign_core::documents::index::{
    AssetName, AssetNameError, Digests, IndexTooLarge, PublishedFile, ReleaseIndex,
};
use countersign_core::values::bounds::{INDEX_FILES, URL_BYTES};
use countersign_core::values::digest::{HexDigest, Sha256, Sha512};
use countersign_core::values::{path::Scheme, shown::is_unseen, time::Timestamp};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer, de::Error as _, de::SeqAccess, de::Visitor};
use thiserror::Error;
use url::Url;

use crate::source::{ForgeKind, OutgoingRequest, ReleaseSource};
use crate::{fetch::FetchError, url::bare_url, url::has_user_info, url::shown_text};

// A release as its forge published it, and its files as they were hashed.

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
    download: OutgoingRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedAsset {
    pub size: u64,
    pub sha256: Sha256,
    pub sha512: Sha512,
}

// The documents that the forges' APIs describe releases with, and what of them we use.

/// Makes GitHub's API send the asset itself instead of a description of it.
const OCTET_STREAM: &str = "application/octet-stream";

/// A release in the words of GitHub, which are Forgejo's too. GitLab's becomes one of these.
#[derive(Deserialize)]
struct GithubRelease {
    #[serde(rename = "tag_name")]
    tag: Option<String>,
    /// Whether the release is not published yet.
    draft: Option<bool>,
    published_at: Option<String>,
    assets: Option<Listed<GithubAsset>>,
}

#[derive(Deserialize)]
struct GithubAsset {
    name: String,
    #[serde(rename = "browser_download_url")]
    url: String,
    /// The URL at which the asset is read with a token, or redirected to.
    #[serde(rename = "url")]
    api_url: Option<String>,
    size: Option<u64>,
    digest: Option<String>,
    state: Option<String>,
    /// The kind of a Forgejo asset: `attachment`, or `external` for a link, whose size it does not know and gives as 0.
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct GitlabRelease {
    tag_name: Option<String>,
    upcoming_release: Option<bool>,
    released_at: Option<String>,
    assets: Option<GitlabAssets>,
}

/// The assets of a GitLab release. `sources`, the archives that GitLab makes on request, are left out: their bytes may
/// change.
#[derive(Deserialize)]
struct GitlabAssets {
    links: Option<Listed<GitlabLink>>,
}

#[derive(Deserialize)]
struct GitlabLink {
    url: String,
    direct_asset_url: Option<String>,
}

/// A list of as many as an index can hold. A longer list is not read to its end.
struct Listed<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self(Vec::new()))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Listed<T> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while let Some(item) = items.next_element()? {
            if self.0.len() == INDEX_FILES {
                return Err(A::Error::custom(format!("it lists more than {INDEX_FILES} assets")));
            }
            self.0.push(item);
        }
        Ok(self)
    }
}

/// Reads a forge's document without fetching it.
pub fn read_document(
    source: &ReleaseSource,
    bytes: &[u8],
    max_assets: usize,
) -> Result<ReleaseMetadata, ReleaseError> {
    parse(source, &bare_url(source.api_project.as_str()), bytes)?.into_metadata(source, max_assets)
}

/// Parses the document. `from` is where it came from, as it is shown.
fn parse(source: &ReleaseSource, from: &str, bytes: &[u8]) -> Result<GithubRelease, ReleaseError> {
    let release = match source.kind {
        ForgeKind::Github | ForgeKind::Forgejo => serde_json::from_slice(bytes),
        ForgeKind::Gitlab => serde_json::from_slice(bytes).map(GitlabRelease::into_github),
    };
    release.map_err(|error| ReleaseError::NotADocument {
        url: from.to_owned(),
        reason: shown_text(&error.to_string()),
    })
}

impl GitlabRelease {
    fn into_github(self) -> GithubRelease {
        let links = self.assets.and_then(|assets| assets.links);
        let asset = |link: GitlabLink| {
            let api_url = Some(link.url.clone());
            let url = link.direct_asset_url.unwrap_or(link.url);
            let name = last_segment(&url);
            GithubAsset { name, url, api_url, size: None, digest: None, state: None, r#type: None }
        };
        GithubRelease {
            tag: self.tag_name,
            draft: self.upcoming_release,
            published_at: self.released_at,
            assets: links.map(|links| Listed(links.0.into_iter().map(asset).collect())),
        }
    }
}

/// What GitLab says of a project.
#[derive(Deserialize)]
struct GitlabProject {
    id: u64,
}

impl GithubRelease {
    /// Whether an asset is linked by the number of a project, as in `/projects/42/packages`.
    fn names_a_number(&self) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let assets = self.assets.iter().flat_map(|assets| &assets.0);
        let mut urls = assets.flat_map(|asset| [Some(&asset.url), asset.api_url.as_ref()]).flatten();
        urls.any(|url| {
            let rest = url.split_once("/projects/").map(|(_, rest)| rest);
            rest.and_then(|rest| rest.split('/').next()).is_some_and(is_number)
        })
    }

    fn into_metadata(
        self,
        source: &ReleaseSource,
        max_assets: usize,
    ) -> Result<ReleaseMetadata, ReleaseError> {
        let refuse = |problem| ReleaseError::Refused { url: bare_url(&source.url), problem };
        self.check(source, max_assets).map_err(refuse)
    }

    fn check(self, source: &ReleaseSource, max_assets: usize) -> Result<ReleaseMetadata, ReleaseProblem> {
        if self.draft.unwrap_or(false) {
            return Err(match source.kind {
                ForgeKind::Github | ForgeKind::Forgejo => ReleaseProblem::Draft,
                ForgeKind::Gitlab => ReleaseProblem::Upcoming,
            });
        }
        // Forgejo finds tags in any letter case, and each release must have one directory only.
        if let Some(tag) = self.tag.filter(|tag| *tag != source.tag) {
            return Err(ReleaseProblem::OtherTag { tag: shown_text(&tag) });
        }
        let published_on = self.published_at.as_deref().map(Timestamp::parse).transpose();
        let published_on = published_on.map_err(|_| ReleaseProblem::PublicationDate)?;
        let described = self.assets.map(|assets| assets.0).unwrap_or_default();
        if described.is_empty() {
            return Err(ReleaseProblem::NoAssets);
        }
        if described.len() > max_assets {
            return Err(ReleaseProblem::TooManyAssets { max: max_assets });
        }
        let mut names = HashSet::new();
        let mut assets = Vec::new();
        for asset in described {
            let asset = asset.into_asset(source)?;
            if !names.insert(asset.name.as_str().to_owned()) {
                return Err(ReleaseProblem::NameUsedTwice { name: shown_text(asset.name.as_str()) });
            }
            assets.push(asset);
        }
        let published_on = published_on.map(Timestamp::to_whole_seconds);
        check_size(source, published_on, &assets)?;
        Ok(ReleaseMetadata { published_on, assets })
    }
}

/// Whether the index will be small enough (D41), before anything is downloaded for it. All digests have the same
/// length.
fn check_size(
    source: &ReleaseSource,
    published_on: Option<Timestamp>,
    assets: &[Asset],
) -> Result<(), ReleaseProblem> {
    let digests = Digests {
        sha256: Some(HexDigest::from_bytes([0; 32])),
        sha512: Some(HexDigest::from_bytes([0; 64])),
    };
    let file = |asset: &Asset| PublishedFile {
        file_name: asset.name.clone(),
        size: Some(asset.size.unwrap_or_default()),
        source: asset.source.clone(),
        digests,
    };
    let index = ReleaseIndex {
        project_id: source.project.clone(),
        release_url: Some(source.url.clone()),
        mirrored_on: Timestamp::from_unix_seconds(0).expect("1970 is a year that can be written"),
        published_on,
        published_files: assets.iter().map(file).collect(),
    };
    index.write_bounded().map(drop).map_err(ReleaseProblem::TooLarge)
}

impl GithubAsset {
    fn into_asset(self, source: &ReleaseSource) -> Result<Asset, ReleaseProblem> {
        let shown = || shown_text(&self.name);
        let name = AssetName::parse(&self.name)
            .map_err(|error| ReleaseProblem::AssetName { name: shown(), error })?;
        if self.state.as_deref().is_some_and(|state| state != "uploaded") {
            return Err(ReleaseProblem::NotUploaded { name: shown() });
        }
        let url = parse_url(&self.url).ok_or_else(|| ReleaseProblem::AssetUrl { name: shown() })?;
        // `sha256:<hex>`; another algorithm is as good as none.
        let published = self.digest.as_deref().and_then(|digest| digest.split_once(':'));
        let hex = published.filter(|(name, _)| name.eq_ignore_ascii_case("sha256")).map(|(_, hex)| hex);
        let parse =
            |hex| Sha256::parse_any_case(hex).ok_or_else(|| ReleaseProblem::AssetDigest { name: shown() });
        let sha256 = hex.map(parse).transpose()?;
        let size = self.size.filter(|_| self.r#type.as_deref() != Some("external"));
        let api_url = self.api_url.as_deref().and_then(parse_url);
        let download = choose_request(source, url.clone(), api_url);
        Ok(Asset { name, source: url.into(), size, sha256, download })
    }
}

/// Assets of a private GitHub repository come from the API, where the token is good; elsewhere it is good for the
/// public URL, if that is on the API's origin.
fn choose_request(source: &ReleaseSource, url: Url, api_url: Option<Url>) -> OutgoingRequest {
    let credential = source.credential.clone();
    let is_api = |url: &Url| credential.as_ref().is_some_and(|credential| credential.is_for(url));
    match api_url.filter(|url| source.kind == ForgeKind::Github && is_api(url)) {
        Some(url) => OutgoingRequest { url, accept: Some(OCTET_STREAM), credential },
        None => OutgoingRequest { url, accept: None, credential },
    }
}

fn parse_url(text: &str) -> Option<Url> {
    if text.len() > URL_BYTES || text.chars().any(is_unseen) {
        return None;
    }
    let mut url = Url::parse(text).ok()?;
    url.set_fragment(None);
    (Scheme::parse(url.scheme()).is_some() && !has_user_info(&url)).then_some(url)
}

/// The last segment, decoded. Without one it is empty, and so refused as a name.
fn last_segment(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let segment = path.rsplit('/').next().unwrap_or_default();
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

// Why a release cannot be registered, in words that are safe to show.

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
