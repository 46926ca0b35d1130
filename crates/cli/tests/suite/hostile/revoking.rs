//! A server that wants something else revoked, or for another reason, than the revoker means.

use serde_json::json;

use crate::support::{
    SignersFile, days_ago,
    hostile::{Lie, Scene, alice, assert_harmless, bob, carol, mallory, revocation_of, signature_set},
};

const REVOKE: [&str; 3] = ["--reason", "key leaked", "--yes"];

#[test]
fn an_index_that_is_not_the_one_at_that_path_is_not_revoked() {
    let scene = Scene::start();
    let path = scene.index("2.0");
    let other = scene.world.read(&scene.index("1.0"));
    for content in [other, b"{}".to_vec(), Vec::new(), vec![0xff]] {
        scene.hostile.show_file(&path, content);
        let args = [&["revoke", &path][..], &REVOKE].concat();
        scene.regular.run_as("alice", &args).failed(3).says(&[&path]);
    }
    scene.hostile.hide_file(&path);
    scene.regular.run_as("alice", &[&["revoke", &path][..], &REVOKE].concat()).failed(1).says(&[&path]);
    assert_eq!(scene.hostile.posts(), [""; 0]);
}

#[test]
fn a_release_whose_history_does_not_hold_is_not_revoked() {
    let scene = Scene::start();
    let path = scene.index("2.0");
    let args = [&["revoke", &path][..], &REVOKE].concat();
    let mut bent = scene.history();
    bent["entries"][0]["timestamp"] = json!(days_ago(900).to_string());
    bent["entries"][0]["signatures"]["entries"] = json!({});
    for history in [bent, json!({ "entries": [] })] {
        scene.hostile.show_history(&scene.project(), &path, &history);
        scene.regular.run_as("alice", &args).failed(3).says(&[&path, "the history shown for"]);
    }
    assert_eq!(scene.hostile.posts(), [""; 0]);
    scene.hostile.be_honest();
    scene.regular.run_as("alice", &args).ok().says(&["Revoked"]);
}

#[test]
fn a_pending_revocation_of_another_file_is_not_joined() {
    let scene = Scene::start();
    let path = scene.index("2.0");
    let pending = format!("{path}.revocation.json.pending");
    let of_other = revocation_of(&scene.world.read(&scene.index("1.0")), "key leaked");
    let of_none = json!({ "reason": "key leaked", "timestamp": days_ago(1).to_string() }).to_string();
    for document in [of_other, of_none, "{}".to_owned(), "2026##x##{}".to_owned()] {
        scene.hostile.show_file(&pending, document);
        for args in [&["revoke", path.as_str(), "--yes"][..], &[&["revoke", &path][..], &REVOKE].concat()] {
            scene.regular.run_as("alice", args).failed(3).says(&["not a revocation of this file"]);
        }
    }
    assert_eq!(scene.hostile.posts(), [""; 0]);
}

#[test]
fn a_pending_revocation_without_a_signature_is_not_joined_for_any_reason() {
    let scene = Scene::start();
    let path = scene.index("2.0");
    let reason = "\u{1b}[1mall of acme's keys are \u{202e}stolen";
    let document = revocation_of(&scene.world.read(&path), reason);
    scene.hostile.show_file(&format!("{path}.revocation.json.pending"), document);
    let ran = scene.regular.run_as("alice", &[&["revoke", &path][..], &REVOKE].concat()).failed(3);
    assert_harmless(&ran);
    ran.says(&["no key that can revoke has signed it"]);
    assert_eq!(scene.hostile.posts(), [""; 0]);
}

#[test]
fn a_revocation_that_no_revoker_began_is_not_joined() {
    // With --yes no one reads the reason: only that a revoker has signed it makes it someone's word.
    let file = SignersFile::of(2, &[&alice(), &bob(), &carol()]).revocation(2, &[&bob(), &carol()]);
    let scene = Scene::with(&file);
    let path = scene.index("2.0");
    let document = revocation_of(&scene.world.read(&path), "acme is bankrupt");
    let pending = format!("{path}.revocation.json.pending");
    let signatures = format!("{path}.revocation.json.signatures.json.pending");
    scene.hostile.show_file(&pending, document.as_bytes());
    for signers in [&[][..], &[&mallory()], &[&alice()]] {
        scene.hostile.show_file(&signatures, signature_set(document.as_bytes(), signers).to_string());
        let ran = scene.regular.run_as("bob", &["revoke", &path, "--yes"]);
        assert_eq!((ran.code, scene.hostile.posts().len()), (3, 0), "{ran:?}");
    }
}

#[test]
fn a_signers_file_is_not_revoked() {
    let scene = Scene::start();
    for path in [scene.world.active_path("acme/app"), scene.project(), format!("{}.x", scene.index("2.0"))] {
        let args = [&["revoke", &path][..], &REVOKE].concat();
        scene.regular.run_as("alice", &args).failed(2).says(&[&path]);
    }
    assert_eq!(scene.hostile.posts(), [""; 0]);
}

#[test]
fn an_answer_that_does_not_say_whether_it_is_revoked_is_not_taken_for_yes() {
    let scene = Scene::start();
    let path = scene.index("2.0");
    for answer in [json!({}), json!({ "revoked": "yes" }), json!({ "success": true }), json!(true)] {
        scene.hostile.answer("/v1/revoke", Lie::json(&answer));
        let ran = scene.regular.run_as("alice", &[&["revoke", &path][..], &REVOKE].concat());
        ran.failed(3).says_nothing_of(&["Revoked"]);
    }
}
