//! The parts of a URL, which core, server and client read alike.

use countersign_core::values::path::{Authority, Scheme, UrlParts};

#[test]
fn a_url_is_cut_where_its_parts_end() {
    let table = [
        ("https://h", (Scheme::Https, "h", "", "")),
        ("HTTP://u@h:1/a/b?c#d", (Scheme::Http, "u@h:1", "/a/b", "?c#d")),
        ("https://h#a/b?c", (Scheme::Https, "h", "", "#a/b?c")),
        ("https://h?a://b", (Scheme::Https, "h", "", "?a://b")),
    ];
    for (url, (scheme, authority, path, after_path)) in table {
        assert_eq!(UrlParts::split(url), Some(UrlParts { scheme, authority, path, after_path }), "{url}");
    }
    for url in ["", "h/a", "//h/a", "https:/h", "ftp://h/a"] {
        assert_eq!(UrlParts::split(url), None, "{url}");
    }
}

#[test]
fn an_authority_is_a_host_and_perhaps_a_port() {
    let table = [
        ("h", "h", Ok(None)),
        ("h:8443", "h", Ok(Some(8443))),
        ("[::1]", "[::1]", Ok(None)),
        ("[::1]:80", "[::1]", Ok(Some(80))),
        ("[::1]80", "[::1]", Err("80")),
        ("h:", "h", Err("")),
        ("h:080", "h", Err("080")),
        ("h:65536", "h", Err("65536")),
        ("a:b:443", "a", Err("b:443")),
        ("::1", "", Err(":1")),
    ];
    for (text, host, port) in table {
        let authority = Authority::split(text);
        assert_eq!((authority.host, authority.port()), (host, port), "{text}");
    }
}
