//! D24–D26, D28, D29: forges that misbehave. One failed asset fails the registration, and nothing is stored.

use serde_json::{Value, json};

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{alice, people::now};

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
