//! URLs from people (D6, D26, D27), one on each line.

use countersign_core::documents::{layout, signers::SourceKind};
use countersign_core::rules::place::{path_of_url, release_tag};
use countersign_core::values::path::{RepoPath, Scheme};
use countersign_forge::download_url::{CandidateKind, locate_download};
use countersign_forge::file_server::{FileServerRule, FileServers};
use countersign_forge::forges::{ForgeConfig, ForgeKind, Forges, SignersSource, locate_claimed};
use countersign_forge::{checksums::locate_checksums, url::SourceUrl};

use crate::checks::{documents::assert_asset_name, promises::assert_path, promises::assert_shown};

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let urls: Vec<String> = text.split('\n').take(4).map(str::to_owned).collect();
    let forges = forges();
    for url in &urls {
        check_source(url);
        check_signers(&forges, url);
        check_release(&forges, url);
        check_download(url);
        check_path(url);
    }
    check_checksums(&urls);
}

/// The known forges, and a self-hosted one of each kind.
fn forges() -> Forges {
    let config = |host: &str, kind, raw: Option<&str>| ForgeConfig {
        host: host.to_owned(),
        kind,
        api: None,
        raw: raw.map(str::to_owned),
        token: None,
    };
    let configured = vec![
        config("hub.example", ForgeKind::Github, Some("https://hub.example/raw")),
        config("lab.example:8443", ForgeKind::Gitlab, None),
        config("git.example", ForgeKind::Forgejo, None),
    ];
    Forges::new(configured).expect("the forges of the check are configured rightly")
}

fn any_server() -> FileServers {
    FileServers { rules: vec![FileServerRule::Any], loopback: true }
}

fn check_source(text: &str) {
    let url = match SourceUrl::parse(text) {
        Ok(url) => url,
        Err(refusal) => return assert_shown(&refusal),
    };
    assert_eq!(url.as_str(), text);
    let host = url.host().as_str();
    assert!(host.is_ascii() && host == host.to_ascii_lowercase(), "{host}");
    for segment in url.segments() {
        assert!(!matches!(segment, "" | "." | ".."), "{text:?}");
        assert!(!segment.chars().any(|c| c.is_control() || matches!(c, '/' | '\\')), "{text:?}");
    }
    let request = url.request_url();
    assert_eq!((request.scheme(), request.host_str()), (url.scheme().as_str(), Some(host)));
    assert!(request.username().is_empty() && request.password().is_none());
    assert_eq!(request.port_or_known_default(), Some(url.port()));
    // Percent-encoding can make it too long to be accepted.
    if request.as_str().len() <= 2_048 {
        let again = SourceUrl::parse(request.as_str()).expect("what is requested can be given");
        assert_eq!(again.segments(), url.segments(), "{text:?} {request}");
    }
    if let Ok(path) = url.path_on_server(url.dir_segments()) {
        assert_path(&path);
        let server = format!("{}/{host}/{}", url.scheme().as_str(), url.port());
        assert!(path.as_str() == server || path.as_str().starts_with(&format!("{server}/")), "{path}");
    }
}

fn check_signers(forges: &Forges, text: &str) {
    let Ok(url) = SourceUrl::parse(text) else { return };
    match forges.locate_signers(&url, &any_server()) {
        Ok(source) => check_signers_source(&url, &source),
        Err(refusal) => assert_shown(&refusal),
    }
    if let Err(refusal) = forges.locate_signers(&url, &FileServers::default()) {
        assert_shown(&refusal);
    }
    for claimed in [SourceKind::Github, SourceKind::Gitlab, SourceKind::Forgejo, SourceKind::FileServer] {
        match locate_claimed(text, claimed) {
            Ok(source) => {
                assert_eq!(source.kind, claimed);
                check_signers_source(&url, &source);
            }
            Err(refusal) => assert_shown(&refusal),
        }
    }
}

fn check_signers_source(url: &SourceUrl, source: &SignersSource) {
    assert_eq!(source.url, url.as_str());
    let project = &source.project;
    assert_path(project);
    assert_eq!(project.check_storable_dir(), Ok(()));
    let host = project.segments().nth(1).expect("a project has a host");
    let is_own_host = host == url.host().as_str() || host == "github.com";
    assert!(is_own_host, "{project} is not on {}", url.host());
    match source.kind {
        SourceKind::FileServer => {
            assert!(!url.has_query() && !url.has_fragment() && url.file_name().is_some());
            assert!(!url.dir_segments().iter().any(|segment| segment == "-"));
        }
        SourceKind::Github | SourceKind::Forgejo => assert_eq!(project.segments().count(), 5, "{project}"),
        SourceKind::Gitlab => assert!(project.segments().count() >= 5, "{project}"),
    }
    if host == "github.com" {
        assert_eq!((url.scheme(), url.port()), (Scheme::Https, 443));
    }
}

/// Checks that server and client agree on the release of a page.
fn check_release(forges: &Forges, text: &str) {
    let release = match forges.locate_release(text) {
        Ok(release) => release,
        Err(refusal) => return assert_shown(&refusal),
    };
    assert_path(&release.dir);
    assert_eq!(release.dir.check_storable_dir(), Ok(()));
    assert!(release.dir.is_inside(&release.project), "{}", release.dir);
    assert_eq!(release.dir.as_str(), format!("{}/releases/tag/{}", release.project, release.tag));
    assert!(text.starts_with(&release.url) && !release.url.contains('?'));
    assert_eq!(release_tag(&release.url, &release.project), Some(release.tag), "{text:?}");
}

fn check_download(text: &str) {
    let place = match locate_download(text) {
        Ok(place) => place,
        Err(refusal) => return assert_shown(&refusal),
    };
    assert!(!place.candidates.is_empty());
    let path = path_of_url(place.url.request_url().as_str());
    for candidate in &place.candidates {
        assert_path(&candidate.index);
        assert_asset_name(candidate.file_name.as_str());
        let dir = candidate.index.parent().expect("an index lies in a directory");
        assert_eq!(layout::index_in(&dir), candidate.index);
        assert_eq!(dir.check_storable_dir(), Ok(()));
        if candidate.kind == CandidateKind::Directory
            && let Some(path) = &path
        {
            assert_eq!(path.as_str(), format!("{dir}/{}", candidate.file_name), "{text:?}");
        }
    }
}

/// The client and the server map a URL to the same path.
fn check_path(text: &str) {
    let Some(path) = path_of_url(text) else { return };
    assert_path(&path);
    if let Ok(url) = SourceUrl::parse(text) {
        let names: Vec<String> = url.segments().into_iter().map(str::to_owned).collect();
        assert_eq!(url.path_on_server(&names).as_ref(), Ok(&path), "{text:?}");
    }
}

fn check_checksums(urls: &[String]) {
    let source = match locate_checksums(urls) {
        Ok(source) => source,
        Err(refusal) => return assert_shown(&refusal),
    };
    assert_path(&source.dir);
    assert_eq!(source.files.len(), urls.len());
    for name in ["app.tar.gz", "sub/a b+c.txt", "é%2F#?.zip"] {
        let path = path_of_url(&source.url_of(name));
        let expected = RepoPath::parse(&format!("{}/{name}", source.dir)).ok();
        assert_eq!(path, expected, "{urls:?}");
    }
}
