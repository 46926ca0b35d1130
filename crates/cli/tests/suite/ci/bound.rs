//! What the gate verified is what the job publishes: this tag's release, whole, and nothing else (D158, D159).

use std::{fs, os::unix::fs::symlink};

use super::{Scene, runner::Runner, runner::StepEnd};
use crate::support::fake_forge::{Asset, Kind};
use crate::support::hostile::{HostileServer, Lie};
use crate::support::{Person, Request, SignersFile, World, client::add_files};

/// A scene with two complete releases, and the gate in a job for the second.
struct Gate {
    scene: Scene,
    runner: Runner,
}

impl Gate {
    fn of_two_releases() -> Self {
        let scene = Scene::start(Kind::GitHub);
        for tag in ["v0.9", "v1.0"] {
            scene.computer.run_as("alice", &["release", &scene.publish(tag)]).ok();
            scene.sign(tag);
        }
        let runner = scene.runner("v1.0");
        Self { scene, runner }
    }

    fn run(&self, with: &[(&str, &str)]) -> StepEnd {
        let server = self.scene.server();
        self.runner.action("ci/gate", &[&[("server", server.as_str())], with].concat())
    }

    /// Closed, with nothing for later steps.
    #[track_caller]
    fn refuses(&self, with: &[(&str, &str)], code: i32, words: &[&str]) {
        let end = self.run(with).failed(code).says(words);
        assert!(end.outputs.values().all(String::is_empty), "{end:#?}");
    }
}

#[test]
fn a_release_of_another_tag_or_repository_does_not_open_the_gate() {
    let mut gate = Gate::of_two_releases();
    let (old, own) = (gate.scene.index("v0.9"), gate.scene.index("v1.0"));
    let page = gate.scene.forge.forge.release_url("acme/app", "v0.9");
    for release in [&old, &page] {
        for files in [&[][..], &[("files", "dist")]] {
            let with = [files, &[("release", release)]].concat();
            gate.refuses(&with, 2, &["not the one of its tag and project", "leave the input release out"]);
        }
    }
    assert!(!gate.runner.work().join("countersign-release").exists(), "nothing was downloaded");
    gate.runner.env.insert("COUNTERSIGN_INDEX".to_owned(), old.clone());
    gate.refuses(&[], 2, &["not the one of its tag and project"]);
    gate.refuses(&[("release", &own)], 2, &["not the one of its tag and project"]);
    gate.runner.env.insert("COUNTERSIGN_INDEX".to_owned(), own.clone());
    let page = gate.scene.forge.forge.release_url("acme/app", "v1.0");
    for release in [&own, &page] {
        assert_eq!(gate.run(&[("release", release)]).ok().outputs["index"], own);
    }
    // A job for no tag has to name one.
    gate.runner.env.remove("COUNTERSIGN_INDEX");
    gate.runner.env.insert("GITHUB_REF_TYPE".to_owned(), "branch".to_owned());
    gate.refuses(&[], 2, &["no release is named"]);
    let end = gate.run(&[("release", &old), ("directory", "old")]).ok();
    assert_eq!(end.outputs["index"], old);
    // Nor does a release of another repository.
    gate.runner.env.insert("GITHUB_REF_TYPE".to_owned(), "tag".to_owned());
    gate.runner.env.insert("GITHUB_REPOSITORY".to_owned(), "acme/other".to_owned());
    let end = gate.run(&[("release", &own)]);
    assert_ne!(end.code, 0, "{end:#?}");
    assert_eq!(end.outputs["state"], "");
}

