//! What a computer has seen cannot be changed behind its back.

use std::fs;

use serde_json::json;

use crate::support::hostile::{Forgery, Listed, Scene, Victim, digest_of, index_of, origin};
use crate::support::{SignersFile, alice, bob, carol, days_ago, mallory};

/// Mallory's file, as she would publish it wherever she gets write access.
fn mallorys() -> Vec<u8> {
    SignersFile::of(1, &[&mallory()]).bytes()
}

#[test]
fn a_server_that_shows_an_older_history_than_was_seen_is_behind_for_every_command() {
    let scene = Scene::start();
    let before = scene.history();
    let second = SignersFile::of(2, &[&alice(), &bob(), &carol()]).redated(days_ago(8));
    scene.world.rotate("acme/app", &second, &[&alice(), &bob()]);
    scene.regular.takes(&scene.url("2.0"), &Scene::content("2.0"));
    scene.hostile.show_history(&scene.project(), &scene.index("2.0"), &before);
    let memory = scene.regular.memory();
    let missing = &digest_of(&scene.world.read(&scene.world.active_path("acme/app")))[..20];
    scene.regular.refuses(&scene.url("2.0"), 5, &[&scene.project(), "behind", "older history", missing]);
    assert!(scene.regular.memory() == memory);
    // A newcomer is saved by the file server, which shows the newer file.
    scene.newcomer.refuses(&scene.url("2.0"), 3, &[&scene.project()]);
    // Every command that shows the project notices it.
    for path in [scene.project(), scene.world.active_path("acme/app")] {
        scene.regular.run(&["signers", "history", &path]).failed(5).says(&["behind", "older history"]);
    }
    let url = scene.url("2.0");
    fs::write(scene.regular.computer.path("app.tar.gz"), Scene::content("2.0")).unwrap();
    scene.regular.run(&["verify", "app.tar.gz", "--url", &url]).failed(5).says(&["behind", "older history"]);
    scene.regular.run(&["bundle", &url, "-o", "app.bundle"]).failed(5).says(&["behind", "older history"]);
    assert_eq!(scene.regular.computer.listing(), ["app.tar.gz"]);
}

#[test]
fn a_changed_past_is_a_loud_failure_that_names_both_versions() {
    // The same people signed other metadata for the same file: perhaps their keys were stolen.
    let scene = Scene::start();
    let file = scene.world.read(&scene.world.active_path("acme/app"));
    let seen = scene.history()["entries"][0]["metadata"].as_str().unwrap().to_owned();
    let everyone = [&alice(), &bob(), &carol()];
    let origin = origin("file_server", &scene.signers_url());
    let forged = Forgery::of(&scene.project()).then(&file, &origin, &everyone);
    scene.hostile.show_history(&scene.project(), &scene.index("2.0"), &forged.history());
    let shown = forged.history()["entries"][0]["metadata"].as_str().unwrap().to_owned();
    let [seen, shown] = [seen, shown].map(|text| digest_of(text.as_bytes())[..20].to_owned());
    scene.regular.refuses(&scene.url("2.0"), 3, &["PAST", &scene.project(), &seen, &shown]);
    let digest = digest_of(&file);
    let with_digest = ["download", "--force", &scene.url("2.0"), "--signers-digest", &digest];
    scene.regular.run(&with_digest).failed(3).says(&["PAST"]);
    scene.regular.assert_untouched();
}

/// A server and a file server that are both Mallory's, from now on.
fn take_over(scene: &Scene, dir: &str, project_dir: &str) -> String {
    let signers = format!("/{project_dir}/svc.signers.json").replace("//", "/");
    scene.world.files.put(&signers, mallorys());
    scene.world.files.put(&format!("/{dir}/app.tar.gz"), "evil");
    let source = scene.world.files.url(&signers);
    let project = scene.world.id(project_dir).trim_end_matches('/').to_owned();
    let forged = Forgery::of(&project).then(&mallorys(), &origin("file_server", &source), &[&mallory()]);
    let url = scene.world.files.url(&format!("/{dir}/app.tar.gz"));
    let text = index_of(&project, None, &[Listed { name: "app.tar.gz", source: &url, bytes: b"evil" }]);
    forged.show(&scene.hostile, &scene.world.index_path(dir), &text, &[&mallory()]);
    url
}

