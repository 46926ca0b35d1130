//! Signers files and releases of forges, over real sockets of this machine.

use std::{sync::atomic::AtomicU64, sync::atomic::Ordering, time::Duration};

use countersign_core::values::digest::{Sha256, Sha512};
use countersign_forge::fetch::{FetchError, TryAgain};
use countersign_forge::{forges::ForgeKind, forges::Forges, release::HashedAsset, release::ReleaseError};

use crate::support::forge::{
    Access, Fake, KINDS, SECRET, SIGNERS, auth_header, config, document, first_asset, json, plain,
    raw_request, redirect, release_api, signers_request,
};
use crate::support::{Routes, Server, reply};

#[tokio::test]
async fn signers_files_are_read_from_a_branch_with_slashes() {
    for kind in KINDS {
        for access in [Access::Public, Access::WithToken] {
            let fake = Fake::start(kind, access, |_| {}).await;
            let fetched = fake.signers().await.unwrap();
            assert_eq!(fetched.bytes, SIGNERS.as_bytes());
            assert_eq!(fetched.retrieval_url, fake.server.url(signers_request(kind)));
            let heads = fake.heads();
            // Without a token the branch is asked for first; this forge does not tell.
            assert_eq!(heads.len(), if access == Access::WithToken { 1 } else { 2 });
            let head = heads.last().unwrap();
            assert_eq!(head.contains(&auth_header(kind)), access == Access::WithToken, "{head}");
            assert_eq!(head.contains(SECRET), access == Access::WithToken, "{head}");
            let wants_raw = head.contains("accept: application/vnd.github.raw+json\r\n");
            assert_eq!(wants_raw, kind == ForgeKind::Github, "{head}");
        }
    }
}

#[tokio::test]
async fn without_a_token_a_plain_branch_is_read_in_its_raw_form() {
    for kind in KINDS {
        let fake = Fake::start(kind, Access::Public, |_| {}).await;
        let fetched = fake.signers_on("main").await.unwrap();
        assert_eq!(fetched.retrieval_url, fake.server.url(raw_request(kind)));
        // A file in a directory of that branch is not one on a branch of a longer name.
        let error = fake.signers_on("main/docs").await.unwrap_err();
        assert!(matches!(error, FetchError::NoSuchBranch { .. }) && error.is_refused_as_given(), "{error}");
    }
}

