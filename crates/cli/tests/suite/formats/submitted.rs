//! `other_formats` in the body of `POST /v1/signatures`.

use serde_json::{Value, json};

use crate::export::scene::{Scene, signers};
use crate::support::person;

/// The body that alice would send, with these other formats.
fn body(scene: &Scene, formats: &Value) -> Value {
    let mut body = scene.world.signature_body(&person("alice"), &scene.index);
    body["other_formats"] = formats.clone();
    body
}

/// What the client signs, taken from where the server stored it.
fn right_texts() -> (Scene, Value) {
    let scene = Scene::collecting(&signers());
    scene.sign("alice", &["--also", "ssh,minisign"]).ok();
    let texts = scene.world.read_json(&scene.formats_path())["other_formats"][person("alice").key()].clone();
    (scene, texts)
}

#[test]
fn what_does_not_verify_is_refused_and_nothing_is_stored() {
    let (other, texts) = right_texts();
    let scene = Scene::collecting(&signers());
    // The other release has the same files at another address. Minisign's comment names the release.
    assert_ne!(other.index, scene.index);
    let (ssh, minisign) = (&texts["ssh"], &texts["minisign"]);
    let wrong = [
        (json!({ "minisign": minisign }), "minisign"),
        (json!({ "ssh": minisign }), "ssh"),
        (json!({ "ssh": format!("{}\n", ssh.as_str().unwrap()) }), "ssh"),
        (json!({ "ssh": ssh, "minisign": ssh }), "minisign"),
        (json!({ "openpgp": ssh }), "openpgp"),
        (json!({ "pkcs7": ssh }), "must be"),
        (json!({}), "at least one format"),
        (json!([]), "other_formats"),
    ];
    for (formats, words) in wrong {
        let reply = scene.world.submit(&person("alice"), &body(&scene, &formats));
        reply.refused(400, words);
    }
    assert!(!scene.world.exists(&scene.formats_path()));
    assert_eq!(
        scene.world.read_json(&format!("{}.signatures.json.pending", scene.index))["entries"],
        json!({})
    );
    // Both releases have the same sums, and what ssh signs does not name the release.
    scene.world.submit(&person("alice"), &body(&scene, &json!({ "ssh": ssh }))).ok();
    let again = scene.world.submit(&person("alice"), &body(&scene, &texts));
    again.refused(409, "already collected");
}
