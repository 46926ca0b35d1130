//! URLs of signers files on forges.

use countersign_forge::url::UrlProblem;

use super::{release, requests, signers, signers_of, with_tokens};

#[test]
fn every_form_of_a_signers_url_is_read_from_a_branch() {
    const RAW: &str = "raw.githubusercontent.com/acme/app/refs/heads";
    const API: &str = "api.github.com/repos/acme/app/contents/FILE?ref=refs%2Fheads%2Fa%2Fb";
    // FILE stands for svc.signers.json.
    let table = [
        ("github.com/acme/app/blob/main/FILE", "github.com", "RAW/main/FILE"),
        ("GitHub.com/acme/app/raw/main/FILE?raw=1", "github.com", "RAW/main/FILE"),
        ("github.com/acme/app/blob/refs/heads/a/b/FILE", "github.com", "API"),
        ("github.com/acme/app/blob/a%23b/.svc_signers/x.json", "github.com", "RAW/a%23b/.svc_signers/x.json"),
        ("raw.githubusercontent.com/acme/app/main/svc.signers/x", "github.com", "RAW/main/svc.signers/x"),
        ("raw.githubusercontent.com/acme/app/refs/heads/a/b/FILE", "github.com", "API"),
        (
            "hub.example/acme/app/blob/main/FILE", "hub.example",
            "hub.example/acme/app/raw/refs/heads/main/FILE",
        ),
        (
            "ghe.example/acme/app/blob/main/FILE", "ghe.example",
            "raw.ghe.example/acme/app/refs/heads/main/FILE",
        ),
        (
            "raw.ghe.example/acme/app/main/FILE", "ghe.example",
            "raw.ghe.example/acme/app/refs/heads/main/FILE",
        ),
        (
            "gitlab.com/acme/app/-/blob/main/FILE?ref_type=heads", "gitlab.com",
            "gitlab.com/acme/app/-/raw/main/FILE?ref_type=heads",
        ),
        (
            "lab.example/acme/app/-/raw/a/b/svc.signers/x.json?ref_type=tags",
            "lab.example",
            "lab.example/api/v4/projects/acme%2Fapp/repository/files/svc.signers%2Fx.json/raw?ref=refs%2Fheads%2Fa%2Fb",
        ),
        (
            "codeberg.org/acme/app/src/branch/main/FILE", "codeberg.org",
            "codeberg.org/acme/app/raw/branch/main/FILE",
        ),
        ("gitea.com/acme/app/raw/branch/main/FILE", "gitea.com", "gitea.com/acme/app/raw/branch/main/FILE"),
    ];
    for (url, server, request) in table {
        let url = format!("https://{}", url.replace("FILE", "svc.signers.json"));
        let request = request.replace("RAW", RAW).replace("API", API).replace("FILE", "svc.signers.json");
        let source = signers(&url).unwrap_or_else(|problem| panic!("{url}: {problem}"));
        assert_eq!(source.project.as_str(), format!("https/{server}/443/acme/app"), "{url}");
        assert_eq!(requests(&source), [format!("https://{request}")], "{url}");
        assert_eq!(source.url, url);
    }
}

#[test]
fn the_project_is_the_repository_on_its_own_host_and_port() {
    let table = [
        ("http://127.0.0.1:3000/acme/app/src/branch/a/b/svc.signers.json", "http/127.0.0.1/3000/acme/app"),
        ("https://127.0.0.1:3000/acme/app/src/branch/main/svc.signers.json", "https/127.0.0.1/3000/acme/app"),
        ("http://127.0.0.1:3001/acme/app/blob/main/svc.signers.json", "http/127.0.0.1/3001/acme/app"),
        ("http://127.0.0.1:3001/raw/acme/raw/main/svc.signers.json", "http/127.0.0.1/3001/acme/raw"),
        ("http://10.0.0.7/raw/acme/app/main/svc.signers.json", "https/inner.example/443/acme/app"),
        ("http://lab.example/a/b/c/app/-/blob/main/svc.signers.json", "http/lab.example/80/a/b/c/app"),
        ("https://gitlab.com/a/blob/-/raw/main/svc.signers.json", "https/gitlab.com/443/a/blob"),
        ("https://github.com/acme/a%20b/blob/main/svc.signers.json", "https/github.com/443/acme/a b"),
    ];
    for (url, project) in table {
        assert_eq!(signers(url).map(|source| source.project.to_string()), Ok(project.to_owned()), "{url}");
    }
}

