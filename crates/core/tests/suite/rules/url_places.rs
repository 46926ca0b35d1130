//! Which path a URL has, and which tag (D6).

use countersign_core::rules::place::{path_of_url, release_tag};
use countersign_testing::{PROJECT, path};

#[test]
fn a_url_has_one_path() {
    let table = [
        ("https://github.com/acme/app", "https/github.com/443/acme/app"),
        ("http://github.com/acme/app", "http/github.com/80/acme/app"),
        ("https://github.com:443/acme", "https/github.com/443/acme"),
        ("http://host:443/a", "http/host/443/a"),
        ("https://host:80/a", "https/host/80/a"),
        ("https://host:65535/a", "https/host/65535/a"),
        ("HTTPS://GitHub.COM/Acme/App", "https/github.com/443/Acme/App"),
        ("https://host", "https/host/443"),
        ("https://host/", "https/host/443"),
        ("https://host:8443", "https/host/8443"),
        ("https://host/a/", "https/host/443/a"),
        // A first segment of digits is no port.
        ("https://host/8080/a", "https/host/443/8080/a"),
        ("https://[::1]/a", "https/[::1]/443/a"),
        ("https://[2001:DB8::1]:8443/a", "https/[2001:db8::1]/8443/a"),
        ("https://127.0.0.1:3000/a", "https/127.0.0.1/3000/a"),
        ("https://host/a/tag/v1@2", "https/host/443/a/tag/v1@2"),
        ("https://host/a/tag/@scope/name@1.0", "https/host/443/a/tag/@scope/name@1.0"),
        ("https://host/a%20b", "https/host/443/a b"),
        ("https://host/a+b", "https/host/443/a+b"),
        ("https://host/%C3%BC", "https/host/443/ü"),
        ("https://host/ü", "https/host/443/ü"),
        ("https://host/%F0%9F%A6%80", "https/host/443/🦀"),
        ("https://host/a:b", "https/host/443/a:b"),
        ("https://host/a%3Fb%23c", "https/host/443/a?b#c"),
        // Decoded once only.
        ("https://host/a%252Fb", "https/host/443/a%2Fb"),
        ("https://host/%252e%252e/b", "https/host/443/%2e%2e/b"),
        ("https://host/...", "https/host/443/..."),
        ("https://host/a/https://b", ""),
    ];
    for (url, expected) in table {
        let expected = Some(expected).filter(|expected| !expected.is_empty());
        assert_eq!(path_of_url(url).as_ref().map(|path| path.as_str()), expected, "{url}");
    }
}

#[test]
fn a_url_that_is_more_or_less_than_a_place_has_no_path() {
    for url in [
        "", "https", "https:/host/a", "https:host/a", "//host/a", "/host/a", "https/host/443/a",
        "ftp://host/a", "file:///a", "git+https://host/a", " https://host/a", "https://", "https:///a",
        "https://:443/a", "https://host:/a", "https://host:0/a", "https://host:0443/a",
        "https://host:+443/a", "https://host:65536/a", "https://host:4 3/a", "https://host:x/a",
        "https://host:４４３/a", "https://user@host/a", "https://user:secret@host/a",
        "https://github.com@evil.example/a", "https://github.com%2Facme/a", "https://host%00/a",
        "https://host?x", "https://host/a?x", "https://host/a?", "https://host/a#x", "https://host/a\\b",
        "https://host/a b", "https://host/a\u{3000}b", "https://host\\a/b", "https://host/a%5Cb",
        "https://host/a//b", "https://host//a", "https://host/a/tag/x%2fy", "https://host/a%2F%2Fb",
        "https://host/./a", "https://host/a/..", "https://host/a/../b", "https://host/a/%2e%2e/b",
        "https://host/a/.%2E/b", "https://host/a/%2E/b", "https://host/a%2F..%2Fb",
        "https://host/a%2f%2e%2e%2fb", "https://host/a%00b", "https://host/a%0Ab", "https://host/a\nb",
        "https://host/a\tb", "https://host/a%1B%5B2J", "https://host/a%7Fb", "https://host/%C2%85",
        "https://host/%ff", "https://host/%C3", "https://host/.git/config", "https://host/.GIT",
        // D6: hosts are ASCII, without a trailing dot, and of the characters that a host has.
        "https://github.com./acme/app", "https://gıthub.com/acme/app", "https://git hub.com/a",
        "https://a:b:443/a", "https://::1/a", "https://[::1/a", "https://[::1]x/a", "https://.../a",
        "https://a..b/a",
    ] {
        assert_eq!(path_of_url(url), None, "{url:?}");
    }
}

