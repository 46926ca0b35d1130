//! URLs as they are given: what is read from them, what is refused, and how they are shown.

use countersign_core::{rules::place::path_of_url, values::path::RepoPath, values::path::Scheme};
use countersign_forge::url::{HostProblem, SourceUrl, UrlProblem, UrlRefusal};
use proptest::prelude::*;

fn parse(text: &str) -> SourceUrl {
    SourceUrl::parse(text).unwrap()
}

fn problem(text: &str) -> UrlProblem {
    match SourceUrl::parse(text) {
        Err(UrlRefusal::Url { problem, .. }) => problem,
        other => panic!("{text:?} was not refused: {other:?}"),
    }
}

#[test]
fn an_accepted_url_keeps_its_text_and_gives_decoded_parts() {
    let url = parse("HTTPS://Files.Example.ORG/a%20b/%C3%BC/x%2By?ref=1#top");
    assert_eq!(url.as_str(), "HTTPS://Files.Example.ORG/a%20b/%C3%BC/x%2By?ref=1#top");
    assert_eq!((url.scheme(), url.host().as_str(), url.port()), (Scheme::Https, "files.example.org", 443));
    assert_eq!(url.dir_segments(), ["a b", "ü"]);
    assert_eq!(url.file_name(), Some("x+y"));
    assert!(url.has_query() && url.has_fragment());
    assert_eq!(url.request_url().as_str(), "https://files.example.org/a%20b/%C3%BC/x%2By?ref=1#top");
}

#[test]
fn a_trailing_slash_means_no_file_name() {
    for text in ["http://h", "http://h/", "http://h/a/", "http://h?q", "http://h#f"] {
        assert_eq!(parse(text).file_name(), None, "{text}");
    }
    assert_eq!(parse("http://h/a/").dir_segments(), ["a"]);
}

#[test]
fn the_port_is_filled_in_or_taken() {
    for (text, port) in [("http://h/x", 80), ("https://h/x", 443), ("http://h:8080/x", 8080)] {
        assert_eq!(parse(text).port(), port, "{text}");
    }
}

#[test]
fn odd_ports_are_refused() {
    for port in ["", "0", "00", "080", "+80", "-1", "65536", "99999999999", "8o", "80:80", "٨٠", "%38"] {
        let problem = problem(&format!("http://h:{port}/x"));
        assert!(matches!(problem, UrlProblem::Host(HostProblem::Port { .. })), "{port}: {problem}");
    }
    assert!(matches!(problem("http://[::1]80/x"), UrlProblem::Host(HostProblem::Port { .. })));
}

#[test]
fn only_absolute_http_urls_are_read() {
    for text in [
        "", "h/x", "/x", "//h/x", "http:/h/x", "http:h/x", "file:///etc/passwd", "ftp://h/x",
        "javascript://h/x", "git@github.com:acme/app", "x-http://h/x",
    ] {
        assert_eq!(problem(text), UrlProblem::Scheme, "{text:?}");
    }
    assert_eq!(problem("http:///h/x"), UrlProblem::Host(HostProblem::Empty));
    assert_eq!(problem("http://:80/x"), UrlProblem::Host(HostProblem::Empty));
}

#[test]
fn characters_that_parsers_drop_or_turn_are_refused() {
    for c in [' ', '\t', '\n', '\r', '\0', '\u{7f}', '\u{a0}', '\u{202e}', '\u{200b}', '\u{feff}', '\u{2028}']
    {
        for text in [format!("http://h/a{c}b"), format!("{c}http://h/x"), format!("http://h/x{c}")] {
            assert_eq!(problem(&text), UrlProblem::ForbiddenCharacter, "{text:?}");
        }
    }
    for text in ["http:\\\\h/x", "http://h\\x", "http://h/a\\..\\b", "http://good.example\\@evil/x"] {
        assert_eq!(problem(text), UrlProblem::Backslash, "{text:?}");
    }
}

