//! URLs of releases, tokens, and what may be configured.

use countersign_forge::forges::{ForgeConfig, ForgeKind, Forges, Token, TokenError};
use countersign_forge::{guard::Guard, guard::Reach, url::Host, url::UrlProblem};
use url::Url;

use super::{configured, release, signers_of, token, with_tokens};
use crate::support::{forge::config, problem_of};

#[test]
fn every_form_of_a_release_url_names_a_tag_and_a_directory() {
    let table = [
        (
            "https://github.com/acme/app/releases/tag/v1.0", "https/github.com/443/acme/app", "v1.0",
            "https://api.github.com/repos/acme/app/releases/tags/v1.0",
        ),
        (
            "https://github.com/acme/app/releases/tag/app%2Fv1%2B2?x=1",
            "https/github.com/443/acme/app",
            "app/v1+2",
            "https://api.github.com/repos/acme/app/releases/tags/app%2Fv1%2B2",
        ),
        (
            "https://hub.example/acme/app/releases/tag/a/b",
            "https/hub.example/443/acme/app",
            "a/b",
            "https://hub.example/api/v3/repos/acme/app/releases/tags/a%2Fb",
        ),
        (
            "https://gitlab.com/g/s/app/-/releases/a%2Fb",
            "https/gitlab.com/443/g/s/app",
            "a/b",
            "https://gitlab.com/api/v4/projects/g%2Fs%2Fapp/releases/a%2Fb",
        ),
        (
            "http://lab.example/g/app/-/releases/v1", "http/lab.example/80/g/app", "v1",
            "http://lab.example/api/v4/projects/g%2Fapp/releases/v1",
        ),
        (
            "http://127.0.0.1:3000/acme/app/releases/tag/v1%20b",
            "http/127.0.0.1/3000/acme/app",
            "v1 b",
            "http://127.0.0.1:3000/api/v1/repos/acme/app/releases/tags/v1%20b",
        ),
    ];
    for (url, project, tag, request) in table {
        let source = release(url).unwrap_or_else(|problem| panic!("{url}: {problem}"));
        assert_eq!((source.project.as_str(), source.tag.as_str()), (project, tag), "{url}");
        assert_eq!(source.dir.as_str(), format!("{project}/releases/tag/{tag}"), "{url}");
        assert_eq!(source.api_urls[0].as_str(), request, "{url}");
        assert!(url.starts_with(&source.url) && !source.url.contains('?'), "{}", source.url);
    }
    let urls = release("https://github.com/acme/app/releases/tag/a%2Fb").unwrap().api_urls;
    assert_eq!(urls[1].as_str(), "https://api.github.com/repos/acme/app/releases/tags/a/b");
}

#[test]
fn other_pages_of_a_forge_are_not_releases() {
    for url in [
        "https://github.com/acme/app/releases/latest", "https://github.com/acme/app/releases/tag/",
        "https://github.com/acme/app/releases/tag/v1/", "https://github.com/acme/app/releases/download/v1/x",
        "https://github.com/acme/app/tree/v1", "https://gitlab.com/app/-/releases/v1",
        "https://gitlab.com/acme/app/-/releases", "https://gitlab.com/acme/app/-/tags/v1",
        "https://codeberg.org/acme/app/-/releases/v1",
    ] {
        let problem = release(url).unwrap_err();
        assert!(matches!(problem, UrlProblem::ReleaseForm { .. }), "{url}: {problem}");
    }
    let table = [
        ("https://github.com/acme/app/releases/tag/v1#notes", UrlProblem::Fragment),
        ("https://github.com/a%2Fb/app/releases/tag/v1", UrlProblem::ForbiddenInSegment),
        ("https://github.com/acme/app/releases/tag/..%2Fv1", UrlProblem::DotSegment),
        ("https://github.com/acme/app/releases/tag/a%2F%2Fb", UrlProblem::EmptySegment),
        ("https://github.com/acme/app/releases/tag/a%5Cb", UrlProblem::ForbiddenInSegment),
    ];
    for (url, expected) in table {
        assert_eq!(release(url).unwrap_err(), expected, "{url}");
    }
    for tag in ["svc.x", "a%2Fsvc.index.json", ".git", "a%2F.GIT", "v1.", "v%E2%80%AE1"] {
        let problem = release(&format!("https://github.com/acme/app/releases/tag/{tag}")).unwrap_err();
        assert!(matches!(problem, UrlProblem::Path { .. }), "{tag}: {problem}");
    }
}

