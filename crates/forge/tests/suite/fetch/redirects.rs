//! What cannot be seen over a plain socket of this machine: leaving https, and IP addresses that are not ours.

use std::sync::Arc;

use countersign_forge::fetch::{FetchLimits, Fetcher, HopRefusal, Redirects, SendError, Timeouts};
use countersign_forge::guard::{Guard, GuardRefusal, SystemResolver};
use url::Url;

fn fetcher() -> Fetcher {
    Fetcher::new(Guard::default(), Timeouts::default(), Arc::new(SystemResolver)).unwrap()
}

fn users_fetcher() -> Fetcher {
    Fetcher::for_user(Timeouts::default()).unwrap()
}

/// Follows a `Location` as far as it can be judged without a request.
fn follow(fetcher: &Fetcher, from: &str, location: &str, redirects: Redirects) -> Result<(), HopRefusal> {
    let from = Url::parse(from).unwrap();
    fetcher.check_redirect(&from, &from.join(location).unwrap(), redirects)
}

#[tokio::test]
async fn the_same_origin_is_the_same_scheme_host_and_port() {
    let from = "https://files.example/a/x";
    for location in ["y", "/b/y", "//files.example/y", "https://FILES.example:443/y"] {
        assert_eq!(follow(&fetcher(), from, location, Redirects::SameOrigin), Ok(()), "{location}");
    }
    for location in
        ["http://files.example/y", "https://files.example:8443/y", "//other.example/y", "file:///y"]
    {
        let refusal = follow(&fetcher(), from, location, Redirects::SameOrigin);
        assert_eq!(refusal, Err(HopRefusal::OtherOrigin), "{location}");
    }
}

#[tokio::test]
async fn a_redirect_from_https_to_plain_http_is_refused_unless_allowed() {
    for target in ["http://files.example/x", "http://1.1.1.1/x"] {
        let refusal = follow(&fetcher(), "https://files.example/x", target, Redirects::Guarded);
        assert!(matches!(refusal, Err(HopRefusal::Guard(GuardRefusal::PlainHttp { .. }))), "{refusal:?}");
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
    let refused = |from: &str, to: &str| follow(&users_fetcher(), from, to, Redirects::Guarded);
    let (http, https) = ("http://files.example/x", "https://files.example/x");
    for target in [http, "http://files.example:443/x", "http://127.0.0.1/x"] {
        let refusal = refused(https, target).unwrap_err();
        assert_eq!(refusal, HopRefusal::LeavesTls, "{target}");
        assert!(refusal.to_string().contains("from https to plain http"), "{refusal}");
    }
    for (from, to) in [(https, "https://other.example/x"), (http, http), (http, https)] {
        assert_eq!(refused(from, to), Ok(()), "{from} {to}");
    }
}

#[tokio::test]
async fn a_user_may_go_wherever_they_say() {
    let admit = |text: &str| users_fetcher().check_target(&Url::parse(text).unwrap());
    for url in ["http://10.0.0.1/x", "https://[::1]/x", "http://files.example/x", "https://localhost:1/x"] {
        assert_eq!(admit(url), Ok(()), "{url}");
    }
    let user_info = HopRefusal::Guard(GuardRefusal::UserInfo);
    for (url, expected) in [
        ("ftp://files.example/x", HopRefusal::NotHttp),
        ("file:///etc/passwd", HopRefusal::NotHttp),
        ("https://u:p@files.example/x", user_info),
    ] {
        let refusal = admit(url).unwrap_err();
        assert!(matches!(&refusal, SendError::Refused { reason, .. } if *reason == expected), "{refusal}");
    }
}
