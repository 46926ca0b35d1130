//! What is said about the newest state, and what is demanded.

use serde_json::{Value, json};

use crate::support::log_scene::{LogScene, THREE, content, log_key, policy, policy_file};
use crate::support::{alice, client::Computer, hostile::Lie, hostile::revocation_of};

#[test]
fn a_download_says_as_of_when_and_by_how_many_witnesses() {
    let scene = LogScene::start(Some(policy()));
    scene.show_cosigned("2.0");
    let said = scene.user.takes(&scene.url("2.0"), &content("2.0"));
    let said =
        said.says(&["fresh as of ", " UTC, by 3 of 4 witnesses; the release completed last; not revoked"]);
    said.says(&["not proven  what happened after"]);
    let report = scene.user.run(&["download", &scene.url("2.0"), "--force", "--json"]).ok().json();
    assert_eq!(report["freshness_proven"], true);
    let fresh = &report["freshness"];
    assert_eq!(
        (&fresh["word"], &fresh["cosigned"], &fresh["witnesses"]),
        (&json!("witnesses"), &json!(3), &json!(4))
    );
    assert_eq!(
        (&fresh["needed"], &fresh["newer"], &fresh["signers"]),
        (&json!(3), &json!(0), &json!("newest"))
    );
    assert_eq!(fresh["log_key"], json!(log_key().to_string()));
    assert!(fresh["age_seconds"].as_u64().is_some_and(|age| (60..3_600).contains(&age)), "{fresh}");
    // An older release is told to have newer ones.
    scene.show_cosigned("1.0");
    let said = scene.user.takes(&scene.url("1.0"), &content("1.0"));
    said.says(&["1 release was completed later: 2.0; not revoked"]);
}

#[test]
fn without_witnesses_it_is_the_word_of_the_server_or_the_log_alone() {
    let scene = LogScene::start(None);
    scene.staple("2.0");
    let said = scene.user.takes(&scene.url("2.0"), &content("2.0"));
    let said = said.says(&["by the server's word alone; the release completed last; not revoked"]);
    said.says(&["names no log and no witnesses", "--policy"]).says_nothing_of(&["fresh as of"]);
    let report = scene.user.run(&["download", &scene.url("2.0"), "--force", "--json"]).ok().json();
    assert_eq!(
        (&report["freshness_proven"], &report["freshness"]["word"]),
        (&json!(false), &json!("server"))
    );
    // Nothing proves a time, so a limit cannot be met.
    scene
        .user
        .run(&["download", &scene.url("2.0"), "--force", "--max-age", "1d"])
        .failed(3)
        .says(&["how old"]);

    let scene = LogScene::start(Some(json!({ "log": log_key().to_string() })));
    scene.staple("2.0");
    let said = scene.user.takes(&scene.url("2.0"), &content("2.0"));
    said.says(&["by the log's word alone; the release completed last", "names a log, but no witnesses"]);
}

#[test]
fn a_server_without_a_log_is_as_good_as_before_unless_a_policy_wants_one() {
    let scene = LogScene::start(None);
    let proof = format!("/v1/proof/{}", scene.index("2.0"));
    scene.hostile.answer(&proof, Lie::error(404, "this server keeps no log"));
    let said = scene.user.takes(&scene.url("2.0"), &content("2.0"));
    said.says(&["not proven", "newest release, and that it was not revoked a moment ago"])
        .says_nothing_of(&["warning"]);
    // The user's own policy wants more than the signers file.
    let file = scene.user.computer.config().join("mine.policy");
    std::fs::write(&file, policy_file(2)).unwrap();
    let args = ["download", &scene.url("2.0"), "--force", "--policy", file.to_str().unwrap()];
    scene.user.run(&args).failed(3).says(&["not proven", "mine.policy", "keeps no log", "--no-log-check"]);
    // A log that was there and is gone is worth a word.
    scene.hostile.be_honest();
    scene.staple("2.0");
    scene.user.takes(&scene.url("2.0"), &content("2.0"));
    scene.hostile.answer(&proof, Lie::error(404, "this server keeps no log"));
    scene.user.takes(&scene.url("2.0"), &content("2.0")).says(&["warning:", "sign.example.org/log"]);

    // A bundle without a staple proves no age.
    scene.user.run(&["bundle", &scene.url("2.0"), "-o", "b.json"]).ok();
    scene.user.computer.write("app.tar.gz", content("2.0"));
    let verify = ["verify", "app.tar.gz", "--bundle", "b.json"];
    scene.user.run(&verify).ok().says(&["not proven", "only the network could show"]);
    scene.user.run(&[&verify[..], &["--max-age", "9d"]].concat()).failed(3).says(&["no staple", "--max-age"]);
    scene.user.run(&["staple", "b.json"]).failed(1).says(&["nothing to staple"]);
}

