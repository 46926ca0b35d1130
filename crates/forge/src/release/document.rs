//! The documents that the forges' APIs describe releases with, and what of them we use.

use std::{collections::HashSet, fmt, marker::PhantomData};

use countersign_core::{
    documents::index::{AssetName, Digests, PublishedFile, ReleaseIndex},
    values::{
        bounds::INDEX_FILES,
        digest::{HexDigest, Sha256},
        shown::is_unseen,
        time::Timestamp,
    },
};
use percent_encoding::percent_decode_str;
use reqwest::header::HeaderValue;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use url::Url;

use super::{
    asset::{Asset, AssetRequest, ReleaseMetadata},
    error::ReleaseProblem,
};
use crate::{
    forges::{ForgeKind, ReleaseSource, credential::Credential},
    shown::shown_text,
};

/// Makes GitHub's API send the asset itself instead of a description of it.
const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const MAX_URL_BYTES: usize = 2_048;

/// A release as any of the forges describes it.
#[derive(Debug)]
pub(super) struct Described {
    tag: Option<String>,
    /// Why it is not published yet.
    unpublished: Option<ReleaseProblem>,
    published_on: Option<String>,
    assets: Vec<DescribedAsset>,
}

#[derive(Debug)]
struct DescribedAsset {
    name: String,
    url: String,
    /// Where it is read with a token, or redirected to.
    api_url: Option<String>,
    size: Option<u64>,
    digest: Option<String>,
    is_uploaded: bool,
}

/// GitHub's, and Forgejo's, which has the same names.
#[derive(Deserialize)]
struct GithubRelease {
    tag_name: Option<String>,
    draft: Option<bool>,
    published_at: Option<String>,
    assets: Option<Listed<GithubAsset>>,
}

#[derive(Deserialize)]
struct GithubAsset {
    name: String,
    browser_download_url: String,
    url: Option<String>,
    size: Option<u64>,
    digest: Option<String>,
    state: Option<String>,
    /// Forgejo's: `attachment`, or `external` for a link, whose size it does not know and gives as 0.
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct GitlabRelease {
    tag_name: Option<String>,
    upcoming_release: Option<bool>,
    released_at: Option<String>,
    assets: Option<GitlabAssets>,
}

/// `sources`, the archives that GitLab makes on request, are left out: their bytes may change.
#[derive(Deserialize)]
struct GitlabAssets {
    links: Option<Listed<GitlabLink>>,
}

#[derive(Deserialize)]
struct GitlabLink {
    url: String,
    direct_asset_url: Option<String>,
}

/// As many as an index can hold. A longer list is not read to its end.
struct Listed<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = Listed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Listed<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    if list.len() == INDEX_FILES {
                        return Err(A::Error::custom(format!("it lists more than {INDEX_FILES} assets")));
                    }
                    list.push(item);
                }
                Ok(Listed(list))
            }
        }
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

pub(super) fn parse(kind: ForgeKind, bytes: &[u8]) -> Result<Described, serde_json::Error> {
    Ok(match kind {
        ForgeKind::Github | ForgeKind::Forgejo => serde_json::from_slice::<GithubRelease>(bytes)?.into(),
        ForgeKind::Gitlab => serde_json::from_slice::<GitlabRelease>(bytes)?.into(),
    })
}

impl From<GithubRelease> for Described {
    fn from(release: GithubRelease) -> Self {
        Self {
            tag: release.tag_name,
            unpublished: release.draft.unwrap_or(false).then_some(ReleaseProblem::Draft),
            published_on: release.published_at,
            assets: release
                .assets
                .map(|assets| assets.0)
                .unwrap_or_default()
                .into_iter()
                .map(DescribedAsset::from)
                .collect(),
        }
    }
}

impl From<GithubAsset> for DescribedAsset {
    fn from(asset: GithubAsset) -> Self {
        let is_link = asset.r#type.as_deref() == Some("external");
        Self {
            name: asset.name,
            url: asset.browser_download_url,
            api_url: asset.url,
            size: asset.size.filter(|_| !is_link),
            digest: asset.digest,
            is_uploaded: asset.state.is_none_or(|state| state == "uploaded"),
        }
    }
}

impl From<GitlabRelease> for Described {
    fn from(release: GitlabRelease) -> Self {
        let links = release.assets.and_then(|assets| assets.links).map(|links| links.0).unwrap_or_default();
        Self {
            tag: release.tag_name,
            unpublished: release.upcoming_release.unwrap_or(false).then_some(ReleaseProblem::Upcoming),
            published_on: release.released_at,
            assets: links.into_iter().map(DescribedAsset::from).collect(),
        }
    }
}