#[tokio::test]
async fn a_branch_with_slashes_that_the_forge_knows_is_read_in_its_raw_form() {
    let pages = [
        (
            ForgeKind::Github,
            "/api/v3/repos/acme/app/branches/a%2Fb",
            "/acme/app/raw/refs/heads/a/b/svc.signers.json",
        ),
        (
            ForgeKind::Gitlab,
            "/api/v4/projects/acme%2Fapp/repository/branches/a%2Fb",
            "/acme/app/-/raw/a/b/svc.signers.json?ref_type=heads",
        ),
        (
            ForgeKind::Forgejo,
            "/api/v1/repos/acme/app/branches/a%2Fb",
            "/acme/app/raw/branch/a/b/svc.signers.json",
        ),
    ];
    for (kind, branch, raw) in pages {
        let routes = |routes: &mut Routes| {
            routes.extend([(branch.into(), json(r#"{"name":"a/b"}"#)), (raw.into(), plain(SIGNERS))]);
        };
        let fake = Fake::start(kind, Access::Public, routes).await;
        let fetched = fake.signers_on("a/b").await.unwrap();
        assert_eq!(fetched.retrieval_url, fake.server.url(raw));
    }
}

#[tokio::test]
async fn a_signers_file_that_is_not_on_the_branch_is_named() {
    for kind in KINDS {
        let fake = Fake::start(kind, Access::Public, Routes::clear).await;
        let error = fake.signers().await.unwrap_err();
        assert!(matches!(error, FetchError::NoSuchBranch { .. }) && error.is_refused_as_given(), "{error}");
        assert!(error.to_string().contains("release/1/svc.signers.json"), "{error}");
        let error = fake.signers_on("main").await.unwrap_err();
        assert!(matches!(error, FetchError::NoSuchFile { .. }) && !error.is_refused_as_given(), "{error}");
    }
}

#[tokio::test]
async fn a_url_with_two_meanings_needs_exactly_one_of_them() {
    let api = "/api/v1/repos/acme/app/raw";
    let in_directory = format!("{api}/svc.signers/svc.signers.json?ref=refs%2Fheads%2Fmain");
    let at_root = format!("{api}/svc.signers.json?ref=refs%2Fheads%2Fmain%2Fsvc.signers");
    let page = "/acme/app/src/branch/main/svc.signers/svc.signers.json";
    for existing in [&in_directory, &at_root] {
        let change = |routes: &mut Routes| drop(routes.insert(existing.clone(), plain(SIGNERS)));
        let fake = Fake::start(ForgeKind::Forgejo, Access::WithToken, change).await;
        let fetched = fake.signers_at(page).await.unwrap();
        assert_eq!(fetched.retrieval_url, fake.server.url(existing));
    }
    let both = |routes: &mut Routes| {
        routes.extend([&in_directory, &at_root].map(|target| (target.clone(), plain(SIGNERS))));
    };
    let fake = Fake::start(ForgeKind::Forgejo, Access::WithToken, both).await;
    let error = fake.signers_at(page).await.unwrap_err();
    assert!(matches!(error, FetchError::Ambiguous { .. }), "{error}");
}

#[tokio::test]
async fn a_signers_file_is_not_read_from_elsewhere_nor_from_a_login_page() {
    let request = raw_request(ForgeKind::Gitlab);
    let elsewhere = Server::start().await;
    let away = redirect(&elsewhere.url("/ok"));
    let html = reply("200 OK", "Content-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n", "<html>");
    let login = redirect("/users/sign_in");
    let change = |routes: &mut Routes| drop(routes.insert(request.into(), away));
    let fake = Fake::start(ForgeKind::Gitlab, Access::Public, change).await;
    assert!(matches!(fake.signers_on("main").await.unwrap_err(), FetchError::Refused { .. }));
    assert!(elsewhere.requests().is_empty());
    let change = |routes: &mut Routes| {
        routes.extend([(request.into(), login), ("/users/sign_in".into(), html)]);
    };
    let fake = Fake::start(ForgeKind::Gitlab, Access::Public, change).await;
    let error = fake.signers_on("main").await.unwrap_err();
    assert!(matches!(error, FetchError::WebPage { .. }), "{error}");
}

#[tokio::test]
async fn releases_are_read_and_their_assets_hashed() {
    for kind in KINDS {
        for access in [Access::Public, Access::WithToken] {
            let fake = Fake::start(kind, access, |_| {}).await;
            let metadata = fake.release().await.unwrap();
            assert_eq!(metadata.published_on.unwrap().to_string(), "2026-03-01T09:30:00Z");
            // The index names the public URL. With a token, GitHub's assets are read through the API all the same.
            assert_eq!(metadata.assets[0].source, fake.server.url(first_asset(kind, Access::Public)));
            for (asset, content) in metadata.assets.iter().zip(["hello", "world"]) {
                let seen = AtomicU64::new(0);
                let progress = |bytes| seen.store(bytes, Ordering::Relaxed);
                let hashed = fake.fetcher.hash_asset(asset, 5, &progress).await.unwrap();
                let (sha256, sha512) = (Sha256::of(content.as_bytes()), Sha512::of(content.as_bytes()));
                assert_eq!(hashed, HashedAsset { size: 5, sha256, sha512 }, "{kind:?}");
                assert_eq!(seen.into_inner(), 5);
            }
            for head in fake.heads() {
                // GitLab's second asset is a link to somewhere else on the same server.
                let is_own = !head.starts_with("GET /files/");
                assert_eq!(
                    head.contains(&auth_header(kind)),
                    access == Access::WithToken && is_own,
                    "{head}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_large_asset_is_hashed_in_pieces() {
    let content = "0123456789abcdef".repeat(200_000);
    let fake = Fake::with_first_asset(ForgeKind::Gitlab, plain(&content)).await;
    let hashed = fake.hash_first_below(10_000_000).await.unwrap();
    let bytes = content.as_bytes();
    let expected =
        HashedAsset { size: bytes.len() as u64, sha256: Sha256::of(bytes), sha512: Sha512::of(bytes) };
    assert_eq!(hashed, expected);
}

#[tokio::test]
async fn a_tag_with_a_slash_is_asked_for_in_both_spellings() {
    for spelling in ["app%2Fv1.0", "app/v1.0"] {
        let server = Server::start_with(|port| {
            let text = document(ForgeKind::Forgejo, port).replace("\"v1.0\"", "\"app/v1.0\"");
            Routes::from([(format!("/api/v1/repos/acme/app/releases/tags/{spelling}"), json(&text))])
        })
        .await;
        let mut fake = Fake::start(ForgeKind::Forgejo, Access::Public, |_| {}).await;
        fake.allow("127.0.0.1:*");
        let config = config(&format!("127.0.0.1:{}", server.port), ForgeKind::Forgejo);
        let forges = Forges::new(vec![config]).unwrap();
        let source = forges.locate_release(&server.url("/acme/app/releases/tag/app%2Fv1.0")).unwrap();
        assert!(source.dir.as_str().ends_with("/acme/app/releases/tag/app/v1.0"), "{}", source.dir);
        assert_eq!(fake.fetcher.fetch_release(&source, 10).await.unwrap().assets.len(), 2, "{spelling}");
    }
}

#[tokio::test]
async fn an_api_that_does_not_answer_with_a_release_is_named() {
    let html = reply("200 OK", "Content-Type: text/html\r\nContent-Length: 6\r\n", "<html>");
    for answer in [html, json("<html>"), json("[]"), json("{\"assets\": 7}")] {
        for kind in KINDS {
            let error = Fake::with_release(kind, answer.clone()).await.release().await.unwrap_err();
            assert!(matches!(error, ReleaseError::NotADocument { .. }), "{error}");
            assert!(error.to_string().contains(release_api(kind)) && !error.is_refused_as_given(), "{error}");
        }
    }
    let huge = reply("200 OK", "Content-Type: application/json\r\n", &" ".repeat(5 << 20));
    let error = Fake::with_release(ForgeKind::Github, huge).await.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Fetch(FetchError::TooLarge { .. })), "{error}");
    let broken = reply("500 Oops", "Content-Length: 0\r\n", "");
    let error = Fake::with_release(ForgeKind::Github, broken).await.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Fetch(FetchError::Status { status: 500, .. })), "{error}");
}

#[tokio::test]
async fn a_release_that_is_not_there_is_named_by_its_page() {
    for kind in KINDS {
        let fake = Fake::start(kind, Access::Public, Routes::clear).await;
        let error = fake.release().await.unwrap_err();
        assert!(matches!(error, ReleaseError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("/acme/app/") && error.to_string().contains("draft"), "{error}");
    }
}

#[tokio::test]
async fn rate_limits_say_when_to_try_again() {
    let at = |seconds| {
        TryAgain::At(countersign_core::values::time::Timestamp::from_unix_seconds(seconds).unwrap())
    };
    let reset = "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1773000000\r\n";
    let table = [
        ("403 Forbidden", "Retry-After: 60\r\n", Some(TryAgain::In(Duration::from_secs(60)))),
        ("429 Slow down", "Retry-After: 7\r\n", Some(TryAgain::In(Duration::from_secs(7)))),
        ("403 Forbidden", reset, Some(at(1_773_000_000))),
        (
            "429 Slow down",
            "RateLimit-Remaining: 0\r\nRateLimit-Reset: 1773000000\r\n",
            Some(at(1_773_000_000)),
        ),
        (
            "429 Slow down",
            "RateLimit-Remaining: 0\r\nRateLimit-Reset: 30\r\n",
            Some(TryAgain::In(Duration::from_secs(30))),
        ),
        ("429 Slow down", "", Some(TryAgain::Later)),
        ("403 Forbidden", "x-ratelimit-remaining: 12\r\nx-ratelimit-reset: 1773000000\r\n", None),
        ("403 Forbidden", "", None),
        ("403 Forbidden", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", Some(at(1_792_567_680))),
        ("429 Slow down", "x-ratelimit-reset: 1792567680\r\n", Some(at(1_792_567_680))),
        ("403 Forbidden", "x-ratelimit-reset: 1792567680\r\n", None),
        (
            "403 Forbidden",
            "Retry-After: soon\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1792567680\r\n",
            Some(at(1_792_567_680)),
        ),
        ("403 Forbidden", "Retry-After: soon\r\n", Some(TryAgain::Later)),
    ];
    assert_eq!(at(1_792_567_680).to_string(), "after 2026-10-21T07:28:00Z");
    assert_eq!(TryAgain::In(Duration::from_secs(90)).to_string(), "in 90 seconds");
    for (status, headers, expected) in table {
        let answer = reply(status, &format!("{headers}Content-Length: 0\r\n"), "");
        let error = Fake::with_release(ForgeKind::Github, answer).await.release().await.unwrap_err();
        let found = match &error {
            ReleaseError::Fetch(FetchError::RateLimited { again, .. }) => Some(*again),
            ReleaseError::Fetch(FetchError::Status { status: 403, .. }) => None,
            other => panic!("{other}"),
        };
        assert_eq!(found, expected, "{status} {headers}");
        let said = expected.map_or("status 403".to_owned(), |again| format!("try again {again}"));
        assert!(error.to_string().contains(&said), "{error}");
    }
}
