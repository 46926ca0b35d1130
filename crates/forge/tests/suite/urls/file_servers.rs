//! Signers files on file servers, and which servers may have them (D27).

use countersign_core::values::path::Scheme;
use countersign_forge::file_server::{FileServerRule, FileServers};
use countersign_forge::forges::{Forges, SignersSource};
use countersign_forge::url::{Host, SourceUrl, UrlProblem};

use crate::support::problem_of;

fn servers(rules: &[&str]) -> FileServers {
    FileServers { rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(), loopback: false }
}

fn locate(url: &str, servers: &FileServers) -> Result<SignersSource, UrlProblem> {
    let known = Forges::new(Vec::new()).unwrap();
    known.locate_signers(&SourceUrl::parse(url).unwrap(), servers).map_err(problem_of)
}

fn project(url: &str) -> String {
    locate(url, &servers(&["*"])).unwrap().project.to_string()
}

fn problem(url: &str) -> UrlProblem {
    locate(url, &servers(&["*"])).unwrap_err()
}

#[test]
fn the_project_is_the_directory_of_the_signers_file() {
    let table = [
        ("https://files.example/acme/app/svc.signers.json", "https/files.example/443/acme/app"),
        ("https://files.example/acme/app/other.json", "https/files.example/443/acme/app"),
        ("http://127.0.0.1:8080/acme/svc.signers/x.json", "http/127.0.0.1/8080/acme"),
        ("https://files.example/acme/.svc.signers/svc.signers.json", "https/files.example/443/acme"),
        ("https://files.example/acme/.svc_signers/x", "https/files.example/443/acme"),
        ("https://files.example/8080/x", "https/files.example/443/8080"),
        ("http://[::1]:8080/a%20b/x", "http/[::1]/8080/a b"),
        ("https://files.example/svc.signers.json", "https/files.example/443"),
        ("https://files.example/svc.signers/any.json", "https/files.example/443"),
        ("https://svc.example/acme/x", "https/svc.example/443/acme"),
        ("https://files.example/acme/app/raw/svc.signers.json", "https/files.example/443/acme/app/raw"),
    ];
    for (url, expected) in table {
        assert_eq!(project(url), expected, "{url}");
    }
}

#[test]
fn a_source_keeps_the_text_as_given_and_what_is_requested() {
    let source =
        locate("HTTPS://Files.Example:443/ü/svc.signers.json", &servers(&["files.example"])).unwrap();
    assert_eq!(source.kind.name(), "file_server");
    assert_eq!(source.url, "HTTPS://Files.Example:443/ü/svc.signers.json");
    assert_eq!(source.retrievals[0][0].request.url.as_str(), "https://files.example/%C3%BC/svc.signers.json");
}

#[test]
fn a_root_file_needs_the_literal_name() {
    assert_eq!(problem("https://files.example/signers.json"), UrlProblem::RootFileName);
    assert_eq!(problem("https://files.example/SVC.signers.json"), UrlProblem::RootFileName);
}

#[test]
fn only_the_place_of_a_file_is_a_source() {
    assert_eq!(problem("https://files.example/a/x?y=1"), UrlProblem::Query);
    assert_eq!(problem("https://files.example/a/x?"), UrlProblem::Query);
    assert_eq!(problem("https://files.example/a/x#y"), UrlProblem::Fragment);
    for url in ["https://files.example/a/", "https://files.example/", "https://files.example"] {
        assert_eq!(problem(url), UrlProblem::NoFileName, "{url}");
    }
}

#[test]
fn directories_that_cannot_be_stored_are_refused() {
    let deep = format!("https://files.example/{}x", "a/".repeat(100));
    for url in [
        "https://files.example/acme/svc.evil/x", "https://files.example/acme/SVC.x/x",
        "https://files.example/svc.signers/svc.signers/x", "https://files.example/.git/x",
        "https://files.example/.GIT/svc.signers/x", "https://files.example/git~1/x",
        "https://files.example/a%E2%80%AEb/x", "https://files.example/a./x", &deep,
    ] {
        assert!(matches!(problem(url), UrlProblem::Path { .. }), "{url}: {}", problem(url));
    }
    let message = problem("https://files.example/a%E2%80%AEb/x").to_string();
    assert!(!message.contains('\u{202e}') && message.contains("\\u{202e}"), "{message}");
}