impl From<GitlabLink> for DescribedAsset {
    fn from(link: GitlabLink) -> Self {
        let api_url = Some(link.url.clone());
        let url = link.direct_asset_url.unwrap_or(link.url);
        Self { name: last_segment(&url), url, api_url, size: None, digest: None, is_uploaded: true }
    }
}

/// What GitLab says of a project.
#[derive(Deserialize)]
pub(super) struct GitlabProject {
    pub(super) id: u64,
}

impl Described {
    /// Whether an asset is linked by the number of a project, as in `/projects/42/packages`.
    pub(super) fn names_a_number(&self) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut urls =
            self.assets.iter().flat_map(|asset| [Some(&asset.url), asset.api_url.as_ref()]).flatten();
        urls.any(|url| {
            let rest = url.split_once("/projects/").map(|(_, rest)| rest);
            rest.and_then(|rest| rest.split('/').next()).is_some_and(is_number)
        })
    }

    pub(super) fn into_metadata(
        self,
        source: &ReleaseSource,
        max_assets: usize,
    ) -> Result<ReleaseMetadata, ReleaseProblem> {
        if let Some(problem) = self.unpublished {
            return Err(problem);
        }
        // Forgejo finds tags in any letter case, and each release must have one directory only.
        if let Some(tag) = self.tag.filter(|tag| *tag != source.tag) {
            return Err(ReleaseProblem::OtherTag { tag: shown_text(&tag) });
        }
        let published_on = self.published_on.as_deref().map(Timestamp::parse).transpose();
        let published_on = published_on.map_err(|_| ReleaseProblem::PublicationDate)?;
        if self.assets.is_empty() {
            return Err(ReleaseProblem::NoAssets);
        }
        if self.assets.len() > max_assets {
            return Err(ReleaseProblem::TooManyAssets { max: max_assets });
        }
        let mut names = HashSet::new();
        let mut assets = Vec::new();
        for asset in self.assets {
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

/// Whether the index will be small enough (D41), before anything is downloaded for it. All digests have the same length.
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

impl DescribedAsset {
    fn into_asset(self, source: &ReleaseSource) -> Result<Asset, ReleaseProblem> {
        let shown = || shown_text(&self.name);
        let name = AssetName::parse(&self.name)
            .map_err(|error| ReleaseProblem::AssetName { name: shown(), error })?;
        if !self.is_uploaded {
            return Err(ReleaseProblem::NotUploaded { name: shown() });
        }
        let url = parse_url(&self.url).ok_or_else(|| ReleaseProblem::AssetUrl { name: shown() })?;
        let sha256 = parse_digest(self.digest.as_deref())
            .map_err(|()| ReleaseProblem::AssetDigest { name: shown() })?;
        let api_url = self.api_url.as_deref().and_then(parse_url);
        let download = AssetRequest::choose(source, url.clone(), api_url);
        Ok(Asset { name, source: url.into(), size: self.size, sha256, download })
    }
}

impl AssetRequest {
    /// Assets of a private GitHub repository come from the API, where the token is good; elsewhere it is good for the
    /// public URL, if that is on the API's origin.
    fn choose(source: &ReleaseSource, url: Url, api_url: Option<Url>) -> Self {
        let credential = source.credential.clone();
        let is_api =
            |url: &Url| credential.as_ref().is_some_and(|credential: &Credential| credential.is_for(url));
        match (source.forge_kind, api_url.filter(is_api)) {
            (ForgeKind::Github, Some(api_url)) => {
                Self { url: api_url, accept: Some(OCTET_STREAM), credential }
            }
            (ForgeKind::Github | ForgeKind::Gitlab | ForgeKind::Forgejo, _) => {
                Self { url, accept: None, credential }
            }
        }
    }
}

/// `sha256:<hex>`; another algorithm is as good as none.
fn parse_digest(digest: Option<&str>) -> Result<Option<Sha256>, ()> {
    match digest.and_then(|digest| digest.split_once(':')) {
        Some((name, hex)) if name.eq_ignore_ascii_case("sha256") => {
            Sha256::parse_any_case(hex).map(Some).ok_or(())
        }
        Some(_) | None => Ok(None),
    }
}

fn parse_url(text: &str) -> Option<Url> {
    if text.len() > MAX_URL_BYTES || text.chars().any(is_unseen) {
        return None;
    }
    let mut url = Url::parse(text).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
    url.set_fragment(None);
    (is_plain && url.password().is_none()).then_some(url)
}

/// Decoded; empty, and so refused as a name, where there is none.
fn last_segment(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let segment = path.rsplit('/').next().unwrap_or_default();
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}
