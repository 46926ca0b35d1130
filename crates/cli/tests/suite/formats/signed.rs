//! `sign` with other formats through an agent. What else asks for them is in `client_formats.txt`.

use serde_json::json;

use crate::export::scene::{Scene, asking};
use crate::keys::agent::SshAgent;
use crate::support::{client::Ran, person};

#[test]
fn an_agent_signs_them_too() {
    let Some(agent) = SshAgent::start() else { return };
    let scene = Scene::collecting(&asking());
    agent.add(&[], &scene.computer.key_of("alice"));
    let public = scene.computer.write("alice-agent.pub", person("alice").ssh_key());
    let mut command = scene.computer.command(&["sign", &scene.index, "--yes"]);
    command.env("COUNTERSIGN_KEY", public).env("SSH_AUTH_SOCK", agent.socket());
    Ran::of(&mut command).ok().says(&["your key signs 6 times"]);
    let status = scene.computer.json(&["status", &scene.index]);
    assert_eq!(status["formats"], json!({"minisign": 1, "openpgp": 1, "ssh": 1}));
}
