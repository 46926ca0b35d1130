//! A server that wants something else revoked, or for another reason, than the revoker means.

use serde_json::json;

use crate::support::days_ago;
use crate::support::hostile::{Lie, Scene, assert_harmless, revocation_of};

const REVOKE: [&str; 3] = ["--reason", "key leaked", "--yes"];

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
fn an_answer_that_does_not_say_whether_it_is_revoked_is_not_taken_for_yes() {
    let scene = Scene::start();
    let path = scene.index("2.0");
    for answer in [json!({}), json!({ "revoked": "yes" }), json!({ "success": true }), json!(true)] {
        scene.hostile.answer("/v1/revoke", Lie::json(&answer));
        let ran = scene.regular.run_as("alice", &[&["revoke", &path][..], &REVOKE].concat());
        ran.failed(3).says_nothing_of(&["Revoked"]);
    }
}
