//! The client: thieves with enough admin keys against a team with masters, and what everyone is told.

use serde_json::json;

use super::scene::{APP, DELAY, HOUR, Scene, takeover, team};
use crate::support::waiting::wait_until;
use crate::support::{Launch, Running, SignersFile, World, client::Computer, days_ago, html::open, person};

/// Thieves with the keys of Bob and Carol have proposed their own signers, and signed.
fn attacked(scene: &Scene) -> Computer {
    let computer = scene.computer();
    let url = scene.world.publish(APP, &takeover());
    scene.run_as(&computer, "bob", &["update", &url]).ok();
    for name in ["mallory", "bob"] {
        scene.run_as(&computer, name, &["sign", "--all", "--yes"]).ok().says(&["more signatures"]);
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
    scene.run_as(&masters, "mia", &["incident", &key]).ok().says(&[
        "all signatures are there; it takes effect on",
        ", which takes effect on",
        "have to veto it",
    ]);
    let report = scene.run_as(&masters, "mia", &["incident", &key, "--json"]).ok().json();
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
    begun.says(&["joins", "takes effect on", "keys were stolen", "More masters"]);
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
    scene.run_as(&masters, "mia", &["chain", &id]).ok();
}

/// As with a withdrawal: everyone sees that it was vetoed, by whom and why, until the next activation.
#[test]
fn a_veto_is_shown_with_its_reason() {
    let Some(scene) = Scene::new() else { return };
    let computer = attacked(&scene);
    let (id, pending) = (scene.world.id(APP), scene.pending());
    for (name, args) in [("mia", &["--reason", "keys were stolen"][..]), ("max", &[])] {
        let veto = [&["veto", id.as_str(), "--yes"], args].concat();
        scene.run_as(&computer, name, &veto).ok();
    }
    for name in [&id, &pending] {
        let shown = computer.run(&["status", name]).ok();
        shown.says(&["vetoed by", "keys were stolen", &person("mia").key()]);
        let value = computer.json(&["status", name]);
        let veto = if *name == id { &value["last_veto"] } else { &value };
        assert_eq!(veto["reason"], json!("keys were stolen"), "{value}");
        assert_eq!(veto["vetoed_by"].as_array().map(Vec::len), Some(2), "{value}");
        assert!(*name == id || value["vetoed"] == json!(true), "{value}");
        let waited = computer.run(&["status", "--wait", name]).failed(8);
        waited.says(&["vetoed", "keys were stolen"]).says_nothing_of(&["in force"]);
        let signed = scene.run_as(&computer, "carol", &["sign", name, "--yes"]).failed(2);
        signed.says(&["were vetoed by", "keys were stolen"]);
    }
    for page in [&id, &pending, &format!("{id}/svc.activity")] {
        open(&scene.world.server, &format!("/p/{page}")).says(&["vetoed", "keys were stolen"]);
    }
    // Later signers take the record away.
    let next = team(2);
    let url = scene.world.publish(APP, &next);
    scene.run_as(&computer, "mia", &["update", &url]).ok();
    for name in ["mia", "moe"] {
        scene.run_as(&computer, name, &["sign", "--all", "--yes"]).ok();
    }
    assert_eq!(scene.signers(), next.bytes());
    open(&scene.world.server, &format!("/p/{id}")).lacks(&["keys were stolen"]);
    computer.run(&["status", "--wait", &id]).ok().says(&["in force"]);
}

/// A block holds back what is due: no one is told of a time that is past as if it were to come.
#[test]
fn what_a_block_holds_back_is_called_held_back() {
    let Some(scene) = Scene::new() else { return };
    let computer = attacked(&scene);
    let (dir, id) = (scene.world.server.data_dir(), scene.world.id(APP));
    open(&scene.world.server, &format!("/p/{id}")).says(&["takes effect"]);
    let args = ["admin", "block", &id, "--data-dir", dir.to_str().unwrap()];
    assert!(Launch::default().args(args).output().status.success());
    scene.set(DELAY + 60);
    let shown = scene.run_as(&computer, "mia", &["status", &id]).ok();
    shown.says(&["was due on", "holds it back", "admin drop"]).says_nothing_of(&["unless the masters veto"]);
    for page in [&id, &scene.pending()] {
        let page = open(&scene.world.server, &format!("/p/{page}"));
        page.says(&["was due", "holds it back", "admin drop"]).lacks(&["takes effect 2"]);
    }
    let late = scene.run_as(&computer, "mia", &["veto", &id, "--reason", "late", "--yes"]).failed(1);
    late.says(&["Too late", "admin drop"]);
    // If no one looks, the thieves get what they want, and the history still verifies.
    let args = ["admin", "unblock", &id, "--data-dir", dir.to_str().unwrap()];
    assert!(Launch::default().args(args).output().status.success());
    wait_until("it never takes effect", || scene.signers() == takeover().bytes());
    scene.run_as(&computer, "mia", &["chain", &id]).ok().says(&["2. "]);
    let late = scene.run_as(&computer, "mia", &["veto", &id, "--reason", "late", "--yes"]).failed(2);
    late.says(&["in force"]);
}

#[test]
fn masters_read_that_it_waits_and_that_one_of_them_vetoes_it_before_they_sign() {
    let Some(scene) = Scene::new() else { return };
    let computer = attacked(&scene);
    let id = scene.world.id(APP);
    let asked = scene.run_as(&computer, "mia", &["sign", &id]).failed(2);
    asked.says(&["in force   on", "all signatures are there"]).says_nothing_of(&["AT ONCE", "BEGUN"]);
    scene.run_as(&computer, "max", &["veto", &id, "--reason", "keys were stolen", "--yes"]).ok();
    scene.run_as(&computer, "mia", &["sign", &id]).failed(2).says(&["BEGUN by", "\"keys were stolen\""]);
    // Their reasons differ, and the server takes one.
    let second = scene.run_as(&computer, "mia", &["veto", &id, "--reason", "mine", "--yes"]).failed(1);
    second.says(&["another master began this veto", "keys were stolen", "leave --reason out"]);
    // The second master's signature would end the wait.
    scene.sign("moe").ok();
    scene.run_as(&computer, "mia", &["sign", &id]).failed(2).says(&["takes effect AT ONCE"]);
}

#[test]
fn without_masters_no_one_is_told_of_a_veto() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let file = |days| {
        let file = SignersFile::dated(days_ago(days)).artifact(1, &[&alice, &bob]);
        file.with("rotation_delay_hours", json!(1))
    };
    let world = World::with_project(&file(10), &[&alice, &bob]);
    world.propose(&alice, APP, &file(5)).ok();
    let pending = world.pending_path(APP);
    let asked = Computer::of(&world.server).run_as("alice", &["sign", &world.id(APP)]).failed(2);
    asked.says(&["waits      1 hour once"]);
    assert!(world.sign(&alice, &pending).ok()["waits_until"].is_string());
    let status = Computer::of(&world.server).run(&["status", &world.id(APP)]).ok();
    status
        .says(&["no masters who could veto it", "no one who is needed"])
        .says_nothing_of(&["countersign veto"]);
    for page in [format!("/p/{}", world.id(APP)), format!("/p/{pending}")] {
        let text = world.server.get(&page).text();
        assert!(text.contains("There are no masters who could veto it"), "{page}");
        assert!(!text.contains("unless the masters") && !text.contains("how to veto"), "{page}");
    }
    // The same bytes again ask no one.
    let url = world.publish(APP, &file(5));
    let again = Computer::of(&world.server).run_as("alice", &["update", &url]).ok();
    again.says(&["It has all signatures"]).says_nothing_of(&["still sign it"]);
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
