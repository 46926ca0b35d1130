//! What cannot be seen over a plain socket of this machine: leaving https, and IP addresses that are not ours.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use url::Url;

use super::{
    route::{Ask, FetchRoute},
    *,
};
use crate::{
    guard::{Guard, GuardRefusal},
    resolver::SystemResolver,
};

fn fetcher() -> Fetcher {
    Fetcher::new(Guard::default(), Timeouts::default(), Arc::new(SystemResolver)).unwrap()
}

fn follow(from: &str, location: &str, redirects: Redirects) -> Result<Url, FetchError> {
    let given = Url::parse(from).unwrap();
    let mut route = FetchRoute::start(&given);
    route.follow(Some(&HeaderValue::from_str(location).unwrap()), redirects)?;
    Ok(route.current)
}

#[test]
fn the_same_origin_is_the_same_scheme_host_and_port() {
    let from = "https://files.example/a/x";
    for location in ["y", "/b/y", "//files.example/y", "https://FILES.example:443/y"] {
        assert!(follow(from, location, Redirects::SameOrigin).is_ok(), "{location}");
    }
    for location in
        ["http://files.example/y", "https://files.example:8443/y", "//other.example/y", "file:///y"]
    {
        let error = follow(from, location, Redirects::SameOrigin).unwrap_err();
        assert!(
            matches!(error, FetchError::Refused { hop: Hop::Redirect, reason: HopRefusal::OtherOrigin, .. }),
            "{location}: {error}"
        );
    }
}

#[tokio::test]
async fn a_redirect_from_https_to_plain_http_is_refused_unless_allowed() {
    let given = Url::parse("https://files.example/x").unwrap();
    for target in ["http://files.example/x", "http://1.1.1.1/x"] {
        let mut route = FetchRoute::start(&given);
        route.follow(Some(&HeaderValue::from_static(target)), Redirects::Guarded).unwrap();
        let error = fetcher().request(&route, Ask::default()).await.unwrap_err();
        let FetchError::Refused { hop: Hop::Redirect, reason: HopRefusal::Guard(reason), .. } = error else {
            panic!("{error}");
        };
        assert!(matches!(reason, GuardRefusal::PlainHttp { .. }), "{reason}");
    }
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_before_any_connection() {
    for url in ["https://169.254.169.254/latest", "https://[::ffff:a00:1]/x", "http://[fd00:ec2::254]/x"] {
        let limits = FetchLimits { max_bytes: 1, redirects: Redirects::Guarded };
        let error = fetcher().get(&Url::parse(url).unwrap(), limits).await.unwrap_err();
        assert!(error.is_refused_as_given(), "{error}");
    }
}

#[tokio::test]
async fn a_users_redirect_from_https_to_plain_http_is_refused() {
    let fetcher = Fetcher::for_user(Timeouts::default()).unwrap();
    let given = Url::parse("https://files.example/x").unwrap();
    for target in ["http://files.example/x", "http://files.example:443/x", "http://127.0.0.1/x"] {
        let mut route = FetchRoute::start(&given);
        // The step before stays within https, and changes nothing.
        route.follow(Some(&HeaderValue::from_static("https://other.example/x")), Redirects::Guarded).unwrap();
        route.follow(Some(&HeaderValue::from_static(target)), Redirects::Guarded).unwrap();
        let error = fetcher.request(&route, Ask::default()).await.unwrap_err();
        let is_downgrade =
            matches!(error, FetchError::Refused { hop: Hop::Redirect, reason: HopRefusal::LeavesTls, .. });
        assert!(is_downgrade && error.to_string().contains("from https to plain http"), "{error}");
    }
}

#[test]
fn a_user_may_go_wherever_they_say() {
    let fetcher = Fetcher::for_user(Timeouts::default()).unwrap();
    let admit =
        |text: &str| fetcher.access.client_for(&FetchRoute::start(&Url::parse(text).unwrap())).map(drop);
    for url in ["http://10.0.0.1/x", "https://[::1]/x", "http://files.example/x", "https://localhost:1/x"] {
        assert_eq!(admit(url), Ok(()), "{url}");
    }
    assert_eq!(admit("ftp://files.example/x"), Err(HopRefusal::NotHttp));
    assert_eq!(admit("file:///etc/passwd"), Err(HopRefusal::NotHttp));
    assert_eq!(admit("https://u:p@files.example/x"), Err(HopRefusal::Guard(GuardRefusal::UserInfo)));

    let (http, https) = ("http://files.example/x", "https://files.example/x");
    let given = Url::parse(http).unwrap();
    let mut route = FetchRoute::start(&given);
    for location in [http, https] {
        route.follow(Some(&HeaderValue::from_static(location)), Redirects::Guarded).unwrap();
        assert!(fetcher.access.client_for(&route).is_ok(), "{location}");
    }
}