#[test]
fn who_takes_over_server_and_file_server_deceives_no_one_who_knows_the_project() {
    let scene = Scene::start();
    let honest = digest_of(&scene.world.read(&scene.world.active_path("acme/app")));
    let url = take_over(&scene, "acme/app/2.0", "acme/app");
    let memory = scene.regular.memory();
    let forged = digest_of(&mallorys());
    scene.regular.refuses(&url, 3, &["PAST", &honest[..20], &forged[..20]]);
    for digest in [&forged, &honest] {
        scene.regular.run(&["download", "--force", &url, "--signers-digest", digest]).failed(3);
        scene.regular.assert_untouched();
    }
    assert!(scene.regular.memory() == memory);
    // A newcomer has no one else to ask, unless they know a digest. A limit by design.
    scene.newcomer.run(&["download", "--force", &url, "--signers-digest", &honest]).failed(3);
    scene.newcomer.takes(&url, b"evil");
}

#[test]
fn a_project_inside_or_around_a_known_one_is_refused() {
    let scene = Scene::start();
    let memory = scene.regular.memory();
    for (dir, project_dir) in [
        ("acme/app/2.0", "acme/app/2.0"),
        ("acme/app/2.0/sub", "acme/app/2.0"),
        ("acme/app/2.0", "acme"),
        ("acme/app/2.0", ""),
        ("acme/evil", "acme"),
        ("ACME/app/2.0", "ACME/app"),
        ("Acme/App/2.0/x", "Acme/App/2.0"),
    ] {
        scene.hostile.be_honest();
        let url = take_over(&scene, dir, project_dir);
        scene.regular.refuses(&url, 3, &["PAST", &scene.project()]);
        assert!(scene.regular.memory() == memory);
    }
}

#[test]
fn an_offline_bundle_is_measured_by_what_was_seen_too() {
    let scene = Scene::start();
    let url = take_over(&scene, "acme/app/2.0", "acme/app");
    let bundle = scene.newcomer.computer.path("evil.bundle");
    scene.newcomer.run(&["bundle", &url, "-o", bundle.to_str().unwrap()]).ok();
    let evil = scene.regular.computer.write("evil/app.tar.gz", "evil");
    let args = ["verify", evil.to_str().unwrap(), "--bundle", bundle.to_str().unwrap()];
    scene.regular.run(&args).failed(3).says(&["PAST"]);
    let forged = digest_of(&mallorys());
    scene.regular.run(&[&args[..], &["--signers-digest", &forged]].concat()).failed(3).says(&["PAST"]);
    // A bundle cannot vouch for itself.
    let stranger = Victim::of(&scene.hostile);
    stranger.run(&args).failed(3).says(&["cannot vouch for itself", "--signers-digest"]);
    assert!(stranger.memory().is_empty());
}

#[test]
fn a_memory_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let scene = Scene::start();
    let path = scene.regular.computer.config().join("trust.json");
    for damaged in
        ["", "{", "{}", "null", "{\"version\": 2, \"projects\": {}}", "{\"version\": 1, \"projects\": []}"]
    {
        fs::write(&path, damaged).unwrap();
        scene.regular.refuses(&scene.url("2.0"), 1, &["trust.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "nothing is written over it");
    }
    let memory = json!({ "version": 1, "projects": { scene.project(): {
        "accepted_at": days_ago(1).to_string(),
        "root": { "origin_url": scene.signers_url() },
        "history": [],
        "revocations": {},
    } } });
    fs::write(&path, memory.to_string()).unwrap();
    scene.regular.refuses(&scene.url("2.0"), 1, &["trust.json"]);
}
