//! D24–D26, D28, D29: forges that misbehave. One failed asset fails the registration, and nothing is stored.

use countersign_core::values::time::Timestamp;
use serde_json::{Value, json};

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{alice, people::now};

fn assets() -> [Asset; 2] {
    [Asset::new("good.bin", "good"), Asset::new("app.bin", "content")]
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
fn whatever_a_forge_does_wrong_is_named_and_stands_in_the_way_of_nothing() {
    let private = FakeForge::start_on("127.0.0.2", Kind::GitHub);
    private.set("/x", ForgeAnswer::bytes("content"));
    private.set("/app.bin", ForgeAnswer::bytes("content"));
    for kind in KINDS {
        let limits = "[limits]\nasset_bytes = 1000\nassets = 2\n[rate_limits]\nenabled = false\n";
        let forge = ForgeWorld::start_with(FakeForge::start(kind), "", limits, &[]);
        forge.activate("acme/app");
        let put = |assets: &[Asset]| forge.forge.put_release("acme/app", "v1.0", assets);
        let url = put(&assets());

        // Its API answers with an error.
        let api = forge.forge.api_url("");
        for status in [401, 403, 500, 502, 503] {
            set_metadata(&forge, ForgeAnswer::status(status, "no"));
            forge.assert_fails(&url, &[&api, &status.to_string()]);
        }
        for status in [404, 410] {
            set_metadata(&forge, ForgeAnswer::status(status, "Not Found"));
            forge.assert_fails(&url, &[&url]);
        }
        // A rate limit with a delay says how long.
        for status in if kind == Kind::GitHub { &[403, 429][..] } else { &[429] } {
            let limited = ForgeAnswer::status(*status, "slow down").with_header("retry-after", "7200");
            set_metadata(&forge, limited);
            let before = now().unix_seconds();
            let message = forge.assert_fails(&url, &[&forge.forge.host()]);
            let mut moments = (before..=now().unix_seconds() + 1)
                .map(|second| Timestamp::from_unix_seconds(second + 7200).unwrap().to_string());
            let told = ["7200", "2 h", "120 min"].iter().any(|words| message.contains(words))
                || moments.any(|moment| message.contains(&moment));
            assert!(told, "{kind:?} {status}: {message}");
        }

        // One asset fails, and with it the release.
        put(&assets());
        for (answer, word) in [
            (ForgeAnswer::status(404, "no"), "not found"),
            (ForgeAnswer::status(500, "no"), "500"),
            (ForgeAnswer::status(503, "no"), "503"),
            (ForgeAnswer::broken_off("content"), ""),
            (ForgeAnswer::broken_off("conten"), ""),
            (ForgeAnswer::endless(), ""),
        ] {
            set_asset(&forge, answer);
            forge.assert_fails(&url, &["app.bin", word]);
        }

        // A private address is refused before anything there is contacted.
        for location in [
            "http://10.0.0.1/x".to_owned(),
            "http://169.254.169.254/latest/meta-data".to_owned(),
            "http://[::1]/x".to_owned(),
            private.url("/x"),
            private.url("/x").replace("http:", "https:"),
            "file:///etc/passwd".to_owned(),
        ] {
            put(&assets());
            set_asset(&forge, ForgeAnswer::redirect(&location));
            forge.assert_fails(&url, &["app.bin"]);
            set_metadata(&forge, ForgeAnswer::redirect(&location));
            forge.assert_fails(&url, &[&forge.forge.host()]);
        }
        for location in ["http://10.0.0.1/app.bin".to_owned(), private.url("/app.bin")] {
            edit(&forge, |document| redirect_asset(kind, document, &location));
            forge.assert_fails(&url, &[]);
        }

        // Too large, and too many.
        let large = |bytes: usize| Asset::new("app.bin", vec![1; bytes]);
        put(&[large(1001)]);
        forge.assert_fails(&url, &["app.bin"]);
        let three: Vec<_> = (0..3).map(|n| Asset::new(&format!("a{n}"), "x")).collect();
        put(&three);
        forge.assert_fails(&url, &[]);
        assert_eq!(forge.forge.count(&forge.forge.asset_target("acme/app", "v1.0", "a0")), 0);
        put(&[large(1000), three[0].clone()]);
        forge.register_release(&url).ok();
        forge.world.sign_all(&forge.forge.index_path("acme/app", "v1.0"), &[&alice()]);
        forge.world.git().assert_sound();
    }
    assert_eq!(private.targets(), [""; 0]);
}

#[test]
fn a_forge_that_is_down_is_an_upstream_failure() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let entry = format!("api = \"http://{closed}/api/v1\"");
    let forge = ForgeWorld::start_with(FakeForge::start(Kind::Forgejo), &entry, "", &[]);
    forge.activate("acme/app");
    forge.assert_fails(&forge.forge.release_url("acme/app", "v1.0"), &[&closed.to_string()]);
}
