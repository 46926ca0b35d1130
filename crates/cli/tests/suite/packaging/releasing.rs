//! `packaging/release`: nothing is public before enough people have signed it, and the client has verified that (D115).

use std::process::Command;

use countersign_core::values::digest::Sha256;

use super::{ReleaseScene, SIGNERS, VERSION, archive, program};
use crate::support::client::{Ran, text};

#[test]
fn a_release_is_published_only_after_enough_have_signed_it() {
    let Some(scene) = ReleaseScene::start() else { return };
    scene.build(&["--check"]).ok().says(&["Both builds are the same", VERSION]);
    scene.register().ok().says(&["--files"]);
    scene.publish().failed_with(6);
    scene.computer.sign_all(&["alice"]);
    scene.publish().failed_with(6);
    assert_eq!(scene.published(), ["SHA256SUMS"]);
    scene.computer.sign_all(&["carol"]);
    scene.publish().ok().says(&["2 of 2 signatures", "Published"]);
    let archive = archive();
    let bundle = format!("countersign-{VERSION}.bundle.json");
    let mut expected =
        ["SHA256SUMS", &archive, &bundle, "install.sh", "svc.index.json", "svc.index.json.signatures.json"];
    expected.sort_unstable();
    assert_eq!(scene.published(), expected);
    // As a user who knows only the URL.
    let url = format!("{}/{VERSION}/{archive}", scene.url);
    scene.computer.download(&url).ok().says(&["Verified"]);
}

#[test]
fn what_is_published_is_what_was_signed_by_the_signers_in_force() {
    let Some(scene) = ReleaseScene::start() else { return };
    scene.build(&[]).ok();
    scene.register().ok();
    scene.computer.sign_all(&["alice", "bob"]);
    // A signers file that is not in force.
    let text = String::from_utf8(scene.computer.read(SIGNERS)).unwrap();
    scene.computer.write("other.json", text.replace("\"threshold\": 2", "\"threshold\": 1"));
    let more = ["--publish", "site/countersign", "--signers", "other.json", "--timeout", "1s"];
    scene.release("publish", &more).failed_with(3).says(&["nothing is published"]);
    // A file that is not the signed one.
    let (archived, sums) = (scene.dist(&archive()), scene.dist("SHA256SUMS"));
    let mut bytes = scene.computer.read(&archived);
    let honest = Sha256::of(&bytes).to_string();
    bytes.push(0);
    scene.computer.write(&archived, &bytes);
    scene.publish().failed_with(1).says(&["are not those that were built"]);
    // The checksums of this machine agree with the other file; the signed ones do not.
    let text = String::from_utf8(scene.computer.read(&sums)).unwrap();
    scene.computer.write(&sums, text.replace(&honest, &Sha256::of(&bytes).to_string()));
    scene.publish().failed_with(3).says(&["nothing is published"]);
    assert_eq!(scene.published(), ["SHA256SUMS"]);
    scene.computer.write(&sums, text);
    bytes.pop();
    scene.computer.write(&archived, &bytes);

    // Someone exchanges the built files while `publish` runs: before the client looks at them, or after.
    let files = [archive(), "install.sh".to_owned()];
    let honest = files.each_ref().map(|name| scene.computer.read(&scene.dist(name)));
    for (step, code) in [("status", 3), ("verify", 0), ("bundle", 0)] {
        let exchange = format!(
            "{} \"$@\" || exit\n[ \"$1\" != {step} ] || for file in '{}'/[!S]*; do echo 'echo pwned' >>\"$file\"; done",
            program(),
            scene.computer.path(&scene.dist("")).display(),
        );
        let client = scene.write_program("exchanging", &exchange);
        let more = ["--publish", "site/countersign", "--signers", SIGNERS, "--timeout", "1s"];
        let ran = scene.release_with(&client, "publish", &more);
        assert!(ran.code == code && !ran.stdout.contains("pwned"), "{step}: {ran:?}");
        for (name, bytes) in files.iter().zip(&honest) {
            assert_ne!(&scene.computer.read(&scene.dist(name)), bytes, "{name} was exchanged at {step}");
            scene.computer.write(&scene.dist(name), bytes);
            let published = format!("site/countersign/{VERSION}/{name}");
            if code == 0 {
                assert_eq!(&scene.computer.read(&published), bytes, "{name} at {step}");
            } else {
                assert!(
                    name == "SHA256SUMS" || !scene.computer.path(&published).exists(),
                    "{name} at {step}"
                );
            }
        }
    }
}

#[test]
fn a_build_is_repeatable_has_every_group_and_refuses_what_it_does_not_know() {
    let Some(scene) = ReleaseScene::start() else { return };
    scene.release("upload", &[]).failed_with(2);
    scene.release("publish", &["--force"]).failed_with(2);
    scene.release("register", &[]).failed_with(1).says(&["packaging/release build"]);
    for url in [
        "", "ftp://example.org/x", "https://example.org", "https://example.org/a'b",
        "https://example.org/a b",
    ] {
        let ran =
            Command::new(super::packaging("release")).args(["register", "--url", url]).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{url}");
    }
    for script in ["exit 1", "echo 'rustc 1.89.0'", "echo 'host: x86_64-unknown-linux-gnu'; exit 1"] {
        let rustc = scene.write_program("bin/rustc", script);
        let path = format!("{}:{}", text(rustc.parent().unwrap()), std::env::var("PATH").unwrap());
        let always = ["--url", &scene.url, "--signers", SIGNERS, "--program", "program", "--packages", ""];
        let mut build = Command::new(super::packaging("release"));
        scene.computer.settle(&mut build);
        build.arg("build").args(always).env("PATH", path);
        Ran::of(&mut build).failed_with(1).says(&["error: `rustc -vV`"]);
        assert!(!scene.computer.path("dist").exists());
    }
    let text = String::from_utf8(scene.computer.read(SIGNERS)).unwrap();
    let (head, tail) = text.split_once("\"artifact_signers\": [").unwrap();
    let (group, rest) = tail.split_once("\n  ]").unwrap();
    let second = group.replace("\"threshold\": 2", "\"threshold\": 3");
    let admins = group.replace("\"threshold\": 2", "\"threshold\": 1");
    let both = format!(
        "{head}\"artifact_signers\": [{group},{second}\n  ],\n  \"admin_keys\": [{admins}\n  ]{rest}"
    );
    scene.computer.write("both.json", both);
    scene.build(&["--signers", "both.json"]).ok();
    let script = String::from_utf8(scene.computer.read(&scene.dist("install.sh"))).unwrap();
    let alone = scene.release("installer", &["--signers", "both.json"]).ok();
    assert_eq!(alone.stdout, script);
    let (_, groups) = script.split_once("\ngroups='").unwrap();
    let (groups, _) = groups.split_once('\'').unwrap();
    let thresholds: Vec<_> = groups.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let keys: Vec<_> = groups.lines().map(|line| line.split(' ').count() - 1).collect();
    assert_eq!((thresholds, keys), (vec!["2", "3"], vec![3, 3]), "{groups}");
    // In another layout the script would have to guess.
    let compact = text.split_whitespace().collect::<String>();
    scene.computer.write("compact.json", compact);
    scene.build(&["--signers", "compact.json"]).failed_with(1).says(&["cannot be read"]);

    let program = String::from_utf8(scene.computer.read("program")).unwrap();
    let restless = program.replacen("exec ", "[ \"$1\" != completions ] || echo \"# $$\"\nexec ", 1);
    scene.computer.write("program", restless);
    scene.build(&[]).ok();
    scene.build(&["--check"]).failed_with(1).says(&["two builds of one commit differ"]);
}
