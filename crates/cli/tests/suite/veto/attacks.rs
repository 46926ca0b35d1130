//! Thieves of all admin keys, against the masters of a team with a delay (D170, D173).

use serde_json::json;

use super::scene::{APP, DELAY, HOUR, Scene, takeover, team};
use crate::support::{SignersFile, days_ago, fsck::fsck, person, server::Launch};

/// What the masters want: Alice administrates, and the thieves are out.
fn rescue() -> SignersFile {
    SignersFile::dated(days_ago(1))
        .artifact(1, &[&person("alice")])
        .admin(1, &[&person("alice")])
        .master(2, &[&person("mia"), &person("max"), &person("moe")])
        .with("rotation_delay_hours", json!(48))
}

#[test]
fn thieves_do_not_push_aside_what_the_masters_sign() {
    let Some(mut scene) = Scene::new() else { return };
    scene.agree(&takeover(), &["mallory"]);
    scene.set(HOUR);
    scene.propose("mia", &rescue()).ok();
    let refused = scene.propose("bob", &takeover());
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.body).contains("only a current master key can replace it"),
        "{refused:?}"
    );
    assert_eq!(scene.sign("moe").ok(), json!({ "is_complete": false }));
    // Neither time nor a restart helps them, before the delay has passed since the masters' last word.
    scene.set(DELAY);
    scene.world.server.kill9();
    scene.world.server.start_again();
    assert_eq!(scene.propose("carol", &takeover()).status, 409);
    assert_eq!(scene.signers(), team(10).bytes());
    assert_eq!(scene.sign("max").ok(), json!({ "is_complete": true }));
    assert_eq!(scene.signers(), rescue().bytes());
    scene.set(3 * DELAY);
    assert_eq!(scene.signers(), rescue().bytes());
    scene.world.server.stop();
    fsck(&scene.world.server.data_dir(), &[]).is_clean();
}

#[test]
fn the_masters_of_a_blocked_project_still_veto() {
    let Some(scene) = Scene::new() else { return };
    scene.agree(&takeover(), &["mallory"]);
    let (dir, id) = (scene.world.server.data_dir(), scene.world.id(APP));
    let admin = |verb: &str, thing: &str| {
        let args = ["admin", verb, thing, "--data-dir", dir.to_str().unwrap()];
        let output = Launch::default().args(args).output();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    admin("block", &id);
    assert_eq!(scene.propose("mia", &rescue()).status, 403);
    let document = scene.veto_document("these are thieves");
    // A key that is blocked itself stays blocked.
    admin("block", &person("mia").key());
    assert_eq!(scene.veto("mia", &document).status, 403);
    admin("unblock", &person("mia").key());
    assert_eq!(scene.veto("mia", &document).status, 202);
    assert_eq!(scene.veto("moe", &document).ok()["vetoed"], json!(true));
    scene.set(DELAY + HOUR);
    admin("unblock", &id);
    assert_eq!(scene.signers(), team(10).bytes());
    assert!(!scene.world.exists(&scene.pending()));
}
