//! Masters whose keys are on computers without a network (D176).

use super::scene::{APP, Scene, takeover, team};
use crate::support::{client::Computer, person};

/// Thieves with the keys of Bob and Carol have proposed their own signers, which wait.
fn attacked() -> Option<(Scene, Computer)> {
    let scene = Scene::new()?;
    scene.agree(&takeover(), &["mallory"]);
    let computer = scene.computer();
    Some((scene, computer))
}

/// Exports without a key, signs with the key of `name` elsewhere, and submits with Alice's.
#[track_caller]
fn veto_offline(scene: &Scene, computer: &Computer, name: &str, export: &[&str]) -> bool {
    let id = scene.world.id(APP);
    computer.run(&[&["veto", &id, "--export", "request.json"], export].concat()).ok().says(&["--detached"]);
    let offline = Computer::offline();
    computer.carry(&offline, &["request.json"]);
    let args = ["veto", "--detached", "request.json", "-o", "veto.json"];
    offline.run_as(name, &args).failed(2).says(&["--yes", "stolen", "joins", "sha512:", "takes effect on"]);
    assert_eq!(offline.listing(), ["request.json"]);
    offline.run_as(name, &[&args[..], &["--yes"]].concat()).ok().says(&["--submit"]);
    offline.carry(computer, &["veto.json"]);
    let submitted = scene.run_as(computer, "alice", &["veto", "--submit", "veto.json", "--json"]).ok().json();
    let veto = &submitted["vetoes"][0];
    assert_eq!((&veto["project_id"], &veto["public_key"]), (&id.into(), &person(name).key().into()));
    veto["vetoed"].as_bool().unwrap()
}

#[test]
fn two_masters_veto_who_never_meet_a_network() {
    let Some((scene, computer)) = attacked() else { return };
    assert!(!veto_offline(&scene, &computer, "mia", &["--reason", "keys were stolen"]));
    // The second signs what the first began, without a reason of their own.
    assert!(veto_offline(&scene, &computer, "moe", &[]));
    assert_eq!(scene.signers(), team(10).bytes());
    let late = computer.run(&["veto", &scene.world.id(APP), "--export", "late.json"]).failed(2);
    late.says(&["were vetoed by", "keys were stolen"]);
    // Handed in once more, it is done already.
    let again = scene.run_as(&computer, "alice", &["veto", "--submit", "veto.json"]).ok();
    again.says(&["Vetoed already"]);
}

#[test]
fn an_offline_and_an_online_master_veto_together() {
    let Some((scene, computer)) = attacked() else { return };
    let id = scene.world.id(APP);
    scene.run_as(&computer, "max", &["veto", &id, "--reason", "keys were stolen", "--yes"]).ok();
    let other = ["veto", &id, "--reason", "another", "--export", "request.json"];
    computer.run(&other).failed(1).says(&["keys were stolen"]);
    assert!(veto_offline(&scene, &computer, "mia", &[]));
}

#[test]
fn only_a_master_signs_and_nothing_but_a_veto_of_this_proposal() {
    let Some((scene, computer)) = attacked() else { return };
    let id = scene.world.id(APP);
    computer.run(&["veto", &id, "--export", "request.json"]).failed(2).says(&["--reason"]);
    computer.run(&["veto", &id, "--reason", "stolen", "--export", "request.json"]).ok();
    let offline = Computer::offline();
    let request = String::from_utf8(computer.read("request.json")).unwrap();
    let args = ["veto", "--detached", "request.json", "-o", "veto.json", "--yes"];
    offline.write("request.json", &request);
    for name in ["bob", "mallory"] {
        offline.run_as(name, &args).failed(1).says(&[&person(name).key(), "only masters"]);
    }
    // What else a request must not be is tested with `revoke`.
    let other_project =
        request.replacen("/acme/app/svc.signers.pending", "/acme/other/svc.signers.pending", 1);
    offline.write("request.json", &other_project);
    offline.run_as("mia", &args).failed(3);
    assert!(!offline.path("veto.json").exists());
    // It is not taken for a file of another command, nor another's for it.
    offline.write("request.json", &request);
    for command in ["sign", "revoke"] {
        let detached = [command, "--detached", "request.json", "-o", "other.json", "--yes"];
        offline.run_as("mia", &detached).failed(1).says(&["--export"]);
    }
    scene.run_as(&computer, "mia", &["sign", &id, "--export", "sign.json"]).ok();
    computer.carry(&offline, &["sign.json"]);
    let detached = ["veto", "--detached", "sign.json", "-o", "veto.json", "--yes"];
    offline.run_as("mia", &detached).failed(1).says(&["veto PROJECT --reason TEXT --export"]);
    offline.run_as("mia", &["veto", "--detached", "request.json", "-o", "request.json", "--yes"]).failed(2);
}
