//! The documents with which forges describe releases. The first byte selects the forge.

use std::collections::BTreeSet;

use countersign_forge::{
    forges::{ForgeConfig, ForgeKind, Forges, ReleaseSource, Token},
    release::read_document,
};
use serde_json::Value;

use super::{index::assert_asset_name, promises::assert_shown};

const MAX_ASSETS: usize = 50;

pub fn check(data: &[u8]) {
    let Some((first, document)) = data.split_first() else { return };
    let kind = match first % 3 {
        0 => ForgeKind::Github,
        1 => ForgeKind::Gitlab,
        _ => ForgeKind::Forgejo,
    };
    for token in [None, Some("token")] {
        check_one(&source(kind, token), document);
    }
}

fn source(kind: ForgeKind, token: Option<&str>) -> ReleaseSource {
    let token = token.map(|token| Token::new(token.to_owned()).expect("a valid token"));
    let config = ForgeConfig { host: "git.example".into(), kind, api: None, raw: None, token };
    let page = match kind {
        ForgeKind::Github | ForgeKind::Forgejo => "https://git.example/acme/app/releases/tag/v1.0",
        ForgeKind::Gitlab => "https://git.example/acme/app/-/releases/v1.0",
    };
    Forges::new(vec![config])
        .expect("one forge is no conflict")
        .locate_release(page)
        .expect("this page is a release of the forge")
}

fn check_one(source: &ReleaseSource, document: &[u8]) {
    let release = match read_document(source, document, MAX_ASSETS) {
        Ok(release) => release,
        Err(error) => return assert_shown(&error),
    };
    assert!((1..=MAX_ASSETS).contains(&release.assets.len()));
    let names: BTreeSet<&str> = release.assets.iter().map(|asset| asset.name.as_str()).collect();
    assert_eq!(names.len(), release.assets.len(), "each name once");
    names.into_iter().for_each(assert_asset_name);
    for asset in &release.assets {
        let url = url::Url::parse(&asset.source).expect("a source is a URL");
        assert!(matches!(url.scheme(), "http" | "https"), "{url}");
        assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    }
    if let Some(time) = release.published_on {
        assert_eq!(time, time.to_whole_seconds());
    }
    // The parser skips unknown fields, so they can hold bytes that are not text.
    let Ok(value) = serde_json::from_slice::<Value>(document) else { return };
    let tag = value.get("tag_name").and_then(|tag| tag.as_str());
    assert!(tag.is_none_or(|tag| tag == "v1.0"), "{tag:?}");
    let unpublished = match source.kind {
        ForgeKind::Gitlab => "upcoming_release",
        ForgeKind::Github | ForgeKind::Forgejo => "draft",
    };
    assert_ne!(value.get(unpublished), Some(&true.into()));
}
