//! D24–D26, D28, D29: forges that misbehave. One failed asset fails the registration, and nothing is stored.

use countersign_core::values::digest::Sha256;
use serde_json::{Value, json};

use crate::support::{
    fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind, alice},
    people::now,
};

fn assets() -> [Asset; 2] {
    [Asset::new("good.bin", "good"), Asset::new("app.bin", "content")]
}

fn published(kind: Kind) -> (ForgeWorld, String) {
    publish(ForgeWorld::with_project(kind))
}

fn publish(forge: ForgeWorld) -> (ForgeWorld, String) {
    let url = forge.forge.put_release("acme/app", "v1.0", &assets());
    (forge, url)
}

fn set_metadata(forge: &ForgeWorld, answer: ForgeAnswer) {
    forge.forge.set(&forge.forge.release_target("acme/app", "v1.0"), answer);
}

fn set_asset(forge: &ForgeWorld, answer: ForgeAnswer) {
    forge.forge.set(&forge.forge.asset_target("acme/app", "v1.0", "app.bin"), answer);
}

/// Publishes the release's document after a change.
fn edit(forge: &ForgeWorld, change: impl FnOnce(&mut Value)) {
    let mut document = forge.forge.document("acme/app", "v1.0", &assets());
    change(&mut document);
    forge.forge.put_document("acme/app", "v1.0", &document);
}

/// The list of assets inside a document of this kind.
fn listed(kind: Kind, document: &mut Value) -> &mut Vec<Value> {
    let assets =
        if kind == Kind::GitLab { &mut document["assets"]["links"] } else { &mut document["assets"] };
    assets.as_array_mut().unwrap()
}

/// Where the second asset comes from, in a document of this kind.
fn redirect_asset(kind: Kind, document: &mut Value, url: &str) {
    let asset = &mut listed(kind, document)[1];
    if kind == Kind::GitLab {
        asset["url"] = json!(url);
        asset["direct_asset_url"] = json!(url);
    } else {
        asset["browser_download_url"] = json!(url);
    }
}

#[test]
fn a_draft_is_refused_with_the_reason() {
    for kind in [Kind::GitHub, Kind::Forgejo] {
        let (forge, url) = published(kind);
        edit(&forge, |document| document["draft"] = json!(true));
        let message = forge.assert_fails(&url, &[&forge.forge.host()]);
        assert!(message.to_lowercase().contains("draft"), "{message}");
    }
}

#[test]
fn a_release_without_assets_is_refused_with_the_reason() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        edit(&forge, |document| listed(kind, document).clear());
        let message = forge.assert_fails(&url, &[&forge.forge.host()]);
        assert!(message.contains("asset"), "{message}");
    }
}

#[test]
fn duplicate_asset_names_are_refused_by_name() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        edit(&forge, |document| {
            let assets = listed(kind, document);
            let second = assets[1].clone();
            assets.push(second);
        });
        forge.assert_fails(&url, &["app.bin"]);
    }
}

#[test]
fn an_asset_name_that_could_lead_elsewhere_is_refused() {
    for kind in [Kind::GitHub, Kind::Forgejo] {
        let (forge, url) = published(kind);
        let long = "x".repeat(201);
        for name in [
            "/etc/passwd",
            "../up",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            "..",
            ".",
            "",
            "a\\b",
            "a\u{7}b",
            "a\nb",
            "a\u{200b}b",
            "a\u{202e}b",
            "a\u{2028}b",
            &long,
        ] {
            edit(&forge, |document| listed(kind, document)[1]["name"] = json!(name));
            let message = forge.assert_fails(&url, &[]);
            assert!(!message.contains(['\u{7}', '\n', '\u{200b}', '\u{202e}', '\u{2028}']), "{message:?}");
        }
    }
    let (forge, url) = published(Kind::GitLab);
    for name in ["a%2Fb", "%2E%2E", "..%2Fup", "a%5Cb", "a%00b", "a%E2%80%AEb", ""] {
        let direct = forge.forge.url(&format!("/acme/app/-/releases/v1.0/downloads/{name}"));
        edit(&forge, |document| redirect_asset(Kind::GitLab, document, &direct));
        forge.assert_fails(&url, &[]);
    }
}

