//! Which indexes could list the file at a download URL.

use countersign_forge::download_url::{Candidate, CandidateKind, locate_download};
use countersign_forge::url::UrlProblem;
use proptest::prelude::*;

use crate::support::problem_of;

fn locate(url: &str) -> Vec<Candidate> {
    locate_download(url).unwrap_or_else(|refusal| panic!("{refusal}")).candidates
}

/// The directory of an index, and the file's name in it.
fn shown(candidate: &Candidate) -> (String, String) {
    let dir = candidate.index.as_str().strip_suffix("/svc.index.json").unwrap();
    (dir.to_owned(), candidate.file_name.to_string())
}

fn problem(url: &str) -> UrlProblem {
    problem_of(locate_download(url).expect_err(url))
}

#[test]
fn the_form_of_a_forges_download_leads_to_the_release_first() {
    let table = [
        ("github.com/acme/app/releases/download/v1/app.tgz", "github.com/443/acme/app", "v1", "app.tgz"),
        ("codeberg.org/acme/app/releases/download/v1/app.tgz", "codeberg.org/443/acme/app", "v1", "app.tgz"),
        ("git.example:8443/a/b/releases/download/v1/x", "git.example/8443/a/b", "v1", "x"),
        ("github.com/acme/app/releases/download/a/b/x", "github.com/443/acme/app", "a/b", "x"),
        ("github.com/acme/app/releases/download/a%2Fb/x", "github.com/443/acme/app", "a/b", "x"),
        ("github.com/acme/app/releases/download/a%2fb/c/x", "github.com/443/acme/app", "a/b/c", "x"),
        (
            "github.com/acme/app/releases/download/v1%2B2/x%2By%20z", "github.com/443/acme/app", "v1+2",
            "x+y z",
        ),
        ("github.com/acme/app/releases/%64ownload/v1/x", "github.com/443/acme/app", "v1", "x"),
        ("github.com/acme/app/releases/download/latest/x", "github.com/443/acme/app", "latest", "x"),
        ("gitlab.com/g/p/-/releases/v1/downloads/x", "gitlab.com/443/g/p", "v1", "x"),
        ("gitlab.com/g/s/t/p/-/releases/v1/downloads/bin/linux/x", "gitlab.com/443/g/s/t/p", "v1", "x"),
        ("lab.example/g/p/-/releases/a%2Fb/downloads/x", "lab.example/443/g/p", "a/b", "x"),
        ("lab.example/g/p/-/releases/a/b/downloads/x", "lab.example/443/g/p", "a/b", "x"),
        ("lab.example/g/p/-/releases/v1/downloads/a/downloads/x", "lab.example/443/g/p", "v1", "x"),
        ("lab.example/g/p/-/releases/downloads/downloads/x", "lab.example/443/g/p", "downloads", "x"),
        ("lab.example/g/p/-/releases/latest/downloads/x", "lab.example/443/g/p", "latest", "x"),
        (
            "lab.example/g/p/-/releases/permalink%2Flatest/downloads/x", "lab.example/443/g/p",
            "permalink/latest", "x",
        ),
    ];
    for (url, project, tag, name) in table {
        let candidates = locate(&format!("https://{url}"));
        assert_eq!(candidates[0].kind, CandidateKind::Release, "{url}");
        let dir = format!("https/{project}/releases/tag/{tag}");
        assert_eq!(shown(&candidates[0]), (dir, name.to_owned()), "{url}");
        assert!(candidates[1..].iter().all(|other| other.kind == CandidateKind::Directory), "{url}");
    }
}

#[test]
fn after_the_release_come_the_files_own_directory_and_those_above() {
    let found: Vec<_> =
        locate("https://git.example/o/r/releases/download/a%2Fb/x").iter().skip(1).map(shown).collect();
    let server = "https/git.example/443";
    let expected = [
        (format!("{server}/o/r/releases/download/a/b"), "x"),
        (format!("{server}/o/r/releases/download/a"), "b/x"),
        (format!("{server}/o/r/releases/download"), "a/b/x"),
        (format!("{server}/o/r/releases"), "download/a/b/x"),
        (format!("{server}/o/r"), "releases/download/a/b/x"),
        (format!("{server}/o"), "r/releases/download/a/b/x"),
        (server.to_owned(), "o/r/releases/download/a/b/x"),
    ];
    assert_eq!(found, expected.map(|(dir, name)| (dir, name.to_owned())));
}

#[test]
fn the_page_of_a_release_on_a_known_forge_is_no_file() {
    for url in [
        "https://github.com/acme/app/releases/tag/v1", "https://codeberg.org/acme/app/releases/tag/v1",
        "https://gitlab.com/g/p/-/releases/v1",
    ] {
        let refused = locate_download(url).unwrap_err().to_string();
        assert!(refused.contains("the page of a release") && refused.contains("TAG"), "{refused}");
    }
}

