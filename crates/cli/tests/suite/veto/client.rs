//! Masters stop thieves who hold enough admin keys. The rest of what the client says is text (`client_veto.txt`).

use serde_json::json;

use super::scene::{APP, DELAY, HOUR, Scene, takeover, team};
use crate::support::{Launch, Running, SignersFile, client::Computer, days_ago, person};

/// Thieves with the keys of Bob and Carol have proposed their own signers, and signed.
fn attacked(scene: &Scene) -> Computer {
    let computer = scene.computer();
    let url = scene.world.publish(APP, &takeover());
    scene.run_as(&computer, "bob", &["update", &url]).ok();
    for name in ["mallory", "bob"] {
        scene.run_as(&computer, name, &["sign", "--all", "--yes"]).ok().says(&[": it has ", " more from "]);
    }
    let last = scene.run_as(&computer, "carol", &["sign", "--all", "--yes"]).ok();
    last.says(&["all signatures are there", "takes effect on", "waits", "48 hours"]);
    // Asked again, the client does not ask for more.
    let again = scene.run_as(&computer, "carol", &["sign", &scene.world.id(APP), "--yes"]).ok();
    again.says(&["You signed", "all signatures are there"]);
    computer
}

#[test]
fn masters_stop_thieves_who_hold_enough_admin_keys() {
    let Some(scene) = Scene::new() else { return };
    let thieves = attacked(&scene);
    let (masters, id) = (scene.computer(), scene.world.id(APP));
    let pending = scene.run_as(&masters, "mia", &["pending"]).ok();
    pending.says(&["veto"]);
    let status = scene.run_as(&masters, "mia", &["status", &id]).ok();
    status.says(&["all signatures are there", "countersign veto"]);
    let value = scene.run_as(&masters, "mia", &["status", &id, "--json"]).ok().json();
    let proposal = &value["proposal"];
    assert!(proposal["waits_until"].is_string() && proposal["pending_veto"].is_null(), "{value}");

    // An incident names the time that is left.
    let key = person("bob").key();
    scene.run_as(&masters, "mia", &["incident", "--steal", &key]).ok().says(&[
        "all signatures are there; it takes effect on", ", which takes effect on", "have to veto it",
    ]);
    let report = scene.run_as(&masters, "mia", &["incident", "--steal", &key, "--json"]).ok().json();
    assert!(report["projects"][0]["open"][0]["waits_until"].is_string(), "{report}");

    let mut command = masters.command(&["status", "--wait", &id]);
    scene.clock.lend_to(&mut command);
    let waiting = Running::start(command);
    waiting.await_note("signed by");
    scene.run_as(&masters, "mia", &["veto", &id, "--yes"]).failed(2).says(&["--reason"]);
    scene.run_as(&masters, "mia", &["veto", &id, "--reason", "", "--yes"]).failed(2).says(&["1 to 1,000"]);
    let active = scene.world.active_path(APP);
    scene.run_as(&masters, "mia", &["veto", &active, "--reason", "x", "--yes"]).failed(2);
    let begun = scene.run_as(&masters, "mia", &["veto", &id, "--reason", "keys were stolen", "--yes"]).ok();
    begun.says(&[
        "joins", "takes effect on", "keys were stolen", "Other masters join it", "it has 1 of 2; 1 more from",
    ]);
    scene.run_as(&masters, "mia", &["veto", &id, "--yes"]).ok().says(&["You signed the veto"]);
    let status = scene.run_as(&masters, "max", &["status", &id]).ok();
    status.says(&["keys were stolen", "begun by"]);
    // Thieves cannot veto the veto, and others neither.
    scene.run_as(&thieves, "bob", &["veto", &id, "--yes"]).failed(1).says(&["only masters"]);
    let done = scene.run_as(&masters, "max", &["veto", &id, "--yes", "--json"]).ok().json();
    assert_eq!(done, json!({ "project_id": id, "vetoed": true }));
    let (code, _, said) = waiting.end();
    assert_eq!(code, Some(8), "{said}");
    assert!(said.contains("vetoed") && said.contains("keys were stolen"), "{said}");

    let url = scene.world.publish(APP, &takeover());
    scene.run_as(&thieves, "bob", &["update", &url]).failed(1).says(&["keys were stolen", "masters"]);
    scene.set(2 * DELAY);
    assert_eq!(scene.signers(), team(10).bytes());
    // The masters then rotate the stolen keys out, at once.
    let clean = SignersFile::dated(days_ago(1))
        .artifact(1, &[&person("alice")])
        .admin(1, &[&person("alice")])
        .master(2, &["mia", "max", "moe"].map(person).each_ref())
        .with("rotation_delay_hours", json!(48));
    let url = scene.world.publish(APP, &clean);
    scene.run_as(&masters, "mia", &["update", &url]).ok();
    scene.run_as(&masters, "mia", &["sign", "--all", "--yes"]).ok();
    scene.run_as(&masters, "moe", &["sign", "--all", "--yes"]).ok().says(&["complete"]);
    assert_eq!(scene.signers(), clean.bytes());
    scene.run_as(&masters, "mia", &["signers", "history", &id]).ok();
}

#[test]
fn hostile_reasons_are_shown_without_their_power() {
    let Some(scene) = Scene::new() else { return };
    let computer = attacked(&scene);
    let reason = "\u{1b}]0;x\u{7}<script>alert(1)</script>\u{202e}";
    assert_eq!(scene.veto("mia", &scene.veto_document(reason)).status, 202);
    let id = scene.world.id(APP);
    for args in [vec!["status", &id], vec!["veto", &id, "--yes"]] {
        let ran = scene.run_as(&computer, "max", &args).ok();
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("script") && !said.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{said}");
    }
    // Gone now; a page that showed it had no markup of it.
    scene.agree(&team(2), &[]);
    assert_eq!(scene.veto("mia", &scene.veto_document(reason)).status, 202);
    for page in [format!("/p/{id}"), format!("/p/{}", scene.pending())] {
        let text = scene.world.server.get(&page).text();
        assert!(text.contains("alert(1)") && !text.contains("<script>alert"), "{page}");
        assert!(text.contains("countersign veto") || text.contains("how to veto"), "{page}");
    }
}

#[test]
fn the_masters_of_a_blocked_project_still_veto() {
    let Some(scene) = Scene::new() else { return };
    scene.agree(&takeover(), &["mallory"]);
    let (dir, id) = (scene.world.server.data_dir(), scene.world.id(APP));
    let admin = |verb: &str, thing: &str| {
        let args = ["admin", verb, thing, "--data-dir", dir.to_str().unwrap()];
        assert!(Launch::default().args(args).output().status.success());
    };
    admin("block", &id);
    assert_eq!(scene.propose("mia", &team(2)).status, 403);
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
