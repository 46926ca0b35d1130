//! POST /v1/assets in checksums mode: spec §4.10, D11, D16, D23, D36.

use countersign_core::values::digest::Sha512;
use serde_json::{Value, json};

use crate::support::{Person, SignersFile, World, world::checksums};

fn alice() -> Person {
    Person::named("alice")
}

fn file() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

fn world() -> World {
    World::with_project(&file(), &[&alice()])
}

#[test]
fn a_release_is_registered_from_its_checksums() {
    let world = world();
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let url = world.publish_checksums("acme/app/v1", &format!("{b}  z.tar.gz\n{a} *dir/a.bin\n"));
    let answer = world.register_assets(&alice(), &[&url]).ok();
    let index = world.index_path("acme/app/v1");
    assert_eq!(
        answer,
        json!({ "success": true, "message": "Assets registered successfully", "index_file_path": index })
    );

    let stored = world.read_json(&index);
    let mirrored_on = stored["mirrored_on"].as_str().unwrap().to_owned();
    assert!(mirrored_on.ends_with('Z') && mirrored_on.len() == 20, "{mirrored_on}");
    let file = |name: &str, digest: &str| {
        let source = world.files.url(&format!("/acme/app/v1/{name}"));
        json!({ "file_name": name, "size": null, "source": source, "digests": { "sha256": digest } })
    };
    let expected = json!({
        "version": 1,
        "project_id": world.id("acme/app"),
        "release_url": null,
        "mirrored_on": mirrored_on,
        "published_on": null,
        "published_files": [file("dir/a.bin", &a), file("z.tar.gz", &b)],
    });
    assert_eq!(stored, expected);
    assert_eq!(world.read(&format!("{index}.signers.json")), self::file().bytes());
    assert_eq!(world.read_json(&format!("{index}.signatures.json.pending")), json!({ "entries": {} }));
}

#[test]
fn both_or_neither_field_is_refused() {
    let world = world();
    let url = world.publish_checksums("acme/app/v1", &checksums("v1"));
    let release = "https://github.com/acme/app/releases/tag/v1";
    let both = json!({ "forge_release_url": release, "csum_files": [url] });
    let message = world.post_as(&alice(), "/v1/assets", &both).error(400);
    assert_eq!(message, "forge_release_url and csum_files are mutually exclusive");
    for neither in
        [json!({}), json!({ "csum_files": [] }), json!({ "csum_files": null, "forge_release_url": null })]
    {
        world.post_as(&alice(), "/v1/assets", &neither).error(400);
    }
}

#[test]
fn a_release_url_outside_a_known_forge_is_refused() {
    let world = world();
    for url in ["", "x", "http://127.0.0.1/a/b/releases/tag/v1", "https://example.org/a/b/releases/tag/v1"] {
        world.post_as(&alice(), "/v1/assets", &json!({ "forge_release_url": url })).error(400);
    }
    world.post_as(&alice(), "/v1/assets", &json!({ "forge_release_url": 7 })).error(400);
}

#[test]
fn all_checksums_files_share_one_origin_and_directory() {
    let world = world();
    let url = world.publish_checksums("acme/app/v1", &checksums("v1"));
    let elsewhere = crate::support::FileServer::start();
    let before = world.files.asked().len();
    for others in [
        vec![url.clone(), world.files.url("/acme/app/v2/SHA256SUMS")],
        vec![url.clone(), world.files.url("/acme/app/v1/sub/SHA256SUMS")],
        vec![url.clone(), elsewhere.url("/acme/app/v1/SHA256SUMS")],
        vec![url.clone(), url.replace("127.0.0.1", "localhost")],
        vec![url.clone(), "x".to_owned()],
        vec!["x".to_owned()],
        vec![world.files.url("/acme/app/v1/")],
        vec![format!("{url}?x=1")],
        vec![format!("{url}#x")],
        vec![url.replace("http://", "ftp://")],
        vec![url.replace("http://", "http://me:pw@")],
    ] {
        let urls: Vec<_> = others.iter().map(String::as_str).collect();
        let reply = world.register_assets(&alice(), &urls);
        assert_eq!(reply.status, 400, "{urls:?}: {}", reply.text());
        reply.error(400);
    }
    world.post_as(&alice(), "/v1/assets", &json!({ "csum_files": url })).error(400);
    world.post_as(&alice(), "/v1/assets", &json!({ "csum_files": [7] })).error(400);
    assert_eq!(world.files.asked().len(), before, "nothing is fetched for URLs that the rules refuse");
}

#[test]
fn sixteen_checksums_files_are_allowed_and_no_more() {
    let world = world();
    let urls: Vec<_> = (0..17)
        .map(|n| {
            let path = format!("/acme/app/v1/SUMS{n}");
            world.files.put(&path, format!("{}  file{n:02}\n", "a".repeat(64)));
            world.files.url(&path)
        })
        .collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    world.register_assets(&alice(), &urls).error(400);
    let index = world.register_assets(&alice(), &urls[..16]).ok();
    let index = world.read_json(index["index_file_path"].as_str().unwrap());
    assert_eq!(index["published_files"].as_array().unwrap().len(), 16);
}