#[test]
fn with_a_token_files_are_read_through_the_api() {
    let table = [
        (
            "https://github.com/acme/app/blob/a/b/svc.signers.json",
            "https://api.github.com/repos/acme/app/contents/svc.signers.json?ref=refs%2Fheads%2Fa%2Fb",
        ),
        (
            "https://lab.example/g/s/app/-/blob/main/.svc.signers/x.json",
            "https://api.lab.example/v4/projects/g%2Fs%2Fapp/repository/files/.svc.signers%2Fx.json/raw?ref=refs%2Fheads%2Fmain",
        ),
        (
            "http://127.0.0.1:3000/acme/app/src/branch/main/svc.signers.json",
            "http://127.0.0.1:3000/api/v1/repos/acme/app/raw/svc.signers.json?ref=refs%2Fheads%2Fmain",
        ),
    ];
    for (url, request) in table {
        let source = signers_of(&with_tokens(), url).unwrap();
        assert_eq!(requests(&source), [request], "{url}");
        assert!(source.retrievals[0][0].request.credential.is_some(), "{url}");
    }
}

#[test]
fn a_directory_that_may_belong_to_the_branch_gives_two_ways_to_read_a_url() {
    let url = "https://github.com/acme/app/blob/main/svc.signers/svc.signers.json";
    let source = signers_of(&with_tokens(), url).unwrap();
    let api = "https://api.github.com/repos/acme/app/contents";
    assert_eq!(
        requests(&source),
        [
            format!("{api}/svc.signers/svc.signers.json?ref=refs%2Fheads%2Fmain"),
            format!("{api}/svc.signers.json?ref=refs%2Fheads%2Fmain%2Fsvc.signers"),
        ]
    );
    // Without a token both are one request, and the forge finds the branch.
    assert_eq!(signers(url).unwrap().retrievals.len(), 1);
}

#[test]
fn what_is_not_a_branch_is_refused() {
    let hash = "0123456789abcdef0123456789ABCDEF01234567";
    let long = "0".repeat(64);
    for url in [
        format!("https://github.com/acme/app/blob/{hash}/svc.signers.json"),
        format!("https://github.com/acme/app/blob/{long}/svc.signers/svc.signers.json"),
        format!("https://raw.githubusercontent.com/acme/app/{hash}/svc.signers.json"),
        format!("https://github.com/acme/app/blob/refs/heads/{hash}/svc.signers.json"),
        "https://github.com/acme/app/blob/refs/tags/v1/svc.signers.json".into(),
        "https://raw.githubusercontent.com/acme/app/refs/pull/7/head/svc.signers.json".into(),
        "https://github.com/acme/app/blob/HEAD/svc.signers.json".into(),
        "https://gitlab.com/acme/app/-/blob/refs/merge-requests/1/head/svc.signers.json".into(),
        format!("https://gitlab.com/acme/app/-/raw/{hash}/svc.signers.json?ref_type=heads"),
        "https://codeberg.org/acme/app/src/tag/v1/svc.signers.json".into(),
        "https://codeberg.org/acme/app/raw/commit/0123/svc.signers.json".into(),
        format!("https://codeberg.org/acme/app/src/branch/{hash}/svc.signers.json"),
    ] {
        let problem = signers(&url).unwrap_err();
        assert!(matches!(problem, UrlProblem::NotABranch { .. }), "{url}: {problem}");
    }
}

#[test]
fn a_directory_is_never_taken_for_a_part_of_the_branch_by_the_forge() {
    // On `main` this would be a file in `docs`, where a signers file goes unnoticed.
    for url in [
        "https://github.com/acme/app/blob/main/docs/svc.signers.json",
        "https://raw.githubusercontent.com/acme/app/refs/heads/main/docs/svc.signers.json",
        "https://gitlab.com/acme/app/-/raw/main/docs/svc.signers.json",
        "https://codeberg.org/acme/app/raw/branch/main/docs/svc.signers.json",
    ] {
        let source = signers(url).unwrap();
        let [request] = requests(&source).try_into().unwrap();
        assert!(
            request.ends_with("?ref=refs%2Fheads%2Fmain%2Fdocs") && !request.contains("docs/"),
            "{request}"
        );
        let branch = source.retrievals[0][0].branch.as_ref().expect("the raw file waits for the branch");
        assert!(branch.as_str().ends_with("/branches/main%2Fdocs"), "{branch}");
    }
}

