//! `sign` with other formats: asked for by the signers file, by --also, through an agent, without a network.

use serde_json::json;

use crate::export::scene::{Scene, asking, signers};
use crate::keys::agent::SshAgent;
use crate::support::{Request, client::Computer, client::Ran, fsck::fsck, person};

#[test]
fn the_signers_file_asks_and_the_review_says_so() {
    let mut scene = Scene::collecting(&asking());
    scene.sign("alice", &[]).ok().says(&["SHA256SUMS for minisign, openpgp, ssh", "your key signs 6 times"]);
    let stored = scene.world.read_json(&scene.formats_path());
    let texts = &stored["other_formats"][person("alice").key()];
    assert!(texts["ssh"].as_str().unwrap().starts_with("-----BEGIN SSH SIGNATURE-----\n"));
    assert!(texts["minisign"].as_str().unwrap().contains(&scene.index));
    let status = scene.computer.run(&["status", &scene.index]).ok();
    status.says(&["also        1 for minisign, 1 for openpgp, 1 for ssh", "collecting"]);
    let report = scene.computer.json_as("bob", &["sign", &scene.index, "--yes"]);
    assert_eq!(report["signed"][0]["formats"], json!(["minisign", "openpgp", "ssh"]));
    assert_eq!(report["signed"][0]["is_complete"], true);
    let status = scene.computer.json(&["status", &scene.index]);
    assert_eq!(status["formats"], json!({"minisign": 2, "openpgp": 2, "ssh": 2}));
    let page = scene.world.send_as(&person("alice"), Request::get(format!("/p/{}", scene.index))).text();
    assert!(
        page.contains("Signed for other programs as well: minisign by 2, openpgp by 2, ssh by 2."),
        "{page}"
    );
    // The whole history follows from the rules.
    scene.world.server.stop();
    fsck(&scene.world.server.repository(), &[]).is_clean();
}

#[test]
fn no_one_has_to_sign_in_other_formats() {
    let scene = Scene::collecting(&asking());
    let alone = scene.sign("alice", &["--no-formats"]).ok().says_nothing_of(&["SHA256SUMS for"]);
    alone.says(&["The signers file asks for signatures for ssh, minisign, openpgp. Without yours"]);
    scene.sign("bob", &["--no-formats"]).ok().says(&["complete"]);
    assert!(!scene.world.exists(&scene.formats_path()));
    // These are refused before anything is asked.
    assert_eq!(scene.sign("carol", &["--no-formats", "--also", "ssh"]).code, 2);
    let unknown = scene.sign("carol", &["--also", "pkcs7"]).says(&["write ssh, minisign"]);
    assert_eq!(unknown.code, 2);
}

#[test]
fn also_adds_to_what_the_signers_file_asks_for() {
    let scene = Scene::collecting(&signers());
    scene.sign("alice", &["--also", "ssh"]).ok().says(&["SHA256SUMS for ssh; your key signs 2 times"]);
    scene.sign("bob", &["--also", "ssh,minisign"]).ok().says(&["complete"]);
    let status = scene.computer.json(&["status", &scene.index]);
    assert_eq!(status["formats"], json!({"minisign": 1, "openpgp": 0, "ssh": 2}));
    let scene = Scene::collecting(&signers().with("formats", json!(["minisign"])));
    scene.sign("alice", &["--also", "ssh"]).ok().says(&["SHA256SUMS for minisign, ssh"]);
    scene.sign("bob", &["--also", "minisign"]).ok().says(&["SHA256SUMS for minisign;"]);
}

#[test]
fn a_computer_without_a_network_and_an_agent_sign_them_too() {
    let scene = Scene::collecting(&asking());
    let offline = Computer::offline();
    scene.computer.run(&["sign", &scene.index, "--export", "export.json"]).ok();
    scene.computer.carry(&offline, &["export.json"]);
    let detached = ["sign", "--detached", "export.json", "-o", "signatures.json", "--yes"];
    offline.run_as("bob", &detached).ok().says(&["your key signs 6 times"]);
    offline.carry(&scene.computer, &["signatures.json"]);
    let submit = ["sign", "--submit", "signatures.json"];
    scene.computer.run_as("carol", &submit).ok().says_nothing_of(&["warning"]);
    let formats = || scene.computer.json(&["status", &scene.index])["formats"].clone();
    assert_eq!(formats(), json!({"minisign": 1, "openpgp": 1, "ssh": 1}));
    let Some(agent) = SshAgent::start() else { return };
    agent.add(&[], &scene.computer.key_of("alice"));
    let public = scene.computer.write("alice-agent.pub", person("alice").ssh_key());
    let mut command = scene.computer.command(&["sign", &scene.index, "--yes"]);
    command.env("COUNTERSIGN_KEY", public).env("SSH_AUTH_SOCK", agent.socket());
    Ran::of(&mut command).ok().says(&["your key signs 6 times"]);
    assert_eq!(formats(), json!({"minisign": 2, "openpgp": 2, "ssh": 2}));
}
