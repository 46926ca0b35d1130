//! The composite actions for GitHub and Forgejo.

use super::{Scene, runner::StepEnd, runner::read, runner::root, yaml};
use crate::support::{Person, fake_forge::Kind, world::checksums};

const ACTIONS: [&str; 6] = [".", "ci/install", "ci/release", "ci/wait", "ci/verify", "ci/gate"];

/// Stands in for the one that verifies a release of ours: one version is good, the other is not.
const INSTALLER: &str = r#"
[ "$COUNTERSIGN_VERSION" = v9.9.9 ] || exit 3
mkdir -p "$COUNTERSIGN_PREFIX/bin"
printf '#!/bin/sh\necho countersign v9.9.9\n' >"$COUNTERSIGN_PREFIX/bin/countersign"
chmod +x "$COUNTERSIGN_PREFIX/bin/countersign"
"#;

#[track_caller]
fn register(scene: &Scene, tag: &str) -> StepEnd {
    scene.publish(tag);
    let runner = scene.runner(tag);
    runner.action("ci/release", &[("server", &scene.server()), ("key", &scene.key())])
}

#[test]
fn a_release_goes_from_registration_over_waiting_to_the_gate() {
    let scene = Scene::start(Kind::GitHub);
    let (server, index) = (scene.server(), scene.index("v1.0"));
    let registered = register(&scene, "v1.0").ok();
    assert_eq!(registered.outputs["index"], index);
    assert_eq!(registered.outputs["page"], format!("{server}/p/{index}"));
    assert!(registered.summary.contains(&format!("    {index}\n")), "{registered:?}");
    assert!(registered.stdout.contains(&format!("Its page: {server}/p/{index}")), "{registered:?}");
    scene.sign("v1.0");
    let runner = scene.runner("v1.0");
    let waited = runner.action("ci/wait", &[("server", &server), ("release", &index)]).ok();
    assert_eq!(waited.outputs["state"], "complete");
    let passed = runner.action("ci/gate", &[("server", &server)]).ok();
    assert_eq!(
        (passed.outputs["state"].as_str(), passed.outputs["index"].as_str()),
        ("verified", index.as_str())
    );
    let file = runner.work().join("countersign-release/app.tar.gz");
    assert_eq!(std::fs::read(file).unwrap(), b"the archive");
    let verified =
        runner.action("ci/verify", &[("server", &server), ("files", "countersign-release/notes.txt")]);
    assert_eq!(verified.ok().outputs["state"], "verified");
}

#[test]
fn a_job_that_runs_again_finds_its_work_done() {
    let scene = Scene::start(Kind::GitHub);
    register(&scene, "v1.0").ok();
    for _ in 0..2 {
        let again = register(&scene, "v1.0").ok().says(&["Registered before"]);
        assert_eq!(again.outputs["index"], scene.index("v1.0"));
        scene.world().sign(&Person::named("alice"), &scene.index("v1.0"));
    }
    scene.world().sign(&Person::named("bob"), &scene.index("v1.0")).ok();
    register(&scene, "v1.0").ok().says(&["Registered before"]);

    // The action of the whole repository installs and registers.
    let end = scene.runner("v1.0").action(".", &[("server", &scene.server()), ("key", &scene.key())]).ok();
    assert_eq!(end.outputs["index"], scene.index("v1.0"));
    assert!(end.stdout.starts_with("countersign "), "{end:?}");

    // Keys do not stay behind.
    let runner = scene.runner("v1.0");
    let with = [("server", scene.server()), ("key", scene.key().replace('\n', "\r\n"))];
    runner.action("ci/release", &with.each_ref().map(|(name, value)| (*name, value.as_str()))).ok();
    let left: Vec<_> =
        std::fs::read_dir(runner.temp()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("tmp.")), "{left:?}");

    // A step without a key, a tag or the program says what is missing.
    let mut runner = scene.runner("v1.0");
    runner.action("ci/release", &[("server", &scene.server())]).failed(2).says(&["there is no key"]);
    runner.env.insert("GITHUB_REF_TYPE".to_owned(), "branch".to_owned());
    let with = [("server", scene.server()), ("key", scene.key())];
    let with = with.each_ref().map(|(name, value)| (*name, value.as_str()));
    runner.action("ci/release", &with).failed(2).says(&["this job runs for no tag"]);
    runner.forget_program();
    runner.env.insert("GITHUB_REF_TYPE".to_owned(), "tag".to_owned());
    runner.action("ci/release", &with).failed(2).says(&["there is no program countersign"]);
    let leftovers: Vec<_> =
        std::fs::read_dir(runner.temp()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(leftovers.iter().all(|path| !path.join("key").exists()), "{leftovers:?}");
}