#[test]
fn pages_of_forges_are_not_files() {
    for url in [
        "https://git.example/acme/app/-/blob/main/svc.signers.json",
        "https://git.example/a/b/app/-/raw/main/svc.signers.json?ref_type=heads",
        "https://git.example/acme/app/-/releases/v1",
        "https://git.example/acme/app/blob/main/svc.signers.json",
        "https://git.example/acme/app/raw/main/svc.signers.json",
        "https://git.example/acme/app/src/branch/main/svc.signers.json",
        "https://git.example/acme/app/raw/branch/main/svc.signers.json",
        "https://git.example/acme/app/raw/commit/0123/svc.signers.json",
        "https://git.example/acme/app/r%61w/t%61g/v1/svc.signers.json",
        "https://git.example/acme/app/releases/tag/v1",
    ] {
        assert!(matches!(problem(url), UrlProblem::ForgeForm { .. }), "{url}: {}", problem(url));
    }
}

#[test]
fn known_forges_are_not_file_servers() {
    for name in ["github.com", "raw.githubusercontent.com", "gitlab.com", "codeberg.org", "gitea.com"] {
        let host = Host::parse(name).unwrap();
        assert!(!servers(&["*", name]).allow(Scheme::Https, &host, 443));
        let page = problem(&format!("https://{name}/acme/app/x"));
        assert!(matches!(page, UrlProblem::SignersForm { .. }), "{name}: {page}");
        let elsewhere = problem(&format!("http://{name}:8080/acme/app/x"));
        assert!(matches!(elsewhere, UrlProblem::ForgeHttpsOnly { .. }), "{name}: {elsewhere}");
    }
}

#[test]
fn a_rule_names_a_host_and_a_port() {
    let table = [
        ("files.example", "https://files.example/a/x", true),
        ("files.example", "http://files.example/a/x", true),
        ("Files.Example", "https://files.example/a/x", true),
        ("files.example", "https://files.example:8443/a/x", false),
        ("files.example", "https://files.example:80/a/x", false),
        ("files.example:8443", "https://files.example:8443/a/x", true),
        ("files.example:8443", "https://files.example/a/x", false),
        ("files.example:443", "https://files.example/a/x", true),
        ("files.example", "https://sub.files.example/a/x", false),
        ("[::1]:8080", "http://[::1]:8080/a/x", true),
        ("127.0.0.1", "http://127.0.0.1:8080/a/x", false),
        ("*", "http://127.0.0.1:8080/a/x", true),
    ];
    for (rule, url, allowed) in table {
        assert_eq!(locate(url, &servers(&[rule])).is_ok(), allowed, "{rule} {url}");
    }
}

#[test]
fn a_refused_server_comes_with_the_option_that_allows_it() {
    let message = locate("http://127.0.0.1:8080/a/x", &FileServers::default()).unwrap_err().to_string();
    assert!(message.contains("`--file-server 127.0.0.1:8080`"), "{message}");
    let message = locate("https://files.example/a/x", &FileServers::default()).unwrap_err().to_string();
    assert!(message.contains("`--file-server files.example`"), "{message}");
}

#[test]
fn dev_allows_every_server_on_loopback_and_no_other() {
    let dev = FileServers { rules: Vec::new(), loopback: true };
    for host in ["127.0.0.1:8080", "127.9.9.9", "[::1]:1", "localhost:3000"] {
        assert!(locate(&format!("http://{host}/a/x"), &dev).is_ok(), "{host}");
    }
    for host in ["10.0.0.1", "files.example", "localhost.example", "[::ffff:7f00:1]"] {
        assert!(locate(&format!("http://{host}/a/x"), &dev).is_err(), "{host}");
    }
}

#[test]
fn rules_that_are_not_hosts_are_refused_with_the_form() {
    for rule in
        ["", "https://h", "h/x", "h:", "h:0", "*.example", "**", "0x7f.1", "::1", "h.", "bücher.example"]
    {
        let message = rule.parse::<FileServerRule>().unwrap_err().to_string();
        assert!(message.contains("HOST:PORT"), "{rule}: {message}");
    }
}
