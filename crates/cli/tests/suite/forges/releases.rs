//! POST /v1/assets in release mode: spec §4.10, D11, D23, D26, D36.

use countersign_core::values::digest::{Sha256, Sha512};
use serde_json::{Value, json};

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{Person, SignersFile, alice};

fn assets() -> [Asset; 3] {
    [
        Asset::new("z.tar.gz", "the archive"),
        Asset::new("app.bin", vec![7; 100_000]),
        Asset::new("empty.txt", ""),
    ]
}

fn entry(forge: &FakeForge, repository: &str, tag: &str, asset: &Asset) -> Value {
    json!({
        "file_name": asset.name,
        "size": asset.bytes.len(),
        "source": forge.url(&forge.asset_target(repository, tag, &asset.name)),
        "digests": {
            "sha256": Sha256::of(&asset.bytes).to_string(),
            "sha512": Sha512::of(&asset.bytes).to_string(),
        },
    })
}

#[test]
fn a_release_is_registered_with_both_digests_of_every_asset() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        let answer = forge.register_release(&url).ok();
        let index = forge.forge.index_path("acme/app", "v1.0");
        assert_eq!(
            answer,
            json!({ "success": true, "message": "Release registered successfully", "index_file_path": index })
        );

        let stored = forge.world.read_json(&index);
        let mirrored_on = stored["mirrored_on"].as_str().unwrap().to_owned();
        assert!(mirrored_on.ends_with('Z') && mirrored_on.len() == 20, "{mirrored_on}");
        let [z, app, empty] = assets().map(|asset| entry(&forge.forge, "acme/app", "v1.0", &asset));
        let expected = json!({
            "version": 1,
            "project_id": forge.forge.project("acme/app"),
            "release_url": url,
            "mirrored_on": mirrored_on,
            "published_on": "2026-01-20T08:00:00Z",
            "published_files": [app, empty, z],
        });
        assert_eq!(stored, expected, "{kind:?}");
        let signers = SignersFile::of(1, &[&alice()]).bytes();
        assert_eq!(forge.world.read(&format!("{index}.signers.json")), signers);
        let signatures = forge.world.read_json(&format!("{index}.signatures.json.pending"));
        assert_eq!(signatures, json!({ "entries": {} }));
        let stored = forge.world.git().paths();
        assert!(!stored.iter().any(|path| path.contains("app.bin")), "no asset is stored: {stored:?}");
        forge.world.sign_all(&index, &[&alice()]);
    }
}

#[test]
fn the_release_is_asked_for_where_the_kind_has_its_api() {
    for (kind, target) in [
        (Kind::GitHub, "/api/v3/repos/acme/app/releases/tags/v1.0"),
        (Kind::GitLab, "/api/v4/projects/acme%2Fapp/releases/v1.0"),
        (Kind::Forgejo, "/api/v1/repos/acme/app/releases/tags/v1.0"),
    ] {
        let forge = ForgeWorld::with_project(kind);
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        forge.register_release(&url).ok();
        assert_eq!(forge.forge.count(target), 1, "{:?}", forge.forge.targets());
    }
}

#[test]
fn a_configured_api_is_asked_instead_of_the_usual_place() {
    for kind in KINDS {
        let api = FakeForge::start(kind);
        let entry = format!("api = \"{}\"", api.url("/custom"));
        let forge = ForgeWorld::start_with(FakeForge::start(kind), &entry, "", &[]);
        forge.activate("acme/app");
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        let document = forge.forge.document("acme/app", "v1.0", &assets());
        api.set(&format!("/custom{}", kind.release_target("acme/app", "v1.0")), ForgeAnswer::json(&document));
        forge.register_release(&url).ok();
        assert!(!forge.forge.targets().iter().any(|target| target.starts_with("/api/")));
        assert!(api.targets().iter().all(|target| target.starts_with("/custom/")), "{:?}", api.targets());
    }
}

#[test]
fn a_tag_with_a_slash_works_escaped_and_not() {
    for kind in KINDS {
        for spelling in ["release/1.0", "release%2F1.0", "release%2f1.0"] {
            let forge = ForgeWorld::with_project(kind);
            forge.forge.put_release("acme/app", "release/1.0", &assets());
            let url = forge.forge.release_url("acme/app", spelling);
            let answer = forge.register_release(&url).ok();
            let index = forge.forge.index_path("acme/app", "release/1.0");
            assert_eq!(answer["index_file_path"], json!(index), "{kind:?} {spelling}");
            assert_eq!(forge.world.read_json(&index)["published_files"].as_array().unwrap().len(), 3);
        }
    }
}

#[test]
fn changed_assets_replace_a_collecting_index_and_not_a_complete_one() {
    for kind in KINDS {
        let bob = Person::named("bob");
        let forge = ForgeWorld::start(kind);
        let file = SignersFile::of(2, &[&alice(), &bob]);
        forge.forge.put_signers("acme/app", "main", "svc.signers.json", &file);
        forge.register(&forge.forge.url(&kind.page_of("acme/app", "main", "svc.signers.json"))).ok();
        let project = forge.forge.project("acme/app");
        forge.world.sign_all(&format!("{project}/svc.signers.pending/svc.signers.json"), &[&alice(), &bob]);

        let url = forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app", "one")]);
        let index = forge.forge.index_path("acme/app", "v1.0");
        forge.register_release(&url).ok();
        forge.world.sign(&alice(), &index).ok();
        let corrected = Asset::new("app", "two");
        forge.forge.put_release("acme/app", "v1.0", std::slice::from_ref(&corrected));
        forge.register_release(&url).ok();
        let published = forge.world.read_json(&index)["published_files"].clone();
        assert_eq!(published, json!([entry(&forge.forge, "acme/app", "v1.0", &corrected)]));
        let signatures = forge.world.read_json(&format!("{index}.signatures.json.pending"));
        assert_eq!(signatures, json!({ "entries": {} }), "its signatures are dropped");

        forge.world.sign_all(&index, &[&alice(), &bob]);
        forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app", "three")]);
        forge.register_release(&url).error(409);
    }
}

#[test]
fn a_stranger_is_refused_before_anything_is_fetched_and_before_409() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        forge.register_release(&url).ok();
        let before = forge.forge.targets().len();
        let mallory = Person::named("mallory");
        for tag in ["v1.0", "v2.0"] {
            let url = forge.forge.release_url("acme/app", tag);
            forge.world.server.send(&forge.release_request(&mallory, &url)).error(403);
        }
        assert_eq!(forge.forge.targets().len(), before);
    }
}

#[test]
fn a_project_without_active_signers_is_refused_before_anything_is_fetched() {
    for kind in KINDS {
        let forge = ForgeWorld::start(kind);
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        forge.register_release(&url).error(400);
        assert_eq!(forge.forge.targets(), [""; 0], "{kind:?}: not registered");
        forge.forge.put_signers("acme/app", "main", "svc.signers.json", &SignersFile::of(1, &[&alice()]));
        forge.register(&forge.forge.url(&kind.page_of("acme/app", "main", "svc.signers.json"))).ok();
        let before = forge.forge.targets().len();
        forge.register_release(&url).error(400);
        assert_eq!(forge.forge.targets().len(), before, "{kind:?}: pending");
    }
}
