//! What an operator configures: hosts, file servers and exceptions (D27, D28).

use std::{collections::BTreeSet, str::FromStr};

use countersign_core::documents::{index::Digests, index::PublishedFile, index::ReleaseIndex, layout};
use countersign_core::{rules::place::check_place, values::path::RepoPath, values::path::Scheme};
use countersign_forge::checksums::{Checksums, locate_checksums};
use countersign_forge::file_server::{FileServerRule, FileServers};
use countersign_forge::forges::{ForgeConfig, ForgeKind, Forges, ReleaseSource, Token};
use countersign_forge::{guard::AllowFetch, guard::Guard, release::read_document, url::Host, url::SourceUrl};
use countersign_server::operate::config::{GivenSettings, Settings};
use serde_json::Value;

use crate::checks::{documents::assert_asset_name, promises::assert_shown};

pub fn check_rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Host::parse(text) {
        Ok(host) => check_host(&host),
        Err(problem) => assert_shown(&problem),
    }
    match Host::parse_with_port(text) {
        Ok((host, port)) => {
            check_host(&host);
            assert_ne!(port, Some(0));
            let written = port.map_or(host.to_string(), |port| format!("{host}:{port}"));
            assert_eq!(written, text.to_ascii_lowercase());
        }
        Err(problem) => assert_shown(&problem),
    }
    match AllowFetch::from_str(text) {
        Ok(rule) => {
            assert_shown(&rule);
            assert_eq!(rule.to_string().parse().as_ref(), Ok(&rule), "{text}");
        }
        Err(error) => assert_shown(&error),
    }
    match FileServerRule::from_str(text) {
        Ok(rule) => check_rule(rule),
        Err(error) => assert_shown(&error),
    }
}

/// The one spelling of a host, which is also the name of a directory.
fn check_host(host: &Host) {
    let text = host.as_str();
    assert_eq!(Host::parse(text).as_ref(), Ok(host));
    assert!(text.is_ascii() && text == text.to_ascii_lowercase() && !text.ends_with('.'), "{text:?}");
    assert!(!text.contains(['/', '\\', '@', '%', ' ']) && text != "..", "{text:?}");
    let url = url::Url::parse(&format!("https://{text}/")).expect("a host makes a URL");
    assert_eq!(url.host_str(), Some(text));
    let is_ip = matches!(url.host(), Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)));
    assert_eq!(host.ip().is_some(), is_ip, "{text:?}");
    let source = SourceUrl::parse(&format!("https://{text}/file")).expect("a host makes a source");
    assert_eq!(source.host(), host);
    check_guard(host, &url);
}

/// Checks that without exceptions, a URL with the literal of a non-public address is refused.
fn check_guard(host: &Host, url: &url::Url) {
    if let Some(ip) = host.ip() {
        let is_public = countersign_forge::guard::non_public_reason(ip).is_none();
        assert_eq!(Guard::default().admit(url).is_ok(), is_public, "{url}");
        let is_private_v4 = match ip {
            std::net::IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
            std::net::IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_multicast(),
        };
        assert!(!(is_public && is_private_v4), "{ip}");
    }
}

fn check_rule(rule: FileServerRule) {
    let servers = FileServers { rules: vec![rule.clone()], loopback: false };
    let github = Host::parse("github.com").expect("a host");
    assert!(!servers.allow(Scheme::Https, &github, 443), "a known forge is never a file server");
    if let FileServerRule::Host { host, port } = rule
        && host != github
    {
        let is_known =
            ["gitlab.com", "codeberg.org", "gitea.com", "raw.githubusercontent.com"].contains(&host.as_str());
        assert_eq!(servers.allow(Scheme::Https, &host, port.unwrap_or(443)), !is_known);
        assert!(!servers.allow(Scheme::Https, &host, if port == Some(1) { 2 } else { 1 }));
    }
}

// Checksums files (D24). Another file follows after each NUL.

pub fn check_checksums(data: &[u8]) {
    let mut merged = Checksums::default();
    let files: Vec<&[u8]> = data.splitn(3, |byte| *byte == 0).collect();
    for (i, file) in files.iter().enumerate() {
        if let Err(error) = merged.add_file(&format!("file {i}"), file) {
            assert_shown(&error);
            return;
        }
        check_one(file);
    }
    assert!(!merged.files.is_empty(), "a file without a checksum is refused");
    for (name, digests) in &merged.files {
        assert_asset_name(name.as_str());
        assert_ne!(*digests, Digests::default());
    }
    assert!(merged.check_count(merged.files.len()).is_ok());
    assert!(merged.check_count(merged.files.len() - 1).is_err());
    check_order(&files, &merged);
    check_index(&merged);
}