#[test]
fn a_branch_has_a_name_that_git_allows() {
    for name in [
        "main~2", "main%5E2", "main%5E%7B%2Ftext%7D", "main@%7B1%7D", "@", "-x", "a..b", "x.lock", "a%20b",
        "a:b",
    ] {
        for url in [
            format!("https://gitlab.com/acme/app/-/raw/{name}/svc.signers.json"),
            format!("https://codeberg.org/acme/app/src/branch/{name}/svc.signers/svc.signers.json"),
            format!("https://github.com/acme/app/blob/{name}/svc.signers.json"),
        ] {
            let problem = signers(&url).unwrap_err();
            let is_refused =
                matches!(problem, UrlProblem::NotABranch { .. } | UrlProblem::ForbiddenInSegment);
            assert!(is_refused, "{url}: {problem}");
        }
    }
    // `main/.svc.signers` cannot be a branch, so this has one meaning.
    let url = "https://github.com/acme/app/blob/main/.svc.signers/svc.signers.json";
    assert_eq!(signers_of(&with_tokens(), url).unwrap().retrievals.len(), 1);
}

#[test]
fn only_places_that_no_one_merges_unawares_hold_signers_files() {
    for url in [
        "https://github.com/acme/app/blob/main/signers.json",
        "https://github.com/acme/app/blob/main/SVC.signers.json",
        "https://github.com/acme/app/blob/main/svc.signers/deep/x.json",
        "https://gitlab.com/acme/app/-/blob/main/svc.signers/deep/x.json",
        "https://codeberg.org/acme/app/src/branch/main/docs/x.json",
        "https://github.com/acme/app/blob/svc.signers/x.json",
    ] {
        assert_eq!(signers(url).unwrap_err(), UrlProblem::SignersPath, "{url}");
    }
}

#[test]
fn other_pages_of_a_forge_are_not_signers_files() {
    for url in [
        "https://github.com/acme/app",
        "https://github.com/acme/app/tree/main/svc.signers.json",
        "https://github.com/acme/app/blob/svc.signers.json",
        "https://github.com/acme/app/-/blob/main/svc.signers.json",
        "https://gitlab.com/app/-/blob/main/svc.signers.json",
        "https://gitlab.com/acme/app/blob/main/svc.signers.json",
        "https://codeberg.org/acme/app/src/main/svc.signers.json",
        "https://codeberg.org/acme/app/media/branch/main/svc.signers.json",
        "https://raw.githubusercontent.com/acme/app/svc.signers.json",
    ] {
        let problem = signers(url).unwrap_err();
        assert!(matches!(problem, UrlProblem::SignersForm { .. }), "{url}: {problem}");
    }
    let refused = |url| signers(url).unwrap_err();
    assert_eq!(refused("https://github.com/acme/app/blob/main/svc.signers.json#L1"), UrlProblem::Fragment);
    assert_eq!(refused("https://github.com/acme/app/blob/main/svc.signers.json/"), UrlProblem::NoFileName);
    assert_eq!(
        refused("https://github.com/a%2Fb/app/blob/main/svc.signers.json"),
        UrlProblem::ForbiddenInSegment
    );
    let unstorable = refused("https://github.com/acme/svc.app/blob/main/svc.signers.json");
    assert!(matches!(unstorable, UrlProblem::Path { .. }), "{unstorable}");
}

#[test]
fn known_forges_are_https_only_and_others_need_configuration() {
    for url in [
        "http://github.com/acme/app/blob/main/svc.signers.json",
        "https://github.com:8443/acme/app/blob/main/svc.signers.json",
        "http://raw.githubusercontent.com/acme/app/main/svc.signers.json",
    ] {
        let problem = signers(url).unwrap_err();
        assert!(matches!(problem, UrlProblem::ForgeHttpsOnly { .. }), "{url}: {problem}");
    }
    let problem = signers("https://127.0.0.1:3002/acme/app/src/branch/main/svc.signers.json").unwrap_err();
    assert!(matches!(problem, UrlProblem::ForgeForm { .. }), "{problem}");
    let problem = release("http://codeberg.org/acme/app/releases/tag/v1").unwrap_err();
    assert!(matches!(problem, UrlProblem::ForgeHttpsOnly { .. }), "{problem}");
    let problem = release("https://raw.githubusercontent.com/acme/app/releases/tag/v1").unwrap_err();
    assert!(matches!(problem, UrlProblem::NotAForge { .. }), "{problem}");
    let problem = release("https://files.example:8443/acme/app/releases/tag/v1").unwrap_err();
    assert!(problem.to_string().contains("files.example:8443 is not a known code-forge host"), "{problem}");
}
