//! A log is held to what it has shown.

use countersign_core::{log::note::Note, proof::bundle::Staple};
use serde_json::json;

use crate::support::client::{Computer, Ran, add_files};
use crate::support::log_scene::{LogScene, THREE, content, forked, log_key, policy, witness_key};
use crate::support::{SignersFile, alice, days_ago, hostile::Lie, mirrors::url_of};

fn size(staple: &Staple) -> u64 {
    staple.proof.index + 1
}

fn known(transparent: bool) -> (LogScene, Staple) {
    let scene = LogScene::start(transparent.then(policy));
    let staple = scene.show_cosigned("2.0");
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
    (scene, staple)
}

fn pinned_size(scene: &LogScene) -> u64 {
    let pins = scene.user.computer.pins();
    let note = pins["logs"][log_key().to_string()]["checkpoint"].as_str().expect("a checkpoint").to_owned();
    let note = Note::parse(note.as_bytes()).expect("a note");
    note.text().lines().nth(1).expect("a size").parse().expect("a number")
}

#[test]
fn a_log_that_grows_is_followed_by_its_tiles() {
    let (scene, staple) = known(true);
    assert_eq!(pinned_size(&scene), size(&staple));
    for version in ["3.0", "4.0", "5.0"] {
        add_files(&scene.world, &format!("acme/app/{version}"), &[("app.tar.gz", b"more")], &[&alice()]);
    }
    let grown = scene.show_cosigned("2.0");
    scene
        .user
        .takes(&scene.url("2.0"), &content("2.0"))
        .says(&["3 releases were completed later: 5.0, 4.0, 3.0"]);
    assert_eq!(pinned_size(&scene), size(&grown));
    let project = scene.world.id("acme/app");
    assert_eq!(scene.user.computer.pins()["projects"][&project]["log"], log_key().to_string());
    scene
        .user
        .run(&["trust", "list"])
        .ok()
        .says(&["log sign.example.org/log", &format!("size {}", size(&grown))]);
    // An older state that says how old it is is no lie, and what was seen is not forgotten.
    scene.show("2.0", &staple);
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
    assert_eq!(pinned_size(&scene), size(&grown));
}

#[test]
fn a_fork_is_refused_and_both_checkpoints_are_kept_as_evidence() {
    for transparent in [true, false] {
        let (scene, staple) = known(transparent);
        let memory = scene.user.memory();
        let fork = forked(&staple, size(&staple), THREE);
        scene.show("2.0", &fork);
        let refused = scene.user.refuses(&scene.url("2.0"), 3, &["CONTRADICTS ITSELF", "two roots"]);
        assert!(scene.user.memory() == memory);
        let path =
            refused.stderr.split("checkpoints are in ").nth(1).and_then(|rest| rest.split(": send").next());
        let evidence = std::fs::read_to_string(path.expect("a path")).expect("a file");
        for note in [&staple, &fork].map(|staple| staple.proof.note.to_string()) {
            assert!(evidence.contains(&note), "{note} is missing in {evidence}");
        }
    }
}

#[test]
fn a_larger_log_whose_tiles_show_another_past_is_a_fork() {
    let (scene, staple) = known(true);
    let size = size(&staple);
    let fork = forked(&staple, size + 1, THREE);
    scene.show("2.0", &fork);
    // The tiles of the log that it claims to be.
    let zero = countersign_core::values::digest::Sha256::of(b"another past");
    let other = countersign_core::log::record::Leaf {
        commit: "0".repeat(40),
        object: zero,
        changes: zero,
        state: zero,
    };
    let hashes: Vec<u8> = (0..size)
        .map(|_| other.hash())
        .chain([fork.leaf.hash()])
        .flat_map(|hash| hash.as_bytes().to_vec())
        .collect();
    scene.hostile.answer(&format!("/log/tile/0/000.p/{}", size + 1), Lie::bytes(hashes));
    scene.user.refuses(&scene.url("2.0"), 3, &["CONTRADICTS ITSELF", "does not begin with"]);
    // Nor does a proof help that proves nothing.
    let claim = serde_json::json!({ "from": size, "to": size + 1, "hashes": [] });
    scene.hostile.answer("/consistency", Lie::json(&claim));
    scene.user.refuses(&scene.url("2.0"), 3, &["CONTRADICTS ITSELF", "does not begin with"]);
    // Without tiles nothing is proven, and nothing is believed.
    scene.hostile.answer(&format!("/log/tile/0/000.p/{}", size + 1), Lie::missing());
    scene.user.refuses(&scene.url("2.0"), 3, &["does not show its tile"]);
}

