//! Inputs that try to be more than a value.

use super::{Scene, runner::Runner};
use crate::support::{Person, SignersFile, World, client::add_files, fake_forge::Kind};

/// Each would leave a file `pwned`, an output or a command if a script or a runner took it for more than text.
const HOSTILE: [&str; 6] = [
    "$(touch pwned)`touch pwned`",
    "a b'\" *; touch pwned #",
    "x\n::set-output name=COUNTERSIGN_INDEX::forged\nCOUNTERSIGN_INDEX=forged",
    "x\r::error::forged",
    "--outputs=pwned",
    "##[set-output name=COUNTERSIGN_INDEX;]forged ${{ inputs.key }} \u{202e}",
];

/// Each input of these actions is in turn each of the hostile values, and the others are as they should be.
#[track_caller]
fn try_all(actions: &[(&str, &[&str])]) {
    let scene = Scene::start(Kind::GitHub);
    scene.publish("v1.0");
    let (server, key, index) = (scene.server(), scene.key(), scene.index("v1.0"));
    let given = [("server", server.as_str()), ("key", &key), ("release", &index), ("timeout", "1s")];
    let registered = scene.runner("v1.0").action("ci/release", &given[..2]).ok();
    assert_eq!(registered.outputs["index"], index);
    scene.sign("v1.0");
    for (action, inputs) in actions {
        for input in *inputs {
            for value in HOSTILE {
                let mut with: Vec<(&str, &str)> = match *action {
                    "ci/install" => Vec::new(),
                    "ci/release" => given[..2].to_vec(),
                    "ci/wait" => given[..1].to_vec(),
                    _ => vec![given[0], given[2]],
                };
                if *action == "ci/verify" {
                    with.push(("files", "none"));
                }
                with.retain(|(name, _)| name != input);
                with.push((input, value));
                let runner = scene.runner("v1.0");
                let end = runner.action(action, &with);
                assert!(end.commands.is_empty(), "{action} {input} {value:?}: {end:#?}");
                assert!(!runner.work().join("pwned").exists(), "{action} {input} {value:?}: {end:#?}");
                // Only the name of a directory can be almost anything.
                if *input == "directory" && !value.contains(['\n', '\r']) {
                    assert_eq!(end.outputs["index"], index, "{value:?}: {end:#?}");
                    assert!(runner.work().join(value).join("app.tar.gz").exists(), "{value:?}: {end:#?}");
                } else {
                    assert_ne!(end.code, 0, "{action} {input} {value:?}: {end:#?}");
                    let is_told = end.stdout.contains("error: ") || end.stderr.contains("error: ");
                    assert!(is_told, "{action} {input} {value:?}: {end:#?}");
                    assert!(
                        end.outputs.values().all(String::is_empty),
                        "{action} {input} {value:?}: {end:#?}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_input_of_install_and_release_is_executed_or_makes_an_output() {
    try_all(&[("ci/install", &["version"]), ("ci/release", &["server", "key", "release", "checksums"])]);
}

#[test]
fn no_input_of_wait_and_verify_is_executed_or_makes_an_output() {
    try_all(&[
        ("ci/wait", &["server", "release", "timeout", "on-timeout", "reproduced"]),
        ("ci/verify", &["server", "release", "files", "signers-digest"]),
    ]);
}

#[test]
fn no_input_of_the_gate_is_executed_or_makes_an_output() {
    try_all(&[
        ("ci/gate", &["server", "release", "project"]),
        ("ci/gate", &["files", "directory", "timeout", "reproduced", "signers-digest"]),
    ]);
}

#[test]
fn a_tag_is_text_too() {
    let scene = Scene::start(Kind::GitHub);
    for tag in [
        "v1$(touch${IFS}pwned)", "v1`touch${IFS}pwned`", "v1'\";touch${IFS}pwned;#", "-v1&x|y",
        "%0A::error::x",
    ] {
        let runner = scene.runner(tag);
        let with = [("server", scene.server()), ("key", scene.key())];
        let end = runner.action("ci/release", &with.each_ref().map(|(name, value)| (*name, value.as_str())));
        assert_ne!(end.code, 0, "the forge has no such release: {end:#?}");
        assert!(end.commands.is_empty() && !runner.work().join("pwned").exists(), "{tag}: {end:#?}");
        assert!(scene.forge.forge.targets().iter().all(|target| !target.contains("touch pwned")));
    }
    for tag in ["tools/v1.0", "@acme/app@1.0.0", "v2+build", "v2=x,y"] {
        scene.publish(tag);
        let with = [("server", scene.server()), ("key", scene.key())];
        let with = with.each_ref().map(|(name, value)| (*name, value.as_str()));
        let end = scene.runner(tag).action("ci/release", &with).ok();
        assert_eq!(end.outputs["index"], scene.index(tag));
    }
}

#[test]
fn names_of_files_command_no_runner() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let files: [(&str, &[u8]); 3] =
        [("::error::x", b"1"), ("##[error]x", b"2"), ("::stop-commands::x", b"3")];
    let index = add_files(&world, "acme/app/v1", &files, &[&alice]);
    let mut runner = Runner::new("http://127.0.0.1:9", "v1");
    runner.env.insert("GITHUB_REF_TYPE".to_owned(), "branch".to_owned());
    std::fs::create_dir(runner.work().join("dist")).unwrap();
    for (name, content) in files {
        std::fs::write(runner.work().join("dist").join(name), content).unwrap();
    }
    let server = format!("http://{}", world.server.address());
    let with = [("server", server.as_str()), ("release", &index), ("files", "dist")];
    let end = runner.action("ci/gate", &with).ok().says(&["##[error]x"]);
    assert_eq!(end.outputs["index"], index);
    // A script that takes the runner for another one does not switch commands off, and this test sees that.
    runner.env.insert("GITHUB_ACTIONS".to_owned(), "false".to_owned());
    assert!(!runner.action("ci/gate", &with).commands.is_empty());
}
