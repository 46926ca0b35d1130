//! POST /v1/assets in release mode: spec §4.10, D11, D23, D26, D36.

use countersign_core::values::digest::{Sha256, Sha512};
use serde_json::{Value, json};

use crate::support::fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{SignersFile, alice, bob, mallory};

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
fn a_release_is_registered_with_both_digests_of_every_asset_and_corrected_until_it_is_complete() {
    for (kind, target) in [
        (Kind::GitHub, "/api/v3/repos/acme/app/releases/tags/v1.0"),
        (Kind::GitLab, "/api/v4/projects/acme%2Fapp/releases/v1.0"),
        (Kind::Forgejo, "/api/v1/repos/acme/app/releases/tags/v1.0"),
    ] {
        let (bob, mallory) = (bob(), mallory());
        let forge = ForgeWorld::start(kind);
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        // Before there are active signers, and for strangers, nothing is fetched.
        forge.register_release(&url).error(400);
        assert_eq!(forge.forge.targets(), [""; 0], "{kind:?}: not registered");
        let file = SignersFile::of(2, &[&alice(), &bob]);
        forge.forge.put_signers("acme/app", "main", "svc.signers.json", &file);
        forge.register(&forge.forge.url(&kind.page_of("acme/app", "main", "svc.signers.json"))).ok();
        let before = forge.forge.targets().len();
        forge.register_release(&url).error(400);
        assert_eq!(forge.forge.targets().len(), before, "{kind:?}: pending");
        let project = forge.forge.project("acme/app");
        forge.world.sign_all(&format!("{project}/svc.signers.pending/svc.signers.json"), &[&alice(), &bob]);

        let answer = forge.register_release(&url).ok();
        let index = forge.forge.index_path("acme/app", "v1.0");
        assert_eq!(
            answer,
            json!({ "success": true, "message": "Release registered successfully", "index_file_path": index })
        );
        assert_eq!(forge.forge.count(target), 1, "{:?}", forge.forge.targets());
        let before = forge.forge.targets().len();
        for tag in ["v1.0", "v2.0"] {
            let url = forge.forge.release_url("acme/app", tag);
            forge.world.server.send(&forge.release_request(&mallory, &url)).error(403);
        }
        assert_eq!(forge.forge.targets().len(), before, "a stranger is refused before anything is fetched");

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
        assert_eq!(forge.world.read(&format!("{index}.signers.json")), file.bytes());
        let paths = forge.world.git().paths();
        assert!(!paths.iter().any(|path| path.contains("app.bin")), "no asset is stored: {paths:?}");

        // Changed assets replace a collecting index and its signatures, and not a complete one.
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

        // A tag with a slash works escaped and not.
        for (tag, spelling) in [("release/1", "release/1"), ("release/2", "release%2F2"), ("a/3", "a%2f3")] {
            forge.forge.put_release("acme/app", tag, &assets());
            let answer = forge.register_release(&forge.forge.release_url("acme/app", spelling)).ok();
            let index = forge.forge.index_path("acme/app", tag);
            assert_eq!(answer["index_file_path"], json!(index), "{kind:?} {spelling}");
            assert_eq!(forge.world.read_json(&index)["published_files"].as_array().unwrap().len(), 3);
        }
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