#[test]
fn a_policy_that_no_quorum_meets_refuses_and_can_be_left_out_on_purpose() {
    let scene = LogScene::start(Some(policy()));
    scene.show("2.0", &scene.cosigned("2.0", &THREE[..2]));
    let refused = scene.user.refuses(&scene.url("2.0"), 3, &["2 of 4", "at least 3", "--no-log-check"]);
    refused.says(&["the project's signers file"]);
    let said = scene.user.run(&["download", &scene.url("2.0"), "--force", "--no-log-check"]).ok();
    said.says(&["not proven", "--no-log-check"]);
    // Two are enough for this user.
    let file = scene.user.computer.config().join("mine.policy");
    std::fs::write(&file, policy_file(2)).unwrap();
    let config = scene.user.computer.config().join("config.toml");
    let mut text = std::fs::read_to_string(&config).unwrap_or_default();
    text.insert_str(0, "policy = \"mine.policy\"\n");
    std::fs::write(&config, text).unwrap();
    let said = scene.user.run(&["download", &scene.url("2.0"), "--force"]).ok();
    said.says(&["by 2 of 4 witnesses"]);

    // A proof that is older than the signers file allows.
    std::fs::remove_file(config).unwrap();
    scene.user.put_old_file();
    let days: Vec<(usize, i64)> = [1, 2, 3].map(|n| (n, 3 * 86_400 + 100)).to_vec();
    scene.show("2.0", &scene.cosigned("2.0", &days));
    scene.user.refuses(&scene.url("2.0"), 3, &["3 days old", "allows 1 day", "--max-age 4d", "clock"]);
    let said = scene.user.run(&["download", &scene.url("2.0"), "--force", "--max-age", "4d"]).ok();
    said.says(&["fresh as of 20", "by 3 of 4 witnesses"]);
    // A user can also want more.
    scene.show_cosigned("2.0");
    let args = ["download", &scene.url("2.0"), "--force", "--max-age", "30s"];
    scene.user.run(&args).failed(3).says(&["--max-age allows 30 seconds"]);
}

#[test]
fn a_bundle_carries_the_staple_and_verifies_offline_at_any_age() {
    let scene = LogScene::start(Some(policy()));
    let old: Vec<(usize, i64)> = [1, 2, 3].map(|n| (n, 50 * 3_600)).to_vec();
    scene.show("1.0", &scene.cosigned("1.0", &old));
    let bundle = scene.user.run(&["bundle", &scene.url("1.0"), "-o", "b.json", "--max-age", "3d"]).ok();
    bundle.says(&["1 release was completed later"]);
    scene.user.computer.write("app.tar.gz", content("1.0"));
    let offline = Computer::offline();
    for name in ["app.tar.gz", "b.json"] {
        offline.write(name, scene.user.computer.read(name));
    }
    let digest = countersign_core::values::digest::Sha512::of(&LogScene::signers(Some(policy())).bytes());
    let digest = digest.to_prefixed();
    let verify = ["verify", "app.tar.gz", "--bundle", "b.json", "--signers-digest", &digest];
    offline
        .run(&verify)
        .ok()
        .says(&["fresh as of", "by 3 of 4 witnesses", "1 release was completed later: 2.0"]);
    let refused = offline.run(&[&verify[..], &["--max-age", "1d"]].concat()).failed(3);
    refused.says(&["2 days old", "--max-age allows 1 day"]);
    offline.run(&[&verify[..], &["--max-age", "3d"]].concat()).ok();

    // A fresh staple, from any host, takes the place of the one in the bundle.
    scene.show_cosigned("1.0");
    let file = offline.path("fresh.json");
    scene
        .user
        .run(&["staple", &scene.index("1.0"), "-o", file.to_str().unwrap()])
        .ok()
        .says(&["Stapled", "3 of 4"]);
    let with_staple = [&verify[..], &["--staple", "fresh.json", "--max-age", "1h"]].concat();
    offline.run(&with_staple).ok();
    // One of another release does not.
    scene.show_cosigned("2.0");
    scene.user.run(&["staple", &scene.index("2.0"), "-o", file.to_str().unwrap()]).ok();
    offline.run(&with_staple).failed(3).says(&["another release"]);
}