#[test]
fn a_page_or_half_a_document_instead_of_json_is_an_error_that_names_the_url() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        let document = forge.forge.document("acme/app", "v1.0", &assets()).to_string();
        for answer in [
            ForgeAnswer::html(),
            ForgeAnswer::bytes("").with_header("content-type", "application/json"),
            ForgeAnswer::bytes(&document.as_bytes()[..document.len() / 2]),
            ForgeAnswer::broken_off(document.clone()),
            ForgeAnswer::json(&json!([])),
            ForgeAnswer::json(&json!({})),
            ForgeAnswer::json(&json!({ "tag_name": "v1.0", "assets": "many" })),
            ForgeAnswer::endless(),
        ] {
            set_metadata(&forge, answer);
            forge.assert_fails(&url, &[&forge.forge.host()]);
        }
    }
}

#[test]
fn a_document_of_another_release_is_refused() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        edit(&forge, |document| document["tag_name"] = json!("v0.9"));
        forge.assert_fails(&url, &[]);
    }
}

#[test]
fn an_api_that_answers_with_an_error_is_named_with_its_status() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        let api = forge.forge.api_url("");
        for status in [401, 403, 500, 502, 503] {
            set_metadata(&forge, ForgeAnswer::status(status, "no"));
            forge.assert_fails(&url, &[&api, &status.to_string()]);
        }
        for status in [404, 410] {
            set_metadata(&forge, ForgeAnswer::status(status, "Not Found"));
            forge.assert_fails(&url, &[&url]);
        }
    }
}

#[test]
fn an_asset_that_fails_is_named_and_fails_the_whole_release() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        for (answer, word) in [
            (ForgeAnswer::status(404, "no"), "not found"),
            (ForgeAnswer::status(500, "no"), "500"),
            (ForgeAnswer::status(503, "no"), "503"),
            (ForgeAnswer::broken_off("content"), ""),
            (ForgeAnswer::broken_off("conten"), ""),
        ] {
            set_asset(&forge, answer);
            forge.assert_fails(&url, &["app.bin", word]);
        }
        set_asset(&forge, ForgeAnswer::bytes("content"));
        forge.register_release(&url).ok();
    }
}

#[test]
fn an_asset_of_another_size_than_the_api_says_is_refused() {
    for kind in [Kind::GitHub, Kind::Forgejo] {
        let (forge, url) = published(kind);
        for bytes in ["conten", "content!", "", "much more content than was announced"] {
            set_asset(&forge, ForgeAnswer::bytes(bytes));
            forge.assert_fails(&url, &["app.bin"]);
        }
        set_asset(&forge, ForgeAnswer::endless());
        forge.assert_fails(&url, &["app.bin"]);
    }
}

#[test]
fn an_asset_with_another_digest_than_the_api_says_is_refused() {
    let (forge, url) = published(Kind::GitHub);
    set_asset(&forge, ForgeAnswer::bytes("CONTENT"));
    let message = forge.assert_fails(&url, &["app.bin"]);
    assert!(message.contains("digest") || message.to_lowercase().contains("sha"), "{message}");
    let other = format!("sha256:{}", Sha256::of(b"other"));
    set_asset(&forge, ForgeAnswer::bytes("content"));
    edit(&forge, |document| listed(Kind::GitHub, document)[1]["digest"] = json!(other));
    forge.assert_fails(&url, &["app.bin"]);
}

#[test]
fn an_older_github_that_publishes_no_digest_is_taken() {
    for digest in [Some(Value::Null), None] {
        let (forge, url) = published(Kind::GitHub);
        edit(&forge, |document| {
            for asset in listed(Kind::GitHub, document) {
                match &digest {
                    Some(value) => asset["digest"] = value.clone(),
                    None => drop(asset.as_object_mut().unwrap().remove("digest")),
                }
            }
        });
        forge.register_release(&url).ok();
    }
}

