//! What a server answers while a rotation waits, when it is due, and to a veto.

use serde_json::{Value, json};

use super::scene::{APP, DELAY, Scene, takeover, team};
use crate::support::{EventStream, fsck::fsck, person};

fn next(events: &mut EventStream) -> Value {
    events.next_event().data.expect("an event has data")
}

#[test]
fn a_rotation_by_admins_waits_and_the_first_request_after_it_is_due_sees_it() {
    let Some(mut scene) = Scene::new() else { return };
    let index = {
        let world = &scene.world;
        world.add_release(&person("alice"), "acme/app/1.0")
    };
    let agreed = scene.agree(&takeover(), &["mallory"]);
    let status = scene.world.status(&person("bob"), &scene.pending()).ok();
    assert_eq!(status["waits_until"], agreed["waits_until"]);
    assert_eq!(status["is_complete"], json!(true));
    assert!(scene.world.git().last_message().starts_with("Agree to the signers of "));
    assert_eq!(scene.signers(), team(10).bytes());
    // A minute before, also after a restart: nothing.
    scene.set(DELAY - 60);
    assert_eq!(scene.signers(), team(10).bytes());
    scene.world.server.restart();
    assert_eq!(scene.signers(), team(10).bytes());
    assert!(scene.world.exists(&scene.pending()));

    scene.set(DELAY + 60);
    assert_eq!(scene.signers(), takeover().bytes());
    assert!(!scene.world.exists(&scene.pending()));
    let message = scene.world.git().last_message();
    assert!(message.starts_with("Activate the signers of ") && !message.contains("By:"), "{message}");
    let history = scene.world.read_json(&format!("{}/svc.signers.history.json", scene.world.id(APP)));
    assert!(history["entries"][1]["agreed_at"].is_string(), "{history}");
    assert_eq!(scene.world.read(&format!("{index}.signers.json")), takeover().bytes());
    fsck(&scene.world.server.data_dir(), &[]).is_clean();
}

#[test]
fn without_a_request_it_takes_force_by_itself() {
    let Some(scene) = Scene::new() else { return };
    let mut events = EventStream::at(scene.world.server.address(), "/v1/events?type=agreed,activated");
    scene.agree(&takeover(), &["mallory"]);
    let agreed = next(&mut events);
    assert_eq!(agreed["type"], "agreed");
    assert_eq!(agreed["path"], json!(scene.pending()));
    assert!(agreed["due"].is_string(), "{agreed}");
    scene.set(DELAY + 1);
    let activated = next(&mut events);
    assert_eq!((&activated["type"], &activated["key"]), (&json!("activated"), &json!(null)));
}

#[test]
fn a_server_that_was_stopped_over_the_due_time_does_it_at_its_start() {
    let Some(mut scene) = Scene::new() else { return };
    scene.agree(&takeover(), &["mallory"]);
    scene.world.server.kill9();
    scene.set(10 * DELAY);
    scene.world.server.start_again();
    assert_eq!(scene.signers(), takeover().bytes());
    scene.world.server.stop();
    fsck(&scene.world.server.data_dir(), &[]).is_clean();
}

#[test]
fn the_masters_veto_and_the_same_file_is_refused_until_the_next_rotation() {
    let Some(mut scene) = Scene::new() else { return };
    let mut events = EventStream::at(scene.world.server.address(), "/v1/events?type=veto,vetoed");
    scene.agree(&takeover(), &["mallory"]);
    let document = scene.veto_document("these are not our keys");
    let recorded = scene.veto("mia", &document);
    assert_eq!(recorded.status, 202, "{}", recorded.text());
    assert_eq!(recorded.json()["vetoed"], json!(false));
    assert_eq!(next(&mut events)["type"], "veto");
    scene.veto("mia", &document).refused(409, "already collected");
    scene.veto("max", &scene.veto_document("another reason")).refused(409, "these are not our keys");
    scene.world.server.restart();
    scene.set(DELAY - 60);
    assert_eq!(scene.veto("max", &document).ok()["vetoed"], json!(true));
    scene.veto("moe", &document).refused(404, "not found");
    assert!(!scene.world.exists(&scene.pending()));
    scene.propose("bob", &takeover()).refused(409, "these are not our keys");
    scene.set(DELAY + 60);
    assert_eq!(scene.signers(), team(10).bytes());
    // After the masters' own rotation, nothing is left of it.
    scene.propose("mia", &team(2)).ok();
    scene.sign("mia").ok();
    scene.sign("max").ok();
    assert_eq!(scene.signers(), team(2).bytes());
    assert!(!scene.world.git().paths().iter().any(|path| path.contains("veto")));
    fsck(&scene.world.server.data_dir(), &[]).is_clean();
    scene.world.git().assert_sound();
}

#[test]
fn others_do_not_veto_and_not_at_other_times() {
    let Some(scene) = Scene::new() else { return };
    let request = |name: &str, document: &str| scene.veto(name, document);
    // Nothing is pending yet.
    let nothing = json!({ "file_path": scene.pending(), "veto_json": "{}", "signature": person("mia").sign_bytes(b"{}"), "public_key": person("mia").body_key() });
    scene.post_as(&person("mia"), "/v1/veto", &nothing).refused(404, "not found");
    scene.propose("bob", &takeover()).ok();
    let document = scene.veto_document("no");
    for name in ["alice", "bob", "mallory"] {
        request(name, &document).refused(403, "not a master key");
    }
    request("mia", "{}").refused(400, "Invalid veto");
    let other = document.replace(APP, "acme/apps");
    request("mia", &other).refused(409, "names something else");
    let mut forged = nothing.clone();
    forged["veto_json"] = json!(document);
    scene.post_as(&person("mia"), "/v1/veto", &forged).refused(400, "does not verify");
    let mut elsewhere = forged.clone();
    elsewhere["file_path"] = json!(scene.world.active_path(APP));
    scene.post_as(&person("mia"), "/v1/veto", &elsewhere).refused(400, "cannot be vetoed");
    // Before it has all signatures, and when it is too late.
    assert_eq!(request("mia", &document).status, 202);
    for name in ["mallory", "bob", "carol"] {
        scene.sign(name).ok();
    }
    scene.set(DELAY + 60);
    request("max", &document).refused(404, "not found");
    assert_eq!(scene.signers(), takeover().bytes());
}

#[test]
fn a_blocked_project_waits_on_and_takes_force_when_it_is_unblocked() {
    let Some(scene) = Scene::new() else { return };
    scene.agree(&takeover(), &["mallory"]);
    let admin = |verb: &str| {
        let output = scene.world.server.admin(&[verb, &scene.world.id(APP)]).output();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    admin("block");
    scene.set(DELAY + 60);
    assert_eq!(scene.signers(), team(10).bytes());
    scene.world.server.await_log("due and not in force", 1);
    admin("unblock");
    let mut tries = 0;
    while scene.signers() == team(10).bytes() {
        tries += 1;
        assert!(tries < 600, "it never takes effect");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(scene.signers(), takeover().bytes());
}
