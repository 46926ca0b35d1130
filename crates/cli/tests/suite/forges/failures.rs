//! D24–D26, D28, D29: forges that misbehave. One failed asset fails the registration, and nothing is stored.

use countersign_core::values::time::Timestamp;
use serde_json::json;

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, Kind};
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

#[test]
fn whatever_a_forge_does_wrong_is_named_and_stands_in_the_way_of_nothing() {
    let private = FakeForge::start_on("127.0.0.2", Kind::GitHub);
    private.set("/x", ForgeAnswer::bytes("content"));
    private.set("/app.bin", ForgeAnswer::bytes("content"));
    let limits = "[limits]\nasset_bytes = 1000\nassets = 2\n[rate_limits]\nenabled = false\n";
    let forge = ForgeWorld::start_with(FakeForge::start(Kind::GitHub), "", limits, &[]);
    forge.activate("acme/app");
    let put = |assets: &[Asset]| forge.forge.put_release("acme/app", "v1.0", assets);
    let url = put(&assets());

    // Its API answers with an error.
    set_metadata(&forge, ForgeAnswer::status(503, "no"));
    forge.assert_fails(&url, &[&forge.forge.api_url(""), "503"]);
    set_metadata(&forge, ForgeAnswer::status(404, "Not Found"));
    forge.assert_fails(&url, &[&url]);
    // A rate limit with a delay says how long.
    set_metadata(&forge, ForgeAnswer::status(429, "slow down").with_header("retry-after", "7200"));
    let before = now().unix_seconds();
    let message = forge.assert_fails(&url, &[&forge.forge.host()]);
    let mut moments = (before..=now().unix_seconds() + 1)
        .map(|second| Timestamp::from_unix_seconds(second + 7200).unwrap().to_string());
    let told = ["7200", "2 h", "120 min"].iter().any(|words| message.contains(words))
        || moments.any(|moment| message.contains(&moment));
    assert!(told, "{message}");

    // One asset fails, and with it the release.
    put(&assets());
    for (answer, word) in [(ForgeAnswer::status(500, "no"), "500"), (ForgeAnswer::broken_off("conten"), "")] {
        set_asset(&forge, answer);
        forge.assert_fails(&url, &["app.bin", word]);
    }

    // A private address is refused before anything there is contacted.
    put(&assets());
    set_asset(&forge, ForgeAnswer::redirect(&private.url("/x")));
    forge.assert_fails(&url, &["app.bin"]);
    set_metadata(&forge, ForgeAnswer::redirect(&private.url("/x")));
    forge.assert_fails(&url, &[&forge.forge.host()]);
    let mut document = forge.forge.document("acme/app", "v1.0", &assets());
    document["assets"][1]["browser_download_url"] = json!(private.url("/app.bin"));
    forge.forge.put_document("acme/app", "v1.0", &document);
    forge.assert_fails(&url, &[]);

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
    assert_eq!(private.targets(), [""; 0]);
}
