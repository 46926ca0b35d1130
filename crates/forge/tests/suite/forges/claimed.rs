//! Signers files by what their metadata claims.

use countersign_core::documents::{layout, signers::SourceKind};
use countersign_core::rules::place::path_of_url;
use countersign_forge::download_url::locate_release_page;
use countersign_forge::pages::{ProjectPages, ReleaseAddress};
use countersign_forge::{forges::SignersSource, forges::locate_claimed, url::UrlProblem};
use countersign_testing::path;

use super::requests;
use crate::support::problem_of;

fn claimed(kind: SourceKind, url: &str) -> Result<SignersSource, UrlProblem> {
    locate_claimed(url, kind).map_err(problem_of)
}

#[test]
fn a_claim_is_read_under_the_rules_of_its_kind() {
    let table = [
        (
            SourceKind::Github,
            "https://raw.githubusercontent.com/acme/app/main/svc.signers.json",
            "https/github.com/443/acme/app",
            "https://raw.githubusercontent.com/acme/app/refs/heads/main/svc.signers.json",
        ),
        (
            SourceKind::Gitlab,
            "https://gitlab.com/g/s/p/-/blob/main/svc.signers.json?ref_type=heads",
            "https/gitlab.com/443/g/s/p",
            "https://gitlab.com/g/s/p/-/raw/main/svc.signers.json?ref_type=heads",
        ),
        (
            SourceKind::Github,
            "https://ghe.example/acme/app/blob/main/svc.signers.json",
            "https/ghe.example/443/acme/app",
            "https://ghe.example/acme/app/raw/refs/heads/main/svc.signers.json",
        ),
        (
            SourceKind::Gitlab,
            "https://lab.example:8443/g/p/-/raw/main/.svc_signers/x.json",
            "https/lab.example/8443/g/p",
            "https://lab.example:8443/g/p/-/raw/main/.svc_signers/x.json?ref_type=heads",
        ),
        (
            SourceKind::Forgejo,
            "http://127.0.0.1:3000/acme/app/src/branch/main/svc.signers.json",
            "http/127.0.0.1/3000/acme/app",
            "http://127.0.0.1:3000/acme/app/raw/branch/main/svc.signers.json",
        ),
        (
            SourceKind::FileServer,
            "http://127.0.0.1:8080/acme/svc.signers/x.json",
            "http/127.0.0.1/8080/acme",
            "http://127.0.0.1:8080/acme/svc.signers/x.json",
        ),
        (
            SourceKind::FileServer,
            "https://files.example/acme/app/svc.signers.json",
            "https/files.example/443/acme/app",
            "https://files.example/acme/app/svc.signers.json",
        ),
    ];
    for (kind, url, project, request) in table {
        let source = claimed(kind, url).unwrap_or_else(|problem| panic!("{url}: {problem}"));
        assert_eq!((source.kind, source.project.as_str()), (kind, project), "{url}");
        assert_eq!(requests(&source), [request], "{url}");
        assert!(source.retrievals.iter().flatten().all(|way| way.request.credential.is_none()));
    }
}

#[test]
fn a_known_host_keeps_its_kind_whatever_is_claimed() {
    let github = "https://github.com/acme/app/blob/main/svc.signers.json";
    let raw = "https://raw.githubusercontent.com/acme/app/main/svc.signers.json";
    for url in [github, raw] {
        for kind in [SourceKind::Gitlab, SourceKind::Forgejo, SourceKind::FileServer] {
            let problem = claimed(kind, url).unwrap_err();
            assert!(matches!(problem, UrlProblem::OtherKind { known: "github", .. }), "{url}: {problem}");
        }
    }
    for kind in [SourceKind::Github, SourceKind::FileServer] {
        for url in [
            "http://github.com/acme/app/blob/main/svc.signers.json",
            "https://github.com:8443/a/svc.signers.json",
        ] {
            let problem = claimed(kind, url).unwrap_err();
            assert!(matches!(problem, UrlProblem::ForgeHttpsOnly { .. }), "{url}: {problem}");
        }
    }
}

