//! What `export` writes, and that stock tools read it.

use std::{fs, process::Command};

use countersign_core::values::{digest::Sha256, digest::Sha512, key::decode_base64};
use serde_json::json;

use super::scene::{Exported, FILES, OPENSSL, assert_verified, run_script, shells, signers};
use crate::support::client::{Computer, add_files};
use crate::support::fake_forge::{Asset, ForgeWorld, Kind};
use crate::support::{SignersFile, World, days_ago, keys::installed, keys::run_tool, person};

#[test]
fn the_exact_bytes_that_were_signed_are_written() {
    let exported = Exported::new();
    let read = |name: &str| fs::read(exported.dir().join(name)).unwrap();
    let index = exported.world.read(&exported.index);
    assert_eq!(read("svc.index.json"), index);
    assert_eq!(read("svc.index.json.sha512"), Sha512::of(&index).as_bytes());
    assert_eq!(read("svc.signers.json"), signers().bytes());
    for (id, name) in [("signer-1", "alice"), ("signer-2", "bob")] {
        let signature = decode_base64(&person(name).sign_bytes(&index)).unwrap();
        assert_eq!(read(&format!("signatures/{id}.sig")), signature);
    }
    let sums: String = FILES.map(|(name, content)| format!("{}  {name}\n", Sha256::of(content))).concat();
    assert_eq!(String::from_utf8(read("SHA256SUMS")).unwrap(), sums);
    let expected = [
        "svc.index.json",
        "svc.index.json.sha512",
        "svc.signers.json",
        "SHA256SUMS",
        "keys/signer-1.pem",
        "signatures/signer-1.sig",
        "keys/signer-2.pem",
        "signatures/signer-2.sig",
        "keys/signer-3.pem",
        "keys/signer-4.pem",
        "verify.sh",
    ];
    assert_eq!(exported.report["files"], json!(expected));
    assert_eq!(exported.report["format"], "openssl");
    assert_eq!(exported.report["script_sha256"], Sha256::of(&read("verify.sh")).to_string());
    assert_eq!(exported.report["index_path"], exported.index);
    // Another computer gets the same bytes, so that people can compare the scripts.
    let other = Computer::of(&exported.world.server);
    let told = other.run(&[&["export", &exported.index, "-o", "a/b"][..], &OPENSSL].concat()).ok();
    told.says(&["sh a/b/verify.sh", exported.report["script_sha256"].as_str().unwrap()]);
    for name in expected {
        assert_eq!(other.read(&format!("a/b/{name}")), read(name), "{name}");
    }
}

#[test]
fn openssl_and_sha256sum_read_it_without_the_script() {
    if shells().is_empty() || !installed("sha256sum") {
        return;
    }
    let exported = Exported::new();
    for id in ["signer-1", "signer-2"] {
        let (key, signature) = (format!("keys/{id}.pem"), format!("signatures/{id}.sig"));
        let args = ["-verify", "-pubin", "-inkey", &key, "-rawin", "-in", "svc.index.json.sha512"];
        let mut openssl = Command::new("openssl");
        openssl.arg("pkeyutl").args(args).args(["-sigfile", &signature]).current_dir(exported.dir());
        assert!(run_tool(&mut openssl).contains("Verified Successfully"));
    }
    let digest = run_tool(
        Command::new("openssl").args(["dgst", "-sha512", "-r", "svc.index.json"]).current_dir(exported.dir()),
    );
    assert!(digest.starts_with(&Sha512::of(&exported.world.read(&exported.index)).to_string()));
    let mut sums = Command::new("sha256sum");
    sums.args(["--strict", "-c", "../out/SHA256SUMS"]).current_dir(exported.files());
    assert_eq!(run_tool(&mut sums).matches(": OK").count(), FILES.len());
}

#[test]
fn every_name_of_a_release_will_do() {
    let world = World::with_project(&SignersFile::of(1, &[&person("alice")]), &[&person("alice")]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&person("alice")]);
    let computer = Computer::of(&world.server);
    let directory = index.strip_suffix("/svc.index.json").unwrap();
    let (file, page) =
        (world.files.url("/acme/app/1.0/app"), format!("http://{}/p/{directory}", world.server.address()));
    let project = world.id("acme/app");
    let names: [&[&str]; 7] =
        [&[&index], &[directory], &[&file], &[&page], &[&project, "1.0"], &["acme/app", "1.0"], &[&project]];
    for (number, name) in names.into_iter().enumerate() {
        let target = format!("out-{number}");
        let report = computer.json(&[&["export", "-o", &target][..], &OPENSSL, &["--yes"], name].concat());
        assert_eq!(report["index_path"], index, "{name:?}");
        assert_eq!(computer.read(&format!("{target}/verify.sh")), computer.read("out-0/verify.sh"));
    }
}

#[test]
fn a_release_on_a_forge_is_exported_by_its_page() {
    let forge = ForgeWorld::start(Kind::GitHub);
    let computer = Computer::of(&forge.world.server);
    forge.forge.put_signers("acme/app", "main", "svc.signers.json", &SignersFile::of(1, &[&person("alice")]));
    let page = forge.forge.url(&Kind::GitHub.page_of("acme/app", "main", "svc.signers.json"));
    computer.run_as("alice", &["register", &page]).ok();
    computer.sign_all(&["alice"]);
    let release = forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app.tar.gz", "the archive")]);
    computer.run_as("alice", &["release", &release]).ok();
    computer.sign_all(&["alice"]);
    computer
        .run(&[&["export", &release, "-o", "out"][..], &OPENSSL].concat())
        .ok()
        .says(&["v1.0", "verify.sh"]);
    computer.write("files/app.tar.gz", "the archive");
    for shell in shells() {
        let ran = run_script(shell, &computer.path("out"), &["../files"]);
        assert_verified(ran).says(&["app.tar.gz: OK", "1 of its 1 files"]);
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
    for shell in shells() {
        assert_verified(run_script(shell, &computer.path("out"), &["../files"]));
    }
}