#[test]
fn any_other_form_leads_to_directories_alone() {
    for url in [
        "http://127.0.0.1:8080/x", "https://files.example/app/v1/x",
        // Without a tag, without a project, or deeper than a project is.
        "https://files.example/o/r/releases/download/x", "https://files.example/releases/download/v1/x",
        "https://files.example/r/releases/download/v1/x",
        "https://files.example/git/o/r/releases/download/v1/x",
        "https://files.example/o/r/releases/tag/v1/x", "https://files.example/o/r/downloads/v1/x",
        "https://files.example/p/-/releases/v1/downloads/x", "https://files.example/g/p/-/releases/v1/x",
        "https://files.example/g/p/-/releases/downloads/x",
        "https://files.example/g/p/-/releases/v1/downloads",
        "https://files.example/o/r/Releases/Download/v1/x",
    ] {
        let place = locate_download(url).unwrap();
        assert!(place.candidates.iter().all(|found| found.kind == CandidateKind::Directory), "{url}");
        let (dir, name) = shown(&place.candidates[0]);
        assert_eq!(dir, place.url.path_on_server(place.url.dir_segments()).unwrap().as_str(), "{url}");
        assert_eq!(Some(name.as_str()), place.url.file_name(), "{url}");
        let (dir, name) = shown(place.candidates.last().unwrap());
        assert_eq!(dir.split('/').count(), 3, "{url}");
        assert_eq!(name, place.url.segments().join("/"), "{url}");
    }
}

#[test]
fn no_more_than_eight_levels_above_are_asked() {
    let candidates = locate("https://files.example/1/2/3/4/5/6/7/8/9/10/x");
    assert_eq!(candidates.len(), 9);
    assert_eq!(
        shown(&candidates[8]),
        ("https/files.example/443/1/2".to_owned(), "3/4/5/6/7/8/9/10/x".to_owned())
    );
}

#[test]
fn directories_that_can_hold_no_index_are_not_asked() {
    let found: Vec<_> = locate("https://files.example/a/svc.x/b/f").iter().map(shown).collect();
    let expected = [("https/files.example/443/a", "svc.x/b/f"), ("https/files.example/443", "a/svc.x/b/f")];
    assert_eq!(found, expected.map(|(dir, name)| (dir.to_owned(), name.to_owned())));

    let tag = "https://github.com/acme/app/releases/download/v1./x";
    assert!(locate(tag).iter().all(|found| found.kind == CandidateKind::Directory));

    let deep = format!("https://files.example/svc.x/{}f", "d/".repeat(20));
    assert!(matches!(problem(&deep), UrlProblem::Path { .. }));
}

#[test]
fn the_latest_release_is_refused_with_the_way_out() {
    for url in [
        "https://github.com/acme/app/releases/latest/download/x",
        "https://github.com/acme/app/releases/latest",
        "https://github.com/acme/app/releases/latest/",
        "https://github.com/acme/app/releases/l%61test/download/x",
        "https://git.example/acme/app/releases/latest/download/x",
        "https://git.example/sub/acme/app/releases/latest/download/x",
        "https://files.example/releases/latest/x",
    ] {
        assert_eq!(
            problem(url),
            UrlProblem::LatestRelease { form: "…/OWNER/REPOSITORY/releases/download/TAG/NAME" },
            "{url}"
        );
    }
    for url in [
        "https://gitlab.com/g/p/-/releases/permalink/latest/downloads/x",
        "https://lab.example/g/s/p/-/releases/permalink/latest/downloads/bin/x",
        "https://lab.example/g/p/-/releases/permalink/latest",
    ] {
        assert_eq!(
            problem(url),
            UrlProblem::LatestRelease { form: "…/GROUP/PROJECT/-/releases/TAG/downloads/NAME" },
            "{url}"
        );
    }
    let message =
        locate_download("https://github.com/a/b/releases/latest/download/x").unwrap_err().to_string();
    assert!(message.contains("name the tag") && message.contains("releases/download/TAG/NAME"), "{message}");
}