#[test]
fn a_tag_is_read_from_the_page_of_its_own_project_only() {
    let gitlab = "https/gitlab.com/443/g/s/app";
    let table = [
        (PROJECT, "https://github.com/acme/app/releases/tag/v1", Some("v1")),
        (PROJECT, "https://GITHUB.com:443/acme/app/releases/tag/v1/", Some("v1")),
        (PROJECT, "https://github.com/acme/app/releases/tag/a%2Fb", Some("a/b")),
        (PROJECT, "https://github.com/acme/app/releases/tag/a/b", Some("a/b")),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1@x%20y%C3%BC", Some("v1@x yü")),
        (gitlab, "https://gitlab.com/g/s/app/-/releases/v1", Some("v1")),
        (gitlab, "https://gitlab.com/g/s/app/-/releases/a%2Fb", Some("a/b")),
        ("https/github.com/4430/acme/app", "https://github.com:4430/acme/app/releases/tag/v1", Some("v1")),
        (PROJECT, "https://github.com/acme%2Fapp/releases/tag/v1", None),
        (PROJECT, "https://github.com/acme/app/releases/tag", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/", None),
        (PROJECT, "https://github.com/acme/app/releases/v1", None),
        (PROJECT, "https://github.com/acme/app/releases/latest", None),
        (PROJECT, "https://github.com/acme/app2/releases/tag/v1", None),
        (PROJECT, "https://github.com/acme/ap/releases/tag/v1", None),
        (PROJECT, "https://github.com/acme/App/releases/tag/v1", None),
        (PROJECT, "https://github.com/acme/app/x/releases/tag/v1", None),
        (PROJECT, "https://github.com:444/acme/app/releases/tag/v1", None),
        (PROJECT, "https://github.com:44/acme/app/releases/tag/v1", None),
        ("https/github.com/4430/acme/app", "https://github.com/acme/app/releases/tag/v1", None),
        (PROJECT, "http://github.com/acme/app/releases/tag/v1", None),
        (PROJECT, "http://github.com:443/acme/app/releases/tag/v1", None),
        (PROJECT, "https://github.com.evil.example/acme/app/releases/tag/v1", None),
        (PROJECT, "https://evil.example/github.com/443/acme/app/releases/tag/v1", None),
        (PROJECT, "https://github.com@evil.example/acme/app/releases/tag/v1", None),
        (PROJECT, "https://evil.example@github.com/acme/app/releases/tag/v1", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1?x=/../v2", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1#v2", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1%2F..%2Fv2", None),
        (PROJECT, "https://github.com/acme/x/../app/releases/tag/v1", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1\\v2", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1 v2", None),
        (PROJECT, "https://github.com/acme/app/releases/tag/v1\u{1}", None),
        (PROJECT, "https://github.com/acme/app/releases/tags/v1", None),
        (PROJECT, "https://github.com/acme/app/release/tag/v1", None),
        (gitlab, "https://gitlab.com/g/s/app/x/releases/v1", None),
        (gitlab, "https://gitlab.com/g/s/app/-/tags/v1", None),
        (gitlab, "https://gitlab.com/g/s/app/x/-/releases/v1", None),
    ];
    for (project, url, tag) in table {
        assert_eq!(release_tag(url, &path(project)).as_deref(), tag, "{url}");
    }
}
