//! The client that a trusted proxy names.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use countersign_server::limits::connections::{ProxyNet, TrustedProxies};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

fn proxies() -> TrustedProxies {
    TrustedProxies(vec!["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap(), "192.0.2.7".parse().unwrap()])
}

fn client(values: &[&str]) -> Option<String> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(FORWARDED_FOR, value.parse().unwrap());
    }
    proxies().client_of(&headers).map(|address| address.to_string())
}

#[test]
fn addresses_and_networks_are_proxies() {
    for trusted in ["10.1.2.3", "::1", "192.0.2.7", "::ffff:10.0.0.1"] {
        assert!(proxies().contains(trusted.parse().unwrap()), "{trusted}");
    }
    for other in ["11.0.0.1", "::2", "192.0.2.8", "127.0.0.1"] {
        assert!(!proxies().contains(other.parse().unwrap()), "{other}");
    }
    for wrong in ["", "proxy.example", "10.0.0.0/33", "10.0.0", "10.0.0.0/8,::1"] {
        let error = wrong.parse::<ProxyNet>().unwrap_err();
        assert!(error.to_string().starts_with(&format!("`{wrong}` ")), "{error}");
    }
}

#[test]
fn the_last_address_that_is_no_proxy_of_ours_is_the_client() {
    for (values, expected) in [
        (&["198.51.100.1"][..], "198.51.100.1"),
        (&["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        (&["203.0.113.9,198.51.100.1, 10.0.0.2,10.0.0.3"], "198.51.100.1"),
        (&["203.0.113.9", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        (&["198.51.100.1", "10.0.0.2", "::1"], "198.51.100.1"),
        (&["not an address, 198.51.100.1"], "198.51.100.1"),
        (&["2001:db8::1"], "2001:db8::1"),
        (&["[2001:db8::1]"], "2001:db8::1"),
        (&["[2001:db8::1]:4711"], "2001:db8::1"),
        (&["198.51.100.1:4711"], "198.51.100.1"),
        (&["::ffff:198.51.100.1"], "198.51.100.1"),
    ] {
        assert_eq!(client(values).as_deref(), Some(expected), "{values:?}");
    }
}

#[test]
fn bytes_that_are_no_text_in_front_of_it_hide_no_one() {
    let value = HeaderValue::from_bytes(b"\xff, 198.51.100.1").unwrap();
    let headers = HeaderMap::from_iter([(FORWARDED_FOR, value)]);
    assert_eq!(proxies().client_of(&headers), Some("198.51.100.1".parse().unwrap()));
}

#[test]
fn what_cannot_be_read_before_such_an_address_names_no_one() {
    for values in [
        &[][..],
        &[""],
        &["10.0.0.2"],
        &["unknown"],
        &["198.51.100.1, unknown"],
        &["198.51.100.1, "],
        &["198.51.100.1", "_hidden, 10.0.0.2"],
        &["198.51.100.1 203.0.113.9"],
        &["198.51.100.1/32"],
    ] {
        assert_eq!(client(values), None, "{values:?}");
    }
}