#[test]
fn a_token_goes_to_the_api_alone_and_is_never_shown() {
    let source = with_tokens().locate_release("https://lab.example/g/app/-/releases/v1").unwrap();
    let credential = source.credential.as_ref().unwrap();
    let is_for = |url: &str| credential.is_for(&Url::parse(url).unwrap());
    assert!(is_for("https://api.lab.example/v4/projects/g%2Fapp/x"));
    assert!(is_for("https://api.lab.example:443/v4/projects/G%2fApp"));
    for url in [
        "https://lab.example/", "https://lab.example/g/app/x", "https://lab.example/v4/projects/g%2Fapp/x",
        "http://api.lab.example/v4/projects/g%2Fapp/x", "https://api.lab.example:8443/v4/projects/g%2Fapp/x",
        "https://api.lab.example/v4/projects/g%2Fapp2/x", "https://api.lab.example/v4/projects/24/x",
        "https://api.lab.example/v4/x", "https://api.lab.example/",
    ] {
        assert!(!is_for(url), "{url}");
    }
    let debug = format!("{source:?} {:?} {:?}", with_tokens(), token("s3cret"));
    assert!(!debug.contains("s3cret"), "{debug}");
}

#[test]
fn who_gives_a_url_cannot_have_a_token_sent_in_the_clear() {
    let url = "http://git.example/acme/app/releases/tag/v1";
    let problem = with_tokens().locate_release(url).map_err(problem_of).unwrap_err();
    assert!(matches!(problem, UrlProblem::TokenOverHttp { .. }), "{problem}");
    let problem =
        signers_of(&with_tokens(), "http://git.example/a/b/src/branch/main/svc.signers.json").unwrap_err();
    assert!(matches!(problem, UrlProblem::TokenOverHttp { .. }), "{problem}");
}

#[test]
fn tokens_are_printable() {
    assert_eq!(Token::new(String::new()), Err(TokenError::Empty));
    for text in ["a b", "a\n", "a\u{7f}", "ä"] {
        assert_eq!(Token::new(text.to_owned()), Err(TokenError::Characters), "{text:?}");
    }
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let new = |configs: Vec<ForgeConfig>| Forges::new(configs).unwrap_err().to_string();
    let github = |host| config(host, ForgeKind::Github);
    assert!(new(vec![github("a.example"), github("A.example")]).contains("twice"));
    assert!(new(vec![github("a.example"), github("a.example:443")]).contains("twice"));
    assert!(Forges::new(vec![github("a.example"), github("a.example:8443")]).is_ok());
    assert!(new(vec![github("https://a.example")]).contains("HOST:PORT"));
    assert!(new(vec![github("github.com:8443")]).contains("https"));
    for api in ["a.example", "ftp://a.example", "https://u:pw@a.example", "https://a.example/?k=s3cret"] {
        let message = new(vec![ForgeConfig { api: Some(api.into()), ..github("a.example") }]);
        assert!(message.contains("`api` of the forge a.example"), "{message}");
        assert!(!message.contains("pw") && !message.contains("s3cret"), "{message}");
    }
    let plain = ForgeConfig { api: Some("http://api.github.com".into()), ..github("github.com") };
    assert!(new(vec![plain]).contains("https"));
    assert!("svn".parse::<ForgeKind>().unwrap_err().to_string().contains("`svn`"));
    assert_eq!("forgejo".parse(), Ok(ForgeKind::Forgejo));
}

#[test]
fn hosts_of_configured_forges_are_exceptions_and_known_ones_are_not() {
    let mut configs = configured();
    configs.push(ForgeConfig { token: token("t"), ..config("github.com", ForgeKind::Github) });
    let guard = Guard { allow: Forges::new(configs).unwrap().exceptions(), ..Guard::default() };
    let private = "10.9.9.9".parse().unwrap();
    let is_excepted = |host: &str, port: u16| {
        let host = Host::parse(host).unwrap();
        guard.check_address(Reach::PublicAndExceptions, &host, private, port).is_ok()
    };
    let hosts = [
        "10.0.0.7", "127.0.0.1", "ghe.example", "hub.example", "inner.example", "lab.example",
        "raw.ghe.example", "github.com", "api.github.com", "raw.githubusercontent.com", "gitlab.com",
        "other.example",
    ];
    let ports = [80, 443, 1, 3000, 3001, 8080, 8443, 9000];
    let open = hosts.map(|host| (host, ports.into_iter().filter(|port| is_excepted(host, *port)).collect()));
    let open: Vec<(&str, Vec<u16>)> =
        open.into_iter().filter(|(_, ports): &(_, Vec<_>)| !ports.is_empty()).collect();
    let expected: [(&str, &[u16]); 7] = [
        ("10.0.0.7", &[80]),
        ("127.0.0.1", &[3000, 3001]),
        ("ghe.example", &[80, 443]),
        ("hub.example", &[80, 443]),
        ("inner.example", &[80, 443]),
        ("lab.example", &[80, 443]),
        ("raw.ghe.example", &[443]),
    ];
    assert_eq!(open, expected.map(|(host, ports)| (host, ports.to_vec())));
    assert!(Forges::new(Vec::new()).unwrap().exceptions().is_empty());
}