#[test]
fn endless_redirects_are_given_up() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        let target = forge.forge.asset_target("acme/app", "v1.0", "app.bin");
        set_asset(&forge, ForgeAnswer::redirect(&forge.forge.url(&target)));
        let message = forge.assert_fails(&url, &["app.bin"]);
        assert!(message.contains("redirect"), "{message}");
        assert!(forge.forge.count(&target) <= 6, "five redirects are followed and no more");
        set_asset(&forge, ForgeAnswer::bytes("content"));
        let target = forge.forge.release_target("acme/app", "v1.0");
        let before = forge.forge.count(&target);
        set_metadata(&forge, ForgeAnswer::redirect(&forge.forge.url(&target)));
        forge.assert_fails(&url, &["redirect"]);
        assert!(forge.forge.count(&target) - before <= 6);
    }
}

#[test]
fn a_redirect_to_a_private_address_is_refused_before_anything_there_is_contacted() {
    let private = FakeForge::start_on("127.0.0.2", Kind::GitHub);
    private.set("/x", ForgeAnswer::bytes("content"));
    for kind in KINDS {
        let (forge, url) = published(kind);
        for location in [
            "http://10.0.0.1/x".to_owned(),
            "http://169.254.169.254/latest/meta-data".to_owned(),
            "http://[::1]/x".to_owned(),
            private.url("/x"),
            private.url("/x").replace("http:", "https:"),
            "file:///etc/passwd".to_owned(),
        ] {
            set_asset(&forge, ForgeAnswer::redirect(&location));
            forge.assert_fails(&url, &["app.bin"]);
            set_asset(&forge, ForgeAnswer::bytes("content"));
            let document = forge.forge.document("acme/app", "v1.0", &assets());
            set_metadata(&forge, ForgeAnswer::redirect(&location));
            forge.assert_fails(&url, &[&forge.forge.host()]);
            set_metadata(&forge, ForgeAnswer::json(&document));
        }
    }
    assert_eq!(private.targets(), [""; 0]);
}

#[test]
fn an_asset_url_on_a_private_address_is_refused_before_anything_there_is_contacted() {
    let private = FakeForge::start_on("127.0.0.2", Kind::GitHub);
    private.set("/app.bin", ForgeAnswer::bytes("content"));
    for kind in KINDS {
        let (forge, url) = published(kind);
        for location in ["http://10.0.0.1/app.bin".to_owned(), private.url("/app.bin")] {
            edit(&forge, |document| redirect_asset(kind, document, &location));
            forge.assert_fails(&url, &[]);
        }
    }
    assert_eq!(private.targets(), [""; 0]);
}

#[test]
fn an_asset_above_the_limit_is_refused_however_its_size_is_told() {
    for kind in KINDS {
        let forge = ForgeWorld::start_with(FakeForge::start(kind), "", "[limits]\nasset_bytes = 1000\n", &[]);
        forge.activate("acme/app");
        let at_limit = Asset::new("app.bin", vec![1; 1000]);
        let url = forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app.bin", vec![1; 1001])]);
        forge.assert_fails(&url, &["app.bin"]);
        forge.forge.put_release("acme/app", "v1.0", std::slice::from_ref(&at_limit));
        set_asset(&forge, ForgeAnswer::endless());
        forge.assert_fails(&url, &["app.bin"]);
        forge.forge.put_release("acme/app", "v1.0", &[at_limit]);
        forge.register_release(&url).ok();
    }
}