#[test]
fn a_url_that_is_more_or_less_than_the_place_of_a_file_is_refused() {
    let download = "https://github.com/acme/app/releases/download";
    let table = [
        (format!("{download}/v1/x?raw=1"), UrlProblem::Query),
        (format!("{download}/v1/x?"), UrlProblem::Query),
        (format!("{download}/v1/x#top"), UrlProblem::Fragment),
        (format!("{download}/v1/"), UrlProblem::NoFileName),
        ("https://files.example".to_owned(), UrlProblem::NoFileName),
        ("https://bob:pw@files.example/x".to_owned(), UrlProblem::UserInfo),
        ("ftp://files.example/x".to_owned(), UrlProblem::Scheme),
        (format!("{download}//x"), UrlProblem::EmptySegment),
        (format!("{download}/%2F/x"), UrlProblem::EmptySegment),
        (format!("{download}/a%2F/x"), UrlProblem::EmptySegment),
        (format!("{download}/../x"), UrlProblem::DotSegment),
        (format!("{download}/%2e%2E/x"), UrlProblem::DotSegment),
        (format!("{download}/a%2F..%2Fb/x"), UrlProblem::DotSegment),
        (format!("{download}/v1/."), UrlProblem::DotSegment),
        (format!("{download}/v1/a%2Fx"), UrlProblem::ForbiddenInSegment),
        (format!("{download}/a%2Fb/c%2Fx"), UrlProblem::ForbiddenInSegment),
        (format!("{download}/v1/a%5Cx"), UrlProblem::ForbiddenInSegment),
        (format!("{download}/v1/a%00x"), UrlProblem::ForbiddenInSegment),
        ("https://github.com/acme%2Fapp/b/releases/download/v1/x".to_owned(), UrlProblem::ForbiddenInSegment),
        ("https://github.com/a/b/releases%2Flatest/download/x".to_owned(), UrlProblem::ForbiddenInSegment),
        (
            "https://lab.example/g/p/-/releases/v1/downloads/a%2Fb/x".to_owned(),
            UrlProblem::ForbiddenInSegment,
        ),
        ("https://files.example/a%2Fb/x".to_owned(), UrlProblem::ForbiddenInSegment),
        (format!("{download}/v1/%ff"), UrlProblem::NotUtf8),
        (format!("{download}/v1/100%"), UrlProblem::PercentEncoding),
        (format!("https://files.example/{}", "a/".repeat(1_100)), UrlProblem::TooLong),
    ];
    for (url, expected) in table {
        assert_eq!(problem(&url), expected, "{url}");
    }
}

#[test]
fn names_that_no_index_can_hold_are_refused() {
    for url in [
        "https://files.example/a/.git/x".to_owned(),
        "https://files.example/.GIT/a/x".to_owned(),
        "https://github.com/acme/app/releases/download/.git/x".to_owned(),
        "https://github.com/acme/.git/releases/download/v1/x".to_owned(),
        format!("https://files.example/{}x", "d/".repeat(70)),
        format!("https://files.example/{}x", format!("{}/", "d".repeat(200)).repeat(6)),
    ] {
        assert!(matches!(problem(&url), UrlProblem::Path { .. }), "{url}");
    }
    let long = |bytes| format!("https://files.example/a/{}", "n".repeat(bytes));
    assert!(matches!(problem(&long(201)), UrlProblem::FileName(_)));
    assert_eq!(locate(&long(200)).len(), 2);
    for name in ["a%E2%80%8Bb", "%E2%80%AEx", "a%E2%80%A8b"] {
        assert!(
            matches!(problem(&format!("https://files.example/{name}")), UrlProblem::FileName(_)),
            "{name}"
        );
    }
}

#[test]
fn a_known_forge_is_asked_over_https_on_its_usual_port() {
    for server in ["http://github.com", "https://github.com:8443", "http://gitlab.com:443"] {
        let problem = problem(&format!("{server}/acme/app/releases/download/v1/x"));
        assert!(matches!(problem, UrlProblem::ForgeHttpsOnly { .. }), "{server}: {problem}");
    }
    locate("http://git.example/acme/app/releases/download/v1/x");
}

proptest! {
    #[test]
    fn every_candidate_stays_on_the_urls_server_and_names_the_same_file(
        path in "(/(a|b%2Fc|-|releases|download|downloads|tag|latest|svc\\.x|\\.git|%2e|[a-z%./]{1,5})){1,12}"
    ) {
        let url = format!("https://files.example{path}");
        if let Ok(place) = locate_download(&url) {
            prop_assert!(!place.candidates.is_empty() && place.candidates.len() <= 8 + 2);
            for candidate in &place.candidates {
                let (dir, name) = shown(candidate);
                prop_assert!(dir.starts_with("https/files.example/443"), "{url}: {dir}");
                prop_assert_eq!(name.rsplit('/').next(), place.url.file_name(), "{}", url);
                if candidate.kind == CandidateKind::Directory {
                    let whole = place.url.segments().join("/");
                    prop_assert_eq!(format!("{dir}/{name}"), format!("https/files.example/443/{whole}"));
                }
            }
        }
    }
}
