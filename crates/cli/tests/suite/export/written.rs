//! What `export` writes: the exact bytes, by every name of a release.

use countersign_core::values::{digest::Sha256, digest::Sha512, key::decode_base64};
use serde_json::json;

use super::scene::{FILES, Scene, asking, assert_verified, run_script, signers};
use crate::support::client::{Computer, add_files};
use crate::support::{SignersFile, World, days_ago, keys::has_openssl, person};

const OPENSSL: [&str; 2] = ["--for", "openssl"];

#[test]
fn the_exact_bytes_that_were_signed_are_written() {
    let scene = Scene::complete();
    let report = scene.export("openssl");
    let read = |name: &str| scene.computer.read(&format!("openssl/{name}"));
    let index = scene.world.read(&scene.index);
    assert_eq!(read("svc.index.json"), index);
    assert_eq!(read("svc.index.json.sha512"), Sha512::of(&index).as_bytes());
    assert_eq!(read("svc.signers.json"), asking().bytes());
    for (id, name) in [("signer-1", "alice"), ("signer-2", "bob")] {
        let signature = decode_base64(&person(name).sign_bytes(&index)).unwrap();
        assert_eq!(read(&format!("signatures/{id}.sig")), signature);
    }
    let sums: String = FILES.map(|(name, content)| format!("{}  {name}\n", Sha256::of(content))).concat();
    assert_eq!(String::from_utf8(read("SHA256SUMS")).unwrap(), sums);
    let expected = [
        "svc.index.json", "svc.index.json.sha512", "svc.signers.json", "SHA256SUMS", "keys/signer-1.pem",
        "signatures/signer-1.sig", "keys/signer-2.pem", "signatures/signer-2.sig", "keys/signer-3.pem",
        "keys/signer-4.pem", "verify.sh",
    ];
    assert_eq!(report["files"], json!(expected));
    assert_eq!((&report["format"], &report["index_path"]), (&json!("openssl"), &json!(scene.index)));
    // With this digest people see that a script was changed.
    assert_eq!(report["script_sha256"], Sha256::of(&read("verify.sh")).to_string());
    // Another computer gets the same bytes, so that people can compare the scripts.
    let other = Computer::of(&scene.world.server);
    let project = scene.world.id("acme/app");
    let told = other.run(&[&["export", &project, "1.0", "-o", "a/b"][..], &OPENSSL].concat()).ok();
    told.says(&["sh a/b/verify.sh", report["script_sha256"].as_str().unwrap()]);
    for name in expected {
        assert_eq!(other.read(&format!("a/b/{name}")), read(name), "{name}");
    }
}

/// Not the newest one, whose keys never signed this release.
#[test]
fn the_signers_file_is_the_one_that_governs_the_release() {
    let (alice, bob) = (person("alice"), person("bob"));
    let first = SignersFile::of(1, &[&alice]);
    let world = World::with_project(&first, &[&alice]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice]);
    let second = SignersFile::of(1, &[&bob]).redated(days_ago(5));
    world.rotate("acme/app", &second, &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    computer.run(&[&["export", &index, "-o", "out"][..], &OPENSSL].concat()).ok();
    assert_eq!(computer.read("out/svc.signers.json"), first.bytes());
    let script = String::from_utf8(computer.read("out/verify.sh")).unwrap();
    assert!(script.contains(&alice.key()) && !script.contains(&bob.key()), "{script}");
    computer.write("files/app", "content");
    if has_openssl() {
        assert_verified(run_script("sh", &computer.path("out"), &["../files"]));
    }
}

#[test]
fn too_few_signatures_in_a_format_are_not_exported() {
    let scene = Scene::collecting(&signers());
    scene.sign("alice", &["--also", "ssh"]).ok();
    scene.sign("bob", &[]).ok().says(&["complete"]);
    let words =
        ["too few have signed", "for ssh: it has 1 of 2 and has 1 of 1, and no one can add", "--for openssl"];
    scene.try_export("ssh", "out", &[]).failed(1).says(&words);
    let none = scene.try_export("minisign", "out", &[]).failed(1);
    none.says(&["for minisign: it has 0 of 2 and has 0 of 1", "--format minisign"]);
    scene.try_export("openssl", "out", &[]).ok();
}
