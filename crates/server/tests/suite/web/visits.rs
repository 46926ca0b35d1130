use axum::http::Request;
use countersign_server::web::visit::Visit;

fn visit(target: &str, headers: &[(&str, &str)]) -> Visit {
    let request =
        headers.iter().fold(Request::get(target), |request, (name, value)| request.header(*name, *value));
    Visit::of(&request.body(()).unwrap().into_parts().0, false, None)
}

#[test]
fn the_origin_is_that_of_the_host_header_or_none() {
    for (host, proto, origin) in [
        ("sign.example.org", None, Some("https://sign.example.org")),
        ("sign.example.org:8443", None, Some("https://sign.example.org:8443")),
        ("127.0.0.1:3000", None, Some("http://127.0.0.1:3000")),
        ("127.0.0.1", None, Some("http://127.0.0.1")),
        ("[::1]:3000", None, Some("http://[::1]:3000")),
        ("[::1]", None, Some("http://[::1]")),
        ("[2001:db8::1]", None, Some("https://[2001:db8::1]")),
        ("localhost.example.org", None, Some("https://localhost.example.org")),
        ("10.0.0.1:3000", Some("http"), Some("http://10.0.0.1:3000")),
        ("localhost", Some("https"), Some("https://localhost")),
        ("localhost", Some("javascript"), Some("http://localhost")),
        ("a$(reboot)", None, None),
        ("a;b", None, None),
        ("\"><script>", None, None),
        ("--config=x", None, None),
        ("a/b", None, None),
        ("a@b", None, None),
    ] {
        let mut headers = vec![("host", host)];
        headers.extend(proto.map(|proto| ("x-forwarded-proto", proto)));
        assert_eq!(visit("/", &headers).origin.as_deref(), origin, "{host}");
    }
    assert_eq!(visit("/", &[]).origin, None);
    let absolute = visit("http://sign.example.org/", &[("host", "other.example.org")]);
    assert_eq!(absolute.origin.as_deref(), Some("https://sign.example.org"));
    assert_eq!(visit("http://me@sign.example.org/", &[("host", "other.example.org")]).origin, None);
}

#[test]
fn the_query_gives_words_and_a_page() {
    let seen = visit("/?q=%3Cb%3E+acme&page=3", &[]);
    assert_eq!((seen.search.as_str(), seen.page), ("<b> acme", Some(3)));
    assert_eq!(visit("/", &[]).page, Some(1));
    for page in ["0", "-1", "x", "99999999999999999999999", ""] {
        assert_eq!(visit(&format!("/?page={page}"), &[]).page, None, "{page}");
    }
}

#[test]
fn a_version_that_is_known_is_told_in_any_list() {
    let seen = visit("/", &[("if-none-match", "\"a\", W/\"b\"")]);
    assert!(seen.knows("\"a\"") && seen.knows("\"b\"") && !seen.knows("\"c\""));
    assert!(!visit("/", &[("if-none-match", "*")]).knows("\"a\""));
}
