//! A log that lies about the state (D214): its commits are right, it only grows, and its status map is false.

use std::{fs, path::PathBuf};

use countersign_core::log::record::Leaf;
use serde_json::Value;

use crate::support::log_scene::{LogScene, THREE, content, log_key, policy};
use crate::support::{alice, client::Ran, client::add_files, client::text};

fn look(scene: &LogScene, state: &str, more: &[&str]) -> Ran {
    let (url, project) = (scene.hostile.url(), scene.world.id("acme/app"));
    scene.user.run(&[&["monitor", &url, &project, "--once", "--state", state][..], more].concat())
}

fn evidence(scene: &LogScene) -> Vec<PathBuf> {
    let entries = fs::read_dir(scene.user.computer.config()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths.filter(|path| text(path).contains("log-lie-")).collect();
    found.sort();
    found
}

/// The log as its commits give it, but for the state of the last leaf, which is that of the leaf before.
fn with_the_state_of_before(mut leaves: Vec<Leaf>) -> Vec<Leaf> {
    let before = leaves[leaves.len() - 2].state;
    leaves.last_mut().unwrap().state = before;
    leaves
}

#[test]
fn a_hidden_revocation_is_an_alarm_with_evidence_that_anyone_can_check() {
    let scene = LogScene::start(Some(policy()));
    scene.show_log(scene.leaves(), THREE);
    look(&scene, "state.json", &[]).ok().says(&["Following"]);
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    let honest = scene.leaves();
    scene.show_log(with_the_state_of_before(honest.clone()), THREE);
    let alarmed = look(&scene, "state.json", &["--exec", "cat >> alarm.txt"]).failed(3);
    alarmed.says(&["LIES ABOUT THE STATE", &format!("{} is revoked", scene.index("1.0")), "monitor --check"]);
    let mail = String::from_utf8(scene.user.computer.read("alarm.txt")).unwrap();
    assert!(mail.starts_with("ALARM: THE LOG sign.example.org/log+"), "{mail}");
    let [file] = &evidence(&scene)[..] else { panic!("one file") };

    // Someone else, who has nothing but the file.
    let other = crate::support::client::Computer::offline();
    let copy = other.write("evidence.json", fs::read(file).unwrap());
    other.run(&["monitor", "--check", text(&copy)]).ok().says(&[
        "PROVEN",
        &log_key().to_string(),
        "is revoked",
    ]);
    let proven = other.json(&["monitor", "--check", text(&copy)]);
    assert_eq!(
        (&proven["commit"], &proven["leaf"]),
        (&honest.last().unwrap().commit.clone().into(), &(honest.len() - 1).into())
    );
    assert_eq!(proven["derived_state"], honest.last().unwrap().state.to_string());
    let bytes = fs::read(&copy).unwrap();
    let mut document: Value = serde_json::from_slice(&bytes).unwrap();
    document["change"].as_object_mut().unwrap().clear();
    other.write("evidence.json", document.to_string());
    other.run(&["monitor", "--check", text(&copy)]).failed(3).says(&["does not prove"]);
    other.write("evidence.json", "{}");
    other.run(&["monitor", "--check", text(&copy)]).failed(3);

    // Nothing of it is remembered, so the truth can still be told.
    look(&scene, "state.json", &[]).failed(3);
    assert_eq!(evidence(&scene).len(), 1, "the same lie has one file");
    scene.hostile.be_honest();
    scene.show_log(honest, THREE);
    let told = look(&scene, "state.json", &[]);
    assert_eq!(told.code, 9, "{told:?}");
    told.says(&["release revoked"]);
}

/// The lie is in the middle of the log, and the monitor begins after it.
#[test]
fn a_lie_from_before_the_watch_is_found() {
    let scene = LogScene::start(None);
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    let lying = with_the_state_of_before(scene.leaves());
    add_files(&scene.world, "acme/app/3.0", &[("app.tar.gz", &content("3.0"))], &[&alice()]);
    let honest = scene.leaves();
    let leaves = lying.iter().chain(&honest[lying.len()..]).cloned().collect();
    scene.show_log(leaves, &[]);
    look(&scene, "new.json", &[]).failed(3).says(&["LIES ABOUT THE STATE", "is revoked"]);
    let [file] = &evidence(&scene)[..] else { panic!("one file") };
    scene.user.run(&["monitor", "--check", text(file)]).ok().says(&["PROVEN"]);

    let computer = crate::support::client::Computer::offline();
    computer.run(&["monitor"]).failed_as_usage();
    computer.run(&["monitor", "https://sign.example.org", "--check", "x.json"]).failed_as_usage();
    computer.run(&["monitor", "--check", "x.json"]).failed(1).says(&["x.json"]);
}

#[test]
fn what_was_derived_can_be_lost_and_an_earlier_version_had_nothing() {
    const AGAIN: &str = "is missing or damaged: it is derived again";
    let scene = LogScene::start(None);
    scene.staple("2.0");
    look(&scene, "state.json", &[]).ok();
    let map = "state.json.map";
    type Loss = fn(&LogScene);
    let lose: [(&str, Loss); 4] = [
        ("deleted", |scene| drop(fs::remove_file(scene.user.computer.path("state.json.map")))),
        ("damaged", |scene| {
            let text = String::from_utf8(scene.user.computer.read("state.json.map")).unwrap();
            scene.user.computer.write("state.json.map", text.replacen("complete", "complot", 1));
        }),
        ("of another form", |scene| {
            let mut bytes = scene.user.computer.read("state.json.map");
            bytes[0] ^= 1;
            scene.user.computer.write("state.json.map", bytes);
        }),
        ("of an earlier version", |scene| {
            let mut state: Value = serde_json::from_slice(&scene.user.computer.read("state.json")).unwrap();
            assert!(state.as_object_mut().unwrap().remove("replay").is_some());
            scene.user.computer.write("state.json", state.to_string());
        }),
    ];
    for (number, (name, lose)) in (3..).zip(lose) {
        lose(&scene);
        let version = format!("{number}.0");
        add_files(
            &scene.world,
            &format!("acme/app/{version}"),
            &[("app.tar.gz", &content(&version))],
            &[&alice()],
        );
        let honest = scene.leaves();
        scene.show_log(with_the_state_of_before(honest), &[]);
        look(&scene, "state.json", &[]).failed(3).says(&["LIES"]);
        scene.hostile.be_honest();
        let told = look(&scene, "state.json", &[]);
        assert_eq!((told.code, told.stdout.lines().count()), (9, 1), "{name}: {told:?}");
        assert_eq!(told.stderr.matches(AGAIN).count(), 1, "{name}: {told:?}");
        let again = look(&scene, "state.json", &[]).ok();
        assert!(!again.stderr.contains(AGAIN), "{name}: {again:?}");
    }
    assert!(scene.user.computer.listing().contains(&map.to_owned()));
}
