//! What `export` writes: the exact bytes, by every name of a release. What it refuses is text (`client_export.txt`).

use countersign_core::values::{digest::Sha256, digest::Sha512, key::decode_base64};
use serde_json::json;

use super::scene::{FILES, Scene, asking};
use crate::support::{client::Computer, person};

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
