//! POST /v1/assets in release mode: spec §4.10, D11, D23, D26, D36.

use countersign_core::values::digest::{Sha256, Sha512};
use serde_json::{Value, json};

use crate::support::{
    Person, SignersFile,
    fake_forge::{Asset, FakeForge, ForgeAnswer, ForgeWorld, KINDS, Kind, alice},
};

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
fn a_gitlab_release_in_a_sub_group_is_found_by_its_encoded_path() {
    let forge = ForgeWorld::start(Kind::GitLab);
    forge.activate("acme/tools/app");
    let url = forge.forge.put_release("acme/tools/app", "v1.0", &assets());
    let answer = forge.register_release(&url).ok();
    assert_eq!(answer["index_file_path"], json!(forge.forge.index_path("acme/tools/app", "v1.0")));
    assert_eq!(forge.forge.count("/api/v4/projects/acme%2Ftools%2Fapp/releases/v1.0"), 1);
}

#[test]
fn the_generated_source_archives_of_gitlab_are_left_out() {
    let forge = ForgeWorld::with_project(Kind::GitLab);
    let url = forge.forge.put_release("acme/app", "v1.0", &assets());
    forge.register_release(&url).ok();
    assert!(!forge.forge.targets().iter().any(|target| target.contains("/archive/")));
}

#[test]
fn a_gitlab_asset_is_named_by_the_last_segment_of_its_direct_url() {
    let forge = ForgeWorld::with_project(Kind::GitLab);
    let url = forge.forge.put_release("acme/app", "v1.0", &[Asset::new("bin/linux/app%20one.bin", "x")]);
    forge.register_release(&url).ok();
    let index = forge.world.read_json(&forge.forge.index_path("acme/app", "v1.0"));
    assert_eq!(index["published_files"][0]["file_name"], json!("app one.bin"));
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
fn a_tag_with_percent_escapes_works() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        forge.forge.put_release("acme/app", "v1.0+é", &assets());
        let answer = forge.register_release(&forge.forge.release_url("acme/app", "v1.0%2B%C3%A9")).ok();
        assert_eq!(answer["index_file_path"], json!(forge.forge.index_path("acme/app", "v1.0+é")));
    }
}

#[test]
fn a_tag_that_cannot_be_stored_is_refused_before_anything_is_fetched() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let before = forge.forge.targets().len();
        for tag in [
            "..%2F..%2Fother",
            "a%2F%2Fb",
            "a%5Cb",
            "a%00b",
            "svc.signers",
            "SVC.x%2Fy",
            ".git",
            "v1.",
            "v1%E2%80%AE",
            &"x".repeat(201),
            "",
        ] {
            let reply = forge.register_release(&forge.forge.release_url("acme/app", tag));
            assert_eq!(reply.status, 400, "{kind:?} {tag}: {}", reply.text());
            reply.error(400);
        }
        assert_eq!(forge.forge.targets().len(), before);
    }
}

#[test]
fn the_same_content_again_is_409_in_every_state() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let url = forge.forge.put_release("acme/app", "v1.0", &assets());
        forge.register_release(&url).ok();
        let index = forge.forge.index_path("acme/app", "v1.0");
        let before = forge.world.read(&index);
        forge.register_release(&url).error(409);
        forge.world.sign(&alice(), &index).ok();
        forge.register_release(&url).error(409);
        forge.world.revoke(&alice(), &index).ok();
        forge.register_release(&url).error(409);
        assert_eq!(forge.world.read(&index), before);
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

#[test]
fn a_url_that_is_no_release_of_a_known_forge_is_refused() {
    let unknown = FakeForge::start(Kind::GitHub);
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let before = forge.forge.targets().len();
        let page = forge.forge.url("/acme/app");
        let mut urls = vec![
            unknown.url(&kind.release_page("acme/app", "v1.0")),
            forge.world.files.url(&kind.release_page("acme/app", "v1.0")),
            "https://example.org/acme/app/releases/tag/v1.0".to_owned(),
            format!("ftp://{}/acme/app/releases/tag/v1.0", forge.forge.host()),
            "not a url".to_owned(),
            String::new(),
            page.clone(),
            format!("{page}/releases"),
            format!("{page}/releases/latest"),
            format!("{page}/tree/v1.0"),
        ];
        urls.extend(
            KINDS
                .into_iter()
                .filter(|other| (*other == Kind::GitLab) != (kind == Kind::GitLab))
                .map(|other| forge.forge.url(&other.release_page("acme/app", "v1.0"))),
        );
        for url in urls {
            let reply = forge.register_release(&url);
            assert_eq!(reply.status, 400, "{kind:?} {url}: {}", reply.text());
            reply.error(400);
        }
        assert_eq!(forge.forge.targets().len(), before);
        assert_eq!(forge.world.files.asked(), [""; 0]);
    }
    assert_eq!(unknown.targets(), [""; 0]);
}

#[test]
fn both_fields_or_none_are_refused() {
    let forge = ForgeWorld::with_project(Kind::GitHub);
    let url = forge.forge.put_release("acme/app", "v1.0", &assets());
    let before = forge.forge.targets().len();
    let sums = forge.forge.url("/acme/app/SHA256SUMS");
    forge
        .world
        .post_as(&alice(), "/v1/assets", &json!({ "forge_release_url": url, "csum_files": [sums] }))
        .refused(400, "forge_release_url and csum_files are mutually exclusive");
    forge.world.post_as(&alice(), "/v1/assets", &json!({})).error(400);
    assert_eq!(forge.forge.targets().len(), before);
}

#[test]
fn an_asset_may_lie_behind_redirects() {
    for kind in KINDS {
        let forge = ForgeWorld::with_project(kind);
        let asset = Asset::new("app", "content");
        let url = forge.forge.put_release("acme/app", "v1.0", std::slice::from_ref(&asset));
        let target = forge.forge.asset_target("acme/app", "v1.0", "app");
        forge.forge.set(&target, ForgeAnswer::redirect("/storage/1"));
        for step in 1..5 {
            let next = forge.forge.url(&format!("/storage/{}", step + 1));
            forge.forge.set(&format!("/storage/{step}"), ForgeAnswer::redirect(&next));
        }
        forge.forge.set("/storage/5", ForgeAnswer::bytes("content"));
        forge.register_release(&url).ok();
        let index = forge.world.read_json(&forge.forge.index_path("acme/app", "v1.0"));
        assert_eq!(index["published_files"], json!([entry(&forge.forge, "acme/app", "v1.0", &asset)]));
    }
}

#[test]
fn an_asset_with_a_content_encoding_is_never_decoded() {
    let forge = ForgeWorld::with_project(Kind::GitLab);
    let asset = Asset::new("app.gz", *b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01\x02\x00\xfd\xff\x68\x69\xac\x2a\x93\xd8\x02\x00\x00\x00");
    let url = forge.forge.put_release("acme/app", "v1.0", std::slice::from_ref(&asset));
    let target = forge.forge.asset_target("acme/app", "v1.0", "app.gz");
    forge.forge.set(&target, ForgeAnswer::bytes(asset.bytes.clone()).with_header("content-encoding", "gzip"));
    let reply = forge.register_release(&url);
    // D28 says "no content decoding": the bytes as sent, or a refusal, and never what is packed inside.
    if reply.status == 200 {
        let index = forge.world.read_json(&forge.forge.index_path("acme/app", "v1.0"));
        assert_eq!(index["published_files"], json!([entry(&forge.forge, "acme/app", "v1.0", &asset)]));
    } else {
        reply.refused(500, "app.gz");
    }
}
