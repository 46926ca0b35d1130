//! What jobs have: `--if-needed` of the client (D107), and the form of the scripts. `--outputs` is in
//! `client_jobs.txt`.

use std::process::Command;

use super::{Scene, runner::root};
use crate::support::{Person, fake_forge::Asset, fake_forge::Kind};

#[test]
fn a_signer_with_if_needed_replaces_no_signed_index() {
    let scene = Scene::start(Kind::GitHub);
    let url = scene.publish("v1.0");
    let (computer, index) = (&scene.computer, scene.index("v1.0"));
    let first = computer.json_as("alice", &["release", "--if-needed", &url]);
    assert_eq!(
        (first["index_file_path"].as_str(), first.get("was_registered")),
        (Some(index.as_str()), None)
    );
    scene.world().sign(&Person::named("alice"), &index).ok();
    let before = scene.world().read(&index);
    scene.forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app.tar.gz", "another build")]);
    let again = computer.json_as("bob", &["release", "--if-needed", &url]);
    assert_eq!(again["was_registered"], true);
    assert_eq!(scene.world().read(&index), before);
    // Without it, the user is asked.
    computer.run_as("bob", &["release", &url]).failed(2);
    computer.run_as("bob", &["release", &url, "--yes"]).ok().says(&["These signatures were dropped"]);
}

#[test]
fn the_scripts_are_posix_sh() {
    let mut scripts: Vec<_> =
        std::fs::read_dir(root().join("ci")).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "sh"));
    assert_eq!(scripts.len(), 6);
    for path in &scripts {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            path.ends_with("job.sh") || text.starts_with("#!/bin/sh\n") && text.contains("\nset -eu\n"),
            "{path:?}"
        );
        for shell in ["dash", "bash", "busybox"] {
            let mut command = Command::new(shell);
            if shell == "busybox" {
                command.arg("sh");
            }
            match command.arg("-n").arg(path).output() {
                Ok(checked) => assert!(checked.status.success(), "{shell} {path:?}: {checked:?}"),
                Err(_) => println!("SKIPPED: there is no {shell}"),
            }
        }
    }
    match Command::new("shellcheck").arg("-x").args(&scripts).current_dir(root()).output() {
        Ok(checked) => assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout)),
        Err(_) => println!("SKIPPED: there is no shellcheck"),
    }
}