#[test]
fn without_witnesses_a_server_whose_log_is_smaller_is_behind() {
    let scene = LogScene::start(None);
    let small = scene.staple("2.0");
    add_files(&scene.world, "acme/app/3.0", &[("app.tar.gz", b"more")], &[&alice()]);
    scene.staple("2.0");
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
    scene.show("2.0", &small);
    scene.user.refuses(&scene.url("2.0"), 5, &["behind", "no witness says how old"]);

    let scene = LogScene::start(Some(policy()));
    let small = scene.staple("2.0");
    add_files(&scene.world, "acme/app/3.0", &[("app.tar.gz", b"more")], &[&alice()]);
    scene.show_cosigned("2.0");
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
    let later = crate::support::log_scene::with_cosignatures(small, &[(1, 30), (2, 90), (4, 20)]);
    scene.show("2.0", &later);
    scene.user.refuses(&scene.url("2.0"), 3, &["CONTRADICTS ITSELF", "witness1.example", "set back"]);
}

#[test]
fn another_log_is_refused_until_the_user_or_the_policy_accepts_it() {
    let (scene, _) = known(false);
    let other = countersign_core::values::verifier_key::VerifierKey::new(
        "sign.example.org/new",
        countersign_core::values::verifier_key::KeyKind::Log,
        witness_key(9).ed25519().unwrap(),
    );
    scene.hostile.answer("/log/key", Lie::bytes(format!("{}\n", other.unwrap())));
    let refused = scene.user.refuses(&scene.url("2.0"), 3, &["THE LOG HAS CHANGED", "sign.example.org/new"]);
    refused.says(&["countersign trust remove sign.example.org/log"]);
    scene.user.run(&["trust", "remove", "sign.example.org/none"]).failed(1).says(&["trust list"]);
    scene.user.run(&["trust", "remove", "sign.example.org/log"]).failed(2).says(&["--yes"]);
    scene.user.run(&["trust", "remove", "sign.example.org/log", "--yes"]).ok();
    assert!(scene.user.computer.pins()["logs"].is_null());
    scene.hostile.answer("/log/key", Lie::bytes(format!("{}\n", log_key())));
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
}

/// The key of the log has signed both, so no server can make it good (D268).
#[test]
fn a_log_that_contradicts_itself_is_an_alarm_though_another_server_is_named() {
    let scene = LogScene::start(Some(policy()));
    let servers = json!([scene.hostile.url(), url_of(&scene.world.server)]);
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&alice()]);
    let next = next.with("transparency", policy()).with("servers", servers);
    scene.world.rotate("acme/app", &next, &[&alice()]);
    let staple = scene.show_cosigned("2.0");
    let (computer, url) = (Computer::offline(), scene.url("2.0"));
    let download = || Ran::of(&mut computer.newcomer(&["download", &url, "--force"]));
    download().ok();
    scene.show("2.0", &forked(&staple, size(&staple), THREE));
    download().failed(3).says(&["CONTRADICTS ITSELF"]).says_nothing_of(&["Asking"]);
    // A proof that does not hold is the lie of this server alone. The other one has no witnesses.
    let mut changed = staple;
    changed.statuses.release.number += 1;
    scene.show("2.0", &changed);
    download().failed(3).says(&["Asking", "not in the status map"]);
}