#[test]
fn what_a_forge_serves_for_strangers_is_refused_under_every_claim() {
    let hash = "0123456789abcdef0123456789abcdef01234567";
    let commit = format!("https://git.example/acme/app/raw/commit/{hash}/svc.signers.json");
    let blob = format!("https://git.example/acme/app/blob/{hash}/svc.signers.json");
    let dash = format!("https://git.example/acme/app/-/raw/{hash}/svc.signers.json");
    for kind in [SourceKind::Github, SourceKind::Gitlab, SourceKind::Forgejo, SourceKind::FileServer] {
        for url in [&commit, &blob, &dash] {
            // What could be a branch `commit/…` of GitHub is fetched only after the forge has named that branch.
            let asks_first =
                |source: SignersSource| source.retrievals.iter().all(|ways| ways[0].branch.is_some());
            let is_github_form = kind == SourceKind::Github && url == &commit;
            assert!(claimed(kind, url).map_or(!is_github_form, asks_first), "{kind:?} {url}");
        }
    }
    let problem = claimed(SourceKind::FileServer, &dash).unwrap_err();
    assert!(matches!(problem, UrlProblem::ClaimedFileServer { .. }), "{problem}");
    let elsewhere = "https://git.example/acme/app/src/branch/main/docs/other.json";
    assert_eq!(claimed(SourceKind::Forgejo, elsewhere), Err(UrlProblem::SignersPath));
}

#[test]
fn a_claimed_url_is_read_as_strictly_as_a_given_one() {
    for url in
        ["", "https://u:p@files.example/a/svc.signers.json", "https://files.example/a/../svc.signers.json"]
    {
        assert!(claimed(SourceKind::FileServer, url).is_err(), "{url}");
    }
    let table = [
        ("https://files.example/a/svc.signers.json?x", UrlProblem::Query),
        ("https://files.example/a/", UrlProblem::NoFileName),
        ("https://files.example/other.json", UrlProblem::RootFileName),
    ];
    for (url, expected) in table {
        assert_eq!(claimed(SourceKind::FileServer, url), Err(expected), "{url}");
    }
}

/// What `ProjectPages` gives out, the readers of URLs take for the same project and release.
#[test]
fn the_addresses_of_a_project_lead_back_to_it() {
    let table = [
        ("https/github.com/443/acme/app", SourceKind::Github, "https://github.com/acme/app/blob/main/"),
        (
            "https/gitlab.com/443/acme/sub/app",
            SourceKind::Gitlab,
            "https://gitlab.com/acme/sub/app/-/blob/main/",
        ),
        (
            "https/codeberg.org/443/acme/app",
            SourceKind::Forgejo,
            "https://codeberg.org/acme/app/src/branch/main/",
        ),
        ("http/127.0.0.1/8000/acme/my app", SourceKind::FileServer, "http://127.0.0.1:8000/acme/my%20app/"),
    ];
    for (id, kind, dir) in table {
        let project = path(id);
        let pages = ProjectPages::of_host(&project).unwrap();
        assert_eq!(pages.kind, kind);
        let signers = pages.signers_file("main");
        assert_eq!(signers, format!("{dir}svc.signers.json"));
        assert_eq!(locate_claimed(&signers, kind).unwrap().project, project);
        for tag in ["v1.0", "release/1.0", "@acme/cli@1.0+linux"] {
            match pages.release(tag) {
                ReleaseAddress::Page(url) => {
                    assert_eq!(locate_release_page(&url), layout::release_dir(&project, tag).ok(), "{url}");
                }
                ReleaseAddress::Checksums(url) => {
                    let file = path_of_url(&url).unwrap();
                    assert_eq!(file.as_str(), format!("{id}/{tag}/SHA256SUMS"));
                }
            }
        }
    }
    // A forge of one's own, as the project's metadata say.
    let own = ProjectPages::new(&path("https/git.example.org/8443/acme/app"), SourceKind::Gitlab).unwrap();
    let page = "https://git.example.org:8443/acme/app/-/releases/v1".to_owned();
    assert_eq!(own.release("v1"), ReleaseAddress::Page(page));
    assert_eq!(ProjectPages::of_host(&path("acme/app")), None);
}
