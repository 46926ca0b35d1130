//! What jobs have: `--outputs`, `--if-needed` and `--whole` of the client (D107), registrars (D105, D106), and the form of the
//! scripts.

use std::process::Command;

use serde_json::json;

use super::{Scene, runner::root};
use crate::support::{Person, fake_forge::Asset, fake_forge::Kind, fsck::fsck};

#[test]
fn results_are_appended_as_lines() {
    let scene = Scene::start(Kind::GitHub);
    let url = scene.publish("v1.0");
    let (computer, index) = (&scene.computer, scene.index("v1.0"));
    computer.write("out", "BEFORE=1\n");
    computer.run_as("ci", &["release", &url, "--outputs", "out"]).ok();
    computer.run(&["status", &index, "--outputs", "out"]).ok();
    computer.run(&["status", "--wait", "--timeout", "1s", &index, "--outputs", "out"]).failed(6);
    scene.sign("v1.0");
    computer.run(&["status", "--wait", &index, "--outputs", "out"]).ok();
    computer.run(&["download", &url, "-o", "dist"]).ok();
    computer.run(&["verify", "dist", "--release", &index, "--whole", "--outputs", "out"]).ok();
    let page = format!("{}/p/{index}", scene.server());
    let state = |state| format!("COUNTERSIGN_INDEX={index}\nCOUNTERSIGN_STATE={state}\n");
    let states: String = ["waiting", "waiting", "complete", "verified"].into_iter().map(state).collect();
    let expected = format!("BEFORE=1\nCOUNTERSIGN_INDEX={index}\nCOUNTERSIGN_PAGE={page}\n{states}");
    assert_eq!(String::from_utf8(computer.read("out")).unwrap(), expected);
    computer.run(&["status", &index, "--outputs", "no/such/dir"]).failed(1);

    let scene = Scene::start(Kind::GitHub);
    let url = scene.publish("v1.0");
    let (computer, index) = (&scene.computer, scene.index("v1.0"));
    computer.run_as("ci", &["release", &url]).ok();
    computer.write("app.tar.gz", "the archive");
    computer.run(&["verify", "app.tar.gz", "--release", &index, "--outputs", "out"]).failed(3);
    scene.sign("v1.0");
    let whole = ["verify", "app.tar.gz", "--release", &index, "--whole", "--outputs", "out"];
    computer.run(&whole).failed(3).says(&["notes.txt"]);
    assert!(!computer.path("out").exists());
    computer.run(&["verify", "app.tar.gz", "--release", &index]).ok();
    computer.run(&["verify", "app.tar.gz", "--whole"]).failed_as_usage();
    computer.run(&["verify", "app.tar.gz", "--outputs", "out"]).failed_as_usage();
    computer.run(&["bundle", &index, "-o", "bundle"]).ok();
    computer.run(&["verify", "app.tar.gz", "--bundle", "bundle", "--whole"]).failed(3).says(&["notes.txt"]);
}

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

#[test]
fn a_registrar_registers_and_is_refused_everything_else() {
    let scene = Scene::start(Kind::GitHub);
    let ci = Person::named("ci");
    let (world, index) = (scene.world(), scene.index("v1.0"));
    let register = |url: &str| world.post_as(&ci, "/v1/assets", &json!({ "forge_release_url": url }));
    let url = scene.publish("v1.0");
    assert_eq!(register(&url).ok()["index_file_path"], index);
    assert!(register(&url).error(409).contains("already registered"));
    scene.forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app.tar.gz", "another build")]);
    let message = register(&url).error(403);
    assert!(message.contains("registrar") && message.contains("A signer of the project can"), "{message}");
    world.status(&ci, &index).error(403);
    assert_eq!(world.pending(&ci), Vec::<String>::new());
    world.sign(&ci, &index).error(403);
    scene.sign("v1.0");
    world.revoke(&ci, &index).error(400);
    let page = scene.forge.forge.url(&Kind::GitHub.page_of("acme/app", "main", "svc.signers.json"));
    let body = json!({ "signers_file_url": page, "public_key": ci.body_key() });
    world.post_as(&ci, "/v1/update_signers", &body).error(400);
    let listed = world.server.get(&format!("/v1/keys/{}", ci.key().replace('/', "_").replace('+', "-")));
    assert!(!listed.text().contains("\"artifact\""), "{}", listed.text());
    let shown = world.server.get(&format!("/p/{}", scene.forge.forge.project("acme/app"))).text();
    assert!(shown.contains("Registrars") && shown.contains("sign nothing"), "{shown}");
    fsck(&world.server.repository(), &[]).is_clean();
}
