//! Indexes about the place where they lie, and about others.

use countersign_core::rules::place::{PlaceError, check_place};
use countersign_core::{documents::index::ReleaseIndex, values::path::RepoPath};
use serde_json::{Value, json};

/// Project, path of the index, page of the release, source and name of its one file.
pub(crate) fn places() -> Vec<Value> {
    const APP: &str = "https/github.com/443/acme/app";
    const V1: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
    const PAGE: &str = "https://github.com/acme/app/releases/tag/v1";
    const GOOD: &str = "https://github.com/acme/app/releases/download/v1/a";
    let pages = [
        PAGE,
        "https://github.com/acme/app/releases/tag/v1/",
        "https://github.com:443/acme/app/releases/tag/v1",
        "HTTPS://GitHub.com/acme/app/releases/tag/v1",
        "https://github.com/acme/app/-/releases/v1",
        "https://github.com/acme/app/releases/tag/%76%31",
        "https://github.com/acme/app/releases/tag/v2",
        "https://github.com/acme/app/releases/tag/v1//",
        "https://github.com/acme/app/releases/tag/",
        "https://github.com/acme/app/releases/v1",
        "https://github.com/ACME/app/releases/tag/v1",
        "https://github.com/acme/app2/releases/tag/v1",
        "https://github.com:8443/acme/app/releases/tag/v1",
        "https://github.com:0443/acme/app/releases/tag/v1",
        "https://github.com:/acme/app/releases/tag/v1",
        "https://user@github.com/acme/app/releases/tag/v1",
        "https://github.com./acme/app/releases/tag/v1",
        "https://github.com/acme/app/releases/tag/v1?x",
        "https://github.com/acme/app/releases/tag/v1#x",
        "https://github.com/acme/app/releases/tag/./v1",
        "https://github.com/acme/app/x/../releases/tag/v1",
        "https://github.com/acme/app/releases/tag/%2e%2e/v1",
        "https://github.com\\acme/app/releases/tag/v1",
        "https://github.com/acme/app/releases/tag/v1 ",
        "https:/github.com/acme/app/releases/tag/v1",
        "//github.com/acme/app/releases/tag/v1",
        "http://github.com/acme/app/releases/tag/v1",
        "ftp://github.com/acme/app/releases/tag/v1",
        "https://github.com/acme/app/releases/tag/%ff",
        "",
    ];
    let assets = [
        GOOD,
        "https://github.com/acme/app/-/releases/v1/downloads/a",
        "https://github.com/acme/app/-/releases/v1/downloads/linux/a",
        "https://cdn.example/anything",
        "https://github.com/acme/other/releases/download/v9/a",
        "https://github.com/acme/app/archive/a",
        "not a url",
        "https://github.com/acme/app/releases/download/v2/a",
        "https://github.com/acme/app/releases/download/v1/b",
        "https://github.com/ACME/App/Releases/download/v2/a",
        "https://GITHUB.com./acme/app/releases/download/v2/a",
        "https://user@github.com/acme/app/releases/download/v1/a",
        "https://github.com:8443/acme/app/releases/download/v1/a",
        "https://github.com//acme/app/releases/download/v2/a",
        "https://github.com/x/../acme/app/releases/download/v2/a",
        "https://github.com/x/%2e%2e/acme/app/releases/download/v2/a",
        "https:\\\\github.com\\acme\\app\\releases\\download\\v2\\a",
        "https:github.com/acme/app/releases/download/v2/a",
        "https:///github.com/acme/app/releases/download/v2/a",
        " https://github.com/acme/app/releases/download/v2/a",
        "https://git\thub.com/acme/app/releases/download/v2/a",
        "https://github.com/%61cme/app/releases/download/v2/a",
        "https://github.com/acme/app/releases/download/v1/a?x=1",
        "https://github.com/acme/app/-/releases/v2/downloads/a",
        "https://github.com/acme/app/releases",
        "https://github.com/acme/app/releasesx/v2/a",
    ];
    const FILES: &str = "https/dl.example/443/app";
    const INDEX: &str = "https/dl.example/443/app/1.0/svc.index.json";
    let sources = [
        "https://dl.example/app/1.0/a",
        "https://dl.example:443/app/1.0/a",
        "https://DL.example/app/1.0/%61",
        "https://dl.example/app/1.0/a/",
        "https://dl.example/app/1.1/a",
        "https://dl.example/app/1.0/x/a",
        "https://dl.example/app/1.0%2Fa",
        "https://dl.example/app/1.0/b",
        "https://dl.example/app/1.0/../1.0/a",
        "http://dl.example/app/1.0/a",
        "https://dl.example/app/1.0/a?",
        "https://evil.example/app/1.0/a",
        "https://dl.example.evil.example/app/1.0/a",
    ];
    let elsewhere = [
        "https/github.com/443/acme/app/releases/tag/v1/svc.index.json.x",
        "https/github.com/443/acme/app/releases/tag/v1/index.json",
        "https/github.com/443/acme/app/releases/tag/v2/svc.index.json",
        "https/github.com/443/acme/app/svc.index.json",
        "https/github.com/443/acme/application/releases/tag/v1/svc.index.json",
        "https/github.com/443/acme/svc.index.json",
        "svc.index.json",
    ];
    let pages = pages.into_iter().map(|page| place(APP, V1, Some(page), GOOD));
    let assets = assets.into_iter().map(|source| place(APP, V1, Some(PAGE), source));
    let sources = sources.into_iter().map(|source| place(FILES, INDEX, None, source));
    let elsewhere = elsewhere.into_iter().map(|path| place(APP, path, Some(PAGE), GOOD));
    pages.chain(assets).chain(sources).chain(elsewhere).collect()
}

fn place(project: &str, path: &str, page: Option<&str>, source: &str) -> Value {
    let digests = json!({ "sha256": "00".repeat(32) });
    let file = json!({ "file_name": "a", "size": null, "source": source, "digests": digests });
    let index = json!({
        "version": 1, "project_id": project, "release_url": page, "mirrored_on": "2026-02-01T12:00:00Z",
        "published_on": null, "published_files": [file],
    });
    let parsed = ReleaseIndex::parse(index.to_string().as_bytes()).expect("an index");
    let fault = match check_place(&parsed, &RepoPath::parse(path).expect("a path")) {
        Ok(()) => None,
        Err(PlaceError::NotAnIndex(_)) => Some("not an index"),
        Err(PlaceError::OtherProject(_)) => Some("other project"),
        Err(PlaceError::OtherRelease(_)) => Some("other release"),
        Err(PlaceError::OtherSource { .. }) => Some("other source"),
    };
    json!({ "path": path, "index": index, "fault": fault })
}