#[test]
fn user_information_is_refused_and_not_repeated() {
    for text in ["http://bob:geheim@h/x", "http://bob@h/x", "http://@h/x", "http://a@b@h/x"] {
        assert_eq!(problem(text), UrlProblem::UserInfo, "{text}");
    }
    let message = SourceUrl::parse("http://bob:geheim@h/x?token=geheim").unwrap_err().to_string();
    assert!(!message.contains("geheim"), "{message}");
    assert!(message.contains("http://…@h/x?…"), "{message}");
}

#[test]
fn dot_segments_are_refused_in_every_encoding() {
    for dots in [".", "..", "%2e", "%2E", "%2e%2e", ".%2e", "%2E.", "%2e%2E"] {
        for text in [format!("http://h/a/{dots}/b"), format!("http://h/{dots}"), format!("http://h/{dots}/")]
        {
            assert_eq!(problem(&text), UrlProblem::DotSegment, "{text}");
        }
    }
    assert_eq!(parse("http://h/%252e%252e/.../x").dir_segments(), ["%2e%2e", "..."]);
}

#[test]
fn segments_that_decode_to_separators_or_garbage_are_refused() {
    for segment in ["a%2fb", "a%2Fb", "a%5cb", "a%00", "%0a", "%7F", "%C2%85"] {
        assert_eq!(problem(&format!("http://h/{segment}/x")), UrlProblem::ForbiddenInSegment, "{segment}");
    }
    for segment in ["%ff", "%C3", "%C0%AE", "%ED%A0%80"] {
        assert_eq!(problem(&format!("http://h/{segment}/x")), UrlProblem::NotUtf8, "{segment}");
    }
    for segment in ["%", "%2", "%zz", "a%", "%%32e", "%+1", "%ü"] {
        assert_eq!(problem(&format!("http://h/{segment}/x")), UrlProblem::PercentEncoding, "{segment}");
    }
    for text in ["http://h//x", "http://h/a//x", "http://h/a//", "http://h//"] {
        assert_eq!(problem(text), UrlProblem::EmptySegment, "{text}");
    }
}