#[test]
fn a_registrar_whose_files_changed_is_told_who_can_correct_them() {
    let scene = Scene::start(Kind::GitHub);
    register(&scene, "v1.0").ok();
    scene.world().sign(&Person::named("alice"), &scene.index("v1.0")).ok();
    let assets = [crate::support::fake_forge::Asset::new("app.tar.gz", "another build")];
    scene.forge.forge.put_release("acme/app", "v1.0", &assets);
    let runner = scene.runner("v1.0");
    let end = runner.action("ci/release", &[("server", &scene.server()), ("key", &scene.key())]).failed(1);
    assert_eq!(end.says(&["A signer of the project can"]).outputs["index"], "");
    scene.world().sign(&Person::named("bob"), &scene.index("v1.0")).ok();
    let files = runner.action("ci/gate", &[("server", &scene.server())]).failed(3);
    assert_eq!(files.outputs["state"], "", "what the forge has now was not signed");
}

#[test]
fn a_release_on_a_file_server_is_registered_by_its_checksums() {
    let scene = Scene::start(Kind::GitHub);
    let alice = Person::named("alice");
    let file = crate::support::SignersFile::of(1, &[&alice])
        .with("registrars", serde_json::json!([crate::support::signers::signer(&Person::named("ci").key())]));
    let world = crate::support::World::with_project(&file, &[&alice]);
    let url = world.publish_checksums("acme/app/v1", &checksums("v1"));
    let server = format!("http://{}", world.server.address());
    let with =
        [("server", server.as_str()), ("key", &scene.key()), ("checksums", &format!(" {url}  {url}x"))];
    scene.runner("v1").action("ci/release", &with).failed(1);
    let with = [("server", server.as_str()), ("key", &scene.key()), ("checksums", &format!(" {url} "))];
    let end = scene.runner("v1").action("ci/release", &with).ok();
    assert_eq!(end.outputs["index"], world.index_path("acme/app/v1"));
}