/// Checks that adding a file again changes nothing, and that its content can be written in the formats of GNU and BSD.
fn check_one(file: &[u8]) {
    let mut read = Checksums::default();
    read.add_file("first", file).expect("what can be merged can be read alone");
    let mut twice = read.clone();
    twice.add_file("again", file).expect("a file agrees with itself");
    assert_eq!(twice, read);
    let (mut gnu, mut bsd) = (String::new(), String::new());
    for (name, Digests { sha256, sha512 }) in &read.files {
        let digests = [("SHA256", sha256.map(|d| d.to_string())), ("SHA512", sha512.map(|d| d.to_string()))];
        for (tag, hex) in digests.into_iter().filter_map(|(tag, hex)| Some((tag, hex?))) {
            gnu += &format!("{hex}  ./{name}\r\n");
            bsd += &format!("# comment\n{tag} (./{name}) = {}\n\n", hex.to_uppercase());
        }
    }
    for text in [gnu, bsd] {
        let mut again = Checksums::default();
        again.add_file("written", text.as_bytes()).expect("names and digests can be written in both forms");
        assert_eq!(again, read, "{text}");
    }
}

fn check_order(files: &[&[u8]], merged: &Checksums) {
    let mut reversed = Checksums::default();
    for file in files.iter().rev() {
        reversed.add_file("file", file).expect("the order of files does not matter");
    }
    assert_eq!(&reversed, merged);
}

/// Clients accept the index that the server makes of it.
fn check_index(merged: &Checksums) {
    let source = locate_checksums(&["https://files.example/acme/app/1.0/SHA256SUMS".to_owned()])
        .expect("this URL names a checksums file");
    let published_files = merged.files.iter().map(|(name, digests)| PublishedFile {
        file_name: name.clone(),
        size: None,
        source: source.url_of(name.as_str()),
        digests: *digests,
    });
    let index = ReleaseIndex {
        project_id: RepoPath::parse("https/files.example/443/acme/app").expect("a path"),
        release_url: None,
        mirrored_on: countersign_core::values::time::Timestamp::from_unix_seconds(0)
            .expect("in the range of timestamps"),
        published_on: None,
        published_files: published_files.collect(),
    };
    assert_eq!(ReleaseIndex::parse(&index.write()).as_ref(), Ok(&index), "sorted, one entry a file");
    assert_eq!(check_place(&index, &layout::index_in(&source.dir)), Ok(()));
}

// The configuration file.

pub fn check_config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(file) = toml::from_str::<GivenSettings>(text) else { return };
    // A token comes from a file that the text names. With a backslash, the text can spell that name in other ways.
    if text.contains("token") || text.contains('\\') {
        return;
    }
    let settings = match Settings::resolve(file) {
        Ok(settings) => settings,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!settings.dev || settings.listen.ip().is_loopback(), "D37");
    assert_eq!(settings.dev, settings.guard.loopback);
    assert_eq!(settings.dev, settings.guard.file_servers.loopback);
    let limits = settings.limits;
    assert!((1..=256 * 1024).contains(&limits.signers_file_bytes), "no client accepts more (D8)");
    assert!(limits.request_body_bytes > 0 && limits.checksums_file_bytes > 0 && limits.checksums_files > 0);
    assert!(limits.assets > 0 && limits.asset_bytes > 0 && limits.collecting_per_project > 0);
    assert!(limits.registration_expiry().as_secs() >= 24 * 60 * 60);
    assert!(!settings.timeouts.connect.is_zero() && !settings.timeouts.total.is_zero());
    settings.guard.allow.iter().for_each(assert_shown);
}

// The documents with which forges describe releases. The first byte selects the forge.

const MAX_ASSETS: usize = 50;

pub fn check_forge_documents(data: &[u8]) {
    let Some((first, document)) = data.split_first() else { return };
    let kind = match first % 3 {
        0 => ForgeKind::Github,
        1 => ForgeKind::Gitlab,
        _ => ForgeKind::Forgejo,
    };
    for token in [None, Some("token")] {
        check_forge_document(&source(kind, token), document);
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

fn check_forge_document(source: &ReleaseSource, document: &[u8]) {
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