#[test]
fn an_address_has_one_spelling() {
    for host in ["127.0.0.1", "10.0.0.1", "[::1]", "[2001:db8::1]", "[::ffff:7f00:1]", "[64:ff9b::a00:1]"] {
        assert_eq!(parse(&format!("http://{host}/x")).host().as_str(), host);
    }
    let table = [
        ("0x7f.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("127.0.0.01", "127.0.0.1"),
        ("%31%32%37.0.0.1", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[0::1]", "[::1]"),
        ("[::0001]", "[::1]"),
        ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        ("[::127.0.0.1]", "[::7f00:1]"),
        ("[64:ff9b::10.0.0.1]", "[64:ff9b::a00:1]"),
    ];
    for (host, canonical) in table {
        let expected = HostProblem::NotCanonical { canonical: canonical.to_owned() };
        assert_eq!(problem(&format!("http://{host}/x")), UrlProblem::Host(expected), "{host}");
    }
}

#[test]
fn hosts_that_are_not_plain_names_are_refused() {
    let long_label = "a".repeat(64);
    let long_name = ["abcdefghi"; 26].join(".");
    for host in [
        "[::1%25eth0]", "[fe80::1%eth0]", "[::1", "::1", "[]", "[1.2.3.4]", "[v1.x]", "1.2.3.4.5",
        "256.0.0.1", "a..b", ".a", ".git", "-a", "a*b", "a,b", "a!b", "a~1", "a%00b", "xn--a", "foo.123",
        &long_label, &long_name,
    ] {
        let text = format!("http://{host}/x");
        assert!(matches!(problem(&text), UrlProblem::Host(_)), "{host}: {}", problem(&text));
    }
    let idn = problem("https://bücher.example/x");
    assert!(idn.to_string().contains("xn--bcher-kva.example"), "{idn}");
    assert_eq!(problem("https://h./x"), UrlProblem::Host(HostProblem::TrailingDot));
    assert_eq!(problem("https://127.0.0.1./x"), UrlProblem::Host(HostProblem::TrailingDot));
    assert_eq!(parse("https://xn--bcher-kva.example/x").host().as_str(), "xn--bcher-kva.example");
}

#[test]
fn secrets_and_invisible_characters_are_not_shown() {
    let shown = |text| match SourceUrl::parse(text) {
        Ok(url) => url.to_string(),
        Err(UrlRefusal::Url { url, .. }) => url,
        Err(UrlRefusal::NoUrl) => panic!("a URL was given"),
    };
    let table = [
        ("https://h/a/b", "https://h/a/b"),
        ("https://bob:pw@h/a@b", "https://…@h/a@b"),
        ("https://bob:p@w@h", "https://…@h"),
        ("https://h/@scope/x", "https://h/@scope/x"),
        ("git@h:acme/app", "…@h:acme/app"),
        ("https://h/a?token=s#f", "https://h/a?…"),
        ("https://h/a#f?token=s", "https://h/a#…"),
        ("https://h/\u{202e}\r\n", "https://h/\\u{202e}\\u{d}\\u{a}"),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text:?}");
    }
}

#[test]
fn a_url_has_a_largest_length() {
    let text = |bytes: usize| format!("http://h/{}", "a".repeat(bytes - "http://h/".len()));
    assert_eq!(parse(&text(2_048)).as_str().len(), 2_048);
    assert_eq!(problem(&text(2_049)), UrlProblem::TooLong);
}

/// The vectors hold core and the browser's script together, and here the URLs that servers accept.
#[test]
fn an_accepted_url_of_the_vectors_has_the_path_that_core_gives_it() {
    let vectors = include_str!("../../../../core/tests/vectors/values/places.json");
    let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
    let mut accepted = 0;
    for index in vectors["cases"].as_array().unwrap().iter().map(|case| &case["index"]) {
        let urls = [&index["release_url"], &index["published_files"][0]["source"]];
        for text in urls.into_iter().filter_map(|url| url.as_str()) {
            let Ok(url) = SourceUrl::parse(text) else { continue };
            let names: Vec<String> = url.segments().into_iter().map(str::to_owned).collect();
            let path = url.path_on_server(&names).ok();
            let is_place = !url.has_query() && !url.has_fragment();
            assert_eq!(path_of_url(text), path.filter(|_| is_place), "{text}");
            accepted += 1;
        }
    }
    assert!(accepted > 100, "{accepted}");
}

fn url_like() -> impl Strategy<Value = String> {
    let host =
        prop::sample::select(vec!["h", "Files.Example", "127.0.0.1", "[::1]", "h:8080", "0x7f.1", "h."]);
    let piece = prop_oneof![
        "[a-zA-Z0-9._~-]{1,8}",
        "\\PC{1,4}",
        prop::sample::select(vec![
            "/", "//", "..", "%2e", "%2F", "%C3%BC", "%5c", "%", "?q", "#f", ".git", "80"
        ])
        .prop_map(str::to_owned),
    ];
    (prop::sample::select(vec!["http://", "https://", "HTTP://"]), host, prop::collection::vec(piece, 0..12))
        .prop_map(|(scheme, host, pieces)| format!("{scheme}{host}/{}", pieces.concat()))
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = SourceUrl::parse(&text);
        let _ = SourceUrl::parse(&format!("http://{text}"));
    }

    #[test]
    fn what_is_accepted_means_the_same_everywhere(text in url_like()) {
        let Ok(url) = SourceUrl::parse(&text) else { return Ok(()) };
        let again = parse(url.request_url().as_str());
        prop_assert_eq!(again.dir_segments(), url.dir_segments());
        prop_assert_eq!(again.file_name(), url.file_name());
        prop_assert_eq!(again.request_url(), url.request_url());
        if let Ok(dir) = url.path_on_server(url.dir_segments()) {
            prop_assert_eq!(RepoPath::parse(dir.as_str()).unwrap(), dir.clone());
            prop_assert_eq!(dir.segments().count(), 3 + url.dir_segments().len());
        }
    }
}