#[test]
fn the_gate_stays_closed_without_enough_signatures_or_files() {
    let scene = Scene::start(Kind::GitHub);
    register(&scene, "v1.0").ok();
    let (server, runner) = (scene.server(), scene.runner("v1.0"));
    let gate =
        |with: &[(&str, &str)]| runner.action("ci/gate", &[&[("server", server.as_str())], with].concat());
    gate(&[]).failed(3);
    scene.world().sign(&Person::named("alice"), &scene.index("v1.0")).ok();
    gate(&[]).failed(3);
    scene.world().sign(&Person::named("bob"), &scene.index("v1.0")).ok();
    let dist = runner.work().join("dist");
    std::fs::create_dir(&dist).unwrap();
    std::fs::write(dist.join("app.tar.gz"), "the archive").unwrap();
    gate(&[("files", "dist")]).failed(3).says(&["notes.txt", "not here"]);
    std::fs::write(dist.join("notes.txt"), "what is old").unwrap();
    gate(&[("files", "dist")]).failed(3);
    std::fs::write(dist.join("notes.txt"), "what is new").unwrap();
    std::fs::write(dist.join("extra"), "not signed").unwrap();
    gate(&[("files", "dist")]).failed(3).says(&["extra"]);
    std::fs::remove_file(dist.join("extra")).unwrap();
    gate(&[("files", "dist"), ("signers-digest", &"0".repeat(128))]).failed(3);
    gate(&[("files", "dist")]).ok();
    scene.world().revoke(&Person::named("alice"), &scene.index("v1.0")).ok();
    gate(&[("files", "dist")]).failed(4);

    // A wait that ends too early is gone on with by a later job.
    register(&scene, "v2.0").ok();
    let (runner, index) = (scene.runner("v2.0"), scene.index("v2.0"));
    let with = [("server", server.as_str()), ("release", &index), ("timeout", "1s")];
    let end = runner.action("ci/wait", &with).failed(6).says(&["the time is over", "Run this job again"]);
    assert_eq!(end.outputs["state"], "waiting");
    let end = runner.action("ci/wait", &[&with[..], &[("on-timeout", "pass")]].concat()).ok();
    assert_eq!(end.outputs["state"], "waiting");
    assert_eq!(runner.action("ci/gate", &with).failed(6).outputs["state"], "");
    scene.sign("v2.0");
    assert_eq!(scene.runner("v2.0").action("ci/wait", &with).ok().outputs["state"], "complete");
    assert_eq!(scene.runner("v2.0").action("ci/gate", &with).ok().outputs["state"], "verified");
}

#[test]
fn only_what_the_installer_has_verified_gets_on_the_path() {
    let scene = Scene::start(Kind::GitHub);
    let copy = tempfile::TempDir::new().unwrap();
    for (name, text) in [
        ("ci/job.sh", read("ci/job.sh")),
        ("ci/install.sh", read("ci/install.sh")),
        ("packaging/install-verified.sh", INSTALLER.to_owned()),
    ] {
        let path = copy.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let script = format!("sh '{}'", copy.path().join("ci/install.sh").display());
    for (version, code) in [("v9.9.9", 0), ("v6.6.6", 3)] {
        let runner = scene.runner("v1.0");
        let end = runner.run(&script, &[("COUNTERSIGN_VERSION".to_owned(), version.to_owned())].into());
        assert_eq!(end.code, code, "{end:?}");
        let added = runner.added_path();
        assert_eq!(!added.is_empty(), code == 0, "{added}");
        if code == 0 {
            // A directory of this run alone: another user could have prepared one whose name can be guessed.
            let bin = std::path::Path::new(added.trim_end());
            assert!(bin.starts_with(runner.temp()) && bin.join("countersign").exists(), "{added}");
            let end = runner.run(&script, &[("COUNTERSIGN_VERSION".to_owned(), version.to_owned())].into());
            assert!(end.code == 0 && runner.added_path() != added, "{added}");
        }
        assert_eq!(end.stdout.contains("countersign v9.9.9"), code == 0, "{end:?}");
    }

    let runner = scene.runner("v1.0");
    runner.action("ci/install", &[]).ok().says(&["countersign "]);
    assert_eq!(runner.added_path(), "", "the program on the path is taken as it is");
    for version in ["-x", "v1 0", "v1;x", "../v1"] {
        runner.action("ci/install", &[("version", version)]).failed(2).says(&["version"]);
    }
}

#[test]
fn no_action_splices_an_input_into_a_script() {
    for dir in ACTIONS {
        let text = read(&format!("{dir}/action.yml"));
        let action = yaml::read(&text);
        for step in action["runs"]["steps"].as_array().unwrap() {
            let script = step["run"].as_str().unwrap();
            assert!(!script.contains("${{"), "{dir}: {script}");
            let file = script.rsplit_once('/').unwrap().1.trim_end_matches('"');
            assert!(root().join("ci").join(file).exists(), "{dir}: {file}");
        }
        for name in action["inputs"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("${{{{ inputs.{name} }}}}")), "{dir}: {name} is not used");
        }
    }
}
