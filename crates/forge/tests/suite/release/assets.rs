//! Assets of releases, hashed over real sockets of this machine: what breaks off, stalls, or is not what was published.

use std::time::Duration;

use countersign_forge::release::{AssetProblem, HashedAsset, ReleaseError};
use countersign_forge::{fetch::FetchError, forges::ForgeKind};

use crate::support::forge::{Access, Fake, KINDS, first_asset, plain, raw_request, redirect, release_api};
use crate::support::reply;

/// What is wrong with the first asset.
#[track_caller]
fn asset_problem(result: Result<HashedAsset, ReleaseError>) -> AssetProblem {
    let error = result.unwrap_err();
    assert!(!error.is_refused_as_given(), "{error}");
    assert!(error.to_string().contains("`app-linux.tar.gz`"), "{error}");
    match error {
        ReleaseError::Asset { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_asset_that_breaks_off_is_refused() {
    let short = reply("200 OK", "Content-Length: 5\r\n", "hel");
    let chunked = reply("200 OK", "Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n");
    for answer in [short, chunked] {
        for kind in KINDS {
            let is_broken = |problem: &_| matches!(problem, AssetProblem::Fetch(FetchError::Broken { .. }));
            assert_problem(kind, answer.clone(), is_broken).await;
        }
    }
}

/// Serves this as the first asset.
async fn assert_problem(kind: ForgeKind, answer: String, is_it: fn(&AssetProblem) -> bool) {
    let problem = asset_problem(Fake::with_first_asset(kind, answer).await.hash_first().await);
    assert!(is_it(&problem), "{problem}");
}

#[tokio::test]
async fn an_asset_must_have_the_published_size_and_digest() {
    let github = ForgeKind::Github;
    let short = |problem: &_| matches!(problem, AssetProblem::Size { published: 5, received: 4, .. });
    assert_problem(github, plain("hell"), short).await;
    // Without a length, both ends are found while reading.
    assert_problem(github, reply("200 OK", "", "hell"), short).await;
    let long = reply("200 OK", "", "hello!");
    assert_problem(github, long, |problem| matches!(problem, AssetProblem::Overlong { published: 5, .. }))
        .await;
    assert_problem(github, plain("HELLO"), |problem| matches!(problem, AssetProblem::Digest { .. })).await;
}

#[tokio::test]
async fn an_asset_above_the_limit_is_refused_announced_or_not() {
    for answer in [plain("hello"), reply("200 OK", "", "hello")] {
        let fake = Fake::with_first_asset(ForgeKind::Gitlab, answer).await;
        let problem = asset_problem(fake.hash_first_below(4).await);
        assert!(
            matches!(problem, AssetProblem::Fetch(FetchError::TooLarge { max_bytes: 4, .. })),
            "{problem}"
        );
    }
    let fake = Fake::start(ForgeKind::Github, Access::Public, |_| {}).await;
    let problem = asset_problem(fake.hash_first_below(4).await);
    assert!(matches!(problem, AssetProblem::Fetch(FetchError::TooLarge { .. })), "{problem}");
}

#[tokio::test]
async fn an_asset_is_not_read_from_a_private_address_nor_without_end() {
    for target in [
        "http://10.0.0.1/x", "http://169.254.169.254/latest/meta-data", "https://127.0.0.2/x",
        "file:///etc/passwd",
    ] {
        let fake = Fake::with_first_asset(ForgeKind::Forgejo, redirect(target)).await;
        let problem = asset_problem(fake.hash_first().await);
        assert!(matches!(problem, AssetProblem::Fetch(FetchError::Refused { .. })), "{target}: {problem}");
    }
    // The forge's address is an exception by its own spelling only.
    let fake = Fake::with_first_asset(ForgeKind::Forgejo, redirect("https://internal.example/x")).await;
    let problem = asset_problem(fake.hash_first().await);
    assert!(matches!(problem, AssetProblem::Fetch(FetchError::Refused { .. })), "{problem}");
    let own = first_asset(ForgeKind::Forgejo, Access::Public);
    let fake = Fake::with_first_asset(ForgeKind::Forgejo, redirect(own)).await;
    let problem = asset_problem(fake.hash_first().await);
    assert!(problem.to_string().contains("more than 5 redirects"), "{problem}");
}

#[tokio::test]
async fn a_missing_asset_and_a_page_in_its_place_are_refused() {
    let gone = reply("404 Not Found", "Content-Length: 0\r\n", "");
    assert_problem(ForgeKind::Github, gone, |problem| matches!(problem, AssetProblem::NotFound { .. })).await;
    let page = reply("200 OK", "Content-Type: text/html\r\nContent-Length: 5\r\n", "login");
    assert_problem(ForgeKind::Gitlab, page, |problem| matches!(problem, AssetProblem::WebPage { .. })).await;
    let broken = reply("500 Oops", "Content-Length: 0\r\n", "");
    let is_broken =
        |problem: &_| matches!(problem, AssetProblem::Fetch(FetchError::Status { status: 500, .. }));
    assert_problem(ForgeKind::Gitlab, broken, is_broken).await;
}

#[tokio::test]
async fn an_asset_that_stalls_or_drips_is_given_up() {
    for path in ["/stall", "/drip"] {
        let mut fake = Fake::with_first_asset(ForgeKind::Gitlab, redirect(path)).await;
        fake.fetcher = fake.fetcher.with_asset_timeout(Duration::from_millis(1_500));
        let problem = asset_problem(fake.hash_first().await);
        let is_fitting = match path {
            "/stall" => matches!(problem, AssetProblem::Fetch(FetchError::TimedOut { .. })),
            _ => matches!(problem, AssetProblem::Fetch(FetchError::TooSlow { .. })),
        };
        assert!(is_fitting, "{path}: {problem}");
    }
}

/// A document may come as slowly as 1 KiB a second, an asset as 16; the waiting is shortened by `Timeouts::pace`.
#[tokio::test]
async fn what_drips_is_given_up_long_before_the_whole_time_is_over() {
    let fake = Fake::start(ForgeKind::Gitlab, Access::Public, |routes| {
        routes.insert(release_api(ForgeKind::Gitlab).into(), redirect("/drip"));
        routes.insert(raw_request(ForgeKind::Gitlab).into(), redirect("/drip"));
    })
    .await;
    let error = fake.signers_below(100_000).await.unwrap_err();
    assert!(matches!(error, FetchError::TooSlow { bytes_per_second: 1_024, .. }), "{error}");
    assert!(error.to_string().contains("sends too slowly: less than 1024 bytes a second"), "{error}");
    let error = fake.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Fetch(FetchError::TooSlow { .. })), "{error}");

    // 50 bytes every 20 ms are enough for a document, and too few for an asset.
    let slow = Fake::start(ForgeKind::Gitlab, Access::Public, |routes| {
        routes.insert(raw_request(ForgeKind::Gitlab).into(), redirect("/steady"));
        routes.insert(first_asset(ForgeKind::Gitlab, Access::Public).into(), redirect("/steady"));
    })
    .await;
    assert_eq!(slow.signers_below(10_000).await.unwrap().bytes.len(), 5_000);
    let problem = asset_problem(slow.hash_first_below(10_000).await);
    assert!(
        matches!(problem, AssetProblem::Fetch(FetchError::TooSlow { bytes_per_second: 16_384, .. })),
        "{problem}"
    );
}
