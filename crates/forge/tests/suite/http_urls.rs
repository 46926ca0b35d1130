//! Addresses of servers in settings and options.

use countersign_core::values::path::is_this_machine;
use countersign_forge::url::{HttpUrlProblem, parse_bare_url, parse_http_url};

#[test]
fn an_address_has_a_host_and_no_user_information_or_fragment() {
    for text in ["https://hooks.example/a?token=x", "http://127.0.0.1:8080", "https://[::1]/"] {
        assert!(parse_http_url(text).is_ok(), "{text}");
    }
    for (text, problem) in [
        ("hooks.example", HttpUrlProblem::NotAUrl),
        ("https://", HttpUrlProblem::NotAUrl),
        ("ftp://hooks.example/", HttpUrlProblem::NotHttp),
        ("mailto:alice@acme.example", HttpUrlProblem::NotHttp),
        ("https://alice@hooks.example/", HttpUrlProblem::UserInfo),
        ("https://:secret@hooks.example/", HttpUrlProblem::UserInfo),
        ("https://alice:secret@hooks.example/#a", HttpUrlProblem::UserInfo),
        ("https://hooks.example/#a", HttpUrlProblem::Fragment),
    ] {
        assert_eq!(parse_http_url(text), Err(problem), "{text}");
        assert!(!problem.to_string().contains("secret"), "{problem}");
        assert_eq!(parse_bare_url(text), None, "{text}");
    }
    assert!(parse_bare_url("https://sign.example/below").is_some());
    assert_eq!(parse_bare_url("https://sign.example/?a"), None, "a query");
}

#[test]
fn this_machine_is_a_loopback_address_or_localhost() {
    for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
        assert!(is_this_machine(host), "{host}");
    }
    for host in ["", "127.example.org", "localhost.example.org", "10.0.0.1", "[::2]", "sign.example"] {
        assert!(!is_this_machine(host), "{host}");
    }
}