#[test]
fn a_bundle_tells_that_its_proof_is_missing_and_believes_the_log_that_a_release_is_revoked() {
    let scene = LogScene::start(Some(policy()));
    scene.show_cosigned("1.0");
    scene.user.run(&["bundle", &scene.url("1.0"), "-o", "b.json"]).ok();
    scene.user.computer.write("app.tar.gz", content("1.0"));
    let offline = Computer::offline();
    offline.write("app.tar.gz", content("1.0"));
    let mut bundle: Value = serde_json::from_slice(&scene.user.computer.read("b.json")).unwrap();
    bundle["staple"] = Value::Null;
    offline.write("b.json", bundle.to_string());
    let digest = countersign_core::values::digest::Sha512::of(&LogScene::signers(Some(policy())).bytes());
    let digest = digest.to_prefixed();
    let verify = ["verify", "app.tar.gz", "--bundle", "b.json", "--signers-digest", &digest];
    let told = "no proof is there, although the project's signers file names a log";
    offline.run(&verify).ok().says(&[told]);
    let json = offline.run(&[&verify[..], &["--json"]].concat()).ok().json();
    assert_eq!(json["freshness"]["unmet"], told, "{json}");
    // Who names a policy wants it to be met.
    offline.write("mine.policy", policy_file(2));
    offline
        .run(&[&verify[..], &["--policy", "mine.policy"]].concat())
        .failed(3)
        .says(&["--policy wants a proof"]);
    // One witness proves no time, and the log's own signature is there.
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    for (witnesses, code) in [(&[(1, 60)][..], 4), (&[][..], 4)] {
        offline.write("s.json", scene.cosigned("1.0", witnesses).write());
        let ran = offline.run(&[&verify[..], &["--staple", "s.json"]].concat()).failed(code);
        ran.says(&["REVOKED by the log", "by the log's word alone"]);
    }
}

#[test]
fn staple_renews_a_bundle_in_place_or_makes_a_file_with_a_name_of_its_own() {
    let scene = LogScene::start(Some(policy()));
    scene.show("1.0", &scene.cosigned("1.0", &[(1, 7_200), (2, 7_200), (3, 7_200)]));
    scene.user.run(&["bundle", &scene.url("1.0"), "-o", "b.json"]).ok();
    let staple_of = |name: &str| -> Value {
        serde_json::from_slice::<Value>(&scene.user.computer.read(name)).unwrap()["staple"].clone()
    };
    let before = staple_of("b.json");
    let staple = scene.show_cosigned("1.0");
    scene.user.run(&["staple", "b.json"]).ok().says(&["Stapled", "b.json", "by 3 of 4 witnesses"]);
    let after = staple_of("b.json");
    assert_ne!(before, after);
    assert_eq!(after, serde_json::from_slice::<Value>(&staple.write()).unwrap());
    scene.user.run(&["staple", &scene.index("1.0")]).ok();
    assert_eq!(scene.user.computer.read("app-1.0.staple.json"), staple.write());
    // A revocation that was begun is warned of.
    let index = scene.index("1.0");
    let names = ["b.json", &index];
    for name in names {
        scene.user.run(&["staple", name]).ok().says_nothing_of(&["want it revoked"]);
    }
    let begun = revocation_of(&scene.world.read(&index), "key leaked");
    scene.hostile.show_file(&format!("{index}.revocation.json.pending"), begun);
    for name in names {
        scene.user.run(&["staple", name]).ok().says(&["revokers want it revoked: \"key leaked\"", "Stapled"]);
    }
    scene.hostile.hide_file(&format!("{index}.revocation.json.pending"));
    // What cannot be renewed stays as it is.
    let bytes = scene.user.computer.read("b.json");
    scene.show("1.0", &scene.cosigned("1.0", &THREE[..2]));
    scene.user.run(&["staple", "b.json"]).failed(3).says(&["2 of 4"]);
    scene.world.revoke(&alice(), &scene.index("1.0")).ok();
    scene.user.run(&["staple", "b.json"]).failed(4);
    assert_eq!(scene.user.computer.read("b.json"), bytes);
    scene.user.computer.write("other.json", "{}");
    scene.user.run(&["staple", "other.json"]).failed(3).says(&["not a bundle"]);
}