/// A tag can be the beginning of another one, which is no release of this tag.
#[test]
fn a_release_below_the_tag_does_not_open_the_gate() {
    let mut gate = Gate::of_two_releases();
    let assets = [Asset::new("app.tar.gz", "the archive")];
    let page = gate.scene.forge.forge.put_release("acme/app", "v2/old", &assets);
    gate.scene.computer.run_as("alice", &["release", &page]).ok();
    gate.scene.sign("v2/old");
    gate.runner.env.insert("GITHUB_REF_NAME".to_owned(), "v2".to_owned());
    let below = gate.scene.index("v2/old");
    // A server that calls it the newest one of the tag changes nothing.
    let project = gate.scene.forge.forge.project("acme/app");
    let list = format!("/v1/releases?project={project}&tag=v2/old");
    let answer = gate.scene.world().server.send(&Request::get(list)).json();
    assert_eq!(answer["releases"][0]["index_path"], below);
    let hostile = HostileServer::before(&gate.scene.world().server);
    hostile.lie(move |asked| asked.path.starts_with("/v1/releases?").then(|| Lie::json(&answer)));
    let (honest, hostile) = (gate.scene.server(), hostile.url());
    for (server, release) in [(&honest, ""), (&honest, &below), (&hostile, "")] {
        let end = gate.runner.action("ci/gate", &[("server", server), ("release", release)]);
        assert_ne!(end.code, 0, "{end:#?}");
        assert_eq!(end.outputs["state"], "");
    }
    gate.runner.env.insert("GITHUB_REF_NAME".to_owned(), "v2/old".to_owned());
    gate.run(&[]).ok();
}

#[test]
fn a_project_on_a_file_server_is_bound_to_the_tag_too() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    for tag in ["v0.9", "v1.0"] {
        add_files(&world, &format!("acme/app/{tag}"), &[("app", tag.as_bytes())], &[&alice]);
    }
    let runner = Runner::new("http://127.0.0.1:9", "v1.0");
    let server = format!("http://{}", world.server.address());
    let gate =
        |with: &[(&str, &str)]| runner.action("ci/gate", &[&[("server", server.as_str())], with].concat());
    let project = world.id("acme/app");
    let old = world.index_path("acme/app/v0.9");
    gate(&[("project", &project), ("release", &old)]).failed(2).says(&["not the one of its tag"]);
    gate(&[("project", "acme/app")]).failed(2).says(&["identifier"]);
    let end = gate(&[("project", &project)]).ok();
    assert_eq!(end.outputs["index"], world.index_path("acme/app/v1.0"));
    assert_eq!(fs::read(runner.work().join("countersign-release/app")).unwrap(), b"v1.0");
}

#[test]
fn links_and_strange_entries_do_not_pass_the_gate() {
    let gate = Gate::of_two_releases();
    let work = gate.runner.work();
    let secret = work.join("secret");
    fs::write(&secret, "not signed").unwrap();
    // Planted where the gate is going to download to.
    let dir = work.join("countersign-release");
    fs::create_dir(&dir).unwrap();
    for (name, target) in [("more", secret.to_str().unwrap()), (".more", "..")] {
        symlink(target, dir.join(name)).unwrap();
        gate.refuses(&[], 3, &["more", "neither a file nor a directory"]);
        // Now the files are there, from the download before.
        gate.refuses(&[("files", "countersign-release")], 3, &["more"]);
        fs::remove_file(dir.join(name)).unwrap();
    }
    fs::write(dir.join("more"), "not signed").unwrap();
    gate.refuses(&[], 3, &["more"]);
    gate.refuses(&[("files", "countersign-release")], 3, &["more"]);
    fs::remove_file(dir.join("more")).unwrap();
    fs::remove_file(dir.join("notes.txt")).unwrap();
    // A link with the right bytes behind it counts for no file.
    fs::write(work.join("kept"), "what is new").unwrap();
    symlink("../kept", dir.join("notes.txt")).unwrap();
    gate.refuses(&[], 3, &["notes.txt"]);
    fs::remove_file(dir.join("notes.txt")).unwrap();
    gate.run(&[]).ok();
    gate.run(&[]).ok();
    symlink("countersign-release", work.join("linked")).unwrap();
    gate.refuses(&[("files", "linked")], 3, &["linked"]);
    gate.refuses(&[("directory", "linked/")], 2, &["is a link"]);
    gate.run(&[("files", "countersign-release")]).ok();
}