#[test]
fn more_assets_than_the_limit_are_refused() {
    for kind in KINDS {
        let forge = ForgeWorld::start_with(FakeForge::start(kind), "", "[limits]\nassets = 2\n", &[]);
        forge.activate("acme/app");
        let three: Vec<_> = (0..3).map(|n| Asset::new(&format!("a{n}"), "x")).collect();
        let url = forge.forge.put_release("acme/app", "v1.0", &three);
        forge.assert_fails(&url, &[]);
        assert_eq!(forge.forge.count(&forge.forge.asset_target("acme/app", "v1.0", "a0")), 0);
        forge.forge.put_release("acme/app", "v1.0", &three[..2]);
        forge.register_release(&url).ok();
    }
}

#[test]
fn a_rate_limit_says_when_to_try_again() {
    // 1893456000 is the first second of 2030.
    let reset = "1893456000";
    let limits = [
        (Kind::GitHub, 403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]),
        (Kind::GitHub, 429, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]),
        (Kind::GitLab, 429, vec![("ratelimit-remaining", "0"), ("ratelimit-reset", reset)]),
        (Kind::Forgejo, 429, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]),
    ];
    for (kind, status, headers) in limits {
        let (forge, url) = published(kind);
        let answer = ForgeAnswer::status(status, "API rate limit exceeded");
        let answer = headers.iter().fold(answer, |answer, (name, value)| answer.with_header(name, value));
        set_metadata(&forge, answer);
        let message = forge.assert_fails(&url, &[&forge.forge.host()]);
        assert!(message.contains("2030-01-01"), "{kind:?}: {message}");
    }
}

#[test]
fn a_rate_limit_with_a_delay_says_how_long() {
    for (kind, status) in
        [(Kind::GitHub, 403), (Kind::GitHub, 429), (Kind::GitLab, 429), (Kind::Forgejo, 429)]
    {
        let (forge, url) = published(kind);
        set_metadata(&forge, ForgeAnswer::status(status, "slow down").with_header("retry-after", "7200"));
        let before = now().unix_seconds();
        let message = forge.assert_fails(&url, &[&forge.forge.host()]);
        let after = now().unix_seconds();
        let moments: Vec<_> = (before..=after + 1)
            .map(|second| {
                countersign_core::values::time::Timestamp::from_unix_seconds(second + 7200)
                    .unwrap()
                    .to_string()
            })
            .collect();
        let told = ["7200", "2 h", "120 min"].iter().any(|words| message.contains(words))
            || moments.iter().any(|moment| message.contains(moment));
        assert!(told, "{kind:?} {status}: {message}");
    }
}

#[test]
fn a_forge_that_stalls_is_given_up() {
    for kind in KINDS {
        let limits = "[fetch]\nidle_timeout_seconds = 1\n";
        let forge = ForgeWorld::start_with(FakeForge::start(kind), "", limits, &[]);
        forge.activate("acme/app");
        let (forge, url) = publish(forge);
        let (stalled, _asset) = ForgeAnswer::bytes("content").held();
        set_asset(&forge, stalled);
        forge.assert_fails(&url, &["app.bin"]);
        let (stalled, _metadata) = ForgeAnswer::bytes("{\"tag_name\":").held();
        set_metadata(&forge, stalled);
        forge.assert_fails(&url, &[&forge.forge.host()]);
    }
}

#[test]
fn a_forge_that_is_down_is_an_upstream_failure() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let entry = format!("api = \"http://{closed}/api/v1\"");
    let forge = ForgeWorld::start_with(FakeForge::start(Kind::Forgejo), &entry, "", &[]);
    forge.activate("acme/app");
    forge.assert_fails(&forge.forge.release_url("acme/app", "v1.0"), &[&closed.to_string()]);
}

#[test]
fn a_failure_does_not_stand_in_the_way_of_a_later_registration() {
    for kind in KINDS {
        let (forge, url) = published(kind);
        set_asset(&forge, ForgeAnswer::status(502, "no"));
        forge.assert_fails(&url, &["502"]);
        set_asset(&forge, ForgeAnswer::bytes("content"));
        forge.register_release(&url).ok();
        forge.world.sign_all(&forge.forge.index_path("acme/app", "v1.0"), &[&alice()]);
        forge.world.git().assert_sound();
    }
}
