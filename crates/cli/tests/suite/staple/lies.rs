//! A server that shows something else than the newest state, one test for each lie.

use countersign_core::{documents::layout, proof::bundle::Staple, values::path::RepoPath};
use serde_json::json;

use crate::support::log_scene::{LogScene, THREE, content, policy};
use crate::support::{Person, SignersFile, alice, days_ago, hostile::Lie};

fn known() -> LogScene {
    let scene = LogScene::start(Some(policy()));
    scene.show_cosigned("2.0");
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
    scene
}

/// The server shows the release as it was before its revocation, with this staple.
fn hide_revocation(scene: &LogScene, version: &str, staple: &Staple) {
    let index = scene.index(version);
    let path = RepoPath::parse(&index).unwrap();
    let signatures = scene.world.read(layout::revoked_signatures_of(&path).as_str());
    scene.hostile.hide_file(&format!("{index}.revocation.json"));
    scene.hostile.show_file(&format!("{index}.signatures.json"), signatures);
    scene.show(version, staple);
}

#[test]
fn a_hidden_revocation_is_an_alarm_and_is_remembered() {
    let scene = known();
    let before = scene.cosigned("2.0", THREE);
    scene.world.revoke(&alice(), &scene.index("2.0")).ok();
    let after = scene.cosigned("2.0", THREE);
    hide_revocation(&scene, "2.0", &after);
    scene.user.refuses(&scene.url("2.0"), 4, &["REVOKED", "HIDES", "by 3 of 4 witnesses"]);
    // Verify is deceived as little as download.
    scene.user.computer.write("app.tar.gz", content("2.0"));
    let url = scene.url("2.0");
    scene.user.run(&["verify", "app.tar.gz", "--url", &url]).failed(4).says(&["REVOKED"]);
    scene.user.run(&["bundle", &url, "-o", "b.json"]).failed(4);
    scene.user.put_old_file();
    // An older staple that is still fresh enough does not help any more.
    scene.show("2.0", &before);
    scene.user.refuses(&scene.url("2.0"), 4, &["REVOKED", "as this computer has seen before"]);
    // An honest server gives the reason.
    scene.hostile.be_honest();
    scene.user.refuses(&scene.url("2.0"), 4, &["key leaked"]);
}

#[test]
fn a_hidden_rotation_is_refused() {
    let scene = known();
    let project = scene.world.id("acme/app");
    let before = scene.world.read_json(&format!("{project}/svc.signers.history.json"));
    let bob = Person::named("bob");
    let next = SignersFile::dated(days_ago(5)).artifact(1, &[&bob]).with("transparency", policy());
    scene.world.rotate("acme/app", &next, &[&alice(), &bob]);
    let staple = scene.cosigned("2.0", THREE);
    scene.hostile.show_history(&project, &scene.index("2.0"), &before);
    scene.show("2.0", &staple);
    scene.user.refuses(&scene.url("2.0"), 3, &["HIDES a change of signers", "2 signers files", "shows 1"]);
    // Who shows all of it is believed.
    scene.hostile.be_honest();
    scene.show("2.0", &staple);
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
}

#[test]
fn a_staple_of_another_release_a_changed_one_and_no_staple_are_refused() {
    let scene = LogScene::start(Some(policy()));
    let other = scene.cosigned("1.0", THREE);
    scene.show("2.0", &other);
    scene.user.refuses(&scene.url("2.0"), 3, &["another release"]);
    let mut changed = scene.cosigned("2.0", THREE);
    changed.statuses.release.number += 1;
    scene.show("2.0", &changed);
    scene.user.refuses(&scene.url("2.0"), 3, &["not in the status map"]);
    let proof = format!("/v1/proof/{}", scene.index("2.0"));
    for lie in [
        Lie::json(&json!({})),
        Lie::bytes("hello"),
        Lie::bytes(vec![b' '; 70_000]),
        Lie::error(404, "no log"),
        Lie::error(503, "catching up"),
    ] {
        scene.hostile.answer(&proof, lie);
        scene.user.refuses(&scene.url("2.0"), 3, &[]);
    }
    assert!(scene.user.computer.pins()["logs"].is_null(), "nothing of this is remembered");
}