#[test]
fn a_stranger_is_refused_before_anything_is_fetched_and_before_409() {
    let world = world();
    world.add_release(&alice(), "acme/app/v1");
    let before = world.files.asked().len();
    let mallory = Person::named("mallory");
    for dir in ["acme/app/v1", "acme/app/v2"] {
        let url = world.files.url(&format!("/{dir}/SHA256SUMS"));
        world.register_assets(&mallory, &[&url]).error(403);
    }
    assert_eq!(world.files.asked().len(), before);
}

#[test]
fn every_role_of_the_project_may_register_assets() {
    let (bob, carol, dave) = (Person::named("bob"), Person::named("carol"), Person::named("dave"));
    let file = file().admin(1, &[&bob]).master(1, &[&carol]).revocation(1, &[&dave]);
    let world = World::with_project(&file, &[&alice(), &bob, &carol, &dave]);
    for (dir, person) in [("a", &alice()), ("b", &bob), ("c", &carol), ("d", &dave)] {
        world.add_release(person, &format!("acme/app/{dir}"));
    }
}

#[test]
fn a_directory_that_no_active_signers_file_governs_is_refused() {
    let world = world();
    world.register(&alice(), "pending", &file()).ok();
    for dir in ["other/v1", "acme", "acme/application/v1", "pending/v1"] {
        let url = world.publish_checksums(dir, &checksums("v1"));
        let before = world.files.asked().len();
        world.register_assets(&alice(), &[&url]).error(400);
        assert_eq!(world.files.asked().len(), before, "{dir} is refused before anything is fetched");
    }
}

#[test]
fn the_project_directory_itself_may_hold_an_index() {
    let world = world();
    world.add_release(&alice(), "acme/app");
}

#[test]
fn the_same_content_again_is_409_in_every_state() {
    let world = world();
    let index = world.add_release(&alice(), "acme/app/v1");
    let url = world.files.url("/acme/app/v1/SHA256SUMS");
    let before = world.read(&index);
    world.register_assets(&alice(), &[&url]).error(409);
    world.sign(&alice(), &index).ok();
    world.register_assets(&alice(), &[&url]).error(409);
    world.revoke(&alice(), &index).ok();
    world.register_assets(&alice(), &[&url]).error(409);
    assert_eq!(world.read(&index), before);
}

#[test]
fn the_same_files_in_another_notation_are_the_same_content() {
    let world = world();
    let digest = "a".repeat(64);
    let url = world.publish_checksums("acme/app/v1", &format!("{digest}  app\n"));
    world.register_assets(&alice(), &[&url]).ok();
    world.publish_checksums("acme/app/v1", &format!("# again\nSHA256 (./app) = {digest}\n"));
    world.register_assets(&alice(), &[&url]).error(409);
}

#[test]
fn other_content_replaces_a_collecting_index_and_drops_its_signatures() {
    let bob = Person::named("bob");
    let world = World::with_project(&SignersFile::of(2, &[&alice(), &bob]), &[&alice(), &bob]);
    let index = world.add_release(&alice(), "acme/app/v1");
    world.sign(&alice(), &index).ok();
    let url = world.publish_checksums("acme/app/v1", &checksums("corrected"));
    let answer = world.register_assets(&alice(), &[&url]).ok();
    assert_eq!(answer["replaced"], json!({ "signatures": [alice().key()] }));

    let digest = &Sha512::of(b"corrected").to_string()[..64];
    assert_eq!(world.read_json(&index)["published_files"][0]["digests"], json!({ "sha256": digest }));
    assert_eq!(world.read_json(&format!("{index}.signatures.json.pending")), json!({ "entries": {} }));
    assert_eq!(world.pending(&alice()), [index.as_str()]);
    world.sign_all(&index, &[&alice(), &bob]);
}

#[test]
fn other_content_does_not_replace_a_complete_or_revoked_index() {
    let world = world();
    let index = world.add_signed_release("acme/app/v1", &[&alice()]);
    let url = world.publish_checksums("acme/app/v1", &checksums("corrected"));
    let message = world.register_assets(&alice(), &[&url]).error(409);
    assert!(message.contains("directory"), "it says to use a directory per version: {message}");
    world.revoke(&alice(), &index).ok();
    world.register_assets(&alice(), &[&url]).error(409);
}

#[test]
fn bodies_are_json_of_the_right_shape() {
    let world = world();
    for body in [Value::Null, json!([]), json!("x"), json!({ "csum_files": {} })] {
        world.post_as(&alice(), "/v1/assets", &body).error(400);
    }
}
