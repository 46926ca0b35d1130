//! A server that wants something else revoked, or for another reason, than the revoker means.

use serde_json::json;

use crate::support::days_ago;
use crate::support::hostile::{Lie, Scene, assert_harmless, revocation_of};

const REVOKE: [&str; 3] = ["--reason", "key leaked", "--yes"];

#[test]
fn a_server_that_wants_something_else_revoked_gets_no_signature() {
    let scene = Scene::start();
    let path = scene.index("2.0");

    // A pending revocation of another file is not joined.
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

    // A pending revocation without a signature is not joined for any reason.
    scene.hostile.be_honest();
    let reason = "\u{1b}[1mall of acme's keys are \u{202e}stolen";
    let document = revocation_of(&scene.world.read(&path), reason);
    scene.hostile.show_file(&format!("{path}.revocation.json.pending"), document);
    let ran = scene.regular.run_as("alice", &[&["revoke", &path][..], &REVOKE].concat()).failed(3);
    assert_harmless(&ran);
    ran.says(&["no key that can revoke has signed it"]);
    assert_eq!(scene.hostile.posts(), [""; 0]);

    // An answer that does not say whether it is revoked is not taken for yes.
    scene.hostile.be_honest();
    for answer in [json!({}), json!({ "revoked": "yes" }), json!({ "success": true }), json!(true)] {
        scene.hostile.answer("/v1/revoke", Lie::json(&answer));
        let ran = scene.regular.run_as("alice", &[&["revoke", &path][..], &REVOKE].concat());
        ran.failed(3).says_nothing_of(&["Revoked"]);
    }
}
